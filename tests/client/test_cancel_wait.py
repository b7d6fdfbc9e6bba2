"""Waiting in the client until a cancelled flow is over."""

import threading

import psycopg
import pytest

from pyff import AsyncEngine, Engine, WaitTimeout
from tests.flows.graph import begin, flow, node, nodes, states
from tests.sql import one


def test_the_client_drains_what_one_call_left(db, dsn):
    fid = flow(db)
    members = nodes(db, fid, 5)
    with Engine(dsn) as engine:
        found = engine.cancel_flow(fid, max_members=2, wait=10)
    assert (found.outcome, found.pending_count) == ("cancellation_scheduled", 3)
    assert states(db, members) == ["cancelled"] * 5


def test_a_member_that_runs_on_is_waited_for(db, dsn):
    fid = flow(db)
    handle = begin(db, node(db, fid))["handle"]
    with Engine(dsn) as engine:
        with pytest.raises(WaitTimeout) as caught:
            engine.cancel_flow(fid, policy="cancel_pending", wait=0)
        assert (caught.value.detail["flow_id"], caught.value.detail["cancel_pending"]) == (str(fid), 1)
        timer = threading.Timer(0.05, lambda: one(db, "ff_complete", handle=handle))
        timer.start()
        engine.cancel_flow(fid, policy="cancel_pending", wait=10)
        timer.join()
        assert engine.describe_flow(fid).cancel_pending == 0


def test_inside_a_transaction_of_the_caller_there_is_nothing_to_wait_for(db, dsn):
    fid = flow(db)
    with Engine(dsn) as engine, psycopg.connect(dsn) as conn:
        with pytest.raises(ValueError, match="transaction"):
            engine.cancel_flow(fid, wait=1, conn=conn)
        assert engine.cancel_flow(fid, conn=conn).outcome == "cancelled"
        conn.rollback()
        assert engine.describe_flow(fid).public_flow_state == "open"


@pytest.mark.own_session("acts as a role")
def test_a_producer_waits_until_the_backlog_is_drained(db, dsn):
    fid = flow(db)
    nodes(db, fid, 3)
    with psycopg.connect(dsn, autocommit=True) as conn:
        conn.execute("set role ff_producer")
        with pytest.raises(WaitTimeout):
            Engine(conn, check_schema=False).cancel_flow(fid, max_members=1, wait=0.2)


async def test_the_async_engine_waits_too(db, dsn):
    fid = flow(db)
    members = nodes(db, fid, 3)
    async with AsyncEngine(dsn) as engine:
        await engine.cancel_flow(fid, max_members=1, wait=10)
    assert states(db, members) == ["cancelled"] * 3
