"""The Worker: tasks per second, the latency of starts and of resumes, its memory."""

import argparse
import contextlib
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from psycopg.conninfo import make_conninfo

from bench.process import megabytes, processor_seconds
from bench.server import SETTINGS, Connection, database, head, percentile
from pyff import App, Ctx, Engine, Token, Worker, send_signal
from pyff.migrate import migrate
from pyff.postgres import TemporaryServer, temporary

app = App(lane="bench")
STARTED: dict[int, float] = {}
"""The arrival time of each call, by its number."""
TOKENS: dict[int, Token] = {}
READY = """
    select exists (select from ff_v_execution e where e.ready_on = 'bench')
"""
ENDED = """
    select count(*) filter (where e.public_state = 'completed'),
           extract(epoch from max(e.terminal_at) - min(e.started_at))
      from ff_v_execution e
"""


@app.task()
def noop(number: int) -> None:
    pass


@app.task()
async def anoop(number: int) -> None:
    pass


@app.task(lane="idle")
def mark(number: int) -> None:
    STARTED[number] = time.perf_counter()


@app.task(lane="idle")
def approval(ctx: Ctx, number: int) -> None:
    ctx.wait("answer", on_token=lambda token: TOKENS.update({number: token}))
    STARTED[number] = time.perf_counter()


@app.task(lane="steps")
def chain(ctx: Ctx, number: int) -> None:
    for step in range(10):
        ctx.step(f"step {step}", abs, number)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="bench/run worker", description=__doc__)
    parser.add_argument("--tasks", type=int, default=60_000, help="no-op tasks per run (default 60000)")
    parser.add_argument("--rounds", type=int, default=3, help="repetitions; the median counts (default 3)")
    parser.add_argument("--only", help="one of throughput, latency, resume, chains")
    parser.add_argument("--profile", action="store_true", help="where the time of one process goes")
    args = parser.parse_args(argv)
    with temporary(**SETTINGS) as server:
        migrate(server.dsn)
        head(server, "one machine for the server and the workers\n")
        with Engine(server.dsn) as engine:
            engine.seed_waitpoint_hmac_secret("bench")
            for name, part in {
                "throughput": lambda: _throughput(server, args),
                "latency": lambda: _latency(server.dsn, engine),
                "resume": lambda: _resume(server.dsn, engine),
                "chains": lambda: _chains(server.dsn, engine),
            }.items():
                if args.only in (None, name):
                    part()
    return 0


def _throughput(server: TemporaryServer, args: argparse.Namespace) -> None:
    """Work is enqueued before the workers start; counted between the first and the last completion in the database."""
    for task, processes in ((noop, 1), (noop, 2), (anoop, 1)):
        rates, sizes, mine, servers = [], [], [], []
        for _ in range(args.rounds):
            with contextlib.ExitStack() as stack:
                conn = stack.enter_context(database(server))
                dsn = make_conninfo(server.dsn, dbname=conn.info.dbname)
                with Engine(dsn) as engine:
                    for start in range(0, args.tasks, 10_000):
                        count = min(10_000, args.tasks - start)
                        task.enqueue_many([(start + i,) for i in range(count)], conn=engine)
                conn.execute("vacuum analyze")
                conn.execute("checkpoint")
                workers = [stack.enter_context(_process(dsn, args.profile)) for _ in range(processes)]
                rates.append(_rate(conn, args.tasks))
                sizes.append(max(megabytes(worker.pid) for worker in workers))
                mine.append(sum(processor_seconds(w.pid) for w in workers) * 1e6 / args.tasks)
                servers.append(sum(map(processor_seconds, _backends(conn))) * 1e6 / args.tasks)
        print(
            f"{task.name:6} {processes} process{'es' if processes > 1 else ''}: {statistics.median(rates):8.0f} tasks/s"
            f"   (rounds {', '.join(f'{r:.0f}' for r in rates)});"
            f" CPU per task: worker {min(mine):.0f} us, its backends {min(servers):.0f} us;"
            f" {max(sizes):.0f} MB per worker",
            flush=True,
        )


def _rate(conn: Connection, tasks: int) -> float:
    """According to the database: from the first claim to the last completion."""
    while True:
        time.sleep(0.2)
        if conn.execute(READY).fetchone() == (True,):
            continue  # cheap, unlike the count
        (row,) = conn.execute(ENDED).fetchall()
        if row[0] >= tasks:
            return tasks / float(row[1])


@contextlib.contextmanager
def _process(dsn: str, profile: bool) -> Iterator[subprocess.Popen[bytes]]:
    options = ["-m", "cProfile", "-o", "/tmp/pyff-worker.prof"] if profile else []  # noqa: S108
    command = [sys.executable, "-P", *options, "-m", "bench.worker_process", dsn]
    with subprocess.Popen(command, cwd=Path(__file__).parents[1]) as process:
        yield process
        process.terminate()


def _backends(conn: Connection) -> list[int]:
    found = conn.execute(
        "select pid from pg_stat_activity where application_name = 'pyff-worker' and datname = current_database()"
    )
    return [pid for (pid,) in found.fetchall()]


def _latency(dsn: str, engine: Engine) -> None:
    """From before the call of enqueue to the first line of the task, while the worker has nothing else to do."""
    with Worker(app, dsn, lanes=["idle"]):
        waits, commits = [], []
        for number in range(210):
            sent = time.perf_counter()
            mark.enqueue(number, conn=engine)
            commits.append(time.perf_counter() - sent)
            waits.append(_reached(number) - sent)
            time.sleep(0.02)
    print(
        f"idle worker, enqueue to start:  {_percentiles(waits[10:])}; of that enqueue {_percentiles(commits[10:])}"
    )


def _reached(number: int) -> float:
    while number not in STARTED:
        time.sleep(0.0002)
    return STARTED[number]


def _resume(dsn: str, engine: Engine) -> None:
    """From before the call that signals to the line after ctx.wait."""
    with Worker(app, dsn, lanes=["idle"]):
        waits, commits = [], []
        for number in range(1000, 1110):
            handle = approval.enqueue(number, conn=engine)
            while number not in TOKENS or handle.state() != "suspended":
                time.sleep(0.001)
            time.sleep(0.02)
            sent = time.perf_counter()
            send_signal(TOKENS[number], "go", conn=engine)
            commits.append(time.perf_counter() - sent)
            waits.append(_reached(number) - sent)
    print(
        f"signal to the line after wait:  {_percentiles(waits[10:])}; of that signal {_percentiles(commits[10:])}"
    )


def _chains(dsn: str, engine: Engine) -> None:
    """Tasks of ten recorded steps each."""
    count = 300
    chain.enqueue_many([(n,) for n in range(count)], conn=engine)
    began = time.perf_counter()
    with Worker(app, dsn, lanes=["steps"]) as worker:
        while worker.health().completed < count:
            time.sleep(0.005)
        spent = time.perf_counter() - began
    print(f"tasks of ten steps: {count / spent:.0f} tasks/s, {10 * count / spent:.0f} steps/s")


def _percentiles(seconds: list[float]) -> str:
    ordered = sorted(1000 * s for s in seconds)
    return " ".join(f"p{p} {percentile(ordered, p):.2f}" for p in (50, 95, 99)) + " ms"


if __name__ == "__main__":
    sys.exit(main())
