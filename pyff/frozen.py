"""The dataclasses of results.

`@dataclass(frozen=True)` compiles six methods for each class. For all results together that takes half as long as the
import of psycopg, so they share theirs.
"""

from dataclasses import FrozenInstanceError, dataclass
from typing import Any, TypeVar, dataclass_transform

T = TypeVar("T")
_set = object.__setattr__


@dataclass_transform(frozen_default=True)
def frozen(cls: type[T]) -> type[T]:
    """Does what `@dataclass(frozen=True, slots=True)` does, for classes whose fields have no defaults."""
    made = dataclass(init=False, repr=False, eq=False, slots=True)(cls)
    for method in (_init, _repr, _eq, _hash, _reduce, _setattr, _delattr):
        setattr(made, f"_{method.__name__}__", method)
    return made


def _init(self: Any, *values: object, **named: object) -> None:  # noqa: ANN401
    names = self.__match_args__
    if named or len(values) != len(names):
        rest = names[len(values) :]
        if len(values) > len(names) or named.keys() != set(rest):
            raise TypeError(f"{type(self).__name__} takes the fields {', '.join(names)}, each of them once")
        values += tuple(named[name] for name in rest)
    for name, value in zip(names, values, strict=True):
        _set(self, name, value)


def _values(self: Any) -> tuple[object, ...]:  # noqa: ANN401
    return tuple([getattr(self, name) for name in self.__match_args__])


def _repr(self: Any) -> str:  # noqa: ANN401
    fields = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__match_args__)
    return f"{type(self).__qualname__}({fields})"


def _eq(self: object, other: object) -> bool:
    return _values(self) == _values(other) if type(other) is type(self) else NotImplemented


def _hash(self: object) -> int:
    return hash(_values(self))


def _reduce(self: object) -> tuple[type, tuple[object, ...]]:
    """For pickle and copy, which would assign to the fields."""
    return type(self), _values(self)


def _setattr(self: object, name: str, value: object) -> None:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _delattr(self: object, name: str) -> None:
    raise FrozenInstanceError(f"cannot delete field {name!r}")
