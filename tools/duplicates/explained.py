"""The explanations in CONTRIBUTING.md."""

import re
from collections.abc import Sequence
from pathlib import Path

from tools.duplicates.pairs import Pair

PAGE = Path(__file__).parents[2] / "CONTRIBUTING.md"
HEADING = "## Lines of the same shape\n"

Explanation = frozenset[str]
"""The places that a line names: `- `place`, `place`: why they stay apart`. One place alone: pairs inside it."""


def explanations(text: str | None = None) -> list[Explanation]:
    section = (PAGE.read_text(encoding="utf-8") if text is None else text).partition(HEADING)[2]
    entries = re.findall(r"^- ((?:`[^`]+`(?:,\s+)?)+):\s\S", section.partition("\n## ")[0], re.M)
    return [frozenset(re.findall(r"`([^`]+)`", entry)) for entry in entries]


def unexplained(pairs: Sequence[Pair], known: Sequence[Explanation]) -> list[Pair]:
    return [pair for pair in pairs if not any(_explains(names, pair) for names in known)]


def stale(pairs: Sequence[Pair], known: Sequence[Explanation]) -> list[str]:
    """Places that an explanation names, but no pair that it explains."""
    return [
        name
        for names in known
        for name in sorted(names)
        if not any(name in pair.places and _explains(names, pair) for pair in pairs)
    ]


def _explains(names: Explanation, pair: Pair) -> bool:
    places = frozenset(pair.places)
    return places <= names and (len(places) == 1) == (len(names) == 1)
