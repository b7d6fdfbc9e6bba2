"""Numbers of a walk."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from pyff.migrate.tree import shipped
from tools.walk.life import Step
from tools.walk.trace import Call

Nouns = tuple[str, str]


@dataclass(frozen=True)
class Counts:
    functions: int
    """Distinct functions."""
    calls: int
    nested: Counter[Nouns]
    """How often a function of the first noun calls one of the second, and that calls the first noun again."""
    in_order: Counter[Nouns]
    """How often the calls, in order, go from the first noun to the second and back."""


def count(steps: Sequence[Step]) -> Counts:
    tops = [top for step in steps for top in step.calls]
    calls = [call.name for top in tops for call in top.everything()]
    return Counts(
        functions=len({*calls}),
        calls=len(calls),
        nested=Counter(pair for top in tops for pair in _nested(top, [])),
        in_order=Counter(pair for top in tops for pair in _in_order(top)),
    )


def file_of(name: str) -> Path:
    """The file of a function, below db/functions."""
    tree = shipped()
    (path,) = (file.path for file in tree.objects if file.name == name)
    return path.relative_to(tree.root / "functions")


def noun_of(name: str) -> str:
    return file_of(name).parts[0]


def _nested(call: Call, above: list[str]) -> Iterator[Nouns]:
    """`above`: the nouns of the callers from the outside, each once where callers of one noun follow each other."""
    here = noun_of(call.name)
    nouns = above if above[-1:] == [here] else [*above, here]
    if nouns is not above and nouns[-3:-2] == [here]:
        yield here, nouns[-2]
    for below in call.calls:
        yield from _nested(below, nouns)


def _in_order(top: Call) -> Iterator[Nouns]:
    nouns = [noun for noun, _ in groupby(noun_of(call.name) for call in top.everything())]
    for before, between, after in zip(nouns, nouns[1:], nouns[2:], strict=False):
        if before == after:
            yield before, between
