"""Awaits the value that a sync or async function returned."""

import inspect
from collections.abc import Awaitable
from typing import TypeVar

T = TypeVar("T")


async def await_if_needed(value: Awaitable[T] | T) -> T:
    return await value if inspect.isawaitable(value) else value
