"""Instructions per execution, counted by callgrind in one single-user backend: the same on a busy machine.

Each count is the difference of two runs, one with twice as many turns as the other, so that start-up, planning and
parsing cancel out. Every call is a transaction of its own. Needs valgrind.
"""

import argparse
import re
import shutil
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import psycopg

from bench.hotpath import prepare
from bench.server import create
from pyff.migrate import migrate
from pyff.postgres import Binaries, TemporaryServer, find, temporary

WARM = 6  # turns before the count: PL/pgSQL chooses generic plans after the fifth
PAYLOAD = "'\\x0102030405060708'::bytea"
PICK = "select l.{} from lim_q l where l.ready order by l.id limit {} for update skip locked"


@dataclass(frozen=True)
class Count:
    """One loop: what each turn calls, and how many executions a turn handles."""

    name: str
    calls: tuple[str, ...]
    size: int = 1
    turns: int = 100


def _create(size: int) -> str:
    if size == 1:
        return f"perform ff_create_execution(p_lane_id => 'bench', p_payload => {PAYLOAD});"
    payloads = f"array_fill({PAYLOAD}, array[{size}])"
    return f"perform ff_create_executions(p_lane_id => 'bench', p_payloads => {payloads});"


def _claim(size: int) -> str:
    worker = "p_lane_id => 'bench', p_worker_id => 'w', p_worker_instance_id => 'w1'"
    if size == 1:
        return f"select handle into h from ff_claim({worker});"
    return f"select array_agg(handle) into hs from ff_claim_many({worker}, p_limit => {size});"


def _complete(size: int) -> str:
    return (
        "perform ff_complete(p_handle => h);" if size == 1 else "perform ff_complete_many(p_handles => hs);"
    )


def _pyff(name: str, size: int, turns: int) -> tuple[Count, ...]:
    return (
        Count(f"{name} create", (_create(size),), size, turns),
        Count(f"{name} claim", (_claim(size),), size, turns),
        Count(f"{name} cycle", (_create(size), _claim(size), _complete(size)), size, turns),
    )


COUNTS = (
    Count(
        "single limit",
        (
            f"insert into lim_q (payload) values ({PAYLOAD});",
            f"update lim_q set ready = false, state = 1 where id = ({PICK.format('id', 1)}) returning id into i;",
            "update lim_q set state = 2 where id = i;",
        ),
    ),
    *_pyff("single", 1, 100),
    Count(
        "batch limit",
        (
            f"insert into lim_q (payload) select {PAYLOAD} from generate_series(1, 100);",
            "with u as (update lim_q set ready = false, state = 1"
            f" where ctid = any (array({PICK.format('ctid', 100)})) returning id)"
            " select array_agg(u.id) into ids from u;",
            "update lim_q set state = 2 where id = any (ids);",
        ),
        size=100,
        turns=5,
    ),
    *_pyff("batch", 100, 5),
    Count("drain of 500", (_claim(500), _complete(500)), size=500, turns=2),
)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="bench/instructions", description=__doc__)
    parser.add_argument("--only", help="counts whose name contains this; the names are those of the report")
    parser.add_argument(
        "--top", type=int, default=0, metavar="N", help="also the N functions of highest inclusive cost"
    )
    parser.add_argument("--turns", type=int, help="turns of each loop (default 100 single, 5 batch, 2 drain)")
    args = parser.parse_args(argv)
    if shutil.which("valgrind") is None:
        sys.exit("valgrind is not installed: the instructions cannot be counted here")
    chosen = [count for count in COUNTS if args.only is None or args.only in count.name]
    if not chosen:
        parser.error(f"--only: none of {', '.join(count.name for count in COUNTS)}")
    with temporary(shared_buffers="64MB") as server:
        _prepare(server, max(count.size * (2 * (args.turns or count.turns) + WARM) for count in chosen))
        print(f"PostgreSQL {server.version}: thousands of instructions per execution", flush=True)
        found: dict[str, float] = {}
        for count in chosen:
            turns = args.turns or count.turns
            once, twice = (_run(server, count, n * turns) for n in (1, 2))
            twice.subtract(once)
            per = {name: cost / turns / count.size / 1000 for name, cost in twice.items()}
            found[count.name] = per.pop("PROGRAM TOTALS")
            _show(count.name, found)
            # What has nearly the whole cost is the way from main() into the loop.
            inner = [n for n, cost in per.items() if cost < 0.97 * found[count.name] and not n.endswith("'2")]
            for name in sorted(inner, key=lambda name: -per[name])[: args.top]:
                print(f"{'':20}{per[name]:10.1f}  in {name}", flush=True)
    return 0


def _prepare(server: TemporaryServer, ready: int) -> None:
    """Work for every loop; then the server stops, and each count gets a copy of its data."""
    migrate(server.dsn)
    with psycopg.connect(server.dsn, autocommit=True) as conn:
        create(conn, "bench", ready)
        prepare(conn)
    binaries = find()
    binaries.account.run(
        [server.bindir / "pg_ctl", "stop", "-w", "-m", "fast", "-D", server.data], binaries.env
    )


def _show(name: str, found: dict[str, float]) -> None:
    print(f"{name:20}{found[name]:10.1f}", flush=True)
    shape, _, part = name.partition(" ")
    create, claim = found.get(f"{shape} create"), found.get(f"{shape} claim")
    if part == "cycle" and create is not None and claim is not None:
        rest = f"{shape} complete"
        print(f"{rest:20}{found[name] - create - claim:10.1f}  (cycle less create and claim)", flush=True)
    if part == "cycle" and f"{shape} limit" in found:
        print(f"{'':20}{found[name] / found[f'{shape} limit']:10.1f}  times the limit", flush=True)


def _run(server: TemporaryServer, count: Count, turns: int) -> Counter[str]:
    """Inclusive instructions by function, and all of them as PROGRAM TOTALS."""
    binaries = find()
    script = server.directory / "script.sql"
    script.write_text(
        "do $$ declare h text; hs text[]; i bigint; ids bigint[];"
        f" begin for turn in 1..{turns + WARM} loop {' commit; '.join(count.calls)} commit; end loop; end $$\n"
    )
    script.chmod(0o644)
    found: Path = server.directory / "callgrind.out"
    copied = server.directory / "copy"
    output = _shell(
        binaries,
        f"rm -rf {copied}; cp -a {server.data} {copied};"
        f" exec valgrind --tool=callgrind --callgrind-out-file={found} {server.bindir}/postgres --single"
        f" -D {copied} -c jit=off postgres <{script}",
    )
    if "ERROR" in output:
        sys.exit(f"{count.name}: {output}")
    report = _shell(
        binaries, f"callgrind_annotate --inclusive=yes --threshold=100 --show-percs=no --auto=no {found}"
    )
    costs: Counter[str] = Counter()
    for line in re.finditer(r"^ *([\d,]+) +(?:\S*:)?(\S.*?)(?: \[[^]]*\])?$", report, re.M):
        # A function that calls itself has a second line, f'2, whose cost the first line includes.
        costs[line[2]] = max(costs[line[2]], int(line[1].replace(",", "")))
    if "PROGRAM TOTALS" not in costs:
        sys.exit(f"{count.name}: callgrind counted nothing: {report}")
    return costs


def _shell(binaries: Binaries, command: str) -> str:
    done = binaries.account.run(["/bin/sh", "-c", command], binaries.env, timeout=600)
    if done.returncode != 0:
        sys.exit(f"{command}: {done.stdout}")
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
