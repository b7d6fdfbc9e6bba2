"""A soak test: creates, claims, renews, completes and trims executions by the hundred thousand. Once the first are
trimmed, tables, indexes and latency must not grow."""

import argparse
import statistics
import sys
import time
from dataclasses import dataclass, field

import psycopg

from bench.server import SETTINGS, Connection, head, p99
from pyff.migrate import migrate
from pyff.migrate.place import show_private
from pyff.postgres import temporary

LANES = 4
BATCH = 1000
TABLES = 2
CALLS = ("create", "claim", "renew", "complete", "trim", "trim events")
ONES = ("create 1", "claim 1", "renew 1", "complete 1")


@dataclass
class Tenth:
    """The measurements of one tenth of the executions."""

    calls: dict[str, list[float]] = field(default_factory=dict)
    started: float = field(default_factory=time.perf_counter)

    def timed(self, conn: Connection, name: str, query: str, *args: object) -> list[tuple[object, ...]]:
        start = time.perf_counter()
        rows = conn.execute(query, args, prepare=True).fetchall()
        self.calls.setdefault(name, []).append((time.perf_counter() - start) * 1000)
        return list(rows)

    def p50(self, name: str) -> float:
        return statistics.median(self.calls.get(name) or [0.0])

    def p99(self, name: str) -> float:
        return p99(self.calls.get(name) or [0.0])


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="bench/run soak", description=__doc__)
    parser.add_argument("--executions", type=int, default=1_000_000, help="how many (default 1000000)")
    parser.add_argument(
        "--retain", type=float, default=10, help="seconds that ended ones are kept (default 10)"
    )
    parser.add_argument("--singles", type=int, default=200, help="single calls per line (default 200)")
    parser.add_argument("--naptime", type=int, default=10, help="autovacuum_naptime in seconds (default 10)")
    args = parser.parse_args(argv)
    batches = max(args.executions // BATCH, 10)
    with temporary(**SETTINGS, autovacuum_naptime=args.naptime) as server:
        migrate(server.dsn)
        head(
            server,
            f"{batches * BATCH} executions in batches of {BATCH}, {args.retain} s retained, autovacuum every"
            f" {args.naptime} s; batch: p50 in ms of {BATCH}; single: p50 / p99 of one call; sizes in MB,"
            " table + indexes; rows, dead rows and the share of HOT updates of ff_execution",
        )
        with psycopg.connect(server.dsn, autocommit=True) as conn:
            show_private(conn)
            for (family,) in conn.execute("select family from ff_event_family").fetchall():
                conn.execute(
                    "select ff_set_event_family(%s, p_retention_ms => %s)", [family, int(args.retain * 1000)]
                )
            _life(conn, batches, args.singles, int(args.retain * 1000))
    return 0


def _life(conn: Connection, batches: int, singles: int, retention_ms: int) -> None:
    tenth, done, printed = Tenth(), 0, 0
    shown: list[str] = []
    for batch in range(batches):
        _batch(conn, tenth, f"lane{batch % LANES}")
        _trim(conn, tenth, retention_ms)
        done += BATCH
        if (batch + 1) * 10 // batches > printed:
            printed += 1
            rate = len(tenth.calls["create"]) * BATCH / (time.perf_counter() - tenth.started)
            for _ in range(singles):
                _single(conn, tenth)
            shown = shown or _header(conn)
            _row(conn, done, rate, tenth, shown)
            tenth = Tenth()


def _batch(conn: Connection, tenth: Tenth, lane: str) -> None:
    tenth.timed(
        conn,
        "create",
        "select count(*) from ff_create_executions(%s, array_fill('\\x0102030405060708'::bytea, array[%s::int]))",
        lane,
        BATCH,
    )
    ((handles,),) = tenth.timed(
        conn, "claim", "select array_agg(handle) from ff_claim_many(%s, 'soak', 'soak-1', %s)", lane, BATCH
    )
    tenth.timed(conn, "renew", "select count(*) from ff_renew_many(%s)", handles)
    ((ended,),) = tenth.timed(
        conn, "complete", "select count(*) from ff_complete_many(%s) where outcome = 'completed'", handles
    )
    if ended != BATCH:
        sys.exit(f"{ended} of {BATCH} were completed")


def _trim(conn: Connection, tenth: Tenth, retention_ms: int) -> None:
    """Twice what a batch adds, at most: so that it catches up."""
    tenth.timed(
        conn, "trim", "select processed from ff_trim_retention(%s, p_limit => %s)", retention_ms, 2 * BATCH
    )
    tenth.timed(conn, "trim events", "select processed from ff_trim_events(%s)", 10 * BATCH)


def _single(conn: Connection, tenth: Tenth) -> None:
    tenth.timed(conn, "create 1", "select * from ff_create_execution('single', p_payload => '\\x01')")
    ((handle,),) = tenth.timed(conn, "claim 1", "select handle from ff_claim('single', 'soak', 'soak-1')")
    tenth.timed(conn, "renew 1", "select * from ff_renew(%s)", handle)
    tenth.timed(conn, "complete 1", "select * from ff_complete(%s)", handle)


def _header(conn: Connection) -> list[str]:
    """Chooses ff_execution and the largest others, and prints the names of the columns."""
    found = conn.execute(
        "select table_name from ff_v_bloat"
        " order by table_name <> 'ff_execution', table_bytes + index_bytes desc limit %s",
        [TABLES],
    ).fetchall()
    tables = [name for (name,) in found]
    print(
        f"{'done':>9}{'per s':>7}"
        + "".join(f"{name.replace('events', 'ev'):>9}" for name in CALLS)
        + "".join(f"{name:>14}" for name in ONES)
        + "".join(f"{name.removeprefix('ff_')[:13]:>14}" for name in tables)
        + f"{'rows':>8}{'dead':>8}{'HOT':>7}"
    )
    return tables


def _row(conn: Connection, done: int, rate: float, tenth: Tenth, tables: list[str]) -> None:
    conn.execute("select pg_stat_force_next_flush(), pg_stat_clear_snapshot()")
    found = {
        name: numbers
        for name, *numbers in conn.execute(
            "select table_name, table_bytes / 1e6, index_bytes / 1e6, live_tuples, dead_tuples, hot_ratio"
            " from ff_v_bloat"
        ).fetchall()
    }
    sizes = [f"{found[name][0]:.1f} + {found[name][1]:.1f}" for name in tables]
    live, dead, hot = found[tables[0]][2:]
    print(
        f"{done:>9}{rate:>7.0f}"
        + "".join(f"{tenth.p50(name):>9.1f}" for name in CALLS)
        + "".join(f"{f'{tenth.p50(name):.2f} / {tenth.p99(name):.1f}':>14}" for name in ONES)
        + "".join(f"{size:>14}" for size in sizes)
        + f"{live!s:>8}{dead!s:>8}{hot!s:>7}",
        flush=True,
    )


if __name__ == "__main__":
    sys.exit(main())
