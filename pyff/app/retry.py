"""Retry policies: the number of retries and the pauses before them. The database applies them."""

from collections.abc import Iterable
from dataclasses import dataclass

from pyff.types import JsonValue


@dataclass(frozen=True, slots=True)
class Backoff:
    """Up to `max` further attempts, after `base_ms`, then `factor` times as long each time, at most `max_ms`.

    With `jitter` each pause is a random part of that, at least half. `on`: the exceptions to retry; by default all but
    `Fail(retryable=False)`.
    """

    max: int = 3
    base_ms: int = 1_000
    max_ms: int = 60_000
    factor: float = 2.0
    jitter: bool = True
    on: tuple[type[BaseException], ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "on", _exceptions(self.on))

    def policy(self) -> dict[str, JsonValue]:
        return {
            "max_retries": self.max,
            "backoff": {
                "type": "exponential",
                "initial_delay_ms": self.base_ms,
                "max_delay_ms": self.max_ms,
                "multiplier": self.factor,
                "jitter": self.jitter,
            },
        }


@dataclass(frozen=True, slots=True)
class Fixed:
    """Up to `max` further attempts, each `delay_ms` after the previous one failed."""

    max: int = 3
    delay_ms: int = 1_000
    on: tuple[type[BaseException], ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "on", _exceptions(self.on))

    def policy(self) -> dict[str, JsonValue]:
        return {"max_retries": self.max, "backoff": {"type": "fixed", "delay_ms": self.delay_ms}}


def _exceptions(on: object) -> tuple[type[BaseException], ...]:
    """Checks the types now; otherwise the error would appear when a task first fails."""
    found = tuple(on) if isinstance(on, Iterable) else (on,)
    if not all(isinstance(one, type) and issubclass(one, BaseException) for one in found):
        raise TypeError(f"on: expected exceptions, got {on!r}")
    return found


Retry = Backoff | Fixed

__all__ = ["Backoff", "Fixed", "Retry"]
