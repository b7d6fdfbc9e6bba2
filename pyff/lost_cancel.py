"""Detects lost cancellations: on Python 3.11 asyncio.wait_for can lose one that arrives as its own wait ends."""

import asyncio


class LostCancel:
    """Records the cancellation count of the task; `check` raises if it has grown since."""

    def __init__(self) -> None:
        self._known = _cancels()

    def check(self) -> None:
        if _cancels() > self._known:
            raise asyncio.CancelledError


def _cancels() -> int:
    task = asyncio.current_task()
    return task.cancelling() if task is not None else 0


__all__ = ["LostCancel"]
