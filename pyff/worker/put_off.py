"""Work that the code at hand cannot run: no such task, a payload that does not decode, a missing import.

Another deployment can run it, so it does not fail: the attempt is put off, each time for twice as long. How often it
was put off, and why, is the progress message of the attempt, where ff_v_stuck finds it.
"""

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from pyff.app.run import Run

FIRST_MS = 1_000
LONGEST_MS = 300_000
_MESSAGE = re.compile(r"put off (\d{1,9}) times: ")


class CannotRun(Exception):  # noqa: N818
    """The code at hand cannot run this execution."""


class PutOff(NamedTuple):
    """One more put-off of an attempt."""

    number: int
    message: str
    delay_ms: int


def arguments(run: Run) -> Sequence[Any]:
    """The arguments of the call. After the context was entered: a signal is recorded before anything can fail.

    Raises: CannotRun.
    """
    if run.task is None:
        raise CannotRun(f"there is no task {run.kind!r}")
    try:
        return run.task.signature.decode(run.payload)
    except Exception as error:
        raise CannotRun(f"the payload does not fit the task: {error}") from error


def put_off(progress_message: str | None, why: str) -> PutOff:
    """The put-off after the one that the last progress message of the attempt records, if it records one."""
    found = _MESSAGE.match(progress_message or "")
    number = 1 + (int(found[1]) if found else 0)
    return PutOff(number, message(number, why), min(FIRST_MS << min(number - 1, 20), LONGEST_MS))


def message(number: int, why: str) -> str:
    return f"put off {number} times: {why}"
