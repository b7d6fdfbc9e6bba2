"""Engines on this test's own database."""

from collections.abc import AsyncIterator, Iterator

import pytest

from pyff import AsyncEngine, Engine


@pytest.fixture
def engine(dsn: str) -> Iterator[Engine]:
    with Engine(dsn) as engine:
        yield engine


@pytest.fixture
async def async_engine(dsn: str) -> AsyncIterator[AsyncEngine]:
    async with AsyncEngine(dsn) as engine:
        yield engine
