"""The values of a wait: the token to hand out, and the signal that ended the wait."""

import base64
import json
from dataclasses import dataclass
from typing import Self
from uuid import UUID

from pyff._generated.errors import InvalidToken
from pyff.codecs.codec import from_json


@dataclass(frozen=True, slots=True)
class Token:
    """Allows its holder to signal this one waitpoint, and nothing else. Treat it as a password."""

    execution_id: str
    waitpoint_id: UUID
    secret: str

    @property
    def url_param(self) -> str:
        """The token as one word for a URL; `Token.parse` reads it."""
        text = json.dumps([self.execution_id, str(self.waitpoint_id), self.secret], separators=(",", ":"))
        return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")

    @classmethod
    def parse(cls, text: str) -> Self:
        """Reads what `url_param` wrote.

        Raises: InvalidToken.
        """
        try:
            return cls(*_parts(text))
        except (ValueError, TypeError, AttributeError, RecursionError):
            raise InvalidToken("not a token", hint="Pass the url_param of a Token, unchanged.") from None

    def __repr__(self) -> str:
        return f"Token(execution_id={self.execution_id!r}, waitpoint_id={self.waitpoint_id!r})"


def _parts(text: str) -> tuple[str, UUID, str]:
    execution_id, waitpoint_id, secret = json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    if not all(part.isascii() and part.isprintable() for part in (execution_id, secret)):
        raise ValueError("the execution id or the secret has invalid characters")
    return execution_id, UUID(waitpoint_id), secret


@dataclass(frozen=True, slots=True)
class Signal:
    """The signal that ended a wait. `payload` is the sender's."""

    name: str
    payload: bytes | None = None
    source: str = ""
    source_type: str = ""

    def json(self) -> object:
        """The payload, decoded as JSON; None if there is none."""
        return None if self.payload is None else from_json(self.payload)


__all__ = ["Signal", "Token"]
