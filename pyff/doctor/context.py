"""Shared by the checks: the connection, the thresholds, and findings."""

import shlex
from dataclasses import dataclass, field
from typing import Any, Self

import psycopg
from psycopg.rows import dict_row

from pyff.migrate.place import Place, find
from pyff.migrate.statements import INSTALLATIONS

Row = dict[str, Any]


@dataclass(frozen=True)
class Finding:
    what: str
    why: str
    """Why it matters."""
    fix: tuple[str, ...]
    """Commands or statements to run unchanged; or instructions, where the fix depends on the case."""


@dataclass(frozen=True)
class Thresholds:
    """Limits above which a check reports a finding."""

    held_ms: int = 5 * 60_000
    """Age of an open transaction that holds the horizon."""
    late_ms: int = 10 * 60_000
    """Delay after which due work counts as stuck, and maintenance as not running."""
    skew_ms: int = 2_000
    dead_rows: int = 10_000
    dead_part: float = 0.2
    """Bloat: more dead rows than both `dead_rows` and this part of all rows."""
    slack_bytes: int = 256 * 2**20
    """Bloat: a file of this size with few rows."""
    keys_soon_ms: int = 60 * 60_000


@dataclass(frozen=True)
class CheckContext:
    conn: psycopg.Connection[Any]
    thresholds: Thresholds = field(default_factory=Thresholds)
    first_schema: str | None = None
    """The first schema of the search_path."""
    place: Place = field(default_factory=Place)
    """The schemas of the first installation in the search_path, or of a new one."""
    installations: tuple[str, ...] = ()
    """The schemas in the search_path that have an installation."""

    @classmethod
    def prepared(cls, conn: psycopg.Connection[Any], thresholds: Thresholds) -> Self:
        """Sets the search_path to the schema of its first installation, followed by the private schema."""
        conn.execute("set enable_seqscan = off")  # each query has an index, even with wrong statistics
        conn.execute("set jit = off")  # compiling would take longer than the queries
        (first,) = conn.execute("select quote_ident(current_schema())").fetchone() or (None,)
        found = conn.execute(INSTALLATIONS).fetchall()
        place = find(conn, found[0][1] if found else None) or Place()
        path = (
            "select set_config('search_path',"
            " concat_ws(', ', %s::text, %s::text, current_setting('search_path')), false)"
        )
        if found:
            conn.execute(path, [found[0][0], place.hidden])
        return cls(conn, thresholds, first, place, tuple(quoted for quoted, _ in found))

    def rows(self, query: str, *values: object) -> list[Row]:
        return self.conn.cursor(row_factory=dict_row).execute(query.encode(), values or None).fetchall()

    def has(self, table: str) -> bool:
        return self.rows("select to_regclass(%s) is not null as there", table)[0]["there"] is True

    def installed(self) -> bool:
        """Whether there is an installation. Without one, only the first check can report anything."""
        return bool(self.installations)

    def private(self) -> str:
        """The private schema, quoted if needed."""
        return str(self.rows("select quote_ident(%s) as name", self.place.private)[0]["name"])

    def now_ms(self) -> int:
        return int(self.rows("select ff_now_ms() as now")[0]["now"])


def run_sql(statement: str, remark: str = "") -> str:
    """The shell command that runs the statement."""
    harmless = not set(statement) & set('"$`\\!')
    quoted = f'"{statement}"' if harmless else shlex.quote(statement)
    return f"pyff sql {quoted}" + (f"  # {remark}" if remark else "")


def reapply(context: CheckContext) -> tuple[str, str]:
    """Reapplies the functions and grants of this release."""
    state = f"{context.private()}.ff_schema_state"
    return run_sql(f"update {state} set functions_sha256 = 'sample reapply'"), "pyff migrate"  # noqa: S608


def duration(ms: float) -> str:
    """A duration for people."""
    for size, unit in ((86_400_000, "days"), (3_600_000, "hours"), (60_000, "minutes")):
        if ms >= 2 * size:
            return f"{ms / size:.0f} {unit}"
    return f"{ms / 1000:.0f} seconds"


def first_few(names: list[str], at_most: int = 5) -> str:
    rest = len(names) - at_most
    return ", ".join(names[:at_most]) + (f" and {rest} more" if rest > 0 else "")
