"""The outcome of one run of a task."""

import logging
import os
import sysconfig
import traceback
from pathlib import Path

import psycopg

import pyff
from pyff._generated.errors import PayloadTooLarge, StepLimitExceeded
from pyff.app.control import CannotRun, DuplicateStep, Fail
from pyff.app.run import Run
from pyff.codecs.shapes import EncodeError
from pyff.connection_lost import connection_lost
from pyff.worker.put_off import message

log = logging.getLogger("pyff.worker")

COMPLETE = "complete"
FAIL = "fail"
RELEASE = "release"
PUT_OFF = "put_off"
PAUSED = "paused"
LOST = "lost"

REASON_CHARS = 4096
MESSAGE_CHARS = REASON_CHARS - 200
OWN = (str(Path(pyff.__file__).parent) + os.sep, str(Path(psycopg.__file__).parent) + os.sep)
LIBRARIES = ("<frozen ", *{sysconfig.get_path(name) + os.sep for name in ("stdlib", "purelib", "platlib")})
PERMANENT = (DuplicateStep, PayloadTooLarge, StepLimitExceeded)
"""Errors in the code of a task: another attempt would repeat its effects and fail in the same way."""


def set_outcome(run: Run, error: BaseException) -> None:
    """Sets the outcome of a run that did not return."""
    run.error = error
    if run.paused:
        run.outcome = PAUSED
    elif run.lost is not None:
        run.outcome = RELEASE if run.lost == "worker_stopping" else LOST
    elif run.unreachable and isinstance(error, psycopg.OperationalError) and connection_lost(error):
        run.outcome = RELEASE  # not a failure of the task: it runs again as the same attempt
    elif isinstance(error, CannotRun | ImportError):
        run.outcome = PUT_OFF
    else:
        run.outcome = FAIL


def why_put_off(run: Run) -> str:
    return (
        _to_storable(run.error, MESSAGE_CHARS) if isinstance(run.error, CannotRun) else _described(run.error)
    )


def fail_put_off(run: Run, limit: int) -> None:
    """Fails a run that has been put off `limit` times."""
    run.outcome = FAIL
    run.error = Fail(message(limit, why_put_off(run)), retryable=False, category="cannot_run")


def classify(run: Run) -> tuple[str, str, str | None]:
    """(reason, classification, category) for ff_fail, in a form that the database can store."""
    error = run.error
    retry = run.task.options.retry if run.task is not None else None
    not_retried = retry is not None and retry.on and not isinstance(error, retry.on)
    if isinstance(error, Fail):
        reason, permanent, category = (
            _to_storable(error.reason) or "Fail",
            not error.retryable,
            error.category,
        )
    elif isinstance(error, EncodeError):
        reason, permanent, category = (
            f"{type(error).__name__}: {_to_storable(error, MESSAGE_CHARS)}",
            True,
            "invalid_result",
        )
    elif isinstance(error, PERMANENT):
        reason, permanent, category = _described(error), True, type(error).__name__
    else:
        reason, permanent, category = _described(error), bool(not_retried), type(error).__name__
    named = None if category is None else _to_storable(category, 256) or None
    return _to_storable(reason), "permanent" if permanent else "transient", named


def fail_unstorable(run: Run, why: str) -> None:
    """Fails a run permanently because the database does not accept its result."""
    run.outcome, run.result = FAIL, None
    run.error = Fail(f"its result cannot be stored: {why}", retryable=False, category="invalid_result")


def _described(error: BaseException | None) -> str:
    if error is None:
        return "unknown"
    said = _to_storable(error, MESSAGE_CHARS)
    text = f"{type(error).__name__}: {said}" if said else type(error).__name__
    if (frame := _user_frame(error)) is not None:
        text += f" ({Path(frame.filename).name}:{frame.lineno} in {frame.name})"
    return text


def _user_frame(error: BaseException) -> traceback.FrameSummary | None:
    """The innermost frame of the user's code, outside pyff and the libraries. If the task itself is installed among
    the libraries, the innermost frame below its directory."""
    frames = traceback.extract_tb(error.__traceback__)
    outside = [frame for frame in frames if not frame.filename.startswith(OWN)]
    users = [frame for frame in outside if not frame.filename.startswith(LIBRARIES)]
    if not outside:
        return None
    beside = str(Path(outside[0].filename).parent) + os.sep
    return (users or [frame for frame in outside if frame.filename.startswith(beside)] or outside)[-1]


def _to_storable(what: object, limit: int = REASON_CHARS) -> str:
    """Text that PostgreSQL accepts: without NUL, and with lone surrogates (as in undecodable file names) escaped.
    Empty if str() fails."""
    try:
        text = str(what)
    except Exception:
        return ""
    return text[:limit].replace("\x00", "").encode(errors="backslashreplace").decode()[:limit]


def fields(run: Run) -> dict[str, object]:
    """The extra fields of every log line about a run."""
    return {
        "execution_id": run.execution_id,
        "task": run.kind,
        "attempt": run.attempt_index,
        "lane": run.lane,
    }
