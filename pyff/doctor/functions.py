"""Is the schema that of this release, and has nobody changed it since?"""

from collections.abc import Iterator

import psycopg

from pyff import __version__
from pyff.doctor.patient import Finding, Patient, again, some
from pyff.migrate.state import SchemaGap, Status, read_state, require_current
from pyff.migrate.tree import shipped

_BODIES = r"""
select p.proname, p.prosrc from pg_proc p
  join pg_namespace n on n.oid = p.pronamespace
 where p.proname like 'ff\_%%' and n.nspname = any(%s)"""


def check(patient: Patient) -> Iterator[Finding]:
    yield from _by_path(patient)
    try:
        state = read_state(patient.conn, shipped(), patient.place)
    except psycopg.errors.InsufficientPrivilege:  # a role of the engine may ask which functions there are
        yield from _by_asking(patient)
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
            f"pyff {__version__} refuses to work with them, and fixes that came since are missing",
            ("pyff migrate",),
        )
    elif state.status is Status.AHEAD:
        yield Finding(
            f"the database is newer than this pyff: {state}",
            "it works as far as releases only add, but this program does not know what is new",
            ("pip install --upgrade pyff-engine",),
        )
    elif state.status is Status.EDITED:
        yield Finding(
            f"migrations were changed after they had been applied: {', '.join(state.edited)}",
            "nobody knows which tables this database really has",
            ("pip install --force-reinstall pyff-engine", "pyff migrate --check"),
        )
    else:
        yield from _by_hand(patient)


def _by_path(patient: Patient) -> Iterator[Finding]:
    if not patient.installations:
        return
    schema, *others = patient.installations
    first = patient.first_schema
    if schema != first:
        yield Finding(
            f"pyff is installed in schema {schema}, but schema {first} comes before it in the search_path",
            "calls work, but pyff migrate works on the first schema and refuses",
            (f"put {schema} first, in the connection string for example: options=-csearch_path={schema}",),
        )
    if others:
        yield Finding(
            f"pyff is installed in two schemas of the search_path: {schema} and {others[0]}",
            f"calls use that in {schema}; the work in {others[0]} is not done",
            (f"leave {others[0]} out of the search_path, or {schema}, if that is the wrong one",),
        )


def _by_asking(patient: Patient) -> Iterator[Finding]:
    try:
        require_current(patient.conn)
    except SchemaGap as gap:
        if isinstance(gap.__cause__, psycopg.errors.InsufficientPrivilege):
            raise
        yield Finding(
            gap.message, f"pyff {__version__} refuses to work with this database", ("pyff migrate",)
        )
    else:
        yield from _by_hand(patient)


def _by_hand(patient: Patient) -> Iterator[Finding]:
    """Every installed body stands word for word in the file of its function."""
    files = {file.name: file.sql(patient.place) for file in shipped().objects}
    schemas = [patient.place.schema, patient.place.private]
    found = {str(row["proname"]): str(row["prosrc"]) for row in patient.rows(_BODIES, schemas)}
    views = {name for name in files if name.startswith("ff_v_")}
    gone = sorted(name for name in files if name not in found and name not in views)
    changed = sorted(name for name, body in found.items() if name in files and body not in files[name])
    if gone:
        yield Finding(f"functions are missing: {some(gone)}", "what calls them fails", again(patient))
    if changed:
        yield Finding(
            f"functions were changed by hand: {some(changed)}",
            "the engine may break its own rules; the next release overwrites the change",
            again(patient),
        )
