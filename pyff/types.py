"""Types shared by the signatures and the results of the engine's methods."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from types import MappingProxyType
from typing import Final, Never, TypeAlias

JsonValue: TypeAlias = Mapping[str, "JsonValue"] | Sequence["JsonValue"] | str | int | float | bool | None
"""Any jsonb value."""

EMPTY_OBJECT: Final[Mapping[str, Never]] = MappingProxyType({})
"""The default of json object arguments."""


class PublicState(StrEnum):
    """The public state of an execution."""

    WAITING = "waiting"
    RESUMABLE = "resumable"
    DELAYED = "delayed"
    WAITING_CHILDREN = "waiting_children"
    RATE_LIMITED = "rate_limited"
    ACTIVE = "active"
    SUSPENDED = "suspended"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    EXPIRED = "expired"
    SKIPPED = "skipped"


__all__ = ["EMPTY_OBJECT", "JsonValue", "PublicState"]
