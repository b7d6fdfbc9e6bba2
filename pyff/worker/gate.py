"""Before the slots of an app that has both plain functions and coroutines: together they run so many at a time."""

import threading
from collections import deque
from collections.abc import Callable, Iterable

from pyff.app.run import Run


class Gate:
    """Lets runs through to their pools while fewer than `size` are inside. `left` tells that one has ended."""

    def __init__(self, size: int, enter: Callable[[list[Run]], None]) -> None:
        self.ready: deque[Run] = deque()
        self._size = size
        self._enter = enter
        self._inside: set[Run] = set()
        self._guard = threading.Lock()

    def put(self, runs: Iterable[Run]) -> None:
        self.ready.extend(runs)
        self._let_in()

    def left(self, run: Run) -> None:
        with self._guard:
            self._inside.discard(run)
        self._let_in()

    def drain(self) -> list[Run]:
        """The runs that have not been let through."""
        with self._guard:
            found = list(self.ready)
            self.ready.clear()
        return found

    def _let_in(self) -> None:
        with self._guard:
            room = min(self._size - len(self._inside), len(self.ready))
            entering = [self.ready.popleft() for _ in range(room)]
            self._inside.update(entering)
        if entering:
            self._enter(entering)
