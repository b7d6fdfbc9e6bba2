"""A codec: converts values of one type to bytes and back."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Generic, TypeVar, cast

from pyff.codecs.shapes import DecodeError, EncodeError, Shape, shape_of

T = TypeVar("T")

JSON: Final = "json"
BYTES: Final = "bytes"

dumps = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode
loads = json.JSONDecoder().decode


@dataclass(frozen=True, slots=True)
class Codec(Generic[T]):
    """`encoding` is stored beside the bytes, for readers that do not know the type."""

    encoding: str
    encode: Callable[[T], bytes | None]
    decode: Callable[[bytes | None], T]


def codec_of(kind: object) -> Codec[object]:
    """The codec of an annotated type. None is stored as NULL."""
    try:
        return _cached(kind, repr(kind))  # int | str equals str | int, but decodes in another order
    except TypeError:  # an unhashable annotation, such as Literal[[]]
        return _make(kind)


def _make(kind: object, _written: str = "") -> Codec[object]:
    if kind is bytes:
        return cast("Codec[object]", Codec(BYTES, _raw, _raw_back))
    return _json(shape_of(kind))


_cached = lru_cache(maxsize=None)(_make)


def _raw(value: bytes) -> bytes:
    if not isinstance(value, bytes | bytearray | memoryview):
        raise EncodeError(f"expected bytes, got {type(value).__name__}")
    return bytes(value)


def _raw_back(data: bytes | None) -> bytes:
    return b"" if data is None else data


def _json(shape: Shape) -> Codec[object]:
    dump, load = shape.dump, shape.load

    def encode(value: object) -> bytes | None:
        if value is None:
            return None
        return to_json(value if dump is None else dump(value))

    def decode(data: bytes | None) -> object:
        plain = None if data is None else from_json(data)
        return plain if load is None else load(plain)

    return Codec(JSON, encode, decode)


def to_json(plain: object) -> bytes:
    try:
        return dumps(plain).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise EncodeError(f"not a JSON value: {error}; annotate its type to encode and decode it") from None


def from_json(data: bytes) -> object:
    try:
        return loads(data.decode())
    except (ValueError, RecursionError) as error:
        raise DecodeError(f"not JSON: {error}") from None
