"""A call of one SQL function: its text, and the conversion of its rows to the result. Both engines share it."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, LiteralString, TypedDict, TypeVar, Unpack

from psycopg.types.json import Jsonb

from pyff.types import JsonValue, PublicState

T = TypeVar("T")
Result_co = TypeVar("Result_co", covariant=True)


class Options(TypedDict, total=False):
    optional: Mapping[str, object]  # the defaults of the optional arguments
    converters: Mapping[str, Callable[[Any], object]]  # conversions of arguments


class Statement(Generic[Result_co]):
    """`sql` is the call with all its arguments. Arguments equal to their default are omitted: each one sent costs time
    on both sides, and most calls need few."""

    def __init__(
        self,
        sql: LiteralString,
        make: Callable[..., Any],  # the columns of one row, in order -> one item
        read: Callable[[list[Any]], Result_co],  # the items -> the result
        **options: Unpack[Options],
    ) -> None:
        self.sql, self.make, self.read = sql, make, read
        self._optional = options.get("optional", {})
        self._converters = tuple(options.get("converters", {}).items())
        self._texts: dict[tuple[str, ...], bytes] = {}

    def call(self, arguments: Mapping[str, object]) -> tuple[bytes, dict[str, object]]:
        """The SQL text of the call with these arguments, and the values of its placeholders."""
        optional = self._optional
        given = {
            name: value
            for name, value in arguments.items()
            if name not in optional or not _same(value, optional[name])
        }
        names = tuple(given)
        text = self._texts.get(names) or self._text(names)
        for name, convert in self._converters:
            if name in given:
                given[name] = convert(given[name])
        return text, given

    def _text(self, names: tuple[str, ...]) -> bytes:
        text: str = self.sql
        if self._optional:
            head, _, rest = text.partition("(\n")
            lines = rest.removesuffix("\n)").split(",\n")
            kept = [line for line in lines if line.partition("%(")[2].partition(")")[0] in names]
            text = "{}(\n{}\n)".format(head, ",\n".join(kept))
        return self._texts.setdefault(names, text.encode())


def one(sql: LiteralString, make: Callable[..., T], **options: Unpack[Options]) -> Statement[T]:
    return Statement(sql, make, lambda items: items[0], **options)


def at_most_one(
    sql: LiteralString, make: Callable[..., T], **options: Unpack[Options]
) -> Statement[T | None]:
    return Statement(sql, make, lambda items: items[0] if items else None, **options)


def many(sql: LiteralString, make: Callable[..., T], **options: Unpack[Options]) -> Statement[list[T]]:
    return Statement(sql, make, lambda items: items, **options)


def nothing(sql: LiteralString, **options: Unpack[Options]) -> Statement[None]:
    return Statement(sql, value, lambda items: None, **options)


def _same(value: object, default: object) -> bool:
    """Equal and of the same type: a type may define its own equality."""
    return value is default or (type(value) is type(default) and value == default)


def value(column: T) -> T:
    """The row of a scalar function."""
    return column


def converting(make: Callable[..., T], converters: Mapping[int, Callable[[Any], object]]) -> Callable[..., T]:
    """`make`, after the columns at these positions are converted (NULL stays None)."""
    by_position = tuple(converters.items())

    def convert_and_make(*columns: object) -> T:
        row = list(columns)
        for position, convert in by_position:
            if row[position] is not None:
                row[position] = convert(row[position])
        return make(*row)

    return convert_and_make


def public_state(text: str) -> str:
    """The member of the enum. An unknown state of a newer database stays a string, since the call has succeeded."""
    return _PUBLIC_STATES.get(text, text)


def array(items: Sequence[T] | None) -> list[T] | None:
    """An argument of an array type: psycopg accepts only lists. A single string is rejected, not split."""
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
