"""Instructions per execution, counted by callgrind in one single-user backend: the same on a busy machine.

Each figure is the difference of two runs, one with twice as many cycles as the other, so that start-up, planning and
parsing cancel out. Every call is a transaction of its own. Needs valgrind.
"""

import argparse
import re
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from bench.hotpath import prepare
from pyff.migrate import migrate
from pyff.postgres import Binaries, TemporaryServer, find, temporary

PAYLOAD = "'\\x0102030405060708'::bytea"
CREATE = f"perform ff_create_execution(p_lane_id => 'bench', p_payload => {PAYLOAD});"
CLAIM = "select handle into h from ff_claim(p_lane_id => 'bench', p_worker_id => 'w', p_worker_instance_id => 'w1');"
CREATE_MANY = (
    f"perform ff_create_executions(p_lane_id => 'bench', p_payloads => array_fill({PAYLOAD}, array[100]));"
)
CLAIM_MANY = (
    "select array_agg(handle) into hs from ff_claim_many(p_lane_id => 'bench', p_worker_id => 'w',"
    " p_worker_instance_id => 'w1', p_limit => 100);"
)
LIMIT_PICK = "select l.{} from lim_q l where l.ready order by l.id limit {} for update skip locked"


@dataclass(frozen=True)
class Shape:
    """One loop: what to call, and how many executions each turn of it handles."""

    name: str
    calls: tuple[str, ...]
    size: int = 1
    turns: int = 100


SHAPES = (
    Shape(
        "limit, single",
        (
            f"insert into lim_q (payload) values ({PAYLOAD});",
            f"update lim_q set ready = false, state = 1 where id = ({LIMIT_PICK.format('id', 1)}) returning id into i;",
            "update lim_q set state = 2 where id = i;",
        ),
    ),
    Shape("pyff, single: create", (CREATE,)),
    Shape("pyff, single: claim", (CLAIM,)),
    Shape("pyff, single: cycle", (CREATE, CLAIM, "perform ff_complete(p_handle => h);")),
    Shape(
        "limit, batch of 100",
        (
            f"insert into lim_q (payload) select {PAYLOAD} from generate_series(1, 100);",
            "with u as (update lim_q set ready = false, state = 1"
            f" where ctid = any (array({LIMIT_PICK.format('ctid', 100)})) returning id)"
            " select array_agg(u.id) into ids from u;",
            "update lim_q set state = 2 where id = any (ids);",
        ),
        size=100,
        turns=5,
    ),
    Shape("pyff, batch of 100: create", (CREATE_MANY,), size=100, turns=5),
    Shape("pyff, batch of 100: claim", (CLAIM_MANY,), size=100, turns=5),
    Shape(
        "pyff, batch of 100: cycle",
        (CREATE_MANY, CLAIM_MANY, "perform ff_complete_many(p_handles => hs);"),
        size=100,
        turns=5,
    ),
)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="bench/run instructions", description=__doc__)
    parser.add_argument("--only", help="shapes whose name contains this")
    args = parser.parse_args(argv)
    if shutil.which("valgrind") is None:
        sys.exit("valgrind is not installed")
    with temporary(shared_buffers="64MB") as server:
        migrate(server.dsn)
        prepare(server)
        binaries = find()
        stop = [server.bindir / "pg_ctl", "stop", "-w", "-m", "fast", "-D", server.data]
        binaries.account.run(stop, binaries.env)
        print(f"PostgreSQL {server.version}: thousands of instructions per execution", flush=True)
        for shape in SHAPES:
            if args.only is None or args.only in shape.name:
                once, twice = (_count(server, binaries, shape, shape.turns * n) for n in (1, 2))
                print(f"{shape.name:30}{(twice - once) / shape.turns / shape.size / 1000:10.0f}", flush=True)
    return 0


def _count(server: TemporaryServer, binaries: Binaries, shape: Shape, turns: int) -> int:
    loop = " commit; ".join(shape.calls)
    script = server.directory / "script.sql"
    script.write_text(  # five turns first: PL/pgSQL settles on generic plans after the fifth
        "do $$ declare h text; hs text[]; i bigint; ids bigint[];"
        f" begin for turn in 1..{turns + 6} loop {loop} commit; end loop; end $$\n"
    )
    script.chmod(0o644)
    found: Path = server.directory / "callgrind.out"
    copied = server.directory / "copy"
    command = (
        f"rm -rf {copied}; cp -a {server.data} {copied};"
        f" exec valgrind --tool=callgrind --callgrind-out-file={found} {server.bindir}/postgres --single"
        f" -D {copied} -c jit=off postgres <{script}"
    )
    done = binaries.account.run(["/bin/sh", "-c", command], binaries.env, timeout=600)
    counted = re.search(r"Collected : (\d+)", done.stdout)
    if done.returncode != 0 or counted is None or "ERROR" in done.stdout:
        sys.exit(f"{shape.name}: {done.stdout}")
    return int(counted[1])


if __name__ == "__main__":
    sys.exit(main())
