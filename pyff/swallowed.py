"""Cancels that got lost: on Python 3.11 asyncio.wait_for can swallow one that comes as its own wait ends."""

import asyncio


class SwallowedCancel:
    """Remembers how often the task had been cancelled; `check` raises for a cancel that nobody has passed on since."""

    def __init__(self) -> None:
        self._known = _cancels()

    def check(self) -> None:
        if _cancels() > self._known:
            raise asyncio.CancelledError


def _cancels() -> int:
    task = asyncio.current_task()
    return task.cancelling() if task is not None else 0


__all__ = ["SwallowedCancel"]
