"""Functions, views, rules and grants, applied in the transaction of the connection that is passed in."""

from typing import Any

import psycopg

from pyff import __version__
from pyff.migrate import statements
from pyff.migrate.failures import explained
from pyff.migrate.place import Place
from pyff.migrate.tree import DbTree

_OURS = r"""
    select oid, format('%I(%s)', proname, pg_get_function_arguments(oid))
                || coalesce(' -> ' || pg_get_function_result(oid), '')
      from pg_proc
     where proname like 'ff\_%' and pronamespace = pyff__home('pg_proc', proname)
    union all
    select oid, relname
      from pg_class
     where relname like 'ff\_v\_%' and relkind = 'v' and relnamespace = pyff__home('pg_class', relname)
"""


def apply_functions(conn: psycopg.Connection[Any], tree: DbTree, place: Place) -> tuple[str, ...]:
    """Replaces functions and views with those of the tree. Returns what was dropped, even if it was recreated."""
    conn.execute(statements.TOOLS)
    before: dict[int, str] = dict(conn.execute(_OURS).fetchall())
    for file in tree.objects:
        text = file.sql(place)
        with explained(str(file.path), text):
            conn.execute("call pyff__apply(%s, %s)", [file.name, text])
    with explained("removing objects that this release does not have"):
        conn.execute("call pyff__prune(%s)", [[file.name for file in tree.objects]])
    for file in tree.objects:
        with explained(str(file.path), file.sql(place)):
            conn.execute("call pyff__validate(%s)", [file.name])
    left = {oid for oid, _ in conn.execute(_OURS)}
    conn.execute(statements.DROP_TOOLS)
    return tuple(sorted(signature for oid, signature in before.items() if oid not in left))


def drop_functions(conn: psycopg.Connection[Any]) -> None:
    """Drops all functions and views, except those that columns or constraints call: drop the tables first."""
    conn.execute(statements.TOOLS)
    conn.execute("call pyff__prune('{}')")
    conn.execute(statements.DROP_TOOLS)


def run_scripts(conn: psycopg.Connection[Any], tree: DbTree, place: Place) -> None:
    for file in tree.scripts:
        text = file.sql(place)
        with explained(str(file.path), text):
            conn.execute(text.encode())


def record(conn: psycopg.Connection[Any], tree: DbTree) -> None:
    conn.execute(statements.RECORD_FUNCTIONS, [tree.functions_sha256, __version__])
