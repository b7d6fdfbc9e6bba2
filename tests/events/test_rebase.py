"""A database restored into another cluster: transaction ids start again, and readers continue."""

import os
import subprocess
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from pyff.postgres import find, temporary
from tests.events.support import cycle, names, read, settle, stored
from tests.sql import create, execution, one, refused, rows, table, take, violations, wait_for_lock

ROLES = ("ff_reader", "ff_producer", "ff_worker", "ff_signaler", "ff_operator", "ff_admin")


@pytest.fixture(scope="module")
def other_server():
    with temporary(autovacuum=False, search_path="public, ff") as server:
        with psycopg.connect(server.dsn, autocommit=True) as admin:
            for role in ROLES:
                admin.execute(f"create role {role}")
        yield server


@pytest.fixture
def restored(other_server, dsn, server_bindir, request):
    """Dumps this test's database and restores it into another cluster: call it to get a connection."""
    opened = []

    def restore():
        name = f"restored_{len(opened)}_{request.node.name[:40]}"
        with psycopg.connect(other_server.dsn, autocommit=True) as admin:
            admin.execute(f'create database "{name}"')
        target = make_conninfo(other_server.dsn, dbname=name)
        env = {**os.environ, **find().env}
        dump = subprocess.run(
            [server_bindir / "pg_dump", dsn], env=env, capture_output=True, check=True, timeout=300
        )
        command = [server_bindir / "psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", target]
        done = subprocess.run(
            command, env=env, input=dump.stdout, capture_output=True, check=False, timeout=300
        )
        assert done.returncode == 0, done.stderr.decode()
        opened.append(psycopg.connect(target, autocommit=True))
        return opened[-1]

    yield restore
    for conn in opened:
        conn.close()


def xid(conn):
    return int(conn.execute("select pg_current_xact_id()::text").fetchone()[0])


def test_reading_is_refused_until_the_events_are_rebased_and_old_cursors_are_good_again(db, restored):
    # The old cluster must be ahead of the new one, as one with a history is.
    for _ in range(3000):
        db.execute("select pg_current_xact_id()")
    finished = [cycle(db) for _ in range(3)]
    running = create(db)
    row = take(db, lease_ttl_ms=86_400_000)
    settle(db)
    seen = read(db)
    cursor = seen[4]["cursor"]
    mark = read(db, after=cursor, watermark=True)[-1]["cursor"]

    new = restored()
    assert xid(new) < xid(db)
    for function in ("ff_read_events", "ff_read_completions", "ff_event_cursor", "ff_trim_events"):
        with refused("event_generation_stale") as refusal:
            rows(new, function)
        assert refusal.detail["recorded_system_identifier"] != refusal.detail["system_identifier"]
    assert "ff_rebase_events" in refusal.error.diag.message_hint
    assert one(new, "ff_event_lag")["horizon"] <= xid(new)

    answer = one(new, "ff_rebase_events")
    assert answer["gen"] == 2
    assert answer["system_identifier"] == refusal.detail["system_identifier"]
    assert execution(new, running)["last_event_ord"] == 0
    assert read(new) == seen
    assert read(new, after=cursor) == seen[5:]
    assert read(new, after=mark) == []

    # What happens now comes after everything, for those who stopped in the middle and for those at the end.
    one(new, "ff_renew", handle=row["handle"])
    one(new, "ff_complete", handle=row["handle"])
    fresh = cycle(new)
    settle(new)
    after = read(new, after=mark)
    assert names(after) == [
        "lease/renewed",
        "lease/released",
        "completion/success",
        "lease/acquired",
        "lease/released",
        "completion/success",
    ]
    assert [e["execution_id"] for e in after] == [running] * 3 + [fresh] * 3
    assert read(new, after=cursor) == seen[5:] + after
    assert read(new, "completion", after=seen[-1]["cursor"]) == [after[2], after[5]]
    assert {e["gen"] for e in stored(new)} == {1, 2}
    assert len({e["event_id"] for e in stored(new)}) == len(seen) + 6
    pages, at = [], None
    while page := read(new, after=at, limit=2):
        pages += page
        at = page[-1]["cursor"]
    assert pages == seen + after
    assert len(finished) == 3
    assert violations(new) == []


def test_a_lane_and_a_worker_start_anew_too(db, restored):
    for _ in range(3000):
        db.execute("select pg_current_xact_id()")
    one(db, "ff_set_lane_state", lane_id="a", state="paused")
    one(db, "ff_register_worker", worker_id="w", worker_instance_id="w-1", lanes=["a"])
    settle(db)
    cursor = one(db, "ff_event_cursor")["cursor"]
    new = restored()
    one(new, "ff_rebase_events")
    one(new, "ff_set_lane_state", lane_id="a", state="active")
    one(new, "ff_mark_worker_dead", worker_instance_id="w-1")
    settle(new)
    assert names(read(new, after=cursor)) == ["operator/lane_state_changed", "worker/marked_dead"]


