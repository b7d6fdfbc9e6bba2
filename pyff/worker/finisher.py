"""Tells the database what came of the runs, many at a time."""

import logging
from collections.abc import Callable, Iterator
from time import monotonic
from typing import Any

import psycopg
from psycopg.errors import LockNotAvailable

from pyff._generated.errors import PayloadTooLarge
from pyff.app.run import Run
from pyff.engine_error import EngineError
from pyff.worker.execute import (
    COMPLETE,
    FAIL,
    LOST,
    PAUSED,
    PUT_OFF,
    RELEASE,
    classify,
    fields,
    give_up,
    unstorable,
    why_put_off,
)
from pyff.worker.link import Link, Patience
from pyff.worker.put_off import put_off
from pyff.worker.state import State
from pyff.worker.statements import COMPLETE as COMPLETE_MANY
from pyff.worker.statements import FAIL as FAIL_ONE
from pyff.worker.statements import PROGRESS
from pyff.worker.statements import PUT_OFF as PUT_OFF_ONE
from pyff.worker.statements import RELEASE as RELEASE_ONE

log = logging.getLogger("pyff.worker")

MOST = 1_000
MOST_BYTES = 16_000_000
"""So much goes into one call; a larger result goes alone."""
PATIENCE_MS = 500
"""So long a call waits for whoever has changed an execution and not committed yet."""
HELD_AT_A_TIME = 5
LARGEST = 256_000_000
"""PostgreSQL takes no message above a gigabyte, and hangs up: such a result would be sent for ever."""


