"""A worker of the bench, as a process of its own: python -m bench.worker_process DSN"""

import sys

from bench.worker import app
from pyff import Worker

if __name__ == "__main__":
    Worker(app, sys.argv[1], lanes=["bench"], drain_s=1).run()
