"""Made-up releases, empty databases, and migrations in processes of their own."""

import subprocess
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from pyff.migrate import DbTree

CORE = """
create table ff_schema_version (
    version int primary key, applied_at_ms bigint not null, migration text not null, sha256 text not null);
create table ff_schema_state (
    id bool primary key default true check (id), functions_sha256 text not null, pyff_version text not null,
    applied_at_ms bigint not null);
create table ff_thing (id int primary key, name text);
"""
CORE_ROLLBACK = "drop table ff_thing; drop table ff_schema_state; drop table ff_schema_version;"


class Release:
    """A db/ directory that a test writes. It begins with the tables every release has, in 0001.core."""

    def __init__(self, root: Path) -> None:
        self.root = root
        (root / "migrations").mkdir(parents=True)
        (root / "functions").mkdir()
        self.migration("0001.core", CORE, CORE_ROLLBACK)

    def migration(self, name: str, up: str, down: str = "select 1;") -> "Release":
        (self.root / "migrations" / f"{name}.sql").write_text(up)
        (self.root / "migrations" / f"{name}.rollback.sql").write_text(down)
        return self

    def file(self, path: str, text: str) -> "Release":
        target = self.root / "functions" / path
        target.parent.mkdir(exist_ok=True)
        text = textwrap.dedent(text)
        if target.stem.startswith("ff_") and not target.stem.startswith("ff__"):
            text += "\n-- grant: ff_reader, ff_admin\n"
        target.write_text(text)
        return self

    def function(
        self,
        name: str,
        arguments: str = "",
        returns: str = "int",
        body: str = "select 1",
        room: str = "nouns",
    ) -> "Release":
        head = f"create or replace function {name}({arguments}) {f'returns {returns}' if returns else ''}"
        return self.file(
            f"{room}/{name}.sql", f"{head}\nlanguage sql set search_path from current\nas $$ {body} $$;\n"
        )

    def view(self, name: str, query: str) -> "Release":
        return self.file(f"views/{name}.sql", f"create or replace view {name} as {query};\n")

    def remove(self, path: str) -> "Release":
        (self.root / "functions" / path).unlink()
        return self

    @property
    def tree(self) -> DbTree:
        return DbTree.load(self.root)


@dataclass(frozen=True)
class Database:
    dsn: str

    @property
    def name(self) -> str:
        return str(conninfo_to_dict(self.dsn)["dbname"])

    def as_(self, role: str = "", *, search_path: str = "") -> str:
        """The conninfo of a session that acts as that role, or installs into that schema."""
        settings = [f"-crole={role}"] if role else []
        settings += [f"-csearch_path={search_path.replace(' ', chr(92) + ' ')}"] if search_path else []
        return make_conninfo(self.dsn, options=" ".join(settings))

    def connect(self, **options: Any) -> psycopg.Connection[Any]:
        """Sees both schemas of an installation."""
        return psycopg.connect(
            self.dsn, **{"autocommit": True, "options": "-csearch_path=public,ff", **options}
        )

    def rows(self, query: str, *args: object) -> list[tuple[Any, ...]]:
        with self.connect() as conn:
            cursor = conn.execute(query.encode(), args or None)
            return cursor.fetchall() if cursor.description else []

    def one(self, query: str, *args: object) -> Any:
        return self.rows(query, *args)[0][0]


class Runner:
    """`migrate` in processes of their own, which can be killed."""

    PROGRAM = (
        "import sys, pathlib\n"
        "from pyff.migrate import DbTree, MigrateError, migrate\n"
        "import pyff.migrate.backend\n"
        "tree = DbTree.load(pathlib.Path(sys.argv[2]))\n"
        "print('ready', flush=True)\n"
        "sys.stdin.readline()\n"
        "try:\n"
        "    print(len(migrate(sys.argv[1], db=tree).applied), flush=True)\n"
        "except MigrateError as error:\n"
        "    sys.exit(str(error))\n"
    )

    def start(self, dsn: str, root: Path) -> "subprocess.Popen[str]":
        """Returns once the process is ready; it begins with `go`."""
        process = subprocess.Popen(
            [sys.executable, "-c", self.PROGRAM, dsn, str(root)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert process.stdout
        assert process.stdout.readline() == "ready\n", process.communicate()
        return process

    def go(self, process: "subprocess.Popen[str]") -> None:
        assert process.stdin
        process.stdin.write("\n")
        process.stdin.flush()
