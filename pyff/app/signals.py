"""Sends signals to waiting tasks."""

from collections.abc import Mapping
from typing import Any

import psycopg
from psycopg import Connection

from pyff._generated.results import SignalResult
from pyff.app.values import Token
from pyff.codecs.codec import JSON, to_json
from pyff.engine import Engine
from pyff.errors import InvalidExecutionId, InvalidToken, MissingToken, translate
from pyff.types import JsonValue


def send_signal(
    token: Token | str,
    name: str,
    payload: Mapping[str, JsonValue] | None = None,
    *,
    conn: Connection[Any] | Engine | str,
    source: str = "",
    key: str | None = None,
) -> SignalResult:
    """Sends a signal to the wait that a token belongs to. A login with the role ff_signaler is enough.

    `token` is a Token or its url_param, `conn` an engine, a connection or a DSN; on a connection the signal is part of
    its transaction. With a `key` a repetition has no effect.

    Raises: InvalidToken, TokenExpired, WaitpointClosed, TargetNotSignalable, InvalidSignalName, ConnectionLost.
    """
    known = Token.parse(token) if isinstance(token, str) else token
    if isinstance(conn, str):
        try:
            own = Connection.connect(conn, autocommit=True)
        except psycopg.OperationalError as error:
            raise translate(error, may_have_run=False) from error
        with own:
            return send_signal(known, name, payload, conn=own, source=source, key=key)
    joined = conn if isinstance(conn, Connection) else None
    engine = Engine(conn, check_schema=False) if isinstance(conn, Connection) else conn
    if not isinstance(engine, Engine):
        raise TypeError(
            f"conn: expected an Engine, a psycopg.Connection or a DSN, got {type(engine).__name__}"
        )
    try:
        return engine.deliver_signal(
            known.execution_id,
            known.waitpoint_id,
            known.secret,
            name,
            payload=None if payload is None else to_json(payload),
            payload_encoding=None if payload is None else JSON,
            source_identity=source,
            idempotency_key=key,
            conn=joined,
        )
    except (InvalidExecutionId, MissingToken) as error:  # parts of the token
        raise InvalidToken from error


__all__ = ["send_signal"]
