"""A progress bar on a terminal; prints nothing elsewhere."""

import os
import sys
import time
from types import TracebackType
from typing import Self

from pyff.cli.output import on_terminal

WIDTH = 30
EVERY_S = 0.1


class Progress:
    """`with Progress("submitting", total) as bar: bar.advance(100)`. total None: only counts."""

    def __init__(self, what: str, total: int | None, *, shown: bool | None = None) -> None:
        self._what = what
        self._total = total
        self._done = 0
        self._drawn_at = 0.0
        self._drawn = False
        self._began = time.monotonic()
        self._shown = on_terminal(sys.stderr) if shown is None else shown

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._drawn:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()

    def advance(self, by: int = 1) -> None:
        self.reach(self._done + by)

    def reach(self, done: int) -> None:
        self._done = done
        now = time.monotonic()
        if self._shown and now - self._drawn_at >= EVERY_S:
            self._drawn_at = now
            self._drawn = True
            line = self.line(now - self._began)[: _columns() - 1]  # a second line would remain on the screen
            sys.stderr.write(f"\r{line}\x1b[K")
            sys.stderr.flush()

    def line(self, elapsed: float) -> str:
        rate = f"{self._done / elapsed:,.0f}/s" if elapsed > 0 else ""
        if not self._total:
            return f"{self._what}: {self._done:,} {rate}"
        part = min(1.0, self._done / self._total)
        filled = int(part * WIDTH)
        bar = "#" * filled + "." * (WIDTH - filled)
        return f"{self._what} [{bar}] {part:4.0%} {self._done:,} of {self._total:,} {rate}"


def _columns() -> int:
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns or 80
    except (OSError, ValueError):
        return 80
