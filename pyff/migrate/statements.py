"""The SQL shared by `pyff migrate`, which sends it, and `pyff migrate --sql`, which prints it."""

from importlib.resources import files
from typing import Final

# The comment of a private schema; %I is the schema of its callers.
_MARK = "pyff: tables and helpers of the functions in schema %I"
_MARKED = f"obj_description(n.oid, 'pg_namespace') = format('{_MARK}', s.name)"

# Of s.name, the schema of callers: the private schema of its installation.
_INSTALLED = f"""\
select n.nspname from pg_namespace n join pg_class c on c.relnamespace = n.oid and c.relname = 'ff_schema_version'
 where {_MARKED}"""  # noqa: S608


def _file(name: str) -> str:
    text = files(__package__).joinpath("sql", name).read_text(encoding="utf-8")
    return text.replace("@mark@", _MARK).replace("@installed@", _INSTALLED)


PREFLIGHT: Final = _file("preflight.sql")
PRIVATE: Final = _file("private.sql")
PATH: Final = _file("path.sql")
PGCRYPTO: Final = _file("pgcrypto.sql")
ROLES: Final = _file("roles.sql")
LOCK_STEP: Final = _file("lock_step.sql")
BEGIN_STEP: Final = _file("begin_step.sql")
TOOLS: Final = _file("tools.sql")

DROP_TOOLS: Final = """\
drop procedure pyff__validate(text);
drop procedure pyff__prune(text[]);
drop procedure pyff__apply(text, text);
drop procedure pyff__drop(regclass, oid);
drop function pyff__home(regclass, text);
"""

# Polled rather than waited for: a session that waits inside a statement has a snapshot, and CREATE INDEX CONCURRENTLY
# in the running migration would wait for that snapshot. For the same reason it has no bound parameter (an open portal
# keeps its snapshot). The lock ends with the transaction, because a session lock would remain on a pooler's connection.
TRY_LOCK: Final = (
    "select pg_try_advisory_xact_lock(hashtext('pyff ' || current_setting('pyff.private_schema')), 1)"
)

# The schemas of the search_path that have an installation, in order.
INSTALLATIONS: Final = f"""\
select quote_ident(s.name), s.name::text
  from unnest(current_schemas(false)) with ordinality s (name, place)
 where exists ({_INSTALLED})
 order by s.place"""  # noqa: S608

# Both schemas, as requested or found.
PLACE: Final = f"""\
select s.name::text,
       coalesce(%(private)s,
                (select n.nspname from pg_namespace n where {_MARKED.replace("%", "%%")}),
                'ff')::text
  from (select coalesce(%(schema)s, current_schema(), '')) s (name)"""  # noqa: S608

# Whether the private schema has the tables of the other one.
INSTALLED: Final = f"""\
select exists (select from pg_namespace n join pg_class c on c.relnamespace = n.oid and c.relname = 'ff_schema_version'
                where n.nspname = %(private)s and coalesce({_MARKED.replace("%", "%%")}, true))
  from (select %(schema)s::text) s (name)"""  # noqa: S608

RECORD: Final = """\
insert into ff_schema_version (version, applied_at_ms, migration, sha256)
values (%s, (extract(epoch from clock_timestamp()) * 1000)::bigint, %s, %s)
on conflict do nothing"""

# Of ff_schema_state s: a migration was applied after the functions. It may have dropped a dependent view.
MIGRATED_SINCE: Final = "exists (select from ff_schema_version v where v.applied_at_ms > s.applied_at_ms)"

FORGET: Final = "delete from ff_schema_version where version = %s"

RECORD_FUNCTIONS: Final = """\
insert into ff_schema_state (functions_sha256, pyff_version, applied_at_ms)
values (%s, %s, (extract(epoch from clock_timestamp()) * 1000)::bigint)
on conflict (id) do update
   set functions_sha256 = excluded.functions_sha256,
       pyff_version = excluded.pyff_version,
       applied_at_ms = excluded.applied_at_ms"""


def state_of_functions(state: str, versions: str) -> str:
    """The query for the installed functions, on these tables."""
    since = MIGRATED_SINCE.replace("ff_schema_version", versions)
    return f"select s.functions_sha256, s.pyff_version, {since} from {state} s"  # noqa: S608
