"""The peers: what is installed, how they are started, which scenarios they have, and the SQL on their tables."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

DRIVERS = Path(__file__).parent / "drivers"
ALL = "ABCDEFGHI"
NO_STEPS = "no durable steps"
NO_WAIT = "a task cannot wait for a signal"

Runtime = Literal["pyff", "python", "node", "go", "rust", "deb"]


@dataclass(frozen=True)
class Peer:
    """`missing`: why a scenario is not run. `left`: SQL that counts unfinished tasks. `retain`: SQL that makes %(n)s
    finished tasks out of one. `size`: how many tasks it gets, relative to the fastest. `shortest_lease_s`: for E, where
    `slow_default` says why its defaults are not measured, `restarted` that the killed process has to come back, and
    `short_task` is the task whose heartbeats are short, if that is a property of tasks. `durable`: it keeps what
    happened and can go on in the middle of a task. `cleaned`: SQL that empties its one database, where copies
    would take too long."""

    name: str
    runtime: Runtime
    driver: str
    packages: tuple[str, ...]
    left: str
    settings: str
    size: float = 1.0
    shortest_lease_s: int | None = 5
    no_short_lease: str = ""
    slow_default: str = ""
    restarted: bool = False
    short_task: str = "nap"
    retain: tuple[str, ...] = ()
    missing: Mapping[str, str] = field(default_factory=dict)
    batch: str = ""
    keeps: str = ""
    one_process: str = ""
    durable: bool = False
    cleaned: str = ""

    def without(self, scenario: str) -> str | None:
        return self.missing.get(scenario)


PYFF = Peer(
    "pyff",
    "pyff",
    "pyff_driver.py",
    (),
    "select count(*) from ff_v_execution where lifecycle_phase <> 'terminal'",
    "Worker with its defaults (16 slots, claims of up to 500, leases of 10 s), batches of 5 000",
    retain=((Path(__file__).parent / "retain_pyff.sql").read_text(),),
    keeps="everything until ff_trim_retention",
    durable=True,
)

PEERS = (
    PYFF,
    Peer(
        "pyff (SQL)",
        "pyff",
        "pyff_sql_driver.py",
        (),
        PYFF.left,
        "plain SQL: ff_create_executions, ff_claim_many and ff_complete_many, 100 at a time",
        missing=dict.fromkeys("BCDEFGHI", "the functions alone, measured in A"),
    ),
    Peer(
        "absurd",
        "python",
        "absurd_driver.py",
        ("absurd-sdk==0.5.1", "absurdctl==0.5.1", "psycopg[binary]==3.3.8"),
        "select count(*) from absurd.r_bench where state in ('pending', 'running', 'sleeping')",
        "concurrency 16, polls every 250 ms (default); it has no batch call",
        size=0.1,
        slow_default="claims last 120 s by default, which was not waited for",
        retain=(
            "insert into absurd.t_bench select (jsonb_populate_record(t, jsonb_build_object('task_id',"
            " gen_random_uuid()))).* from absurd.t_bench t, generate_series(1, %(n)s)",
            "insert into absurd.r_bench select (jsonb_populate_record(r, jsonb_build_object('run_id',"
            " gen_random_uuid()))).* from absurd.r_bench r, generate_series(1, %(n)s)",
        ),
        keeps="everything until its cleanup",
        durable=True,
        batch="no batch call",
    ),
    Peer(
        "DBOS",
        "python",
        "dbos_driver.py",
        ("dbos==3.3.0", "psycopg[binary]==3.3.8"),
        "select count(*) from dbos.workflow_status where status in ('ENQUEUED', 'PENDING')",
        "one queue without limits, polled every second (default); it has no batch call; for E the killed process is"
        " started again under its name, which is how it recovers",
        size=0.05,
        slow_default="recovers when an executor of the same name starts again, see short leases",
        restarted=True,
        retain=(
            "insert into dbos.workflow_status select (jsonb_populate_record(w, jsonb_build_object('workflow_uuid',"
            " gen_random_uuid()::text))).* from dbos.workflow_status w, generate_series(1, %(n)s)"
            " where w.status = 'SUCCESS'",
        ),
        keeps="everything until its garbage collection",
        durable=True,
        batch="no batch call",
    ),
    Peer(
        "Procrastinate",
        "python",
        "procrastinate_driver.py",
        ("procrastinate==3.10.0", "psycopg[binary,pool]==3.3.8"),
        "select count(*) from procrastinate_jobs where status in ('todo', 'doing')",
        "async tasks, concurrency 30, LISTEN on; for E a task that retries stalled jobs, as its documentation shows",
        size=0.1,
        slow_default="nothing is recovered unless the user schedules it",
        retain=(
            "insert into procrastinate_jobs (queue_name, task_name, priority, args, status, attempts)"
            " select 'default', 'noop', 0, '{\"number\": 1}', 'succeeded', 1 from generate_series(1, %(n)s)",
        ),
        missing={"C": NO_WAIT, "D": NO_STEPS},
        keeps="finished jobs",
    ),
    Peer(
        "PGQueuer",
        "python",
        "pgqueuer_driver.py",
        ("pgqueuer[asyncpg]==1.6.0", "uvloop==0.23.0"),
        "select count(*) from pgqueuer where status in ('queued', 'picked')",
        "asyncpg and uvloop, batches of 1 000",
        missing={"C": NO_WAIT, "D": NO_STEPS},
        retain=(
            "insert into pgqueuer_log (job_id, status, priority, entrypoint, aggregated)"
            " select -g, 'successful', 0, 'noop', true from generate_series(1, %(n)s) g",
        ),
        keeps="deletes jobs, keeps a log",
    ),
    Peer(
        "Graphile Worker",
        "node",
        "graphile.mjs",
        ("graphile-worker@0.18.0", "pg@8.23.1"),
        "select count(*) from graphile_worker._private_jobs where attempts < max_attempts",
        "concurrency 24; in A, F and H with a local queue of 500 and batched completion, as its page on performance"
        " says",
        shortest_lease_s=None,
        slow_default="locks last four hours, which was not waited for",
        no_short_lease="locks last four hours; faster recovery is in its paid version",
        missing={"C": NO_WAIT, "D": NO_STEPS},
        keeps="deletes finished jobs",
    ),
    Peer(
        "pg-boss",
        "node",
        "pgboss.mjs",
        ("pg-boss@12.35.0",),
        "select count(*) from pgboss.job where state < 'completed'",
        "batches of 1 000 in A, F and H (else 100), LISTEN on, bursts while batches are full",
        slow_default="jobs expire after 15 minutes by default, which was not waited for",
        shortest_lease_s=10,
        short_task="nap_short",
        missing={"C": NO_WAIT, "D": NO_STEPS},
        keeps="finished jobs, for a time",
        retain=(
            "insert into pgboss.job (name, data, state, completed_on) select 'noop', '{\"number\": 1}', 'completed',"
            " now() from generate_series(1, %(n)s)",
        ),
    ),
    Peer(
        "River",
        "go",
        "river",
        ("github.com/riverqueue/river@v0.51.0",),
        "select count(*) from river_job where state in ('available', 'running', 'retryable', 'scheduled')",
        "in A, D, F and H 2 000 workers and a fetch cooldown of 2 ms, as its own benchmark has it; else 100 workers and"
        " its defaults",
        slow_default="rescues after an hour by default, which was not waited for",
        missing={"C": NO_WAIT, "D": "its resumable steps are stored when an attempt ends, not one by one"},
        retain=(
            "insert into river_job (kind, args, state, queue, max_attempts, attempt, finalized_at, attempted_at)"
            " select 'noop', '{\"number\": 1}', 'completed', 'default', 25, 1, now(), now()"
            " from generate_series(1, %(n)s)",
        ),
        keeps="finished jobs, for a day",
    ),
    Peer(
        "PgQ",
        "deb",
        "pgq_driver.py",
        ("postgresql-15-pgq3", "psycopg[binary]==3.3.8"),
        "select coalesce(sum(pending_events), 0)::bigint from pgq.get_consumer_info()",
        "its PL/pgSQL form, one consumer, a tick every second as pgqd makes",
        missing={
            "C": NO_WAIT,
            "D": NO_STEPS,
            "E": "a log with positions, no claims: what a batch did is the consumer's to know",
            "F": "every consumer reads everything",
            "G": "events cannot be cancelled",
            "H": "its tables are rotated and truncated",
        },
        keeps="nothing, tables are rotated",
        one_process="one consumer reads in one process",
    ),
    Peer(
        "FlowFabric",
        "rust",
        "flowfabric",
        ("ff-backend-postgres@0.15.0", "ff-core@0.15.0"),
        "select count(*) from ff_exec_core where lifecycle_phase not in ('terminal', 'cancelled')",
        "its Postgres backend as its own benchmarks use it: 16 loops, pauses of 5 ms, all work in one partition; it has"
        " no batch call, and new work is made claimable by an UPDATE (not timed), as in its examples",
        size=0.02,
        missing={
            "D": NO_STEPS,
            "H": "not measured: 256 partitions per table make each copy of its database slow",
        },
        batch="no batch call",
        durable=True,
        cleaned="""
            do $$
            declare v_table regclass;
            begin
                for v_table in
                    select c.oid from pg_class c join pg_namespace n on n.oid = c.relnamespace
                     where n.nspname = 'public' and c.relkind = 'r' and pg_relation_size(c.oid) > 0
                       and c.relname <> all (array['_sqlx_migrations', 'ff_waitpoint_hmac', 'ff_migration_annotation',
                                                 'ff_partition_config'])
                loop
                    execute format('truncate %s', v_table);
                end loop;
            end $$""",
    ),
)

BY_NAME = {peer.name: peer for peer in PEERS}
