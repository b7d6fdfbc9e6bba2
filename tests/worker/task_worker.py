"""A real Worker as a process, to be killed, frozen and cut off: `python -m tests.worker.task_worker DSN LOG`.

Every completion that the database acknowledged is one line of the log: the handle and the result.
"""

import json
import os
import sys
import time

from pyff import App, Worker
from pyff.app.run import Run

app = App(lane="chaos")


@app.task()
def nap(number: int, ms: int) -> list[int]:
    time.sleep(ms / 1000)
    return [number, os.getpid()]


class Log:
    def __init__(self, path: str) -> None:
        self._descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def claimed(self, run: Run) -> None:
        pass

    def finished(self, run: Run) -> None:
        result = None if run.result is None else run.result.decode()
        os.write(self._descriptor, json.dumps([run.outcome, run.handle, result]).encode() + b"\n")


if __name__ == "__main__":
    Worker(
        app, sys.argv[1], slots=4, lease_ttl_ms=1500, poll_s=0.3, drain_s=5, observers=[Log(sys.argv[2])]
    ).run()
