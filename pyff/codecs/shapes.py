"""Conversions of each type to plain JSON values and back, built once per type."""

import base64
import dataclasses
import datetime as dt
import decimal
import enum
import inspect
import json
import types
import typing
import uuid
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple, TypeVar

T = TypeVar("T")
Step = Callable[[Any], Any]


class EncodeError(TypeError):
    """Value does not match its declared type."""


class DecodeError(ValueError):
    """Stored data does not match the declared type."""


class Shape(NamedTuple):
    """None means that no conversion is needed."""

    dump: Step | None
    load: Step | None


PLAIN = Shape(None, None)
_own: dict[type, Shape] = {}


def register_type(kind: type[T], dump: Callable[[T], object], load: Callable[[Any], T]) -> None:
    """Registers a custom type: `dump` converts it to plain JSON values, `load` converts back. An exception from either
    means that the value is not of this type."""

    def dumped(value: T) -> object:
        try:
            return dump(value)
        except Exception as error:
            raise EncodeError(f"{kind.__name__}: {error!r}") from error

    def loaded(plain: object) -> T:
        try:
            return load(plain)
        except Exception as error:
            raise DecodeError(f"{kind.__name__}: {error!r}") from error

    _own[kind] = Shape(dumped, loaded)


def shape_of(kind: object) -> Shape:
    """The shape of an annotated type; an unknown type is treated as plain JSON."""
    if kind is None or kind is types.NoneType:
        return Shape(None, lambda plain: None)
    origin = typing.get_origin(kind)
    if origin is not None:
        return _generic(kind, origin, typing.get_args(kind))
    if isinstance(kind, typing.NewType):
        return shape_of(kind.__supertype__)
    if type(kind).__name__ == "TypeAliasType":  # type X = ..., from 3.12 on
        return shape_of(kind.__value__)  # type: ignore[attr-defined]
    if not isinstance(kind, type):
        return PLAIN
    return _plain_class(kind)


def _plain_class(kind: type) -> Shape:
    for known in kind.__mro__:
        if known in _own:
            return _own[known]
    if kind in _SCALARS:
        return _SCALARS[kind]
    if issubclass(kind, enum.Enum):
        return Shape(_dumper(kind, _enum_value), _loader(kind, kind))
    if dataclasses.is_dataclass(kind):
        fields = [f.name for f in dataclasses.fields(kind) if f.init]
        return _record(kind, fields)
    if issubclass(kind, tuple) and hasattr(kind, "_fields"):
        return _record(kind, kind._fields)
    if hasattr(kind, "model_validate") and hasattr(kind, "model_dump"):  # pydantic 2
        return _model(kind)
    if hasattr(kind, "__struct_fields__"):
        import msgspec  # type: ignore[import-not-found,unused-ignore]

        load = partial(msgspec.convert, type=kind, strict=False)
        return Shape(_dumper(kind, msgspec.to_builtins), _loader(kind, load))
    if kind in (list, tuple, set, frozenset):
        return _items(kind, PLAIN)
    return Shape(None, _checked(kind)) if kind in (str, int, float, bool, dict) else PLAIN


def _generic(kind: object, origin: object, args: tuple[object, ...]) -> Shape:
    if origin is typing.Annotated:
        return shape_of(args[0])
    if origin is typing.Literal:
        return Shape(None, _one_of(args))
    if origin in (typing.Union, types.UnionType):
        return _union(args)
    if origin is tuple and not (len(args) == 2 and args[1] is Ellipsis):
        return _tuple([shape_of(a) for a in args])
    if isinstance(origin, type):
        if issubclass(origin, Mapping):
            return _mapping(*(args or (str, object)))
        if dataclasses.is_dataclass(origin) or hasattr(origin, "model_validate"):
            return _plain_class(kind if isinstance(kind, type) else origin)
        if origin in (list, tuple, set, frozenset) or hasattr(origin, "__iter__"):
            made = origin if origin in (list, tuple, set, frozenset) else list
            return _items(made, shape_of(args[0]) if args else PLAIN)
    return PLAIN


