"""A worker of the demo in its own process: `python -m tools.demo.worker NAMESPACE NAME`.

It prints the handles of its leases, and exits at the end of its input, when the parent process has ended.
"""

import os
import sys
import threading

from pyff.app import Ctx
from pyff.worker import Worker
from tools.demo.tasks import WRITE, newsroom

LEASE_MS = 2_000


def main(namespace: str, name: str) -> None:
    threading.Thread(target=_end_with_the_input, daemon=True).start()
    app = newsroom(namespace, who=name, begun=_tell)
    Worker(
        app,
        os.environ["PYFF_DSN"],
        lanes=[WRITE],
        slots=1,
        lease_ttl_ms=LEASE_MS,
        poll_s=0.1,
        worker_id=name,
    ).run()


def _tell(ctx: Ctx) -> None:
    print(ctx.attempt, ctx.handle, flush=True)


def _end_with_the_input() -> None:
    sys.stdin.buffer.read()
    os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
