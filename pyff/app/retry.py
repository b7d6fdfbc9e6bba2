"""How often a failed task is tried again, and after which pauses. The database decides; this writes its policy."""

from dataclasses import dataclass

from pyff.types import JsonValue


@dataclass(frozen=True, slots=True)
class Backoff:
    """Up to `max` further attempts, after `base_ms`, then `factor` times as long each time, at most `max_ms`.

    With `jitter` each pause is somewhere between half of that and all of it. `on` names the exceptions that are worth
    another attempt; by default all are, but `Fail(retryable=False)`.
    """

    max: int = 3
    base_ms: int = 1_000
    max_ms: int = 60_000
    factor: float = 2.0
    jitter: bool = True
    on: tuple[type[BaseException], ...] = ()

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
    """Up to `max` further attempts, each `delay_ms` after the last one failed."""

    max: int = 3
    delay_ms: int = 1_000
    on: tuple[type[BaseException], ...] = ()

    def policy(self) -> dict[str, JsonValue]:
        return {"max_retries": self.max, "backoff": {"type": "fixed", "delay_ms": self.delay_ms}}


Retry = Backoff | Fixed

__all__ = ["Backoff", "Fixed", "Retry"]
