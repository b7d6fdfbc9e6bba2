"""One cycle (create, claim, complete) beside the raw-SQL limit, in short slices that alternate.

Each subject is one pgbench for the whole measurement, so that its sessions, plans and caches are warm. One is stopped
(SIGSTOP) while the other runs a slice, so that other load on the machine affects both. Afterwards: what a row costs
when it is created in batches of 1000, and a task when it is drained in batches of 500.
"""

import argparse
import signal
import subprocess
import sys
import tempfile
import time
from bisect import bisect_left
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from bench.process import load
from bench.server import (
    SETTINGS,
    Connection,
    create,
    database,
    drain,
    head,
    logged,
    percentile,
    pgbench_command,
    pgbench_environment,
    run_sql,
    server_seconds,
    wal_position,
)
from pyff.postgres import TemporaryServer, temporary

SHAPES = {"single": 1, "batch": 100}
WARM_S = 1.0
SETTLE_S = 0.05  # after a stop: longer than a statement in flight
CREATED = 1000
DRAINED = 500
NOTE = """every pair is pyff / limit; ratio, cycles/s, server us and WAL bytes are medians of the slices
server us: processor time of all server processes per cycle, from /proc; WAL bytes: per cycle; rows: inserted, updated
and deleted per cycle; p50, p99: of a transaction
"""


@dataclass
class Subject:
    """One side: its pgbench, and the cost of its slices."""

    script: str
    process: subprocess.Popen[str]
    logs: Path
    windows: list[tuple[float, float]] = field(default_factory=list)
    cpu_s: list[float] = field(default_factory=list)
    wal: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class Figures:
    """Per cycle of one execution; the lists have an entry per slice."""

    cycles_per_s: list[float]
    server_us: list[float]
    wal_bytes: list[float]
    rows: float
    latencies_ms: list[float]


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="bench/run", description=__doc__)
    parser.add_argument("--seconds", type=float, default=1.5, help="length of a slice (default 1.5)")
    parser.add_argument("--rounds", type=int, default=12, help="slices of each subject (default 12)")
    parser.add_argument("--clients", default="1,4,16", help="comma-separated (default 1,4,16)")
    parser.add_argument("--only", choices=[*SHAPES, "drain"], help="one part")
    args = parser.parse_args(argv)
    with temporary(**SETTINGS, autovacuum_naptime=10) as server:
        head(server, f"load before the run {load():.2f}\n{NOTE}")
        if args.only != "drain":
            print(
                f"{'':14}{'ratio':>6}{'cycles/s':>16}{'server us':>13}{'WAL bytes':>14}{'rows':>12}"
                f"{'p50 ms':>15}{'p99 ms':>16}"
            )
        for shape in SHAPES:
            for clients in map(int, args.clients.split(",")):
                if args.only in (None, shape):
                    with database(server) as conn:
                        prepare(conn)
                        found = measure(
                            conn, server, shape, clients, seconds=args.seconds, rounds=args.rounds
                        )
                    _row(shape, clients, *found)
        if args.only in (None, "drain"):
            with database(server) as conn:
                _create_and_drain(conn, server, args.rounds)
    return 0


def prepare(conn: Connection) -> None:
    """The limit's table and a little work for both."""
    run_sql(conn, "limit_setup.sql", "hotpath_setup.sql")
    conn.execute("vacuum analyze")


def measure(
    conn: Connection, server: TemporaryServer, shape: str, clients: int, *, seconds: float, rounds: int
) -> tuple[Figures, Figures]:
    """pyff and the limit."""
    conn.execute("checkpoint")
    # pgbench's time also passes while it is stopped; the last second is not measured.
    whole = 2 * WARM_S + rounds * 2 * (seconds + SETTLE_S) + 3
    with tempfile.TemporaryDirectory() as directory:
        logs = Path(directory)
        before = _rows_written(conn)
        with (
            _started(conn.info.dsn, f"hotpath_{shape}.sql", clients, whole, logs / "ours") as ours,
            _started(conn.info.dsn, f"limit_{shape}.sql", clients, whole, logs / "limit") as limit,
        ):
            for turn in range(rounds):
                for subject in (ours, limit) if turn % 2 else (limit, ours):
                    _slice(conn, server, subject, seconds)
            for subject in (ours, limit):
                _end(subject)
        after = _rows_written(conn)
        written = {name: after[name] - before[name] for name in after}
        size = SHAPES[shape]
        return _figures(ours, size, written["hotpath"]), _figures(limit, size, written["limit"])


