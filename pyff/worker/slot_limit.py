"""Limits the runs of an app that has both plain functions and coroutines: the two pools share its slots."""

import threading
from collections import deque
from collections.abc import Callable, Iterable

from pyff.app.run import Run


class SlotLimit:
    """Passes runs to their pools while fewer than `size` are running. Call `leave` when a run ends."""

    def __init__(self, size: int, assign: Callable[[list[Run]], None]) -> None:
        self.ready: deque[Run] = deque()
        self._size = size
        self._assign = assign
        self._inside: set[Run] = set()
        self._guard = threading.Lock()

    def put(self, runs: Iterable[Run]) -> None:
        self.ready.extend(runs)
        self._pass_on()

    def leave(self, run: Run) -> None:
        with self._guard:
            self._inside.discard(run)
        self._pass_on()

    def drain(self) -> list[Run]:
        """Removes and returns the runs that have not been passed on."""
        with self._guard:
            found = list(self.ready)
            self.ready.clear()
        return found

    def _pass_on(self) -> None:
        with self._guard:
            room = min(self._size - len(self._inside), len(self.ready))
            admitted = [self.ready.popleft() for _ in range(room)]
            self._inside.update(admitted)
        if admitted:
            self._assign(admitted)
