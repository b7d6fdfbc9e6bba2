"""Rows of text as an aligned table."""

import unicodedata
from collections.abc import Sequence


def aligned(rows: Sequence[Sequence[str]]) -> str:
    """The first row is the header."""
    widths = [max(columns(row[n]) for row in rows) for n in range(len(rows[0]))]
    lines = [
        "  "
        + "  ".join(
            cell + " " * (width - columns(cell)) for cell, width in zip(row, widths, strict=True)
        ).rstrip()
        for row in rows
    ]
    lines.insert(1, "  " + "  ".join("-" * width for width in widths))
    return "\n".join(lines)


def columns(text: str) -> int:
    """The width on a terminal: two columns for a wide character, none for a combining one."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text
    )
