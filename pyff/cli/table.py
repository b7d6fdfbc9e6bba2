"""Rows of text as an aligned table."""

from collections.abc import Sequence


def aligned(rows: Sequence[Sequence[str]]) -> str:
    """The first row is the header."""
    widths = [max(len(row[n]) for row in rows) for n in range(len(rows[0]))]
    lines = [
        "  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
    lines.insert(1, "  " + "  ".join("-" * width for width in widths))
    return "\n".join(lines)
