"""Histories: one file per client, two lines per call.

The first line is written before the call is sent, the second when its result has arrived. A client that is killed in
between, or whose connection breaks, leaves a call without a result: it may or may not have taken effect.
"""

import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg
from psycopg import sql
from psycopg.rows import dict_row
from psycopg.types.json import Jsonb

Row = dict[str, Any]


@dataclass(slots=True)
class Call:
    """One call of a function. `rows` is its result, `error` the SQLSTATE of its error; both None: unknown."""

    client: str
    number: int
    function: str
    args: Row
    began_ms: int
    rows: list[Row] | None = None
    error: str | None = None
    ended_ms: int | None = field(default=None)

    @property
    def acknowledged(self) -> bool:
        return self.rows is not None

    @property
    def unknown(self) -> bool:
        return self.rows is None and self.error is None

    @property
    def row(self) -> Row:
        """The one row of an acknowledged call; empty if there was none."""
        return self.rows[0] if self.rows else {}


class Recorder:
    """Calls functions of the engine over a connection, and records calls and results.

    The file is append-only, each line one write: written lines survive the end of the process. Times are those of this
    machine, which must be the server's for the rules that compare clocks.
    """

    def __init__(self, path: str | os.PathLike[str], client: str) -> None:
        self.client = client
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        self._number = 0

    def close(self) -> None:
        os.close(self._file)

    def call(self, conn: psycopg.Connection[Any], function: str, **args: object) -> list[Row]:
        """The rows of `function`, called by named notation; p_ is added to the names.

        A dict is sent as jsonb, and so is a list of dicts.
        Errors are recorded and raised again. After an error without a SQLSTATE, or of a lost server or connection,
        the call may or may not have taken effect.
        """
        self._number += 1
        self._write({"n": self._number, "call": function, "args": args, "at": _now_ms()})
        named = sql.SQL(", ").join(
            sql.SQL("{} => {}").format(sql.Identifier(f"p_{name}"), sql.Placeholder(name)) for name in args
        )
        query = sql.SQL("select * from {}({})").format(sql.Identifier(function), named)
        values = {name: Jsonb(value) if _is_json(value) else value for name, value in args.items()}
        try:
            rows = conn.cursor(row_factory=dict_row).execute(query, values).fetchall()
        except psycopg.Error as error:
            if _refused(error):
                self._write({"n": self._number, "error": error.sqlstate, "at": _now_ms()})
            raise
        self._write({"n": self._number, "rows": rows, "at": _now_ms()})
        return rows

    def _write(self, line: Row) -> None:
        os.write(self._file, json.dumps(line, default=_plain).encode() + b"\n")


def load(paths: Sequence[str | os.PathLike[str]]) -> list[Call]:
    """All calls of the histories, each client's in order. An incomplete last line is skipped."""
    return [call for path in paths for call in _read(Path(path))]


def _read(path: Path) -> Iterator[Call]:
    calls: list[Call] = []
    asked: dict[int, Call] = {}
    for text in path.read_bytes().split(b"\n")[:-1]:
        line = json.loads(text)
        if "call" in line:
            # A restarted client counts from one again.
            asked[line["n"]] = Call(path.stem, line["n"], line["call"], line["args"], line["at"])
            calls.append(asked[line["n"]])
        else:
            call = asked[line["n"]]
            call.rows, call.error, call.ended_ms = line.get("rows"), line.get("error"), line["at"]
    yield from calls


def _is_json(value: object) -> bool:
    return isinstance(value, Mapping) or (
        isinstance(value, list) and isinstance((value or [None])[0], Mapping)
    )


def _refused(error: psycopg.Error) -> bool:
    """Whether the server rejected the statement and kept running: a failed statement has changed nothing."""
    code = error.sqlstate or ""
    return code == "57014" or (code != "" and code[:2] not in {"08", "57", "58", "XX"})


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _plain(value: object) -> object:
    if isinstance(value, bytes | bytearray | memoryview):
        return "\\x" + bytes(value).hex()
    if isinstance(value, UUID):
        return str(value)
    raise TypeError(f"a history cannot hold a {type(value).__name__}")
