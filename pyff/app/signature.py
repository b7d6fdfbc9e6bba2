"""The signature of a task: whether it takes a context, and how its arguments become a payload."""

import inspect
import typing
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pyff.codecs.codec import BYTES, JSON, Codec, codec_of, from_json, to_json
from pyff.codecs.shapes import DecodeError, EncodeError, Shape, shape_of

_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


@dataclass(frozen=True, slots=True)
class Signature:
    """`encode` and `decode` convert between the arguments and the payload; `result` is the codec of the result."""

    wants_context: bool
    is_async: bool
    encoding: str
    encode: Callable[[Sequence[Any]], bytes | None]
    decode: Callable[[bytes | None], Sequence[Any]]
    result: Codec[object]


def signature_of(fn: Callable[..., object], name: str) -> Signature:
    from pyff.app.async_context import AsyncCtx
    from pyff.app.context import Ctx

    is_async = inspect.iscoroutinefunction(fn)
    hints = typing.get_type_hints(fn, include_extras=True)
    parameters = list(inspect.signature(fn).parameters.values())
    wants = bool(parameters) and (
        hints.get(parameters[0].name) in (Ctx, AsyncCtx)
        or (parameters[0].name == "ctx" and "ctx" not in hints)
    )
    if wants:
        given, right = hints.get(parameters[0].name), AsyncCtx if is_async else Ctx
        if given is not None and given is not right:
            raise TypeError(
                f"task {name}: {'an async' if is_async else 'a plain'} function takes {right.__name__}"
            )
        parameters = parameters[1:]
    for parameter in parameters:
        variable = parameter.kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
        if variable or (parameter.kind not in _POSITIONAL and parameter.default is parameter.empty):
            raise TypeError(f"task {name}: argument {parameter.name} is not positional")
    arguments = [p for p in parameters if p.kind in _POSITIONAL]
    kinds = [hints.get(p.name, Any) for p in arguments]
    required = sum(p.default is p.empty for p in arguments)
    result = codec_of(hints.get("return", Any))
    if len(arguments) == 1:
        codec = codec_of(kinds[0])
        one = _One(name, codec, required)
        return Signature(wants, is_async, codec.encoding, one.encode, one.decode, result)
    several = _Several(name, [p.name for p in arguments], [shape_of(k) for k in kinds], required)
    return Signature(wants, is_async, JSON, several.encode, several.decode, result)


class _One:
    """A single argument: it is the payload."""

    def __init__(self, name: str, codec: Codec[object], required: int) -> None:
        self._name = name
        self._codec = codec
        self._required = required

    def encode(self, args: Sequence[Any]) -> bytes | None:
        if not args and not self._required:
            return None
        if len(args) != 1:
            raise TypeError(f"task {self._name} takes one argument, {len(args)} given")
        data = self._codec.encode(args[0])
        return b"null" if data is None and not self._required else data  # NULL means the default

    def decode(self, payload: bytes | None) -> Sequence[Any]:
        if payload is None and not self._required and self._codec.encoding != BYTES:
            return ()
        return (self._codec.decode(payload),)


class _Several:
    """Several arguments: the payload is a JSON array, or NULL without arguments. Clients may send an object instead."""

    def __init__(self, name: str, names: list[str], shapes: list[Shape], required: int) -> None:
        self._name = name
        self._names = names
        self._shapes = shapes
        self._required = required

    def encode(self, args: Sequence[Any]) -> bytes | None:
        if not self._required <= len(args) <= len(self._shapes):
            raise TypeError(f"task {self._name} takes {len(self._shapes)} arguments, {len(args)} given")
        if not args:
            return None
        return to_json([a if s.dump is None else s.dump(a) for a, s in zip(args, self._shapes, strict=False)])

    def decode(self, payload: bytes | None) -> Sequence[Any]:
        plain = [] if payload is None else from_json(payload)
        if isinstance(plain, dict):
            known = [name for name in self._names if name in plain]
            if len(known) != len(plain) or known != self._names[: len(known)]:
                raise DecodeError(f"task {self._name} takes {', '.join(self._names)}")
            plain = [plain[name] for name in known]
        if not isinstance(plain, list) or not self._required <= len(plain) <= len(self._shapes):
            raise DecodeError(f"task {self._name} takes an array of {len(self._shapes)}")
        return [p if s.load is None else s.load(p) for p, s in zip(plain, self._shapes, strict=False)]


__all__ = ["EncodeError", "Signature", "signature_of"]
