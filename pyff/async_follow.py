# Written by hand. `python -m pyff.codegen` generates follow.py from this file.
"""Reading on as things happen: a doorbell wakes the reader; it polls too, which alone would be enough."""

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
from pyff.listener import AsyncDoorbell
from pyff.swallowed import SwallowedCancel

SOON = 0.05  # seconds: after a wake-up, what rang may not be readable yet
WATCH_MS = 60_000
MAX_WATCH_MS = 86_400_000
REFUSED = re.compile(
    "FATAL: .*(does not exist|authentication failed|no pg_hba.conf entry|permission denied)|no password supplied"
)
"""How a server says that it will not let one in. There is no SQLSTATE yet; in another language patience decides."""


class Patience:
    """How long a reader puts up with a server that does not answer."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._since: float | None = None

    def spend(self, error: psycopg.OperationalError) -> bool:
        """Whether there is some left, after another failure. None for one that time does not heal."""
        if isinstance(error, PoolClosed) or REFUSED.search(str(error)):
            return False
        self._since = self._since or time.monotonic()
        return time.monotonic() - self._since < self._seconds

    def restore(self) -> None:
        self._since = None


async def events(
    engine: AsyncMethods,
    bell: AsyncDoorbell,
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
    swallowed = SwallowedCancel()
    with bell:
        while True:
            try:
                if cursor is None and filters["family"] is None:
                    # Families are trimmed to different places: only from here on can all of them be resumed.
                    cursor = (await engine.event_cursor(at="oldest")).cursor
                *found, mark = await engine.read_events(after=cursor, limit=limit, watermark=True, **filters)
            except psycopg.OperationalError as error:
                if not patience.spend(error):
                    raise
                await asyncio.sleep(min(poll_s, 1.0))
                continue
            patience.restore()
            swallowed.check()
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
            # What rang may still be above the horizon: look again soon, then less and less often.
            rung = await bell.wait(pause)
            pause = min(SOON if rung else 2 * pause, poll_s)


async def frames(
    engine: AsyncMethods,
    bell: AsyncDoorbell,
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
    watch_ms = min(max(WATCH_MS, math.ceil(2000 * poll_s)), MAX_WATCH_MS)  # outlasts every wait
    closed = False
    swallowed = SwallowedCancel()
    with bell:
        while True:
            try:
                if bell.listens and not closed and time.monotonic() >= watched_until:
                    try:
                        await engine.watch_stream(execution_id, attempt_index, ttl_ms=watch_ms)
                        watched_until = time.monotonic() + watch_ms / 2000
                    except ReadOnlySqlTransaction:
                        watched_until = math.inf  # nobody rings; polling does
                found = await engine.tail_stream(
                    execution_id, attempt_index, after=cursor, limit=limit, visibility=visibility
                )
                ended = closed and not found
                if not found and not closed:
                    # Once it is closed one more look is enough: nothing can come after.
                    info = await engine.stream_info(execution_id, attempt_index)
                    closed = info.closed_at_ms is not None
            except psycopg.OperationalError as error:
                if not patience.spend(error):
                    raise
                await asyncio.sleep(min(poll_s, 1.0))
                continue
            patience.restore()
            swallowed.check()
            for frame in found:
                yield frame
                cursor = frame.frame_id
            if ended or (not found and not follow):
                return
            if found and len(found) < limit and follow:
                await asyncio.sleep(min(SOON, poll_s))
            elif not found and not closed:
                await bell.wait(poll_s)
