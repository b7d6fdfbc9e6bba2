"""Calling the SQL surface as any client would, and saying what it must refuse."""

import json
import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import psycopg
import pytest
from psycopg import sql
from psycopg.rows import dict_row

from tests import modes

Row = dict[str, Any]
Found = TypeVar("Found")

PATIENCE_S = 90  # what has not happened by then does not happen
PAUSES = (0.01, 0.04, 0.16, *[0.3] * 20)  # a client's three, and its patience after them


def rows(conn: psycopg.Connection[Any], function: str, **args: Any) -> list[Row]:
    """All rows of a function, called by named notation; p_ is added to the names. A dict goes as jsonb."""
    named = [
        sql.SQL("p_{} => {}").format(sql.SQL(name), sql.Placeholder(name))  # type: ignore[arg-type]
        for name in args
    ]
    values = {
        name: psycopg.types.json.Jsonb(value) if isinstance(value, dict) else value
        for name, value in args.items()
    }
    query = sql.SQL("select * from {}({})").format(sql.SQL(function), sql.SQL(", ").join(named))  # type: ignore[arg-type]
    return repeated(conn, lambda: conn.cursor(row_factory=dict_row).execute(query, values).fetchall())


def repeated(conn: psycopg.Connection[Any], call: Callable[[], Found]) -> Found:
    """Where isolation is stricter, a call that is its own transaction is made again when it meets another.

    A deadlock is not: locks are taken in one order at every level.
    """
    own = conn.autocommit and conn.info.transaction_status is psycopg.pq.TransactionStatus.IDLE
    for pause in PAUSES if own and modes.STRICT else ():
        try:
            return call()
        except psycopg.errors.SerializationFailure:
            time.sleep(pause * random.uniform(0.5, 1.5))
    with savepoint(conn):
        return call()


@contextmanager
def savepoint(conn: psycopg.Connection[Any]) -> Iterator[None]:
    """Inside a transaction, an error in the block undoes the block alone."""
    if conn.info.transaction_status is psycopg.pq.TransactionStatus.INTRANS:
        with conn.transaction():
            yield
    else:
        yield


def one(conn: psycopg.Connection[Any], function: str, **args: Any) -> Row:
    found = rows(conn, function, **args)
    assert len(found) == 1, f"{function} returned {len(found)} rows"
    return found[0]


class Refusal:
    """What `refused` caught: the json DETAIL and the error itself."""

    detail: Row
    error: psycopg.Error


@contextmanager
def refused(kind: str) -> Iterator[Refusal]:
    """The block must raise this engine error: right SQLSTATE, json DETAIL with the kind, a message and a hint."""
    refusal = Refusal()
    with pytest.raises(psycopg.Error) as caught:
        yield refusal
    error = refusal.error = caught.value
    assert error.sqlstate, error
    assert error.sqlstate.startswith("WF"), f"{error.sqlstate}: {error}"
    refusal.detail = json.loads(error.diag.message_detail or "")
    assert refusal.detail["kind"] == kind, error
    assert error.diag.message_primary
    assert error.diag.message_hint


def table(conn: psycopg.Connection[Any], query: str, *args: Any) -> list[Row]:
    """Rows of a query, for looking behind the surface."""
    return repeated(conn, lambda: conn.cursor(row_factory=dict_row).execute(query, args).fetchall())  # type: ignore[arg-type]


def execution(conn: psycopg.Connection[Any], execution_id: str) -> Row:
    """The stored row of an execution."""
    found = table(
        conn, "select * from ff_exec_core where execution_id = %s", execution_id.rsplit(":", maxsplit=1)[-1]
    )
    assert len(found) == 1
    return found[0]


def spread_events(db: psycopg.Connection[Any]) -> None:
    """Gives every event a row of its own in ff_event_log, so that a test can damage one of them."""
    shared = """family, gen, ord, event_id, occurred_at_ms, event_type, reason, execution_id, attempt_index, flow_id,
        lane_id, namespace, tags, lease_id, lease_epoch, worker_id, worker_instance_id, details"""
    wait = "(suspension_id, waitpoint_id, signal_id, source_type, source_identity, effect)::ff_event_wait"
    with db.transaction():
        db.execute("create temp table test_events on commit drop as select * from ff_event")
        db.execute("delete from ff_event_log")
        db.execute(f"insert into ff_event_log ({shared}, wait) select {shared}, {wait} from test_events")


def events(conn: psycopg.Connection[Any], execution_id: str) -> list[str]:
    """An execution's events in order, as `family/type` with the reason if there is one."""
    return [
        f"{e['family']}/{e['event_type']}" + (f":{e['reason']}" if e["reason"] else "")
        for e in table(
            conn,
            "select * from ff_event where execution_id = %s order by event_id",
            execution_id.rsplit(":", maxsplit=1)[-1],
        )
    ]


def create(conn: psycopg.Connection[Any], lane: str = "default", **args: Any) -> str:
    """A new execution; its id."""
    return str(one(conn, "ff_create_execution", lane_id=lane, **args)["execution_id"])


def claim(conn: psycopg.Connection[Any], lane: str = "default", worker: str = "w", **args: Any) -> Row | None:
    """The next execution of a lane, or None."""
    found = rows(conn, "ff_claim", lane_id=lane, worker_id=worker, worker_instance_id=f"{worker}-1", **args)
    assert len(found) <= 1
    return found[0] if found else None


def take(conn: psycopg.Connection[Any], lane: str = "default", worker: str = "w", **args: Any) -> Row:
    """The next execution of a lane, which must be there."""
    found = claim(conn, lane, worker, **args)
    assert found is not None, "nothing to claim"
    return found


def violations(conn: psycopg.Connection[Any]) -> list[Row]:
    return rows(conn, "ff_check_invariants")


def notifications(listener: psycopg.Connection[Any]) -> list[tuple[str, str]]:
    """Every notification that was committed before this call and not read yet, as (channel, payload).

    The last one is sent by the listener itself: it comes after all others, so that nothing depends on a timeout.
    """
    listener.execute("listen pyff_test_end")
    listener.execute("notify pyff_test_end")
    found = []
    for note in listener.notifies(timeout=PATIENCE_S):
        if note.channel == "pyff_test_end":
            break
        found.append((note.channel, note.payload))
    else:
        raise AssertionError("the last notification did not arrive")
    listener.execute("unlisten pyff_test_end")
    return found


def wait_for_lock(conn: psycopg.Connection[Any], waiter: psycopg.Connection[Any]) -> None:
    """Until `waiter` waits for a lock; through a pooler, which hides its session, until any session does."""
    query = """select from pg_stat_activity a
                where a.wait_event_type = 'Lock' and a.datname = current_database() and (a.pid = %s or %s)"""
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        if table(conn, query, waiter.info.backend_pid, modes.PGBOUNCER):
            return
        time.sleep(0.005)
    raise AssertionError("it never waited")
