"""`python -m pyff` and the command `pyff`."""

import os
import signal
import sys
from types import FrameType


def run() -> int:
    """The command line as a process. Ctrl-c while it is still loading ends it at once: nothing has begun."""
    ours = signal.getsignal(signal.SIGINT) is signal.default_int_handler  # else whoever started us ignores it
    if ours:
        signal.signal(signal.SIGINT, _leave)
    from pyff.cli import main

    return main(begin=lambda: ours and signal.signal(signal.SIGINT, signal.default_int_handler))


def _leave(number: int, frame: FrameType | None) -> None:
    os._exit(130)


if __name__ == "__main__":
    sys.exit(run())
