"""The output of commands: aligned tables for people, one JSON object per line for programs.

Times are milliseconds since the epoch in JSON, as the SQL functions return them, and UTC in tables. Bytes are
text in JSON if they are UTF-8; otherwise the field is null and `<field>_base64` holds them.
"""

import argparse
import base64
import dataclasses
import json
import math
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, TextIO

from pyff.cli.table import aligned

SHORTENED = 60  # characters of a cell, for texts of any length


def add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="one JSON object per line, for programs")


def on_terminal(stream: TextIO) -> bool:
    """Whether the stream is a terminal that can move its cursor."""
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def in_colour() -> bool:
    return on_terminal(sys.stdout) and not os.environ.get("NO_COLOR")


def fields(row: object) -> dict[str, Any]:
    """The columns of a result."""
    if isinstance(row, Mapping):
        return dict(row)
    if dataclasses.is_dataclass(row) and not isinstance(row, type):
        return {field.name: getattr(row, field.name) for field in dataclasses.fields(row)}
    raise TypeError(f"{type(row).__name__} has no columns")


def print_json(row: object) -> None:
    sys.stdout.write(json.dumps(_plain(fields(row)), default=str, ensure_ascii=False) + "\n")


def print_one(args: argparse.Namespace, row: object, line: str) -> None:
    """Prints the result of one action: a sentence, or the JSON object."""
    if args.json:
        print_json(row)
    else:
        print(line)


def print_rows(
    args: argparse.Namespace, rows: Iterable[object], columns: Mapping[str, str], nothing: str
) -> None:
    """Prints a list. columns: title -> field; nothing: the message for an empty list. JSON has every field."""
    if args.json:
        for row in rows:
            print_json(row)
        return
    lines = [[cell(name, fields(row).get(name)) for name in columns.values()] for row in rows]
    print(aligned([list(columns), *lines]) if lines else nothing)


def print_fields(row: object, leave_out: Sequence[str] = ()) -> None:
    """Prints the columns of one row that have a value, one per line."""
    shown = {
        name: value
        for name, value in fields(row).items()
        if value not in (None, "", [], (), {}) and name not in leave_out
    }
    titles = {
        name: name.removesuffix("_ms") if name.endswith(("_at_ms", "_until_ms")) else name for name in shown
    }
    width = max(map(len, titles.values()), default=0) + 1
    for name, value in shown.items():
        print(f"  {titles[name] + ':':<{width}} {cell(name, value, shorten=False)}")


def cell(name: str, value: object, *, shorten: bool = True) -> str:
    if value is None:
        return ""
    if name.endswith(("_at_ms", "_until_ms")):
        return moment(value) if isinstance(value, int) else str(value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, bytes | bytearray | memoryview):
        value = text_of(bytes(value))
    elif isinstance(value, dict):
        value = json.dumps(value, ensure_ascii=False)
    elif isinstance(value, list | tuple):
        value = ", ".join(map(str, value))
    text = printable(str(value))
    return text if not shorten or len(text) <= SHORTENED else text[: SHORTENED - 1] + "…"


def printable(text: str) -> str:
    """Replaces characters that would move the cursor or colour the terminal."""
    return "".join(c if c.isprintable() else f"\\x{ord(c):02x}" if ord(c) < 256 else "?" for c in text)


def text_of(content: bytes) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError:
        return "\\x" + content.hex()


def moment(ms: int) -> str:
    try:
        return datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%SZ")
    except (OverflowError, ValueError, OSError):
        return str(ms)


def span(ms: float) -> str:
    """A duration for people."""
    if ms < 1000:
        return f"{ms:.0f} ms"
    for size, unit in ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min")):
        if ms >= 2 * size:
            return f"{ms / size:.0f} {unit}"
    return f"{ms / 1000:.0f} s"


def _plain(row: Mapping[str, Any]) -> dict[str, Any]:
    plain: dict[str, Any] = {}
    for name, value in row.items():
        if isinstance(value, bytes | bytearray | memoryview):
            try:
                plain[name] = bytes(value).decode()
            except UnicodeDecodeError:
                plain[name] = None
                plain[f"{name}_base64"] = base64.b64encode(bytes(value)).decode()
        elif isinstance(value, float) and not math.isfinite(value):
            plain[name] = str(value)  # JSON has no NaN
        else:
            plain[name] = value
    return plain
