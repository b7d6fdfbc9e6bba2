# Written by hand. `python -m tools.codegen` generates follow.py from this file.
"""Follows events and frames: by polling, and sooner when a notification wakes the reader."""

import asyncio
import math
import re
import time
from collections.abc import AsyncGenerator, Mapping
from typing import Any

import psycopg
from psycopg.errors import ReadOnlySqlTransaction
from psycopg_pool import PoolClosed

from pyff._generated.async_methods import AsyncMethods
from pyff._generated.results import FrameRow, ReadEventsRow
from pyff.listener import AsyncWakeup
from pyff.lost_cancel import LostCancel

REREAD_S = 0.05  # seconds: after a notification, its event may not be readable yet
WATCH_MS = 60_000
MAX_WATCH_MS = 86_400_000
REFUSED = re.compile(
    "FATAL: .*(does not exist|authentication failed|no pg_hba.conf entry|permission denied)|no password supplied"
)
"""A rejected login: there is no SQLSTATE yet. In another language of messages, it is retried until patience_s ends."""


class Patience:
    """How long a reader retries an unreachable server."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._since: float | None = None

    def allows(self, error: psycopg.OperationalError) -> bool:
        """Whether to retry after this failure. False for a permanent failure."""
        if isinstance(error, PoolClosed) or REFUSED.search(str(error)):
            return False
        self._since = self._since or time.monotonic()
        return time.monotonic() - self._since < self._seconds

    def reset(self) -> None:
        self._since = None


async def events(
    engine: AsyncMethods,
    wakeup: AsyncWakeup,
    filters: Mapping[str, Any],
    *,
    after: str | None,
    limit: int,
    watermarks: bool,
    follow: bool,
    poll_s: float,
    patience: Patience,
) -> AsyncGenerator[ReadEventsRow, None]:
    cursor = after
    pause = poll_s
    lost_cancel = LostCancel()
    with wakeup:
        while True:
            try:
                if cursor is None and filters["family"] is None:
                    # Families are trimmed to different positions: only from here can all of them be resumed.
                    cursor = (await engine.event_cursor(at="oldest")).cursor
                *found, mark = await engine.read_events(after=cursor, limit=limit, watermark=True, **filters)
            except psycopg.OperationalError as error:
                if not patience.allows(error):
                    raise
                await asyncio.sleep(min(poll_s, 1.0))
                continue
            patience.reset()
            lost_cancel.check()
            for event in found:
                cursor = event.cursor
                yield event
            cursor = mark.cursor
            if watermarks:
                yield mark
            if mark.details != {"at_horizon": True}:
                continue
            if not follow:
                return
            # The notified event may still be above the horizon: read again soon, then less and less often.
            notified = await wakeup.wait(pause)
            pause = min(REREAD_S if notified else 2 * pause, poll_s)


async def frames(
    engine: AsyncMethods,
    wakeup: AsyncWakeup,
    execution_id: str,
    attempt_index: int,
    *,
    after: str,
    limit: int,
    visibility: str,
    follow: bool,
    poll_s: float,
    patience: Patience,
) -> AsyncGenerator[FrameRow, None]:
    cursor = after
    watched_until = 0.0
    watch_ms = min(max(WATCH_MS, math.ceil(2000 * poll_s)), MAX_WATCH_MS)  # longer than every wait
    closed = False
    lost_cancel = LostCancel()
    with wakeup:
        while True:
            try:
                if wakeup.listens and not closed and time.monotonic() >= watched_until:
                    try:
                        await engine.watch_stream(execution_id, attempt_index, ttl_ms=watch_ms)
                        watched_until = time.monotonic() + watch_ms / 2000
                    except ReadOnlySqlTransaction:
                        watched_until = math.inf  # no notifications on a standby; polling remains
                found = await engine.tail_stream(
                    execution_id, attempt_index, after=cursor, limit=limit, visibility=visibility
                )
                ended = closed and not found
                if not found and not closed:
                    # After the close one more read is enough: no frame can follow.
                    info = await engine.stream_info(execution_id, attempt_index)
                    closed = info.closed_at_ms is not None
            except psycopg.OperationalError as error:
                if not patience.allows(error):
                    raise
                await asyncio.sleep(min(poll_s, 1.0))
                continue
            patience.reset()
            lost_cancel.check()
            for frame in found:
                yield frame
                cursor = frame.frame_id
            if ended or (not found and not follow):
                return
            if found and len(found) < limit and follow:
                await asyncio.sleep(min(REREAD_S, poll_s))
            elif not found and not closed:
                await wakeup.wait(poll_s)
