"""What cannot be."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Violation:
    """A broken promise: which rule, whose, and how."""

    rule: str
    subject: str
    detail: str

    def __str__(self) -> str:
        return f"{self.rule}: {self.subject}: {self.detail}"
