"""The privileges of each role, measured: a login of each role calls every function.

`python -m tests.intruders.matrix` writes the outcome into docs/reliability.md.
"""

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql

from pyff.migrate.tree import ROLES

PAGE = Path(__file__).parents[2] / "docs" / "reliability.md"
BEGIN, END = "<!-- roles:begin -->", "<!-- roles:end -->"

ROUTINES = r"""
    select p.proname, p.prokind::text as kind, p.pronargs - p.pronargdefaults as required
      from pg_proc p where p.proname like 'ff\_%' and p.proname not like 'ff\_\_%' order by 1
"""


@contextmanager
def login(admin: psycopg.Connection[Any], dsn: str, *roles: str) -> Iterator[psycopg.Connection[Any]]:
    """A session of a new login that is a member of these roles, and of nothing else."""
    name = f"{roles[0] if roles else 'nobody'}_of_{admin.info.dbname}"
    admin.execute(sql.SQL("create role {} login").format(sql.Identifier(name)))
    for role in roles:
        admin.execute(sql.SQL("grant {} to {}").format(sql.Identifier(role), sql.Identifier(name)))
    try:
        with psycopg.connect(dsn, user=name, autocommit=True) as conn:
            yield conn
    finally:
        admin.execute(sql.SQL("drop owned by {} cascade").format(sql.Identifier(name)))
        admin.execute(sql.SQL("drop role {}").format(sql.Identifier(name)))


def may_call(conn: psycopg.Connection[Any]) -> set[str]:
    """The functions that this session may call. Each is called, with NULL for what it needs."""
    allowed = set()
    for name, kind, required in conn.execute(ROUTINES).fetchall():
        verb = sql.SQL("call {}({})" if kind == "p" else "select * from {}({})")
        call = verb.format(sql.Identifier(name), sql.SQL(", ").join([sql.SQL("null")] * required))
        try:
            conn.execute(call)
        except psycopg.errors.InsufficientPrivilege:
            continue
        except psycopg.Error as error:
            assert (error.sqlstate or "").startswith("WF"), (name, error)
        allowed.add(name)
    return allowed


def tried(admin: psycopg.Connection[Any], dsn: str) -> dict[str, set[str]]:
    """Role -> the functions that a login of it may call."""
    found = {}
    for role in ROLES:
        with login(admin, dsn, role) as conn:
            found[role] = may_call(conn)
    return found


def rendered(allowed: Mapping[str, set[str]]) -> str:
    """The matrix as a table: one row for all functions that the same roles may call."""
    groups: dict[tuple[bool, ...], list[str]] = {}
    for function in sorted(set().union(*allowed.values())):
        groups.setdefault(tuple(function in allowed[role] for role in ROLES), []).append(function)
    lines = [
        f"| {' | '.join(f'`{role}`' for role in ROLES)} | functions |",
        f"|{':-:|' * len(ROLES)}---|",
    ]
    for may, functions in sorted(groups.items(), key=lambda group: (-sum(group[0]), group[0]), reverse=False):
        marks = " | ".join("yes" if yes else "" for yes in may)
        lines.append(f"| {marks} | {', '.join(f'`{name}`' for name in functions)} |")
    return "\n".join(lines)


def section(page: str) -> str:
    return page.split(BEGIN, 1)[1].split(END, 1)[0].strip()


def main() -> int:
    from psycopg.conninfo import make_conninfo

    from pyff.migrate import migrate
    from pyff.postgres import temporary

    with temporary() as server:
        with psycopg.connect(server.dsn, autocommit=True) as conn:
            conn.execute("create database roles")
        dsn = make_conninfo(server.dsn, dbname="roles")
        migrate(dsn)
        with psycopg.connect(dsn, autocommit=True) as admin:
            table = rendered(tried(admin, dsn))
    page = PAGE.read_text()
    PAGE.write_text(
        page.replace(section(page), table) if section(page) else page.replace(BEGIN, f"{BEGIN}\n{table}")
    )
    print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
