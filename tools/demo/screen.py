"""The output of the demo, with or without colour."""

import sys
from collections.abc import Sequence
from typing import TextIO

from pyff.cli.table import aligned

HEADING, GOOD, BAD, DIM = "1;36", "32", "31", "2"


class Screen:
    """Writes to a stream, flushing each line."""

    def __init__(self, out: TextIO | None = None, *, colour: bool = False) -> None:
        self._out = out or sys.stdout
        self.colour = colour
        self._number = 0
        self._open = False

    def chapter(self, title: str) -> None:
        self._number += 1
        self._write(f"\n{self._paint(HEADING, f'{self._number}  {title}')}\n")

    def say(self, text: str) -> None:
        self._write(f"   {text}\n")

    def good(self, text: str) -> None:
        self._write(f"   {self._paint(GOOD, '✓')} {text}\n")

    def bad(self, text: str) -> None:
        """Prints an expected failure."""
        self._write(f"   {self._paint(BAD, '✗')} {text}\n")

    def words(self, text: str) -> None:
        """Continues the current line."""
        self._write(text if self._open else f"   {text}", ends=False)

    def sql(self, statement: str, rows: Sequence[Sequence[str]]) -> None:
        """Prints a statement and its rows."""
        lines = statement.strip().splitlines()
        self._write("\n")
        for line in lines:
            self._write(f"   {self._paint(DIM, line)}\n")
        if len(rows) > 1:
            self._write("".join(f"   {line}\n" for line in aligned(rows).splitlines()))

    def block(self, text: str) -> None:
        self._write("".join(f"   {line}\n" for line in text.splitlines()))

    def _paint(self, code: str, text: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self.colour else text

    def _write(self, text: str, *, ends: bool = True) -> None:
        if self._open and ends:
            text = f"\n{text}"
        self._open = not ends
        self._out.write(text)
        self._out.flush()