@contextmanager
def _started(dsn: str, script: str, clients: int, seconds: float, logs: Path) -> Iterator[Subject]:
    """Starts pgbench, lets it warm up, stops it."""
    logs.mkdir()
    command = pgbench_command(dsn, script, clients, seconds, logs)
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=pgbench_environment()
    ) as process:
        try:
            time.sleep(WARM_S)
            process.send_signal(signal.SIGSTOP)
            yield Subject(script, process, logs)
        finally:
            process.kill()


def _slice(conn: Connection, server: TemporaryServer, subject: Subject, seconds: float) -> None:
    cpu, wal, began = server_seconds(server), wal_position(conn), time.time()
    subject.process.send_signal(signal.SIGCONT)
    time.sleep(seconds)
    subject.process.send_signal(signal.SIGSTOP)
    subject.windows.append((began, time.time()))
    time.sleep(SETTLE_S)
    subject.cpu_s.append(server_seconds(server) - cpu)
    subject.wal.append(wal_position(conn) - wal)


def _end(subject: Subject) -> None:
    subject.process.send_signal(signal.SIGCONT)
    _, errors = subject.process.communicate(timeout=60)
    if subject.process.returncode != 0:
        sys.exit(f"pgbench {subject.script} failed: {errors}")


def _figures(subject: Subject, size: int, rows: int) -> Figures:
    transactions = sorted(logged(subject.logs))
    ends = [end for end, _ in transactions]
    within = [slice(bisect_left(ends, low), bisect_left(ends, high)) for low, high in subject.windows]
    cycles = [size * len(ends[part]) for part in within]
    if not all(cycles):
        sys.exit(f"{subject.script}: a slice without a cycle; give more --seconds")
    return Figures(
        [n / (high - low) for n, (low, high) in zip(cycles, subject.windows, strict=True)],
        [1e6 * s / n for s, n in zip(subject.cpu_s, cycles, strict=True)],
        [wal / n for wal, n in zip(subject.wal, cycles, strict=True)],
        rows / (size * len(ends)),
        sorted(
            ms
            for part, (low, _) in zip(within, subject.windows, strict=True)
            for end, ms in transactions[part]
            if end - ms / 1000 >= low  # the others were in flight when their subject was stopped
        ),
    )


def _rows_written(conn: Connection) -> dict[str, int]:
    """Of the limit and of pyff, by the statistics of their tables; the sessions that wrote have ended."""
    conn.execute("select pg_stat_force_next_flush(), pg_stat_clear_snapshot()")
    return dict(
        conn.execute(
            "select case relname when 'lim_q' then 'limit' else 'hotpath' end,"
            " sum(n_tup_ins + n_tup_upd + n_tup_del)::bigint from pg_stat_user_tables group by 1"
        ).fetchall()
    )


def _row(shape: str, clients: int, ours: Figures, limit: Figures) -> None:
    def both(value: Callable[[Figures], float], digits: int = 0) -> str:
        return f"{value(ours):.{digits}f} / {value(limit):.{digits}f}"

    ratio = median(a / b for a, b in zip(ours.cycles_per_s, limit.cycles_per_s, strict=True))
    print(
        f"{shape:7}{clients:3} cl.{ratio:>6.2f}{both(lambda f: median(f.cycles_per_s)):>16}"
        f"{both(lambda f: median(f.server_us)):>13}{both(lambda f: median(f.wal_bytes)):>14}"
        f"{both(lambda f: f.rows, 2):>12}{both(lambda f: percentile(f.latencies_ms, 50), 2):>15}"
        f"{both(lambda f: percentile(f.latencies_ms, 99), 2):>16}",
        flush=True,
    )


def _create_and_drain(conn: Connection, server: TemporaryServer, rounds: int, tasks: int = 10_000) -> None:
    """Server time per row created and per task drained, one session, the two in turns."""

    def drained() -> None:
        for _ in range(tasks // DRAINED):
            if (count := drain(conn, "drain", DRAINED)) != DRAINED:
                sys.exit(f"{count} instead of {DRAINED} were drained")

    spent: dict[str, float] = {"create": 0, "drain": 0}
    parts: dict[str, Callable[[], None]] = {"create": lambda: create(conn, "drain", tasks), "drain": drained}
    create(conn, "drain", CREATED)
    drain(conn, "drain", CREATED)  # plans are made once per session
    for _ in range(rounds):
        for name, part in parts.items():
            before = server_seconds(server)
            part()
            spent[name] += server_seconds(server) - before
    per_task = {name: 1e6 * seconds / rounds / tasks for name, seconds in spent.items()}
    print(
        f"one session, {rounds * tasks} tasks, processor time of all server processes:\n"
        f"ff_create_executions of {CREATED}: {per_task['create']:.1f} us per row\n"
        f"drain, ff_claim_many and ff_complete_many of {DRAINED}: {per_task['drain']:.1f} us per task",
        flush=True,
    )


if __name__ == "__main__":
    sys.exit(main())
