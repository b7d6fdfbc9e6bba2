"""What checks share: the connection, the thresholds, and what a finding is."""

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
    mend: tuple[str, ...]
    """Commands or statements, to be run as they are; or what to do, where only a person can know."""


@dataclass(frozen=True)
class Thresholds:
    """From when on something is a problem."""

    held_ms: int = 5 * 60_000
    """A transaction that has been open so long holds the horizon."""
    late_ms: int = 10 * 60_000
    """Work that should have gone on so long ago is stuck; maintenance that has not run for so long is dead."""
    skew_ms: int = 2_000
    dead_rows: int = 10_000
    dead_part: float = 0.2
    """Bloat: so many dead rows, and this part of all."""
    slack_bytes: int = 256 * 2**20
    """Bloat: a file of this size with hardly a row in it."""
    keys_soon_ms: int = 60 * 60_000


@dataclass(frozen=True)
class Patient:
    conn: psycopg.Connection[Any]
    thresholds: Thresholds = field(default_factory=Thresholds)
    first_schema: str | None = None
    """The first schema of the search_path."""
    place: Place = field(default_factory=Place)
    """Where the first installation of the search_path is, or would be."""
    installations: tuple[str, ...] = ()
    """The schemas of the search_path that have an installation."""

    @classmethod
    def prepared(cls, conn: psycopg.Connection[Any], thresholds: Thresholds) -> Self:
        """
        On a session whose current schema is that of the first installation of the search_path, with its private schema
        behind it.
        """
        conn.execute("set enable_seqscan = off")  # each query has its index, whatever the statistics say
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
        """Whether there is a schema to look into. Where there is none, only the first check has something to say."""
        return bool(self.installations)

    def private(self) -> str:
        """The private schema, quoted if need be."""
        return str(self.rows("select quote_ident(%s) as name", self.place.private)[0]["name"])

    def now_ms(self) -> int:
        return int(self.rows("select ff_now_ms() as now")[0]["now"])


def run_sql(statement: str, remark: str = "") -> str:
    """The command that runs it, to be pasted into a shell."""
    harmless = not set(statement) & set('"$`\\!')
    quoted = f'"{statement}"' if harmless else shlex.quote(statement)
    return f"pyff sql {quoted}" + (f"  # {remark}" if remark else "")


def again(patient: Patient) -> tuple[str, str]:
    """Applies the functions and grants of this release anew."""
    state = f"{patient.private()}.ff_schema_state"
    return run_sql(f"update {state} set functions_sha256 = 'look again'"), "pyff migrate"  # noqa: S608


def lasted(ms: float) -> str:
    """A length of time as people say it."""
    for size, unit in ((86_400_000, "days"), (3_600_000, "hours"), (60_000, "minutes")):
        if ms >= 2 * size:
            return f"{ms / size:.0f} {unit}"
    return f"{ms / 1000:.0f} seconds"


def some(names: list[str], at_most: int = 5) -> str:
    rest = len(names) - at_most
    return ", ".join(names[:at_most]) + (f" and {rest} more" if rest > 0 else "")
