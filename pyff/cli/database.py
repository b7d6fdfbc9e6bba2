"""Finds the database of a command and connects to it."""

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import psycopg

    from pyff.engine import Engine

CONNECT_TIMEOUT_S = 10


def add_dsn(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--dsn",
        help="a libpq connection string or URI (default: PYFF_DSN, else the server of `pyff server`)",
    )


def find(args: argparse.Namespace) -> str:
    """--dsn, else PYFF_DSN, else the kept server, which must be running."""
    from pyff.cli.exits import Unusable
    from pyff.postgres import external_dsn, status

    if given := args.dsn or external_dsn() or status().dsn:
        return str(given)
    raise Unusable(
        "no database: --dsn and PYFF_DSN are not set, and the server of `pyff server` is not running",
        hint="give --dsn, set PYFF_DSN, or run `pyff server start`",
    )


@contextmanager
def connection(args: argparse.Namespace) -> "Iterator[psycopg.Connection[Any]]":
    """A connection in autocommit mode."""
    with open_one(find(args)) as conn:
        yield conn


def open_one(dsn: str) -> "psycopg.Connection[Any]":
    import psycopg

    from pyff.cli.exits import cannot_connect

    given = parts(dsn)
    patience: dict[str, Any] = {} if "connect_timeout" in given else {"connect_timeout": CONNECT_TIMEOUT_S}
    try:
        # No prepared statements: there may be a pooler.
        return psycopg.connect(
            dsn, autocommit=True, prepare_threshold=None, fallback_application_name="pyff", **patience
        )
    except (psycopg.OperationalError, psycopg.ProgrammingError) as error:
        raise cannot_connect(error) from None


def parts(dsn: str) -> dict[str, Any]:
    """The parts of a connection string. A malformed one is rejected, without printing a possible password."""
    import psycopg
    from psycopg.conninfo import conninfo_to_dict

    from pyff.cli.exits import cannot_connect

    try:
        return conninfo_to_dict(dsn)
    except (psycopg.ProgrammingError, UnicodeEncodeError):
        raise cannot_connect(psycopg.ProgrammingError()) from None


@contextmanager
def engine(args: argparse.Namespace) -> "Iterator[Engine]":
    """The engine on one connection; its first call checks that the schema fits."""
    from pyff.engine import Engine

    with connection(args) as conn, Engine(conn, prepare_threshold=None) as made:
        yield made


@contextmanager
def pooled(args: argparse.Namespace) -> "Iterator[Engine]":
    """The engine for commands that follow events or frames: it can reconnect, and LISTENs on a second connection."""
    from pyff.engine import Engine

    dsn = find(args)
    open_one(dsn).close()  # a pool would hide the reason of a failure
    with Engine(dsn, max_size=2) as made:
        yield made
