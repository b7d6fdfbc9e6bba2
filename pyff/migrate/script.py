"""The installation as one script for psql."""

import itertools
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime
from typing import Any

from psycopg import sql
from yoyo import internalmigrations  # type: ignore[import-untyped]
from yoyo.migrations import default_migration_table  # type: ignore[import-untyped]
from yoyo.utils import change_param_style  # type: ignore[import-untyped]

from pyff import __version__
from pyff.migrate import statements
from pyff.migrate.backend import Backend, yoyo_migrations
from pyff.migrate.place import Place, choose
from pyff.migrate.state import release
from pyff.migrate.tree import DbTree

_HEAD = rf"""-- pyff {__version__}: installs it, or upgrades an older one. Safe to run again. For psql:
--     psql -X -f pyff.sql app
-- Functions and views go into schema {{schema}}, tables and helpers into schema {{private}}.
-- Not for --single-transaction.
\set ON_ERROR_STOP on
\set QUIET on
\encoding UTF8
"""

_LOCK = f"""do $pyff$
begin
    if not ({statements.TRY_LOCK}) then
        raise exception 'another migration of this schema is running';
    end if;
end
$pyff$;
{statements.LOCK_STEP}"""

_REFUSALS = """do $pyff$
declare
    v_found text;
begin
    if to_regclass('ff_schema_version') is null then
        return;
    end if;
    select string_agg(migration, ', ') into v_found
      from ff_schema_version
      left join (values {migrations}) as shipped (migration, sha256) using (migration)
     where shipped.sha256 is distinct from ff_schema_version.sha256;
    if v_found is not null then
        raise exception 'applied migrations that this release lacks, or has other files for: %', v_found;
    end if;
    select pyff_version into v_found
      from ff_schema_state s
     where functions_sha256 <> {functions_sha256} and {release} > {own};
    if v_found is not null then
        raise exception 'functions of pyff % are installed, this is pyff {version}', v_found;
    end if;
end
$pyff$;
"""


_PROMOTION = "update ff_schema_state set pyff_version = '{version}' where {release} < {own};"


class _Expression(str):
    """SQL among the parameters, not to be quoted."""

    __slots__ = ()


_UTC_NOW = _Expression("(clock_timestamp() at time zone 'utc')")


class _Recorder(Backend):
    """Records the statements that yoyo would send, without a connection."""

    def __init__(self) -> None:
        self.migration_table = default_migration_table
        self._sent: list[str] = []

    def taken(self) -> str:
        """The statements since the last call."""
        said, self._sent = self._sent, []
        return "".join(f"{statement.strip()};\n" for statement in said)

    def execute(self, sql: str, params: Mapping[str, Any] | None = None) -> "_Recorder":
        if not sql.startswith("SELECT"):
            text, _ = change_param_style("pyformat", sql, params)
            self._sent.append(text % {name: _literal(value) for name, value in (params or {}).items()})
        return self

    def fetchone(self) -> None:
        """No rows, as in an empty database."""

    def list_tables(self, **_: object) -> list[str]:
        return []

    def transaction(self, rollback_on_exit: bool = False) -> AbstractContextManager[Any]:
        return nullcontext()

    def ensure_internal_schema_updated(self) -> None:
        pass

    def get_log_data(self, migration: Any = None, operation: str = "apply") -> dict[str, Any]:  # noqa: ANN401
        return {
            "id": _Expression("gen_random_uuid()"),
            "migration_id": migration.id,
            "migration_hash": migration.hash,
            "username": _Expression("session_user"),
            "hostname": _Expression("coalesce(host(inet_client_addr()), 'psql')"),
            "created_at_utc": _UTC_NOW,
            "operation": operation,
        }


def render(tree: DbTree, place: Place, roles: bool) -> str:
    return "\n".join(_parts(tree, place, roles))


def _parts(tree: DbTree, place: Place, roles: bool) -> Iterator[str]:
    def transaction(*parts: str) -> str:
        quiet = "set local client_min_messages = warning;"
        return "\n".join(["begin;", quiet, place.enter(), _LOCK, *parts, "commit;\n"])

    yoyo = _Recorder()
    yield _HEAD.format(schema=place.schema, private=place.private)
    yield "\n".join(["begin;", choose(place.schema, place.private), statements.PREFLIGHT, "commit;\n"])
    yield transaction(statements.PRIVATE)
    yield transaction(statements.PGCRYPTO)
    if roles:
        yield statements.ROLES

    internalmigrations.upgrade(yoyo)
    fresh = "to_regclass('_yoyo_migration') is null"
    yield transaction(_stated(_REFUSALS, tree), _if(fresh, yoyo.taken()))

    planned = yoyo_migrations(tree)
    for migration in tree.migrations:
        plan = planned[migration.id]
        plan.load()
        yoyo.log_migration(plan, "apply")
        yoyo.mark_one(plan, log=False)
        records = yoyo.taken()
        # Outside the condition: the yoyo command may have applied it, without this record.
        recorded = _filled(statements.RECORD, migration.version, migration.id, migration.sha256)
        marks = place.of("_yoyo_migration")
        pending = f"not exists (select from {marks} where migration_id = {_literal(migration.id)})"
        yield f"-- {migration.id}"
        if plan.use_transactions:
            yield transaction(_if(pending, statements.BEGIN_STEP, migration.text, records), recorded)
        else:
            alone = [place.look_here() + ";", migration.text, "reset search_path;"]
            yield _if(pending, *alone, transaction(records))
            yield transaction(recorded)

    yield "-- functions, views, rules and grants"
    sha256 = _literal(tree.functions_sha256)
    yield transaction(
        statements.BEGIN_STEP,
        _if(
            f"not exists (select from ff_schema_state s where functions_sha256 = {sha256}"
            f" and not ({statements.MIGRATED_SINCE}))",
            statements.TOOLS,
            *(
                f"call pyff__apply({_literal(file.name)}, {_dollar_quoted(file.sql(place))});"
                for file in tree.objects
            ),
            f"call pyff__prune({_literal([file.name for file in tree.objects])});",
            *(f"call pyff__validate({_literal(file.name)});" for file in tree.objects),
            statements.DROP_TOOLS,
            _filled(statements.RECORD_FUNCTIONS, tree.functions_sha256, __version__),
        ),
        _stated(_PROMOTION, tree),
        *(file.sql(place) for file in tree.scripts),
    )


def _stated(template: str, tree: DbTree) -> str:
    return template.format(
        migrations=", ".join(f"({_literal(m.id)}, {_literal(m.sha256)})" for m in tree.migrations),
        functions_sha256=_literal(tree.functions_sha256),
        release=r"string_to_array(substring(pyff_version from '^\d+(?:\.\d+)*'), '.')::int[]",
        own=f"array{list(release(__version__))}",
        version=__version__,
    )


def _if(condition: str, *parts: str) -> str:
    return "\n".join([f"select {condition} as pyff_do \\gset", "\\if :pyff_do", *parts, "\\endif"])


def _filled(statement: str, *values: object) -> str:
    return statement % tuple(map(_literal, values)) + ";\n"


def _literal(value: object) -> str:
    if isinstance(value, _Expression):
        return value
    if isinstance(value, datetime):
        return _UTC_NOW
    return sql.Literal(value).as_string(None)


def _dollar_quoted(text: str) -> str:
    tag = next(tag for n in itertools.count() if (tag := f"$file{n or ''}$") not in text)
    return f"{tag}{text}{tag}"
