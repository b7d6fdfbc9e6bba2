"""`python -m pyff` and the command `pyff`."""

import os
import signal
import sys
from types import FrameType


def run() -> int:
    """Runs the command line. Ctrl-c during the imports exits at once, without a traceback."""
    ours = (
        signal.getsignal(signal.SIGINT) is signal.default_int_handler
    )  # else the parent process ignores SIGINT
    if ours:
        signal.signal(signal.SIGINT, _leave)
    from pyff.cli import main

    return main(begin=lambda: ours and signal.signal(signal.SIGINT, signal.default_int_handler))


def _leave(number: int, frame: FrameType | None) -> None:
    os._exit(130)


if __name__ == "__main__":
    sys.exit(run())
