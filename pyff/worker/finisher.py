"""Reports the outcomes of runs to the database, in batches."""

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
    fail_put_off,
    fail_unstorable,
    fields,
    why_put_off,
)
from pyff.worker.link import Link, RetryPauses
from pyff.worker.put_off import put_off
from pyff.worker.state import State
from pyff.worker.statements import COMPLETE as COMPLETE_MANY
from pyff.worker.statements import FAIL as FAIL_ONE
from pyff.worker.statements import PROGRESS
from pyff.worker.statements import PUT_OFF as PUT_OFF_ONE
from pyff.worker.statements import RELEASE as RELEASE_ONE

log = logging.getLogger("pyff.worker")

MAX_BATCH = 1_000
MAX_BATCH_BYTES = 16_000_000
"""Limits of one call; a larger result is sent alone."""
LOCK_TIMEOUT_MS = 500
"""Lock timeout of a call."""
LOCKED_PER_RETRY = 5
MAX_RESULT_BYTES = 256_000_000
"""PostgreSQL closes the connection on a message above 1 GB: such a result would be retried for ever."""


class Finisher:
    """Repeats every call until the database responds: a repetition with the same handle changes nothing.

    A run stays in `state.runs`, and its lease is renewed, until then.
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
        self._pauses = RetryPauses()
        self._lock_timeout_ms = LOCK_TIMEOUT_MS
        self._locked: dict[str, Run] = {}  # runs whose rows other transactions have locked
        self._retry_at = 0.0

    def serve(self) -> None:
        state = self._state
        finished = state.finished
        while True:
            if self._locked and monotonic() >= self._retry_at:
                self._retry_locked()
            if not finished:
                if state.stopping.is_set():
                    return
                state.finisher_waits = True
                if not finished:
                    state.work_done.wait(0.5)
                state.finisher_waits = False
                state.work_done.clear()
                continue
            runs = [finished.popleft() for _ in range(min(len(finished), MAX_BATCH))]
            state.collected += len(runs)
            if state.claimer_waits:
                state.room.set()
            state.adjust_ahead(runs)
            self._finish(runs)

    def _retry_locked(self) -> None:
        """Retries locked runs, a few at a time and with a short timeout: a long lock must not delay other reports."""
        runs = list(self._locked.values())[:LOCKED_PER_RETRY]
        for run in runs:
            del self._locked[run.handle]
            if run.deadline < monotonic() - 60:
                run.outcome, run.lost = LOST, run.lost or "not reported"
        self._lock_timeout_ms = LOCK_TIMEOUT_MS // 10
        self._finish(runs)
        self._lock_timeout_ms = LOCK_TIMEOUT_MS
        self._retry_at = monotonic() + LOCK_TIMEOUT_MS / 1000

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
                    "%s lost its lease; its result is discarded: %s",
                    run.kind,
                    run.lost,
                    extra={**fields(run), "reason": run.lost},
                )
            if run.handle in self._locked:
                continue
            leases.pop(run.handle, None)
            if self._observe is not None:
                self._observe(run)

    def _complete(self, batch: list[Run], encoding: str) -> None:
        arguments = {
            "handles": [run.handle for run in batch],
            "results": [run.result for run in batch],
            "encoding": encoding,
            "lock_timeout_ms": self._lock_timeout_ms,
        }
        try:
            rejected = self._report(batch, lambda: self._link.call(COMPLETE_MANY, arguments))
        except LockNotAvailable:
            if len(batch) == 1:
                self._retry_later(batch[0])
                return
            for run in batch:
                self._complete([run], encoding)
            return
        if rejected is None:
            for run in batch:
                run.outcome, run.lost = LOST, run.lost or "not reported"
            return
        if isinstance(rejected, Exception):
            for run in batch:
                if len(batch) > 1:  # one run makes the call fail: report them one by one
                    self._complete([run], encoding)
                else:
                    fail_unstorable(run, str(rejected))
            return
        for ordinal, kind in rejected:
            run = batch[ordinal - 1]
            if kind == PayloadTooLarge.kind:
                fail_unstorable(run, _too_large(run))
            else:
                run.outcome, run.lost = LOST, run.lost or kind
        self._state.counters.completed += len(batch) - len(rejected)

    def _fail(self, run: Run) -> None:
        reason, classification, category = classify(run)
        arguments = {
            "handle": run.handle,
            "reason": reason,
            "classification": classification,
            "category": category,
            "lock_timeout_ms": self._lock_timeout_ms,
        }
        try:
            rows = self._report([run], lambda: self._link.call(FAIL_ONE, arguments))
        except LockNotAvailable:
            self._retry_later(run)
            return
        if not isinstance(rows, list):
            self._state.counters.lost += 1
            return
        self._state.counters.failed += 1
        outcome, public_state, delay_ms = rows[0]
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
            "lock_timeout_ms": self._lock_timeout_ms,
        }
        try:
            rows = self._report([run], lambda: self._link.call(RELEASE_ONE, arguments))
        except LockNotAvailable:
            self._retry_later(run)
            return
        if isinstance(rows, list):
            self._state.counters.released += 1

    def _put_off(self, run: Run) -> None:
        if run.progress_before is None:
            rows = self._report([run], lambda: self._link.call(PROGRESS, {"execution_id": run.execution_id}))
            if not isinstance(rows, list) or not rows:
                self._state.counters.lost += 1
                return
            run.progress_before = rows[0][0] or ""
        next_one = put_off(run.progress_before, why_put_off(run))
        if next_one.number > self._max_put_offs:
            fail_put_off(run, self._max_put_offs)
            self._fail(run)
            return
        arguments = {
            "handle": run.handle,
            "message": next_one.message,
            "delay_ms": next_one.delay_ms,
            "lock_timeout_ms": self._lock_timeout_ms,
        }
        try:
            rows = self._report([run], lambda: self._link.call(PUT_OFF_ONE, arguments))
        except LockNotAvailable:
            self._retry_later(run)
            return
        if isinstance(rows, list):
            self._state.counters.released += 1
            self._due(run.lane, next_one.delay_ms / 1000)
            log.error(
                "%s %s", run.kind, next_one.message, extra={**fields(run), "retry_in_ms": next_one.delay_ms}
            )

    def _retry_later(self, run: Run) -> None:
        if self._lock_timeout_ms == LOCK_TIMEOUT_MS:
            log.warning(
                "row of %s is locked by another transaction; will retry reporting",
                run.kind,
                extra=fields(run),
            )
        self._locked[run.handle] = run

    def _report(
        self, runs: list[Run], call: Callable[[], list[tuple[Any, ...]]]
    ) -> list[tuple[Any, ...]] | Exception | None:
        """The rows, or the error that rejects the call; None if the worker stops or the leases ended long ago.

        Raises: LockNotAvailable.
        """
        while True:
            try:
                rows = call()
            except LockNotAvailable:
                raise
            except (psycopg.OperationalError, psycopg.InterfaceError) as error:
                if not self._pauses.failures:
                    log.warning("cannot report results: %s", str(error).strip())
                pause = self._pauses.next()
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
            if self._pauses.failures:
                log.info("reporting results again")
                self._pauses.reset()
            return rows


def _portions(batch: list[Run]) -> Iterator[list[Run]]:
    """Splits a batch into calls; a result too large for any call fails its run."""
    if sum(len(run.result) for run in batch if run.result is not None) <= MAX_BATCH_BYTES:
        yield batch
        return
    portion: list[Run] = []
    size = 0
    for run in batch:
        length = len(run.result or b"")
        if length > MAX_RESULT_BYTES:
            fail_unstorable(run, _too_large(run))
            continue
        if portion and size + length > MAX_BATCH_BYTES:
            yield portion
            portion, size = [], 0
        portion.append(run)
        size += length
    if portion:
        yield portion


def _too_large(run: Run) -> str:
    return f"{len(run.result or b'')} bytes are too many; store it elsewhere and return a reference"
