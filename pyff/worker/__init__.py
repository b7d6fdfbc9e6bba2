"""The worker process."""

from pyff.worker.health import Health
from pyff.worker.observer import Observer
from pyff.worker.worker import Worker

__all__ = ["Health", "Observer", "Worker"]
