"""A later release, made from this one: tables grow, every body is replaced, some signatures get longer."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

from pyff.migrate import DbTree

# `pyff migrate` of that release, which knows itself under a later version than this one.
UPGRADE = """
import sys, pathlib, pyff
pyff.__version__ = sys.argv[3]
from pyff.migrate import DbTree, migrate
migrate(sys.argv[1], db=DbTree.load(pathlib.Path(sys.argv[2])))
"""

DB = Path(__file__).parents[2] / "db"
_PARTS = re.compile(r"^(?=create or replace )", re.MULTILINE)

# What an additive release does to tables in use.
UP = """\
alter table ff_execution add column later text;
alter table ff_attempt_past add column later int not null default 7;
create index ff_execution_later on ff_execution (later) where later is not null;
create table ff_later (id bigint primary key, said text not null);
insert into ff_setting (name, value, description) values ('later', '1', 'of a later release');
"""
DOWN = """\
delete from ff_setting where name = 'later';
drop table ff_later;
drop index ff_execution_later;
alter table ff_attempt_past drop column later;
alter table ff_execution drop column later;
"""

# Functions that get one more argument at the end and, unless they return a table, one more column.
LONGER = ("ff_create_execution", "ff_complete", "ff_renew", "ff_fail", "ff_claim")
# Helpers whose signature changes: only bodies of functions call them, and all of these must find them.
HELPERS = ("ff__check_text", "ff__check_ttl")


def later(root: Path, number: int = 1, *, longer: tuple[str, ...] = LONGER + HELPERS) -> DbTree:
    """The tree of release `number` after this one. Everything in it differs from the one before."""
    shutil.copytree(DB, root)
    last = max(path.name for path in (root / "migrations").glob("*.sql"))
    for n in range(1, number + 1):
        name = f"{int(last[:4]) + n:04}.later_{n}"
        # One migration of a kind is enough; those after it are small.
        up, down = (
            (UP, DOWN) if n == 1 else (f"create table ff_later_{n} (id int);", f"drop table ff_later_{n};")
        )
        (root / "migrations" / f"{name}.sql").write_text(up)
        (root / "migrations" / f"{name}.rollback.sql").write_text(down)
    for path in (root / "functions").glob("*/*.sql"):
        path.write_text("".join(_later(part, number, longer) for part in _PARTS.split(path.read_text())))
    return DbTree.load(root)


def upgrade(dsn: str, tree: DbTree, number: int) -> None:
    """Applies release `number` after this one, in a process of its own."""
    subprocess.run([sys.executable, "-c", UPGRADE, dsn, str(tree.root), f"999.{number}"], check=True)


def _later(text: str, number: int, longer: tuple[str, ...]) -> str:
    """One function of that release."""
    defined = re.search(r"^create or replace (?:function|procedure) (\w+)", text, re.MULTILINE)
    if not defined:
        return text
    text = re.sub(r"\nas \$(\w*)\$", rf"\nas $\1$ -- release {number}\n", text)
    return _longer(text, defined[1]) if defined[1] in longer else text


def _longer(text: str, name: str) -> str:
    """The same function with p_later at the end of its arguments, and the column later at the end of its row."""
    head, body = text.split("\nlanguage", 1)
    if "\n    out " in head:
        head = head.replace("\n    out ", "\n    p_later text default null,\n    out ", 1)
        head = re.sub(r"\n\)$", ",\n    out later text\n)", head)
    elif "\n) returns table (" in head:
        head = head.replace("\n) returns table (", ",\n    p_later text default null\n) returns table (")
    else:
        head = re.sub(r"\)( returns \w+)$", r", p_later text default null)\1", head)
    assert "p_later" in head, name
    body, comments = re.subn(rf"(comment on function {name}\([^)]*)\)", r"\1, text)", body, count=1)
    assert comments == (not name.startswith("ff__")), name
    return f"{head}\nlanguage{body}"
