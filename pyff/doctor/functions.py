"""Does the schema match this release, without changes by hand?"""

from collections.abc import Iterator

import psycopg

from pyff import __version__
from pyff.doctor.context import CheckContext, Finding, first_few, reapply
from pyff.migrate.state import SchemaGap, Status, read_state, require_current
from pyff.migrate.tree import shipped

_BODIES = r"""
select p.proname, p.prosrc from pg_proc p
  join pg_namespace n on n.oid = p.pronamespace
 where p.proname like 'ff\_%%' and n.nspname = any(%s)"""


def check(context: CheckContext) -> Iterator[Finding]:
    yield from _by_path(context)
    try:
        state = read_state(context.conn, shipped(), context.place)
    except psycopg.errors.InsufficientPrivilege:  # the roles of the engine may read this
        yield from _by_asking(context)
        return
    if state.status is Status.NOT_INSTALLED:
        yield Finding(
            "pyff is not installed in this database, or not in a schema of the search_path",
            "nothing works until it is",
            ("pyff migrate",),
        )
    elif state.status is Status.BEHIND:
        yield Finding(
            f"the functions or tables are old: {state}",
            f"pyff {__version__} rejects them, and newer fixes are missing",
            ("pyff migrate",),
        )
    elif state.status is Status.AHEAD:
        yield Finding(
            f"the database is newer than this pyff: {state}",
            "it works, since releases only add, but this program does not know the additions",
            ("pip install --upgrade pyff-engine",),
        )
    elif state.status is Status.EDITED:
        yield Finding(
            f"migrations were changed after they were applied: {', '.join(state.edited)}",
            "the tables of this database are unknown",
            ("pip install --force-reinstall pyff-engine", "pyff migrate --check"),
        )
    else:
        yield from _by_hand(context)


def _by_path(context: CheckContext) -> Iterator[Finding]:
    if not context.installations:
        return
    schema, *others = context.installations
    first = context.first_schema
    if schema != first:
        yield Finding(
            f"pyff is installed in schema {schema}, but schema {first} comes before it in the search_path",
            "calls work, but pyff migrate uses the first schema and fails",
            (f"put {schema} first, in the connection string for example: options=-csearch_path={schema}",),
        )
    if others:
        yield Finding(
            f"pyff is installed in two schemas of the search_path: {schema} and {others[0]}",
            f"calls use the one in {schema}; the work in {others[0]} does not run",
            (f"leave {others[0]} out of the search_path, or {schema}, if that is the wrong one",),
        )


def _by_asking(context: CheckContext) -> Iterator[Finding]:
    try:
        require_current(context.conn)
    except SchemaGap as gap:
        if isinstance(gap.__cause__, psycopg.errors.InsufficientPrivilege):
            raise
        yield Finding(
            gap.message, f"pyff {__version__} refuses to work with this database", ("pyff migrate",)
        )
    else:
        yield from _by_hand(context)


def _by_hand(context: CheckContext) -> Iterator[Finding]:
    """Every installed function body must be equal to that in its file."""
    files = {file.name: file.sql(context.place) for file in shipped().objects}
    schemas = [context.place.schema, context.place.private]
    found = {str(row["proname"]): str(row["prosrc"]) for row in context.rows(_BODIES, schemas)}
    views = {name for name in files if name.startswith("ff_v_")}
    gone = sorted(name for name in files if name not in found and name not in views)
    changed = sorted(name for name, body in found.items() if name in files and body not in files[name])
    if gone:
        yield Finding(f"functions are missing: {first_few(gone)}", "calls of them fail", reapply(context))
    if changed:
        yield Finding(
            f"functions were changed by hand: {first_few(changed)}",
            "the engine may violate its invariants; the next release overwrites the change",
            reapply(context),
        )
