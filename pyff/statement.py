"""A call of one SQL function: its text, and how its rows become the result. Both engines share it."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, LiteralString, TypeVar

from psycopg.types.json import Jsonb

from pyff.types import JsonValue, PublicState

T = TypeVar("T")
Result_co = TypeVar("Result_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Statement(Generic[Result_co]):
    sql: LiteralString
    make: Callable[..., Any]  # the columns of one row, in order -> one item
    read: Callable[[list[Any]], Result_co]  # the items -> the result


def one(sql: LiteralString, make: Callable[..., T]) -> Statement[T]:
    return Statement(sql, make, lambda items: items[0])


def at_most_one(sql: LiteralString, make: Callable[..., T]) -> Statement[T | None]:
    return Statement(sql, make, lambda items: items[0] if items else None)


def many(sql: LiteralString, make: Callable[..., T]) -> Statement[list[T]]:
    return Statement(sql, make, lambda items: items)


def nothing(sql: LiteralString) -> Statement[None]:
    return Statement(sql, value, lambda items: None)


def value(column: T) -> T:
    """The row of a plain scalar function."""
    return column


def converting(make: Callable[..., T], converters: Mapping[int, Callable[[Any], object]]) -> Callable[..., T]:
    """`make`, after the columns at these positions went through their converter (NULL stays None)."""
    by_position = tuple(converters.items())

    def convert_and_make(*columns: object) -> T:
        row = list(columns)
        for position, convert in by_position:
            if row[position] is not None:
                row[position] = convert(row[position])
        return make(*row)

    return convert_and_make


def public_state(text: str) -> str:
    """The member of the enum. A state that only a newer database knows stays a text: the call was made."""
    return _PUBLIC_STATES.get(text, text)


def array(items: Sequence[T] | None) -> list[T] | None:
    """An argument of an array type: psycopg takes lists only. A lone string is a mistake, not its letters."""
    if isinstance(items, str | bytes):
        raise TypeError(f"expected a sequence of values, got {items!r}")
    return None if items is None else list(items)


def jsonb(document: JsonValue) -> Jsonb | None:
    """An argument of type jsonb. None is SQL's NULL."""
    return None if document is None else Jsonb(document, _dumps)


def _builtin(container: object) -> object:
    if isinstance(container, Mapping):
        return dict(container)
    if isinstance(container, Sequence) and not isinstance(container, bytes | bytearray | memoryview):
        return list(container)
    raise TypeError(f"{type(container).__name__} is not a json value")


_PUBLIC_STATES = {state.value: state for state in PublicState}
_dumps = json.JSONEncoder(default=_builtin, allow_nan=False).encode