def _record(kind: type, fields: typing.Sequence[str]) -> Shape:
    """A dataclass or a named tuple, as an object. Unknown keys are rejected; defaults fill missing ones."""
    shapes: dict[str, Shape] = {}  # filled at first use: a type may be recursive

    def ready() -> dict[str, Shape]:
        if not shapes:
            hints = typing.get_type_hints(kind, include_extras=True)
            shapes.update({name: shape_of(hints.get(name, Any)) for name in fields})
        return shapes

    def dump(value: object) -> dict[str, object]:
        if not isinstance(value, kind):
            raise EncodeError(f"expected {kind.__name__}, got {type(value).__name__}")
        return {
            name: item if shape.dump is None else shape.dump(item)
            for name, shape in ready().items()
            for item in (getattr(value, name),)
        }

    def load(plain: object) -> object:
        if not isinstance(plain, dict):
            raise DecodeError(f"{kind.__name__}: expected an object, got {type(plain).__name__}")
        known = ready()
        if unknown := plain.keys() - known.keys():
            raise DecodeError(f"{kind.__name__}: unknown {', '.join(sorted(unknown))}")
        try:
            return kind(
                **{
                    name: item if (step := known[name].load) is None else step(item)
                    for name, item in plain.items()
                }
            )
        except Exception as error:  # __post_init__ may raise anything
            raise DecodeError(f"{kind.__name__}: {error}") from None

    return Shape(dump, load)


def _model(kind: Any) -> Shape:  # noqa: ANN401
    """A pydantic model, written by field names; read by field names or aliases. Before pydantic 2.11, fields with an
    alias are read by the alias only."""
    named = "by_name" in inspect.signature(kind.model_validate).parameters

    def dump(value: Any) -> object:  # noqa: ANN401
        return value.model_dump(mode="json", by_alias=not named, round_trip=True)

    validate = partial(kind.model_validate, by_alias=True, by_name=True) if named else kind.model_validate
    return Shape(_dumper(kind, dump), _loader(kind, validate))


def _items(made: Any, shape: Shape) -> Shape:  # noqa: ANN401
    def dump(value: Any) -> list[object]:  # noqa: ANN401
        if isinstance(value, str | bytes | Mapping) or not hasattr(value, "__iter__"):
            raise EncodeError(f"expected {made.__name__}, got {type(value).__name__}")
        items = sorted(value, key=repr) if isinstance(value, set | frozenset) else value
        return list(items) if shape.dump is None else [shape.dump(item) for item in items]

    def load(plain: object) -> object:
        if not isinstance(plain, list):
            raise DecodeError(f"expected an array, got {type(plain).__name__}")
        return made(plain if shape.load is None else [shape.load(item) for item in plain])

    return Shape(dump, load)


def _tuple(shapes: list[Shape]) -> Shape:
    def dump(value: object) -> list[object]:
        if not isinstance(value, tuple | list) or len(value) != len(shapes):
            raise EncodeError(f"expected a tuple of {len(shapes)}, got {type(value).__name__}")
        return [item if s.dump is None else s.dump(item) for s, item in zip(shapes, value, strict=True)]

    def load(plain: object) -> object:
        if not isinstance(plain, list) or len(plain) != len(shapes):
            raise DecodeError(f"expected an array of {len(shapes)}")
        return tuple(item if s.load is None else s.load(item) for s, item in zip(shapes, plain, strict=True))

    return Shape(dump, load)


def _mapping(key: object, value: object) -> Shape:
    keys, values = shape_of(key), shape_of(value)
    text = key in (str, Any, object)

    def dump(plain: object) -> dict[str, object]:
        if not isinstance(plain, Mapping):
            raise EncodeError(f"expected a mapping, got {type(plain).__name__}")
        return {
            k if text else _key_text(k if keys.dump is None else keys.dump(k)): (
                v if values.dump is None else values.dump(v)
            )
            for k, v in plain.items()
        }

    def load(plain: object) -> object:
        if not isinstance(plain, dict):
            raise DecodeError(f"expected an object, got {type(plain).__name__}")
        read = None if text or keys.load is None else partial(_read_key, keys.load)
        return {
            (k if read is None else read(k)): (v if values.load is None else values.load(v))
            for k, v in plain.items()
        }

    return Shape(dump, load)


