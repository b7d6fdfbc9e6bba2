# Written by hand. `python -m tools.codegen` generates stored_cursor.py from this file.
"""The cursor of a reader of events, stored in the transaction of their effects."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from psycopg import AsyncConnection, sql
from psycopg.rows import tuple_row

from pyff.failure import CursorMoved


class AsyncStoredCursor:
    """A named cursor in a table of yours, in the database where the effects of the events go.

    Each event is processed exactly once: its effects and the new cursor are committed together, or neither.
    If two processes use one name by mistake, the second gets `CursorMoved` before it has done anything.
    """

    def __init__(self, name: str, *, table: str = "pyff_cursor") -> None:
        self.name = name
        self.cursor: str | None = None
        """The cursor as it was last loaded or stored; None before the first event."""
        self._table = sql.Identifier(*table.split("."))

    async def create_table(self, conn: AsyncConnection[Any]) -> None:
        """Creates the table if it is not there."""
        query = "create table if not exists {} (name text primary key, cursor text)"
        async with conn.transaction():
            await conn.execute(sql.SQL(query).format(self._table))

    async def load(self, conn: AsyncConnection[Any]) -> str | None:
        """The cursor to continue from; None if nothing has been processed."""
        insert = sql.SQL("insert into {} (name) values (%s) on conflict (name) do nothing")
        select = sql.SQL("select cursor from {} where name = %s")
        async with conn.transaction():
            await conn.execute(insert.format(self._table), [self.name])
            async with conn.cursor(row_factory=tuple_row) as found:
                await found.execute(select.format(self._table), [self.name])
                rows = await found.fetchall()
        self.cursor = rows[0][0]
        return self.cursor

    @asynccontextmanager
    async def advance(self, conn: AsyncConnection[Any], cursor: str) -> AsyncIterator[None]:
        """A transaction that moves the cursor; do the work of the event inside it, on the same connection.

        If the block raises, both are rolled back; psycopg.Rollback also rolls back, and is not propagated.
        """
        update = sql.SQL("update {} set cursor = %s where name = %s and cursor is not distinct from %s")
        done = False
        async with conn.transaction():
            moved = await conn.execute(update.format(self._table), [cursor, self.name, self.cursor])
            if moved.rowcount != 1:
                raise CursorMoved(self.name)
            yield
            done = True
        if done:  # false after psycopg.Rollback
            self.cursor = cursor


__all__ = ["AsyncStoredCursor"]