@pytest.mark.own_session("copies its database, which a pooler keeps open")
def test_a_copy_in_the_same_cluster_needs_no_rebase(db, dsn, quiet_server):
    cycle(db)
    settle(db)
    seen = read(db)
    name = db.info.dbname
    db.close()
    with psycopg.connect(quiet_server.dsn, autocommit=True) as admin:
        admin.execute(f"create database {name}_copy template {name}")
        with psycopg.connect(dsn, dbname=f"{name}_copy", autocommit=True) as copy:
            assert read(copy) == seen
            cycle(copy)
            settle(copy)
            assert len(read(copy, after=seen[-1]["cursor"])) == 3
        admin.execute(f"drop database {name}_copy with (force)")


def test_each_call_starts_a_generation_and_the_order_goes_on(db):
    cycle(db)
    settle(db)
    first = read(db)
    assert one(db, "ff_rebase_events")["gen"] == 2
    assert one(db, "ff_rebase_events")["gen"] == 3
    cycle(db)
    settle(db)
    assert read(db, after=first[-1]["cursor"]) == read(db)[3:]
    assert [e["cursor"].split(".")[1] for e in read(db)] == ["1"] * 3 + ["3"] * 3
    assert violations(db) == []


def test_a_rebase_waits_for_running_operations_and_loses_none(db, connect):
    """A transaction that has written an event, and one that comes while the rebase waits."""
    create(db)
    early = connect(autocommit=False)
    take(early)
    cursor = one(db, "ff_event_cursor")["cursor"]
    rebaser = connect()
    with ThreadPoolExecutor(1) as pool:
        rebasing = pool.submit(one, rebaser, "ff_rebase_events")
        wait_for_lock(db, rebaser)
        early.commit()
        assert rebasing.result(90)["gen"] == 2
    cycle(db, lane="other")
    settle(db)
    assert names(read(db, after=cursor)) == [
        "lease/acquired",
        "lease/acquired",
        "lease/released",
        "completion/success",
    ]
    assert violations(db) == []


def test_a_flow_starts_anew_too(db, restored):
    for _ in range(3000):
        db.execute("select pg_current_xact_id()")
    flow = one(db, "ff_create_flow")["flow_id"]
    settle(db)
    cursor = one(db, "ff_event_cursor")["cursor"]
    new = restored()
    one(new, "ff_rebase_events")
    assert table(new, "select last_event_ord from ff_flow_core") == [{"last_event_ord": 0}]
    one(new, "ff_cancel_flow", flow_id=flow)
    settle(new)
    assert "flow/cancel_requested" in names(read(new, after=cursor))
    assert violations(new) == []


OLD_SNAPSHOT = {
    "an execution": lambda conn, made: take(conn),
    "an ended execution": lambda conn, made: one(conn, "ff_replay_execution", execution_id=made["ended"]),
    "a lane": lambda conn, made: one(conn, "ff_set_lane_state", lane_id="a", state="active"),
    "a new lane": lambda conn, made: one(conn, "ff_set_lane_state", lane_id="new", state="paused"),
    "a worker": lambda conn, made: one(conn, "ff_mark_worker_dead", worker_instance_id="w-9"),
    "a new worker": lambda conn, made: one(
        conn, "ff_register_worker", worker_id="n", worker_instance_id="n-1", lanes=["a"]
    ),
    "a flow": lambda conn, made: one(conn, "ff_cancel_flow", flow_id=made["flow"]),
    "a new flow": lambda conn, made: one(conn, "ff_create_flow"),
    "a secret": lambda conn, made: one(conn, "ff_rotate_waitpoint_hmac_secret", new_kid="k1"),
}


def test_a_writer_with_a_snapshot_from_before_a_rebase_is_rejected(db, connect):
    made = {"ended": cycle(db), "flow": one(db, "ff_create_flow")["flow_id"]}
    create(db)
    one(db, "ff_set_lane_state", lane_id="a", state="paused")
    one(db, "ff_register_worker", worker_id="w", worker_instance_id="w-9", lanes=["a"])
    writers = {}
    for name in OLD_SNAPSHOT:
        for level in (psycopg.IsolationLevel.REPEATABLE_READ, psycopg.IsolationLevel.SERIALIZABLE):
            conn = connect(autocommit=False)
            conn.isolation_level = level
            conn.execute("select 1 from ff_event_generation")
            writers[name, level.name] = conn
    one(db, "ff_rebase_events")
    written = {}
    for (name, level), conn in writers.items():
        with suppress(psycopg.errors.SerializationFailure):
            written[name, level] = OLD_SNAPSHOT[name](conn, made)
        conn.rollback()
    assert written == {}


@pytest.mark.read_committed("acts on a snapshot from before what it meets")
def test_an_event_of_no_entity_that_comes_while_a_rebase_runs_belongs_to_the_new_generation(db, connect):
    rebaser = connect(autocommit=False)
    one(rebaser, "ff_rebase_events")
    writer = connect(autocommit=False)
    with ThreadPoolExecutor(1) as pool:
        rotation = pool.submit(one, writer, "ff_rotate_waitpoint_hmac_secret", new_kid="k1")
        wait_for_lock(db, writer)
        rebaser.commit()
        rotation.result(90)
    mark = read(db, watermark=True)[-1]["cursor"]
    writer.commit()
    settle(db)
    assert names(read(db, after=mark)) == ["operator/hmac_rotated"]
    assert [event["gen"] for event in stored(db)] == [2]
