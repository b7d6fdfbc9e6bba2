"""A database error, told so that a person knows which file it was and what to do."""

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from psycopg import errors

from pyff.migrate.tree import MigrateError

_HINTS: dict[type[psycopg.Error], str] = {
    errors.LockNotAvailable: "another session has a lock on what this step changes; it was undone, try again",
    errors.InsufficientPrivilege: "this is for the role that owns pyff's tables and functions",
}


@contextmanager
def explained(what: str, text: str = "") -> Iterator[None]:
    """`what` is being done; `text` is the file being executed, to name the line of an error in it."""
    try:
        yield
    except psycopg.Error as error:
        diag = error.diag
        message = diag.message_primary or str(error).strip()
        if diag.message_detail:
            message += f" ({diag.message_detail})"
        # The query is the file, or the body of the function in it.
        start = text.find(diag.internal_query) if diag.internal_query and diag.internal_position else -1
        if start >= 0:
            what += f":{text.count(chr(10), 0, start + int(diag.internal_position or 0)) + 1}"
        hint = diag.message_hint or _HINTS.get(type(error), "")
        if isinstance(error, errors.DependentObjectsStillExist):  # the server's hint is CASCADE
            hint = "drop those objects first and create them again afterwards"
        raise MigrateError(f"{what}: {message}" if what else message, hint=hint) from error
