"""Reads COMMENT ON FUNCTION: prose, and lines for programs.

- Outcomes: <column> = a | b | c    the values of a text column
- Nullable: <column>, <argument>    columns that may be null, and arguments without a default that may; no others
- Errors: <kind>, <kind>            what the function raises, as in ff_error_code
- Rows: at most one                 a set that is never a list
- Rows: exactly one                 a set that is never a list and never empty: the function raises instead

A line that would be too long is split into several of the same kind.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from pyff.failure import Failure

_LINE = re.compile(r"(Outcomes|Nullable|Errors|Rows): *(.*?) *")
_ROWS = ("at most one", "exactly one")
_NAME = re.compile(r"[a-z][a-z0-9_]*")


@dataclass(frozen=True, slots=True)
class Comment:
    prose: str = ""
    outcomes: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: MappingProxyType({}))
    nullable: frozenset[str] = frozenset()
    errors: tuple[str, ...] = ()
    rows: str = ""  # of _ROWS; '' if the line is missing


def parse(text: str) -> Comment:
    prose: list[str] = []
    outcomes: dict[str, tuple[str, ...]] = {}
    nullable: list[str] = []
    errors: list[str] = []
    rows = ""
    for line in text.splitlines():
        match = _LINE.fullmatch(line)
        if not match:
            prose.append(line.rstrip())
            continue
        word, rest = match.groups()
        if word == "Outcomes":
            column, _, values = map(str.strip, rest.partition("="))
            outcomes[column] = outcomes.get(column, ()) + _names(line, values, "|")
        elif word == "Nullable":
            nullable += _names(line, rest, ",")
        elif word == "Errors":
            errors += _names(line, rest, ",")
        elif rest in _ROWS:
            rows = rest
        else:
            raise Failure(
                f"cannot read the comment line {line!r}", hint=f"Rows is one of: {', '.join(_ROWS)}"
            )
    return Comment("\n".join(prose).strip(), outcomes, frozenset(nullable), tuple(errors), rows)


def _names(line: str, text: str, separator: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(separator))
    for name in names:
        if not _NAME.fullmatch(name):
            raise Failure(f"cannot read {name!r} in the comment line {line!r}", hint=(__doc__ or "").strip())
    return names
