"""An app bound to an engine on this test's own database."""

from collections.abc import Iterator

import pytest

from pyff import App, Engine


@pytest.fixture
def engine(dsn: str) -> Iterator[Engine]:
    with Engine(dsn) as engine:
        yield engine


@pytest.fixture
def app(engine: Engine) -> App:
    return App().bind(engine)
