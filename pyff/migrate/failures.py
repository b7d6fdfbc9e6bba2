"""Database errors with the file that failed, and a hint."""

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from psycopg import errors

from pyff.migrate.tree import MigrateError

_HINTS: dict[type[psycopg.Error], str] = {
    errors.LockNotAvailable: "another session holds a lock that this step needs; the step was rolled back, try again",
    errors.InsufficientPrivilege: "run it as the role that owns pyff's tables and functions",
}


@contextmanager
def explained(what: str, text: str = "") -> Iterator[None]:
    """`what`: the action, for the message; `text`: the file being executed, for the line of an error."""
    try:
        yield
    except psycopg.Error as error:
        diag = error.diag
        message = diag.message_primary or str(error).strip()
        if diag.message_detail:
            message += f" ({diag.message_detail})"
        # The query is the file, or the body of a function in it.
        start = text.find(diag.internal_query) if diag.internal_query and diag.internal_position else -1
        if start >= 0:
            what += f":{text.count(chr(10), 0, start + int(diag.internal_position or 0)) + 1}"
        hint = diag.message_hint or _HINTS.get(type(error), "")
        if isinstance(error, errors.DependentObjectsStillExist):  # the server's hint is CASCADE
            hint = "drop those objects first and create them again afterwards"
        raise MigrateError(f"{what}: {message}" if what else message, hint=hint) from error
