"""What the drivers in Python share: one JSON object per line, asked on stdin, answered on stdout.

`python driver.py client DSN` answers requests {"op": ..., arguments}; `python driver.py worker DSN OPTIONS` works until
SIGTERM and tells what its tasks do: {"done": n} counts them, {"mark": n, "t": seconds}, {"waiting": n} and {"ran": n}
tell of single ones. It imports nothing but the standard library: each peer has an environment of its own.
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
    """One task more is done; the first one is told at once, others with the next tick."""
    global _done
    with _lock:
        _done += 1
        first = _done == 1
    if first:
        say(done=1)


def mark(number):
    say(mark=number, t=time.time())


def ready():
    """Begins to tell the count."""
    say(ready=True)
    threading.Thread(target=_tell, daemon=True).start()


def _tell():
    told = 0
    while True:
        time.sleep(COUNTED_EVERY_S)
        if _done != told:
            told = _done
            say(done=told)


def route(number, sets):
    """The set of capabilities that a routed task needs, or None."""
    return f"set{number % sets}" if sets else None


def main(client, worker):
    """`client(dsn)` has a method for each op, plain or async; `worker(dsn, options)` runs until it is told to end."""
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
    """How long a block took: `with Timed() as t: ...; t.answer`."""

    def __enter__(self):
        self.t0 = time.time()
        self.began = time.perf_counter()
        return self

    def __exit__(self, *_):
        self.seconds = time.perf_counter() - self.began

    @property
    def answer(self):
        return {"seconds": self.seconds, "t0": self.t0, "t1": self.t0 + self.seconds}
