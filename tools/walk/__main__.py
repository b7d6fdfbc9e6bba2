"""`python -m tools.walk`"""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby

from tools.walk import count, walk
from tools.walk.counts import Nouns, file_of
from tools.walk.trace import Call


def main() -> None:
    steps = walk()
    for step in steps:
        print(f"{step.title}\n{chr(10).join(draw(step.calls))}\n")
    counts = count(steps)
    print(f"{counts.functions} functions, {counts.calls} calls")
    _print("back and forth, one call inside the other", counts.nested)
    _print("back and forth, one call after the other", counts.in_order)


def _print(title: str, pairs: Counter[Nouns]) -> None:
    print(f"{title}: {pairs.total()}")
    for (noun, other), times in pairs.most_common():
        print(f"  {noun}, {other}, {noun}: {times}")


def draw(calls: Sequence[Call], depth: int = 1) -> Iterator[str]:
    """A line per call, below its caller; equal calls in a row are one line."""
    for lines, repeated in groupby([*_line(call, depth)] for call in calls):
        times = len([*repeated])
        first, *rest = lines
        yield f"{first} ({times} times)" if times > 1 else first
        yield from rest


def _line(call: Call, depth: int) -> Iterator[str]:
    yield f"{'  ' * depth}{call.name:{50 - 2 * depth}} {file_of(call.name)}"
    yield from draw(call.calls, depth + 1)


if __name__ == "__main__":
    main()
