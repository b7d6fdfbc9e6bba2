"""Claims at the same time as other claims and creates: no work is missed, and no claim waits."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.sql import create, one, rows, take, violations

pytestmark = pytest.mark.modes

WORKER = {"lane_id": "default", "worker_id": "w", "worker_instance_id": "w-1"}
SESSIONS = 16
ROUNDS = 12
# Each round creates as many executions as it claims. The loop runs in the server, with a commit after each call.
CREATE_AND_CLAIM = """
do $$
declare
    v_got int;
begin
    for i in 1..{rounds} loop
        perform ff_create_executions('default', array_fill(''::bytea, array[{size}]));
        commit;
        {claim}
        commit;
        insert into test_got values (v_got);
        commit;
    end loop;
end
$$"""
ONE_BATCH = "select count(*) into v_got from ff_claim_many('default', 'w', 'w-1', {size}, {able}, 600000);"
SINGLE_CLAIMS = """v_got := 0;
        for j in 1..{size} loop
            v_got := v_got + (select count(*) from ff_claim('default', 'w', 'w-1', {able}, 600000));
            commit;
        end loop;"""


@pytest.mark.read_committed("a transaction with one snapshot cannot look again")
@pytest.mark.parametrize("able", ["'{}'", "'{arm,gpu}'"], ids=["no capabilities", "capabilities"])
@pytest.mark.parametrize(("claim", "size"), [(ONE_BATCH, 100), (SINGLE_CLAIMS, 10)], ids=["batch", "single"])
def test_sessions_that_create_as_much_as_they_claim_always_get_what_they_ask_for(
    db, connect, claim, size, able
):
    db.execute("create table test_got (got int)")
    script = CREATE_AND_CLAIM.format(rounds=ROUNDS, size=size, claim=claim.format(size=size, able=able))
    start = threading.Barrier(SESSIONS)
    sessions = [connect() for _ in range(SESSIONS)]

    def run(session):
        start.wait()
        session.execute(script)

    with ThreadPoolExecutor(SESSIONS) as pool:
        list(pool.map(run, sessions))
    got = [row[0] for row in db.execute("select got from test_got").fetchall()]
    assert len(got) == SESSIONS * ROUNDS
    assert [n for n in got if n < size] == []
    assert violations(db) == []


@pytest.mark.parametrize("function", ["ff_claim", "ff_claim_many"])
def test_claims_in_open_transactions_share_what_is_ready_without_waiting(db, connect, function):
    created = {create(db) for _ in range(4)}
    limit = {"limit": 2} if function == "ff_claim_many" else {}
    callers = [connect(autocommit=False) for _ in range(4 if function == "ff_claim" else 2)]
    got = []
    for caller in callers:
        caller.execute("set local lock_timeout = '10s'")
        got += [row["execution_id"] for row in rows(caller, function, **limit, **WORKER)]
    assert len(got) == 4
    assert set(got) == created


COMMITS = "do $$ begin for i in 1..5000 loop perform pg_current_xact_id(); commit; end loop; end $$"


def test_a_claim_ends_while_another_transaction_holds_ready_rows_and_others_commit(db, connect):
    for _ in range(5):
        create(db)
    holder, busy = connect(autocommit=False), connect()
    held = rows(holder, "ff_claim_many", limit=5, **WORKER)
    assert len(held) == 5
    with ThreadPoolExecutor(1) as pool:
        commits = pool.submit(busy.execute, COMMITS)
        for _ in range(100):
            assert rows(db, "ff_claim_many", limit=5, **WORKER) == []
            assert rows(db, "ff_claim", **WORKER) == []
        commits.result()
    holder.rollback()
    assert {r["execution_id"] for r in rows(db, "ff_claim_many", limit=5, **WORKER)} == {
        r["execution_id"] for r in held
    }


@pytest.mark.parametrize("function", ["ff_claim", "ff_claim_many"])
def test_a_claim_with_one_snapshot_for_its_transaction_answers_from_that_snapshot(db, connect, function):
    create(db, "other")
    session = connect(autocommit=False)
    session.execute("set transaction isolation level repeatable read")
    session.execute("select from ff_now_ms()")
    eid = create(db)
    assert rows(session, function, **WORKER) == []
    session.rollback()
    assert [r["execution_id"] for r in rows(db, function, **WORKER)] == [eid]


@pytest.mark.own_session("has a setting of its own")
@pytest.mark.no_serializable("the watcher writes, and has read what the claims change")
@pytest.mark.parametrize("policy", [{}, {"quota_policy_id": "roomy"}])
@pytest.mark.parametrize("overdue", [False, True])
@pytest.mark.parametrize("function", ["ff_claim", "ff_claim_many", "ff_claim_for_worker"])
def test_a_claim_does_not_wait_for_a_transaction_that_watches_the_stream_of_crashed_work(
    db, connect, clock, function, overdue, policy
):
    clock.freeze()
    one(db, "ff_create_quota_policy", quota_policy_id="roomy", max_concurrent=100)
    crashed = create(db, policy=policy, deadline_at_ms=clock.now() + (100 if overdue else 1000))
    one(db, "ff_append_frame", handle=take(db, lease_ttl_ms=100)["handle"], frame_type="log", payload=b"x")
    watcher = connect(autocommit=False)
    one(watcher, "ff_watch_stream", execution_id=crashed, attempt_index=0)
    clock.advance(100)
    free = create(db, policy=policy)
    db.execute("set lock_timeout = '5s'")
    assert [row["execution_id"] for row in rows(db, function, **WORKER)] == [free]
    assert rows(db, function, **WORKER) == []
    watcher.commit()
    assert [row["execution_id"] for row in rows(db, function, **WORKER)] == ([] if overdue else [crashed])
    assert violations(db) == []
