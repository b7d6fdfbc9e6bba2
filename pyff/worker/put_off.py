"""Puts off executions that the deployed code cannot run: no such task, a payload that does not decode, a missing
import; or a signal that the database does not let it record.

Another deployment may be able to run the execution, so it does not fail: the attempt is put off, each time for twice as
long. The count and the reason are the progress message of the attempt, where ff_v_stuck finds them.
"""

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from pyff.app.control import CannotRun
from pyff.app.run import Run

FIRST_MS = 1_000
LONGEST_MS = 300_000
_MESSAGE = re.compile(r"put off (\d{1,9}) times: ")


class PutOff(NamedTuple):
    """One more put-off of an attempt."""

    number: int
    message: str
    delay_ms: int


def arguments(run: Run) -> Sequence[Any]:
    """The arguments of the call. Decoded after the context is entered: a signal is recorded before decoding can fail.

    Raises: CannotRun.
    """
    if run.task is None:
        raise CannotRun(f"task {run.kind!r} is not registered")
    try:
        return run.task.signature.decode(run.payload)
    except Exception as error:
        raise CannotRun(f"the payload does not fit the task: {error}") from error


def put_off(progress_message: str, why: str) -> PutOff:
    """The next put-off. The last progress message of the attempt holds the number of the previous one, if any."""
    found = _MESSAGE.match(progress_message)
    number = 1 + (int(found[1]) if found else 0)
    return PutOff(number, message(number, why), min(FIRST_MS << min(number - 1, 20), LONGEST_MS))


def message(number: int, why: str) -> str:
    return f"put off {number} times: {why}"