class Finisher:
    """Every call is repeated until it is answered: a repetition with the same handle changes nothing.

    A run stays in `state.runs`, and its lease is renewed, until the answer is there.
    """

    def __init__(
        self,
        state: State,
        link: Link,
        *,
        observe: Callable[[Run], None] | None,
        due: Callable[[str, float], None],
        max_put_offs: int,
    ) -> None:
        self._state = state
        self._link = link
        self._due = due
        self._max_put_offs = max_put_offs
        self._observe = observe
        self._patience = Patience()
        self._patience_ms = PATIENCE_MS
        self._held: dict[str, Run] = {}  # executions that somebody else has changed, and not committed yet
        self._look_at = 0.0

    def serve(self) -> None:
        state = self._state
        finished = state.finished
        while True:
            if self._held and monotonic() >= self._look_at:
                self._look_again()
            if not finished:
                if state.stopping.is_set():
                    return
                state.finisher_waits = True
                if not finished:
                    state.work_done.wait(0.5)
                state.finisher_waits = False
                state.work_done.clear()
                continue
            runs = [finished.popleft() for _ in range(min(len(finished), MOST))]
            state.collected += len(runs)
            if state.claimer_waits:
                state.room.set()
            state.learn(runs)
            self._finish(runs)

    def _look_again(self) -> None:
        """A few at a time and not for long: what is held for hours must not keep all else waiting."""
        runs = list(self._held.values())[:HELD_AT_A_TIME]
        for run in runs:
            del self._held[run.handle]
            if run.deadline < monotonic() - 60:
                run.outcome, run.lost = LOST, run.lost or "not answered"
        self._patience_ms = PATIENCE_MS // 10
        self._finish(runs)
        self._patience_ms = PATIENCE_MS
        self._look_at = monotonic() + PATIENCE_MS / 1000

    def _finish(self, runs: list[Run]) -> None:
        completed: dict[str, list[Run]] = {}
        for run in runs:
            if run.outcome == COMPLETE:
                completed.setdefault(run.task.signature.result.encoding, []).append(run)  # type: ignore[union-attr]
        for encoding, batch in completed.items():
            for portion in _portions(batch):
                self._complete(portion, encoding)
        leases, state = self._state.runs, self._state
        for run in runs:
            if run.outcome == FAIL:
                self._fail(run)
            elif run.outcome == RELEASE:
                self._release(run)
            elif run.outcome == PUT_OFF:
                self._put_off(run)
            elif run.outcome == PAUSED:
                state.counters.paused += 1
                if run.sleeps_s is not None:
                    self._due(run.lane, run.sleeps_s)
            elif run.outcome != COMPLETE:
                state.counters.lost += 1
                log.warning(
                    "%s lost its lease, what it returned does not count: %s",
                    run.kind,
                    run.lost,
                    extra={**fields(run), "reason": run.lost},
                )
            if run.handle in self._held:
                continue
            leases.pop(run.handle, None)
            if self._observe is not None:
                self._observe(run)

    def _complete(self, batch: list[Run], encoding: str) -> None:
        arguments = {
            "handles": [run.handle for run in batch],
            "results": [run.result for run in batch],
            "encoding": encoding,
            "patience_ms": self._patience_ms,
        }
        try:
            refused = self._until_answered(batch, lambda: self._link.call(COMPLETE_MANY, arguments))
        except LockNotAvailable:
            if len(batch) == 1:
                self._hold(batch[0])
                return
            for run in batch:
                self._complete([run], encoding)
            return
        if refused is None:
            for run in batch:
                run.outcome, run.lost = LOST, run.lost or "not answered"
            return
        if isinstance(refused, Exception):
            for run in batch:
                if len(batch) > 1:  # one of them spoils the call: find it
                    self._complete([run], encoding)
                else:
                    unstorable(run, str(refused))
            return
        for ordinal, kind in refused:
            run = batch[ordinal - 1]
            if kind == PayloadTooLarge.kind:
                unstorable(run, _too_large(run))
            else:
                run.outcome, run.lost = LOST, run.lost or kind
        self._state.counters.completed += len(batch) - len(refused)

    def _fail(self, run: Run) -> None:
        reason, classification, category = classify(run)
        arguments = {
            "handle": run.handle,
            "reason": reason,
            "classification": classification,
            "category": category,
            "patience_ms": self._patience_ms,
        }
        try:
            answer = self._until_answered([run], lambda: self._link.call(FAIL_ONE, arguments))
        except LockNotAvailable:
            self._hold(run)
            return
        if not isinstance(answer, list):
            self._state.counters.lost += 1
            return
        self._state.counters.failed += 1
        outcome, public_state, delay_ms = answer[0]
        if delay_ms is not None:
            self._due(run.lane, delay_ms / 1000)
        log.log(
            logging.WARNING if outcome == "retry_scheduled" else logging.ERROR,
            "%s failed: %s",
            run.kind,
            reason,
            exc_info=run.error,
            extra={**fields(run), "outcome": outcome, "public_state": public_state, "retry_in_ms": delay_ms},
        )

    def _release(self, run: Run) -> None:
        arguments = {
            "handle": run.handle,
            "delay_ms": 0,
            "patience_ms": self._patience_ms,
        }
        try:
            answer = self._until_answered([run], lambda: self._link.call(RELEASE_ONE, arguments))
        except LockNotAvailable:
            self._hold(run)
            return
        if isinstance(answer, list):
            self._state.counters.released += 1

    def _put_off(self, run: Run) -> None:
        if run.progress_before is None:
            answer = self._until_answered(
                [run], lambda: self._link.call(PROGRESS, {"execution_id": run.execution_id})
            )
            if not isinstance(answer, list) or not answer:
                self._state.counters.lost += 1
                return
            run.progress_before = answer[0][0] or ""
        next_one = put_off(run.progress_before, why_put_off(run))
        if next_one.number > self._max_put_offs:
            give_up(run, self._max_put_offs)
            self._fail(run)
            return
        arguments = {
            "handle": run.handle,
            "message": next_one.message,
            "delay_ms": next_one.delay_ms,
            "patience_ms": self._patience_ms,
        }
        try:
            answer = self._until_answered([run], lambda: self._link.call(PUT_OFF_ONE, arguments))
        except LockNotAvailable:
            self._hold(run)
            return
        if isinstance(answer, list):
            self._state.counters.released += 1
            self._due(run.lane, next_one.delay_ms / 1000)
            log.error(
                "%s %s", run.kind, next_one.message, extra={**fields(run), "retry_in_ms": next_one.delay_ms}
            )

    def _hold(self, run: Run) -> None:
        if self._patience_ms == PATIENCE_MS:
            log.warning("%s is held by somebody: told later", run.kind, extra=fields(run))
        self._held[run.handle] = run

    def _until_answered(
        self, runs: list[Run], call: Callable[[], list[tuple[Any, ...]]]
    ) -> list[tuple[Any, ...]] | Exception | None:
        """The answer, or the error by which the call is refused; None if nobody can wait any longer.

        Raises: LockNotAvailable.
        """
        while True:
            try:
                answer = call()
            except LockNotAvailable:
                raise
            except (psycopg.OperationalError, psycopg.InterfaceError) as error:
                if not self._patience.failures:
                    log.warning("cannot report results: %s", str(error).strip())
                pause = self._patience.spend()
                if self._state.stopping.wait(pause) or all(r.deadline < monotonic() - 60 for r in runs):
                    return None
                continue
            except EngineError as error:
                if len(runs) == 1:
                    log.warning(
                        "%s: %s", runs[0].kind, error, extra={**fields(runs[0]), "reason": error.kind}
                    )
                return error
            except Exception as error:
                if len(runs) == 1:
                    log.exception("%s: its outcome cannot be stored", runs[0].kind, extra=fields(runs[0]))
                return error
            if self._patience.failures:
                log.info("reporting results again")
                self._patience.restore()
            return answer


def _portions(batch: list[Run]) -> Iterator[list[Run]]:
    """What goes into one call each; results that no call can take are failures."""
    if sum(len(run.result) for run in batch if run.result is not None) <= MOST_BYTES:
        yield batch
        return
    portion: list[Run] = []
    size = 0
    for run in batch:
        length = len(run.result or b"")
        if length > LARGEST:
            unstorable(run, _too_large(run))
            continue
        if portion and size + length > MOST_BYTES:
            yield portion
            portion, size = [], 0
        portion.append(run)
        size += length
    if portion:
        yield portion


def _too_large(run: Run) -> str:
    return f"{len(run.result or b'')} bytes are too many; store it elsewhere and return where it is"
