"""Random graphs with random ends, some of them lost with their connection: the invariants hold, every flow ends."""

import random
import threading

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.flows.graph import describe, submit
from tests.sql import claim, one, rows, table, violations

SETTINGS = {
    "deadline": None,
    "derandomize": True,
    "database": None,
    "suppress_health_check": list(HealthCheck),
}


@st.composite
def graphs(draw, size=9):
    """Nodes 0 .. n-1; an edge leads from a smaller to a larger number."""
    count = draw(st.integers(1, size))
    pairs = [(a, b) for b in range(count) for a in range(b)]
    chosen = draw(st.lists(st.sampled_from(pairs), unique=True, max_size=2 * count)) if pairs else []
    kinds = [draw(st.sampled_from(["success_only", "success_only", "any_terminal"])) for _ in chosen]
    groups = {}
    for child in sorted({b for _, b in chosen}):
        degree = sum(b == child for _, b in chosen)
        kind = draw(st.sampled_from(["all_of", "any_of", "quorum"]))
        groups[child] = {
            "to": str(child),
            "policy": kind,
            "on_satisfied": draw(st.sampled_from(["cancel_remaining", "let_run"])),
            **({"k": draw(st.integers(1, degree))} if kind == "quorum" else {}),
        }
    return (
        [{"key": str(i), "lane_id": "default"} for i in range(count)],
        [
            {"from": str(a), "to": str(b), "dependency_kind": kind}
            for (a, b), kind in zip(chosen, kinds, strict=True)
        ],
        list(groups.values()),
    )


def end(conn, rng):
    """One claim and what becomes of it; False if there was nothing."""
    row = claim(conn)
    if row is None:
        return False
    choice = rng.random()
    if choice < 0.6:
        one(conn, "ff_complete", handle=row["handle"])
    elif choice < 0.75:
        one(conn, "ff_fail", handle=row["handle"], classification="permanent")
    elif choice < 0.85:
        one(conn, "ff_cancel_execution", execution_id=row["execution_id"])
    elif one(conn, "ff_wait_children", handle=row["handle"])["outcome"] == "ready":
        one(conn, "ff_complete", handle=row["handle"])
    return True


@pytest.mark.slow("long run")
@settings(max_examples=40, **SETTINGS)
@given(graph=graphs(), seed=st.integers(0, 2**32))
def test_any_graph_with_any_ends_runs_to_its_end(db, graph, seed):
    rng = random.Random(seed)
    db.execute("savepoint life")
    made = submit(db, *graph)
    fid = made[0]["flow_id"]
    ids = [row["execution_id"] for row in made]
    for step in range(60):
        if not end(db, rng):
            break
        if step % 3 == 0:
            assert violations(db) == []
        if rng.random() < 0.15:
            eid = rng.choice(ids)
            if one(db, "ff_describe_execution", execution_id=eid)["terminal_at_ms"]:
                one(db, "ff_replay_execution", execution_id=eid)
        if rng.random() < 0.03:
            one(db, "ff_cancel_flow", flow_id=fid, policy=rng.choice(["cancel_pending", "cancel_flow_only"]))
            ids = ids[:1] if describe(db, fid)["live_members"] else ids
            rng.random = lambda: 0.5  # from here on only successes
    assert violations(db) == []
    found = describe(db, fid)
    alive = [
        r for r in rows(db, "ff_list_flow_members", flow_id=fid, limit=1000) if r["terminal_at_ms"] is None
    ]
    # Members that have not ended wait for a replay: of an upstream whose edge was reopened, directly or not.
    reopened = table(db, "select * from ff_edge where flow_id = %s and reopened_at_ms is not null", fid)
    assert not alive or reopened or found["public_flow_state"] == "cancelled"
    if not alive:
        assert found["public_flow_state"] == (
            "cancelled" if found["cancellation_policy"] else found["derived_state"]
        )
        assert found["live_members"] == 0
    assert table(db, "select * from ff_flow_dispatch") == []
    db.execute("rollback to life")


@pytest.mark.slow("kills processes")
@settings(max_examples=4, **SETTINGS)
@given(graph=graphs(14), seed=st.integers(0, 2**32))
def test_workers_that_die_in_the_middle_lose_nothing(db, dsn, graph, seed):
    made = submit(db, *graph)
    fid = made[0]["flow_id"]
    stop = threading.Event()
    wrong = []

    def work(n):
        rng = random.Random(seed + n)
        while not stop.is_set():
            try:
                with psycopg.connect(dsn, autocommit=True) as conn:
                    for _ in range(6):
                        if rng.random() < 0.2:
                            conn.autocommit = False
                            end(conn, rng)
                            conn.close()  # what it had done is rolled back
                            break
                        end(conn, rng)
            except psycopg.OperationalError:
                continue
            except psycopg.Error as error:
                if not (error.sqlstate or "").startswith("WF"):
                    wrong.append(error)
            if over():
                return

    # Not merely without live members: an end whose child was busy when it was passed on waits for the next claim.
    def over():
        with psycopg.connect(dsn, autocommit=True) as conn:
            return describe(conn, fid)["terminal_at_ms"] is not None

    threads = [threading.Thread(target=work, args=(n,)) for n in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(90)
    stop.set()
    assert wrong == []
    found = describe(db, fid)
    assert (found["live_members"], found["public_flow_state"]) == (0, found["derived_state"])
    assert table(db, "select * from ff_flow_dispatch") == []
    assert violations(db) == []
