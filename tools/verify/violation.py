"""Violations of a rule."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Violation:
    """A violation: the rule, its subject, and the detail."""

    rule: str
    subject: str
    detail: str

    def __str__(self) -> str:
        return f"{self.rule}: {self.subject}: {self.detail}"
