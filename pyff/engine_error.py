"""The root of the engine's errors. Its subclasses are generated from the table ff_error_code."""

from collections.abc import Mapping
from typing import ClassVar

from pyff.failure import Failure
from pyff.types import JsonValue


class EngineError(Failure):
    """The engine rejected a call. `detail` is for programs, the message and the hint are for people.

    `sqlstate`, `kind` and `retryable` belong to the class; an error that this version of pyff does not know
    has them on the instance.
    """

    sqlstate: str = ""
    kind: str = ""
    retryable: bool = False
    description: ClassVar[str] = "The engine rejected the call."
    advice: ClassVar[str] = ""

    def __init__(
        self,
        message: str | None = None,
        *,
        hint: str | None = None,
        detail: Mapping[str, JsonValue] | None = None,
    ) -> None:
        super().__init__(message or self.description, hint=self.advice if hint is None else hint)
        self.detail: dict[str, JsonValue] = {"kind": self.kind, **(detail or {})}
