"""State shared by the threads of a worker."""

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic

from pyff.app.run import Run

AHEAD_S = 0.05
"""Claim about this many seconds of work ahead. Short tasks are claimed in batches, long ones not ahead."""

AHEAD_BYTES = 32_000_000
"""Claim at most about this many bytes ahead, estimated from recent runs."""
SMALL = 10_000
"""Bytes of payload and result up to which the size of a run is ignored."""


@dataclass(slots=True)
class Counters:
    """Each counter is written by one thread only."""

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
        self.collected = 0  # finished runs that the finisher has taken
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
        self.on_outcome: Callable[[Run], None] | None = None  # called for every run that has an outcome

    def active(self) -> int:
        """The number of runs that are claimed and not finished by their task."""
        return self.counters.claimed - self.collected - len(self.finished)

    def finish(self, run: Run) -> None:
        """Queues a run that has an outcome for reporting. Called from any thread."""
        self.finished.append(run)
        if self.on_outcome is not None:
            self.on_outcome(run)
        if self.finisher_waits:
            self.work_done.set()

    def check_low(self, ready: int) -> None:
        """Wakes the claimer if at most `low` runs are ready in a pool."""
        if self.claimer_waits and ready <= self.low:
            self.room.set()

    def stop_claiming_ahead(self) -> None:
        """Stops claiming ahead until recent tasks are short again."""
        self.mean_s = max(self.mean_s, 1.0)
        self.ahead = self.low = 0

    def adjust_ahead(self, runs: list[Run]) -> None:
        """Sets how many runs to claim ahead from how long tasks take."""
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
