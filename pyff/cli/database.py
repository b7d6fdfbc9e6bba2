"""The one way in which commands find and reach their database."""

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
        help="a libpq connection string or URI (default: PYFF_DSN, else the server `pyff server` keeps)",
    )


def find(args: argparse.Namespace) -> str:
    """--dsn, else PYFF_DSN, else the kept server, which must be running."""
    from pyff.cli.exits import Unusable
    from pyff.postgres import external_dsn, status

    if given := args.dsn or external_dsn() or status().dsn:
        return str(given)
    raise Unusable(
        "which database? The server that `pyff server` keeps is not running",
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
        # Nothing is prepared: there may be a pooler in between.
        return psycopg.connect(
            dsn, autocommit=True, prepare_threshold=None, fallback_application_name="pyff", **patience
        )
    except (psycopg.OperationalError, psycopg.ProgrammingError) as error:
        raise cannot_connect(error) from None


def parts(dsn: str) -> dict[str, Any]:
    """What a connection string says; a malformed one is refused, without repeating what may be a password."""
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
    """The engine for commands that follow something: it may reconnect, and LISTENs on one more connection."""
    from pyff.engine import Engine

    dsn = find(args)
    open_one(dsn).close()  # a pool would hide why it fails
    with Engine(dsn, max_size=2) as made:
        yield made
