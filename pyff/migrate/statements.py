"""The SQL that both ways to migrate share: `pyff migrate` sends it, `pyff migrate --sql` prints it."""

from importlib.resources import files
from typing import Final


def _file(name: str) -> str:
    return files(__package__).joinpath("sql", name).read_text(encoding="utf-8")


PREFLIGHT: Final = _file("preflight.sql")
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
"""

# Asked for again and again rather than waited for: a session that waits inside a statement has a snapshot,
# and CREATE INDEX CONCURRENTLY in the migration it waits for would in turn wait for that. For the same reason
# it has no bound parameter (an open portal keeps its snapshot). The lock ends with the transaction, because a
# session's lock would stay behind on a pooler's connection.
TRY_LOCK: Final = "select pg_try_advisory_xact_lock(hashtext('pyff ' || current_schema()), 1)"

# The schemas of the search_path that have an installation, in its order.
INSTALLATIONS: Final = """\
select quote_ident(s.name)
  from unnest(current_schemas(false)) with ordinality s (name, place)
 where to_regclass(format('%I.ff_schema_version', s.name)) is not null
 order by s.place"""

RECORD: Final = """\
insert into ff_schema_version (version, applied_at_ms, migration, sha256)
values (%s, (extract(epoch from clock_timestamp()) * 1000)::bigint, %s, %s)
on conflict do nothing"""

# Of ff_schema_state: a migration was applied after the functions. It may have dropped a view that was in its way.
MIGRATED_SINCE: Final = (
    "exists (select from ff_schema_version v where v.applied_at_ms > ff_schema_state.applied_at_ms)"
)

STATE_OF_FUNCTIONS: Final = f"select functions_sha256, pyff_version, {MIGRATED_SINCE} from ff_schema_state"  # noqa: S608

FORGET: Final = "delete from ff_schema_version where version = %s"

RECORD_FUNCTIONS: Final = """\
insert into ff_schema_state (functions_sha256, pyff_version, applied_at_ms)
values (%s, %s, (extract(epoch from clock_timestamp()) * 1000)::bigint)
on conflict (id) do update
   set functions_sha256 = excluded.functions_sha256,
       pyff_version = excluded.pyff_version,
       applied_at_ms = excluded.applied_at_ms"""
