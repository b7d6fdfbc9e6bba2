"""An invoice that waits for its payment, in Python with psycopg. See README.md for how to run it."""

import os
from typing import Any, TypeAlias

import psycopg
from psycopg.rows import namedtuple_row

Row: TypeAlias = Any  # named tuples, with the columns that docs/functions.md lists

LANE = "invoices-python"
PAID = '{"kind": "single", "waitpoint_key": "payment", "matcher": {"by_name": "paid"}}'


def connect(dsn: str) -> psycopg.Connection[Any]:
    # In autocommit mode each call commits at once. Without it, submitting is part of your own transaction.
    return psycopg.connect(dsn, autocommit=True, row_factory=namedtuple_row)


def call(conn: psycopg.Connection[Any], function: str, **arguments: object) -> Row:
    """The row that a function returns, or None: `select * from ff_claim(p_lane_id => ..., ...)`."""
    names = ", ".join(f"p_{name} => %({name})s" for name in arguments)
    return conn.execute(f"select * from {function}({names})", arguments).fetchone()  # noqa: S608


def claim(conn: psycopg.Connection[Any]) -> Row:
    # An instance is one process: use a unique name for each.
    return call(
        conn, "ff_claim", lane_id=LANE, worker_id="booker", worker_instance_id=f"booker-{os.getpid()}"
    )


def say(what: str, *values: object) -> None:
    """Prints one line of the transcript, with booleans as in SQL: true, not True."""
    print(f"{what}:", *(str(value).lower() if isinstance(value, bool) else value for value in values))


def main() -> None:
    with connect(os.environ["PYFF_DSN"]) as conn, connect(os.environ["PYFF_SENDER_DSN"]) as outsider:
        # Submit work. The key makes a repetition harmless.
        created = call(
            conn, "ff_create_execution", lane_id=LANE, payload=b"invoice 42", idempotency_key=f"{LANE}/42"
        )
        say("create", created.outcome, created.public_state)
        again = call(
            conn, "ff_create_execution", lane_id=LANE, payload=b"invoice 42", idempotency_key=f"{LANE}/42"
        )
        say("create again", again.outcome, again.execution_id == created.execution_id)

        # A worker claims it under a lease, and renews the lease while it works.
        first = claim(conn)
        say("claim", first.handle_kind, first.attempt_index, first.lease_epoch, first.payload.decode())
        renewed = call(conn, "ff_renew", handle=first.handle)
        say("renew", renewed.lease_epoch, renewed.lease_expires_at_ms >= first.lease_expires_at_ms)

        # Suspend: this releases the lease and returns a token for the sender of the signal.
        point = call(
            conn,
            "ff_suspend",
            handle=first.handle,
            condition=PAID,
            reason_code="waiting_for_callback",
            timeout_ms=86_400_000,
        )
        say("suspend", point.outcome)
        say("claim", claim(conn) or "nothing")

        # The outsider has the token, and a login that may only deliver signals.
        try:
            call(outsider, "ff_list_executions")
        except psycopg.errors.InsufficientPrivilege as error:
            say("outsider looks", error.sqlstate)
        signal = {"execution_id": created.execution_id, "waitpoint_id": point.waitpoint_id}
        try:
            call(outsider, "ff_deliver_signal", **signal, waitpoint_token="key-1:forged", signal_name="paid")  # noqa: S106
        except psycopg.DatabaseError as error:
            say("outsider forges", error.sqlstate)
        delivered = call(
            outsider,
            "ff_deliver_signal",
            **signal,
            waitpoint_token=point.waitpoint_token,
            signal_name="paid",
            payload=b"100 euros",
        )
        say("outsider signals", delivered.outcome, delivered.public_state)

        # Any worker continues the same attempt, under a new lease.
        second = claim(conn)
        say("claim", second.handle_kind, second.attempt_index, second.lease_epoch)
        answer = call(conn, "ff_observe_signals", handle=second.handle)
        say("signal", answer.signal_name, answer.payload.decode())

        # The first handle is no longer valid. Every error has a SQLSTATE, a json DETAIL and a HINT.
        try:
            call(conn, "ff_renew", handle=first.handle)
        except psycopg.DatabaseError as error:
            say("renew with the old handle", error.sqlstate)

        done = call(conn, "ff_complete", handle=second.handle, result=b"booked")
        say("complete", done.public_state, done.replayed)
        done = call(conn, "ff_complete", handle=second.handle, result=b"booked")
        say("complete again", done.public_state, done.replayed)


if __name__ == "__main__":
    main()
