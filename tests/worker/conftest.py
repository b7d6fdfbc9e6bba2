"""Workers on this test's own database."""

from collections.abc import Callable, Iterator
from time import monotonic, sleep
from typing import Any

import pytest

from pyff import App, Engine, Worker


@pytest.fixture
def engine(dsn: str) -> Iterator[Engine]:
    with Engine(dsn) as engine:
        yield engine


@pytest.fixture
def app(engine: Engine) -> App:
    return App().bind(engine)


@pytest.fixture
def work(app: App, dsn: str) -> Iterator[Callable[..., Worker]]:
    """Starts a worker in the background; it is stopped at the end of the test."""
    started: list[Worker] = []

    def start(**options: Any) -> Worker:
        if not app.tasks:
            app.task()(nothing)
        worker = Worker(app, dsn, **{"lease_ttl_ms": 30_000, "poll_s": 0.2, "drain_s": 90, **options})
        worker.start()
        started.append(worker)
        return worker

    yield start
    for worker in started:
        worker.stop(0)


def nothing() -> None:
    """A task for workers whose work does not matter."""


def until(condition: Callable[[], object], seconds: float = 90) -> None:
    """Waits for something that another thread does."""
    end = monotonic() + seconds
    while not condition():
        assert monotonic() < end, "it did not happen"
        sleep(0.005)
