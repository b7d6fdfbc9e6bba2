"""Claims work for the slots that are free, lane by lane."""

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
from pyff.worker.link import Link, Patience
from pyff.worker.state import State
from pyff.worker.statements import CLAIM

log = logging.getLogger("pyff.worker")

FAR = 60.0
UNACKNOWLEDGED = 4_000
"""So many finished runs may wait for the database before no more are claimed."""


SOON = (0.01, 0.1)
"""After how many seconds an empty lane is looked at again, before it is only polled: work that was submitted in the
very moment in which the lane was found empty has not rung."""


class Lanes:
    """Whose turn it is: in proportion to the weights, and without the lanes that were found empty."""

    def __init__(self, weights: Mapping[str, float]) -> None:
        self.weights = dict(weights)
        self._credit = dict.fromkeys(weights, 0.0)
        self._dry: dict[str, float] = {}
        self._rung = dict.fromkeys(weights, 0)
        self._looks = dict.fromkeys(weights, 0)  # how often it was found empty in a row
        self._due: dict[str, list[float]] = {lane: [] for lane in weights}
        self._guard = threading.Lock()

    def next(self) -> tuple[str, float] | None:
        """The lane and its share of what can be claimed now; None if all were empty lately."""
        moment = monotonic()
        open_lanes = [lane for lane in self.weights if self._dry.get(lane, 0.0) <= moment]
        if not open_lanes:
            return None
        total = sum(self.weights[lane] for lane in open_lanes)
        for lane in open_lanes:
            self._credit[lane] += self.weights[lane]
        chosen = max(open_lanes, key=self._credit.__getitem__)
        self._credit[chosen] -= total
        return chosen, self.weights[chosen] / total

    def rung(self, lane: str) -> int:
        return self._rung.get(lane, 0)

    def ring(self, lane: str) -> None:
        """Something became ready on it."""
        if lane in self._rung:
            with self._guard:
                self._rung[lane] += 1
                self._looks[lane] = 0
                self._dry.pop(lane, None)

    def ring_all(self) -> None:
        for lane in self._rung:
            self.ring(lane)

    def due(self, lane: str, seconds: float) -> None:
        """Something becomes ready on it then, which does not ring."""
        if lane in self._due and seconds < FAR:
            moment = monotonic() + seconds
            with self._guard:
                self._forget(lane)
                heapq.heappush(self._due[lane], moment)
                if self._dry.get(lane, 0.0) > moment:
                    self._dry[lane] = moment

    def found(self, lane: str) -> None:
        self._looks[lane] = 0

    def empty(self, lane: str, since: int, seconds: float) -> None:
        """It was found empty by a claim that began when it had rung `since` times: the next look is after so long."""
        moment = monotonic()
        with self._guard:
            if self._rung[lane] != since:
                return
            looks = self._looks[lane]
            self._looks[lane] = looks + 1
            until = moment + min(seconds, SOON[looks] if looks < len(SOON) else seconds)
            due = self._forget(lane)
            self._dry[lane] = min(until, due[0]) if due else until

    def _forget(self, lane: str) -> list[float]:
        """What is due on it, without what has been: a lane that is never empty would keep it all."""
        due, moment = self._due[lane], monotonic()
        while due and due[0] <= moment:
            heapq.heappop(due)
        return due

    def wait(self) -> float:
        """Seconds until the next lane is looked at again."""
        return max(0.0, min(self._dry.get(lane, 0.0) for lane in self.weights) - monotonic())


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
        self._patience = Patience()
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
        """How many executions there is room for. Not few at a time, while there is work in store."""
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
        rung = self._lanes.rung(lane)
        sent = monotonic()
        try:
            rows = self._link.call(CLAIM, {**self._arguments, "lane": lane, "limit": limit})
        except (psycopg.OperationalError, psycopg.InterfaceError) as error:
            if not self._patience.failures:
                log.warning("cannot claim: %s", str(error).strip(), extra={"lane": lane})
            state.draining.wait(self._patience.spend() * random.uniform(0.5, 1.0))  # noqa: S311
            return
        except EngineError as error:
            log.error("lane %s: %s", lane, error, extra={"lane": lane, "kind": error.kind})  # noqa: TRY400
            self._lanes.empty(lane, rung, 10 * self._poll_s)
            return
        if self._patience.failures:
            log.info("claiming again", extra={"lane": lane})
            self._patience.restore()
        state.last_claim = monotonic()
        if not rows:
            self._lanes.empty(lane, rung, self._poll_s * random.uniform(0.8, 1.0))  # noqa: S311
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
