"""Controls the clock of the engine in a test database: all its functions read ff_now_ms()."""

import re
from typing import Any, LiteralString

from psycopg import Connection, sql
from psycopg.rows import tuple_row

_RUNNING = "select floor(extract(epoch from clock_timestamp()) * 1000)::bigint"


def advance(conn: Connection[Any], ms: int) -> int:
    """Moves the clock forward, for all sessions of this database, and returns the new time. The clock keeps running,
    unless it was frozen. A rollback undoes the change.

    The login must own the schema of the engine. Use it only on test databases.
    """
    moment, offset = _read(conn)
    _write(conn, moment if moment is None else moment + ms, offset if moment is not None else offset + ms)
    return _now(conn)


def freeze(conn: Connection[Any], at_ms: int | None = None) -> int:
    """Stops the clock, now or at a given time: only `advance` moves it then."""
    moment = _now(conn) if at_ms is None else at_ms
    _write(conn, moment, 0)
    return moment


def unfreeze(conn: Connection[Any]) -> None:
    """Restores the real time."""
    _write(conn, None, 0)


def _now(conn: Connection[Any]) -> int:
    return int(_one(conn, "select ff_now_ms()")[0])


def _read(conn: Connection[Any]) -> tuple[int | None, int]:
    """The frozen time, and the offset of a running clock."""
    (source,) = _one(conn, "select prosrc from pg_proc where oid = 'ff_now_ms()'::regprocedure")
    found = re.search(r"/\* pyff.testing (frozen|ahead) (-?\d+) \*/", source)
    if found is None:
        return None, 0
    return (int(found[2]), 0) if found[1] == "frozen" else (None, int(found[2]))


def _write(conn: Connection[Any], moment: int | None, offset: int) -> None:
    body = f"{_RUNNING} + {offset} /* pyff.testing ahead {offset} */"
    if moment is not None:
        body = f"select {moment}::bigint /* pyff.testing frozen {moment} */"
    # The schema of the engine, which may not be the current schema of this connection.
    (schema,) = _one(
        conn,
        """select n.nspname from pg_proc p join pg_namespace n on n.oid = p.pronamespace
            where p.oid = 'ff_now_ms()'::regprocedure""",
    )
    statement = sql.SQL(
        "create or replace function {}.ff_now_ms() returns bigint language sql volatile as {}"
    )
    conn.execute(statement.format(sql.Identifier(schema), sql.Literal(body)))


def _one(conn: Connection[Any], query: LiteralString) -> tuple[Any, ...]:
    row = conn.cursor(row_factory=tuple_row).execute(query).fetchone()
    if row is None:
        raise LookupError(query)
    return row
