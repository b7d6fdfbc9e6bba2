"""What the threads of a worker share."""

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic

from pyff.app.run import Run

AHEAD_S = 0.05
"""Work is claimed ahead of the slots for about so long. Short tasks come in batches, long ones are left to others."""

AHEAD_BYTES = 32_000_000
"""Nor more of it than that, as far as sizes can be foreseen."""
SMALL = 10_000
"""Payload and result of a run that do not matter."""


@dataclass(slots=True)
class Counters:
    """Each is written by one thread only."""

    claimed: int = 0
    completed: int = 0
    failed: int = 0
    paused: int = 0
    released: int = 0
    lost: int = 0
    renewed: int = 0


class State:
    """`runs` holds every lease of this process, until the database has acknowledged its end."""

    def __init__(self, slots: int, batch: int) -> None:
        self.slots = slots
        self.batch = batch
        self.runs: dict[str, Run] = {}
        self.finished: deque[Run] = deque()
        self.collected = 0  # of the finished ones, by the finisher
        self.ahead = 0
        self.low = 0
        self.counters = Counters()
        self.draining = threading.Event()
        self.stopping = threading.Event()
        self.room = threading.Event()  # wakes the claimer
        self.work_done = threading.Event()  # wakes the finisher
        self.claimer_waits = False
        self.finisher_waits = False
        self.last_claim = 0.0
        self.last_renewal = 0.0
        self.mean_s = 0.0
        self.left: Callable[[Run], None] | None = None  # told of every run that has its outcome

    def active(self) -> int:
        """Claimed, and not finished by its task."""
        return self.counters.claimed - self.collected - len(self.finished)

    def finish(self, run: Run) -> None:
        """A run has its outcome. From any thread."""
        self.finished.append(run)
        if self.left is not None:
            self.left(run)
        if self.finisher_waits:
            self.work_done.set()

    def starved(self, ready: int) -> None:
        """So much is ready in a pool: maybe it is time to claim."""
        if self.claimer_waits and ready <= self.low:
            self.room.set()

    def slow_down(self) -> None:
        """Claims nothing ahead, until short tasks have been seen for a while again."""
        self.mean_s = max(self.mean_s, 1.0)
        self.ahead = self.low = 0

    def learn(self, runs: list[Run]) -> None:
        """How long tasks take decides how many are claimed ahead."""
        ran = [run.busy_s for run in runs if run.started]
        if not ran:
            return
        mean = sum(ran) / len(ran)
        self.mean_s = mean if not self.mean_s else 0.8 * self.mean_s + 0.2 * mean
        wanted = int(self.slots * AHEAD_S / max(self.mean_s, 1e-6))
        size = sum(len(run.payload or b"") + len(run.result or b"") for run in runs)
        if size > len(runs) * SMALL:
            wanted = min(wanted, AHEAD_BYTES * len(runs) // size)
        self.ahead = 0 if wanted < self.slots // 4 else min(wanted, self.batch)
        self.low = self.ahead // 2


def now() -> float:
    return monotonic()
