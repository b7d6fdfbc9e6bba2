"""The glossary in docs/concepts.md: its words are in order, and retired words appear nowhere."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.blocks import ROOT

PLACES = [
    "db",
    "pyff",
    "docs",
    "examples",
    "bench",
    "tests",
    "requirements",
    ".ci",
    "demo",
    "test",
    "*.md",
    "*.toml",
]
KINDS = {".py", ".sql", ".md", ".sh", ".toml", ".js", ".go", ".java", ".rs", ".in", ""}

PERSONS = r"somebody|someone|nobody|no one|whoever|everybody|everyone|anybody|anyone|(?:is|are|was|were|be|been) told"
MANNERS = r"seldom|shall|mend(?:s|ed|ing)?|hears?|heard|hearing|crowd(?:s|ed)?|in vain|for want of|afresh"
NAMES = (
    r"doorbells?|bells?|rings?|rung|ringing|let_go|lets? go of|lets go|judg(?:e|es|ed|ing|ement)|verdicts?"
    r"|tie_loose_ends|loose ends|heal(?:s|ed|ing)?|bur(?:y|ies|ied)|forsak(?:e|es|en)|attend(?:s|ed)?|keepers?"
    r"|swallow(?:s|ed)?|patient|scan_mark|arm_lane|wake_lane|covered_keys|member_verdict"
)
RETIRED = re.compile(rf"(?<![a-z])(?:{PERSONS}|{MANNERS}|{NAMES})(?![a-z])", re.I)
"""Words that the documentation, the messages and the names do not use. `_` separates words, as in names of tests."""

ALLOWED = re.compile(r"""["'`]nobody["'`]|\bv_\w+""")
"""The Unix account, and variables of PL/pgSQL."""


def files() -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", *PLACES],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if listed.returncode:  # not a checkout: an unpacked source distribution
        found = [path for place in PLACES for top in ROOT.glob(place) for path in (top, *top.rglob("*"))]
    else:
        found = [ROOT / name for name in listed.stdout.splitlines()]
    return sorted(
        path for path in found if path.suffix in KINDS and path.is_file() and path != Path(__file__)
    )


def lines(path: Path) -> Iterator[tuple[int, str]]:
    """The lines to check: of SQL only comments and texts, since names of variables are code; of others all."""
    text = path.read_text(errors="replace")
    if path.suffix == ".sql":
        for found in re.finditer(
            r"--.*|'(?:[^']|'')*'|^comment on (?s:.*?) is\s+\$\$(?s:.*?)\$\$", text, re.M
        ):
            for offset, line in enumerate(found[0].split("\n")):
                yield text.count("\n", 0, found.start()) + 1 + offset, line.replace("_", "x")
    else:
        yield from enumerate(text.split("\n"), 1)


@pytest.mark.parametrize("place", PLACES)
def test_no_retired_word_is_used(place):
    used = [
        f"{path.relative_to(ROOT)}:{number}: {found[0]}: {line.strip()[:120]}"
        for path in files()
        if path.relative_to(ROOT).match(place) or path.relative_to(ROOT).parts[0] == place
        for number, line in lines(path)
        for found in RETIRED.finditer(ALLOWED.sub("", line))
    ]
    assert not used, "use the words of the glossary in docs/concepts.md:\n" + "\n".join(used)


def test_the_glossary_defines_each_word_once_in_alphabetical_order():
    _, _, section = (ROOT / "docs" / "concepts.md").read_text().partition("## Glossary")
    words = re.findall(r"^\| ([a-z ]+) \| .+ \|$", section.partition("\n## ")[0], re.M)[1:]
    assert len(words) > 50
    assert words == sorted({*words})
