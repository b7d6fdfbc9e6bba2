"""What a function returned, awaited if need be."""

import inspect
from collections.abc import Awaitable
from typing import TypeVar

T = TypeVar("T")


async def settled(value: Awaitable[T] | T) -> T:
    return await value if inspect.isawaitable(value) else value