def _union(args: tuple[object, ...]) -> Shape:
    """A union: None, else the first other type that accepts the value. To encode, the value's own type is tried first,
    since a datetime is also a date. To decode, date comes before datetime, which would read a date as midnight."""
    empty = types.NoneType in args
    kinds = [a for a in args if a is not types.NoneType]
    if dt.datetime in kinds and dt.date in kinds[kinds.index(dt.datetime) :]:
        kinds.remove(dt.date)
        kinds.insert(kinds.index(dt.datetime), dt.date)
    shapes = [(kind, shape_of(kind)) for kind in kinds]

    def dump(value: object) -> object:
        if value is None and empty:
            return None
        for kind, shape in sorted(shapes, key=lambda one: one[0] is not type(value)):
            if _is_a(value, kind):
                return value if shape.dump is None else shape.dump(value)
        raise EncodeError(f"{type(value).__name__} is none of {', '.join(map(_name, args))}")

    def load(plain: object) -> object:
        if plain is None and empty:
            return None
        for _, shape in shapes:
            try:
                return plain if shape.load is None else shape.load(plain)
            except DecodeError:
                continue
        raise DecodeError(f"{type(plain).__name__} is none of {', '.join(map(_name, args))}")

    return Shape(dump, load)


def _is_a(value: object, kind: object) -> bool:
    origin = typing.get_origin(kind) or kind
    if origin is typing.Literal:
        return value in typing.get_args(kind)
    if origin is float:
        return isinstance(value, float | int) and not isinstance(value, bool)
    if origin is int:
        return isinstance(value, int) and not isinstance(value, bool)
    if typing.is_typeddict(origin):
        return isinstance(value, dict)
    return isinstance(value, origin) if isinstance(origin, type) else True


def _name(kind: object) -> str:
    return getattr(kind, "__name__", str(kind))


def _one_of(values: tuple[object, ...]) -> Step:
    def load(plain: object) -> object:
        if plain not in values:
            raise DecodeError(f"{plain!r} is none of {', '.join(map(repr, values))}")
        return plain

    return load


def _checked(kind: type) -> Step:
    accepted: tuple[type, ...] = (float, int) if kind is float else (kind,)

    def load(plain: object) -> object:
        if not isinstance(plain, accepted) or (isinstance(plain, bool) and kind is not bool):
            raise DecodeError(f"expected {kind.__name__}, got {type(plain).__name__}")
        return float(plain) if kind is float else plain  # type: ignore[arg-type]

    return load


def _loader(kind: type, make: Step) -> Step:
    def load(plain: object) -> object:
        try:
            return make(plain)
        except Exception as error:  # a type may raise anything
            raise DecodeError(f"{kind.__name__}: {error}") from None

    return load


def _dumper(kind: type, make: Step) -> Step:
    def dump(value: object) -> object:
        try:
            return make(value)
        except Exception as error:
            raise EncodeError(f"{kind.__name__}: {error}") from None

    return dump


def _enum_value(member: enum.Enum) -> object:
    return member.value


def _key_text(key: object) -> str:
    return json.dumps(key) if isinstance(key, bool) else str(key)


def _read_key(load: Step, text: str) -> object:
    """A mapping key: JSON keys are strings, those of numbers too."""
    try:
        return load(text)
    except DecodeError:
        try:
            plain = json.loads(text)
        except ValueError:
            plain = text
        return load(plain)


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _seconds(span: dt.timedelta) -> float:
    return span.total_seconds()


def _iso(moment: dt.datetime | dt.time) -> str:
    return moment.isoformat()


def _datetime(text: str) -> dt.datetime:
    return dt.datetime.fromisoformat(text)


_SCALARS: dict[type, Shape] = {
    kind: Shape(_dumper(kind, dump), _loader(kind, load))
    for kind, dump, load in (
        (bytes, _base64, partial(base64.b64decode, validate=True)),
        (uuid.UUID, str, uuid.UUID),
        (decimal.Decimal, str, decimal.Decimal),
        (dt.datetime, _iso, _datetime),
        (dt.date, dt.date.isoformat, dt.date.fromisoformat),  # a datetime is also a date: keep the date part
        (dt.time, _iso, dt.time.fromisoformat),
        (dt.timedelta, _seconds, lambda s: dt.timedelta(seconds=s)),
    )
}
