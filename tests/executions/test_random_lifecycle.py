"""Random operations; then the invariants hold, and nothing acknowledged is lost."""

import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.executions.driver import Client, results
from tests.sql import table, violations

SECONDS = 6
PATIENCE = 90  # on a machine that is busy with something else


@pytest.mark.slow("long run")
@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    deadline=None,
    derandomize=True,
    database=None,
    max_examples=25,
)
@given(seed=st.integers(0, 2**32), steps=st.lists(st.integers(0, 200), min_size=20, max_size=120))
def test_one_client_and_a_moving_clock_leave_a_sound_database(db, clock, seed, steps):
    with db.transaction(force_rollback=True):
        clock.freeze()
        client = Client(db, seed)
        for advance in steps:
            clock.advance(advance)
            client.step()
        assert violations(db) == []
        assert results(db) == client.completed


@pytest.mark.slow("long run")
def test_concurrent_clients_leave_a_sound_database(db, connect):
    clients = [Client(connect(), seed) for seed in range(6)]
    stop = time.monotonic() + SECONDS

    def enough() -> bool:
        return sum(client.counts["complete"] for client in clients) > 50

    def work(client: Client) -> None:
        while (now := time.monotonic()) < stop or (not enough() and now < stop + PATIENCE):
            client.step()

    with ThreadPoolExecutor(len(clients)) as pool:
        list(pool.map(work, clients))
    assert violations(db) == []
    acknowledged = {handle: result for client in clients for handle, result in client.completed.items()}
    assert results(db) == acknowledged
    stored = {
        f"{{fp:{r['partition_key']}}}:{r['execution_id']}" for r in table(db, "select * from ff_exec_core")
    }
    assert stored == {eid for client in clients for eid in client.created}
    total = sum((client.counts for client in clients), start=clients[0].counts.__class__())
    assert total["complete"] > 50, total
    deadlocks = table(db, "select deadlocks from pg_stat_database where datname = current_database()")
    assert deadlocks == [{"deadlocks": 0}]


@pytest.mark.slow("other isolation levels")
@pytest.mark.parametrize("level", ["repeatable read", "serializable"])
def test_stricter_isolation_changes_no_answer(db, connect, level):
    conn = connect(autocommit=True)
    conn.execute(f"set default_transaction_isolation = '{level}'")
    client = Client(conn, 1)
    for _ in range(300):
        client.step()
    assert violations(db) == []
    assert results(db) == client.completed
