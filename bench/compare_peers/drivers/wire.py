"""The protocol of the drivers in Python: one JSON object per line, requests on stdin, answers on stdout.

`python driver.py client DSN` answers requests {"op": ..., arguments}; `python driver.py worker DSN OPTIONS` runs until
SIGTERM and reports its tasks: {"done": n} counts them, {"mark": n, "t": seconds}, {"waiting": n} and {"ran": n}
are about single tasks. It imports only the standard library: each peer has an environment of its own.
"""

import asyncio
import inspect
import json
import sys
import threading
import time

STEPS = 10
NAP_S = 0.02
COUNTED_EVERY_S = 0.01

_lock = threading.Lock()
_done = 0


def say(**message):
    with _lock:
        sys.stdout.write(json.dumps(message) + "\n")
        sys.stdout.flush()


def count():
    """Counts a finished task; the first one is reported at once, others with the next tick."""
    global _done
    with _lock:
        _done += 1
        first = _done == 1
    if first:
        say(done=1)


def mark(number):
    say(mark=number, t=time.time())


def ready():
    """Starts to report the count."""
    say(ready=True)
    threading.Thread(target=_report, daemon=True).start()


def _report():
    reported = 0
    while True:
        time.sleep(COUNTED_EVERY_S)
        if _done != reported:
            reported = _done
            say(done=reported)


def route(number, sets):
    """The set of capabilities that a routed task needs, or None."""
    return f"set{number % sets}" if sets else None


def main(client, worker):
    """`client(dsn)` has a method for each op, plain or async; `worker(dsn, options)` runs until SIGTERM."""
    role, dsn = sys.argv[1:3]
    with asyncio.Runner() as runner:

        def call(made):
            return runner.run(made) if inspect.isawaitable(made) else made

        if role == "worker":
            call(worker(dsn, json.loads(sys.argv[3])))
            return
        asked = client(dsn)
        call(getattr(asked, "open", lambda: None)())
        say(ready=True)
        for line in sys.stdin:
            request = json.loads(line)
            try:
                answer = call(getattr(asked, request.pop("op"))(**request))
            except Exception as error:
                say(error=f"{type(error).__name__}: {error}")
            else:
                say(**(answer or {}))


class Timed:
    """The duration of a block: `with Timed() as t: ...; t.answer`."""

    def __enter__(self):
        self.t0 = time.time()
        self.began = time.perf_counter()
        return self

    def __exit__(self, *_):
        self.seconds = time.perf_counter() - self.began

    @property
    def answer(self):
        return {"seconds": self.seconds, "t0": self.t0, "t1": self.t0 + self.seconds}
