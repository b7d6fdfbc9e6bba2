"""One run of a task: arguments in, result or failure out."""

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
SAID_CHARS = REASON_CHARS - 200
OWN = (str(Path(pyff.__file__).parent) + os.sep, str(Path(psycopg.__file__).parent) + os.sep)
LIBRARIES = ("<frozen ", *{sysconfig.get_path(name) + os.sep for name in ("stdlib", "purelib", "platlib")})
HOPELESS = (DuplicateStep, PayloadTooLarge, StepLimitExceeded)
"""Mistakes in the code of a task: another attempt would repeat its effects and end in the same way."""


def judge(run: Run, error: BaseException) -> None:
    """The outcome of a run that did not return."""
    run.error = error
    if run.paused:
        run.outcome = PAUSED
    elif run.lost is not None:
        run.outcome = RELEASE if run.lost == "worker_stopping" else LOST
    elif run.unreachable and isinstance(error, psycopg.OperationalError) and connection_lost(error):
        run.outcome = RELEASE  # no failure of the task: it is done again as the same attempt
    elif isinstance(error, CannotRun | ImportError):
        run.outcome = PUT_OFF
    else:
        run.outcome = FAIL


def why_put_off(run: Run) -> str:
    return _storable(run.error, SAID_CHARS) if isinstance(run.error, CannotRun) else _described(run.error)


def give_up(run: Run, most: int) -> None:
    """A run that has been put off as often as it may fails."""
    run.outcome = FAIL
    run.error = Fail(message(most, why_put_off(run)), retryable=False, category="cannot_run")


def classify(run: Run) -> tuple[str, str, str | None]:
    """(reason, classification, category) for ff_fail. Whatever was raised, the database can store it."""
    error = run.error
    retry = run.task.options.retry if run.task is not None else None
    hopeless = retry is not None and retry.on and not isinstance(error, retry.on)
    if isinstance(error, Fail):
        reason, permanent, category = _storable(error.reason) or "Fail", not error.retryable, error.category
    elif isinstance(error, EncodeError):
        reason, permanent, category = (
            f"{type(error).__name__}: {_storable(error, SAID_CHARS)}",
            True,
            "invalid_result",
        )
    elif isinstance(error, HOPELESS):
        reason, permanent, category = _described(error), True, type(error).__name__
    else:
        reason, permanent, category = _described(error), bool(hopeless), type(error).__name__
    named = None if category is None else _storable(category, 256) or None
    return _storable(reason), "permanent" if permanent else "transient", named


def unstorable(run: Run, why: str) -> None:
    """The run returned a result that the database does not take: it fails for good."""
    run.outcome, run.result = FAIL, None
    run.error = Fail(f"its result cannot be stored: {why}", retryable=False, category="invalid_result")


def _described(error: BaseException | None) -> str:
    if error is None:
        return "unknown"
    said = _storable(error, SAID_CHARS)
    text = f"{type(error).__name__}: {said}" if said else type(error).__name__
    if (place := _place(error)) is not None:
        text += f" ({Path(place.filename).name}:{place.lineno} in {place.name})"
    return text


def _place(error: BaseException) -> traceback.FrameSummary | None:
    """The innermost frame of the user's code: neither of pyff nor of a library. If the code of the task is installed
    among the libraries, the innermost frame below its directory."""
    frames = traceback.extract_tb(error.__traceback__)
    outside = [frame for frame in frames if not frame.filename.startswith(OWN)]
    users = [frame for frame in outside if not frame.filename.startswith(LIBRARIES)]
    if not outside:
        return None
    beside = str(Path(outside[0].filename).parent) + os.sep
    return (users or [frame for frame in outside if frame.filename.startswith(beside)] or outside)[-1]


def _storable(what: object, most: int = REASON_CHARS) -> str:
    """Text as PostgreSQL takes it: no NUL, and nothing that is not Unicode, like the odd bytes of a file name.
    Empty, if it cannot even be shown."""
    try:
        text = str(what)
    except Exception:
        return ""
    return text[:most].replace("\x00", "").encode(errors="backslashreplace").decode()[:most]


def fields(run: Run) -> dict[str, object]:
    """What every log line about a run carries."""
    return {
        "execution_id": run.execution_id,
        "task": run.kind,
        "attempt": run.attempt_index,
        "lane": run.lane,
    }
