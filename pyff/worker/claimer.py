"""Claims work for free slots, lane by lane."""

import heapq
import logging
import math
import random
import threading
from collections.abc import Callable, Mapping
from time import monotonic

import psycopg

from pyff.app.run import Run
from pyff.engine_error import EngineError
from pyff.worker.link import Link, RetryPauses
from pyff.worker.state import State
from pyff.worker.statements import CLAIM

log = logging.getLogger("pyff.worker")

FAR = 60.0
UNACKNOWLEDGED = 4_000
"""No further runs are claimed while more than this many finished runs wait to be reported."""


RECHECK_S = (0.01, 0.1)
"""Seconds until the first rechecks of an empty lane, before it is only polled: a submission that commits while the lane
is found empty may not notify."""


class Lanes:
    """Chooses the next lane to claim from: in proportion to the weights, skipping lanes that were found empty."""

    def __init__(self, weights: Mapping[str, float]) -> None:
        self.weights = dict(weights)
        self._credit = dict.fromkeys(weights, 0.0)
        self._empty_until: dict[str, float] = {}
        self._notified = dict.fromkeys(weights, 0)
        self._rechecks = dict.fromkeys(weights, 0)  # consecutive claims that found the lane empty
        self._due: dict[str, list[float]] = {lane: [] for lane in weights}
        self._guard = threading.Lock()

    def next(self) -> tuple[str, float] | None:
        """The lane and its share of the claim; None if all lanes were recently empty."""
        moment = monotonic()
        open_lanes = [lane for lane in self.weights if self._empty_until.get(lane, 0.0) <= moment]
        if not open_lanes:
            return None
        total = sum(self.weights[lane] for lane in open_lanes)
        for lane in open_lanes:
            self._credit[lane] += self.weights[lane]
        chosen = max(open_lanes, key=self._credit.__getitem__)
        self._credit[chosen] -= total
        return chosen, self.weights[chosen] / total

    def notified(self, lane: str) -> int:
        return self._notified.get(lane, 0)

    def notify(self, lane: str) -> None:
        """Work became ready on the lane."""
        if lane in self._notified:
            with self._guard:
                self._notified[lane] += 1
                self._rechecks[lane] = 0
                self._empty_until.pop(lane, None)

    def notify_all(self) -> None:
        for lane in self._notified:
            self.notify(lane)

    def due(self, lane: str, seconds: float) -> None:
        """Work becomes ready on the lane after `seconds`, without a notification."""
        if lane in self._due and seconds < FAR:
            moment = monotonic() + seconds
            with self._guard:
                self._forget(lane)
                heapq.heappush(self._due[lane], moment)
                if self._empty_until.get(lane, 0.0) > moment:
                    self._empty_until[lane] = moment

    def found(self, lane: str) -> None:
        self._rechecks[lane] = 0

    def empty(self, lane: str, since: int, seconds: float) -> None:
        """A claim that began after `since` notifications found the lane empty: recheck it after `seconds` at most."""
        moment = monotonic()
        with self._guard:
            if self._notified[lane] != since:
                return
            rechecks = self._rechecks[lane]
            self._rechecks[lane] = rechecks + 1
            until = moment + min(seconds, RECHECK_S[rechecks] if rechecks < len(RECHECK_S) else seconds)
            due = self._forget(lane)
            self._empty_until[lane] = min(until, due[0]) if due else until

    def _forget(self, lane: str) -> list[float]:
        """Removes past due times and returns the rest; otherwise they pile up on a lane that is never empty."""
        due, moment = self._due[lane], monotonic()
        while due and due[0] <= moment:
            heapq.heappop(due)
        return due

    def wait(self) -> float:
        """Seconds until the next lane is checked again."""
        return max(0.0, min(self._empty_until.get(lane, 0.0) for lane in self.weights) - monotonic())


class Claimer:
    def __init__(
        self,
        state: State,
        link: Link,
        lanes: Lanes,
        *,
        arguments: Mapping[str, object],
        dispatch: Callable[[list[Run]], None],
        poll_s: float,
    ) -> None:
        self._state = state
        self._link = link
        self._lanes = lanes
        self._arguments = arguments
        self._dispatch = dispatch
        self._poll_s = poll_s
        self._ttl_s = int(str(arguments["ttl_ms"])) / 1000
        self._pauses = RetryPauses()
        self.idle = False

    def serve(self) -> None:
        state = self._state
        while not state.draining.is_set():
            wanted = self._wanted()
            turn = self._lanes.next() if wanted else None
            if turn is None:
                self.idle = wanted > 0
                self._wait(self._lanes.wait() if wanted else self._poll_s)
                continue
            self._claim(turn[0], max(1, math.ceil(wanted * turn[1])))

    def _wanted(self) -> int:
        """How many executions to claim. 0 until enough room is free for a batch, while claimed work is ready."""
        state = self._state
        active = state.active()
        room = state.slots + state.ahead - active
        if room < max(1, state.low) or len(state.runs) - active > UNACKNOWLEDGED:
            return 0
        return min(room, state.batch)

    def _wait(self, seconds: float) -> None:
        state = self._state
        state.claimer_waits = True
        busy = seconds == self._poll_s
        if not (busy and self._wanted()):
            state.room.wait(max(seconds, 0.001))
        state.claimer_waits = False
        state.room.clear()

    def _claim(self, lane: str, limit: int) -> None:
        state = self._state
        notified = self._lanes.notified(lane)
        sent = monotonic()
        try:
            rows = self._link.call(CLAIM, {**self._arguments, "lane": lane, "limit": limit})
        except (psycopg.OperationalError, psycopg.InterfaceError) as error:
            if not self._pauses.failures:
                log.warning("cannot claim: %s", str(error).strip(), extra={"lane": lane})
            state.draining.wait(self._pauses.next() * random.uniform(0.5, 1.0))  # noqa: S311
            return
        except EngineError as error:
            log.error("lane %s: %s", lane, error, extra={"lane": lane, "kind": error.kind})  # noqa: TRY400
            self._lanes.empty(lane, notified, 10 * self._poll_s)
            return
        if self._pauses.failures:
            log.info("claiming again", extra={"lane": lane})
            self._pauses.reset()
        state.last_claim = monotonic()
        if not rows:
            self._lanes.empty(lane, notified, self._poll_s * random.uniform(0.8, 1.0))  # noqa: S311
            return
        self.idle = False
        self._lanes.found(lane)
        runs = [Run(*row) for row in rows]
        for run in runs:
            capped = run.capped_ms
            run.claimed_at = sent
            run.deadline = sent + (self._ttl_s if capped is None else capped / 1000)
            state.runs[run.handle] = run
        state.counters.claimed += len(runs)
        self._dispatch(runs)
