"""Exit codes, and the format of errors: one line with the hint, never a traceback. docs/cli.md lists the codes."""

import psycopg
from psycopg import errors

from pyff.cli.output import printable
from pyff.failure import Failure

OK = 0
REFUSED = 1  # also: findings, work that did not complete
USAGE = 2
NOT_FOUND = 3  # also: server status, when nothing runs
NO_DATABASE = 4
TRY_AGAIN = 5
INTERRUPTED = 130
BROKEN_PIPE = 141

_CHECK_DSN = "check --dsn or PYFF_DSN, and that the server is running"
_LATER = (
    errors.SerializationFailure,
    errors.DeadlockDetected,
    errors.LockNotAvailable,
    errors.QueryCanceled,
)


class Unusable(Failure):
    """There is no database, or this login cannot use it."""

    exit_code = NO_DATABASE


class Missing(Failure):
    """The requested object does not exist."""

    exit_code = NOT_FOUND


class Later(Failure):
    """The same command may succeed later."""

    exit_code = TRY_AGAIN


def line(failure: Failure) -> str:
    """The error and its hint on one line; only the output of PostgreSQL's own tools keeps its lines."""
    from pyff.postgres import PgError

    message = f"pyff: {failure.message}" + (f" (hint: {failure.hint})" if failure.hint else "")
    return message if isinstance(failure, PgError) else printable(" ".join(message.split("\n")))


def code(failure: Failure) -> int:
    from pyff.errors import EngineError, NotFound
    from pyff.migrate import SchemaGap
    from pyff.postgres import PgError

    cause = failure.__cause__
    if isinstance(failure, NotFound):
        return NOT_FOUND
    if isinstance(failure, EngineError):
        return TRY_AGAIN if failure.retryable else REFUSED
    if isinstance(failure, SchemaGap | PgError):
        return NO_DATABASE
    if isinstance(cause, psycopg.Error) and unreachable(cause):
        return NO_DATABASE
    return failure.exit_code


def unreachable(error: psycopg.Error) -> bool:
    """Whether the server was unreachable, rejected the login, or closed the connection."""
    from pyff.connection_lost import connection_lost

    return connection_lost(error) or isinstance(error, errors.TooManyConnections)


def explained(error: psycopg.Error) -> Failure:
    """A database error as a Failure with a hint."""
    from pyff.errors import EngineError, translate

    said = error.diag.message_primary or (str(error).strip().splitlines() or ["no reason given"])[0]
    hint = error.diag.message_hint or ""
    if unreachable(error):
        return Unusable(f"the connection to the database was lost: {said}", hint=hint or _CHECK_DSN)
    translated = translate(error)
    if isinstance(translated, EngineError):
        return translated
    if isinstance(error, errors.InsufficientPrivilege):
        return Unusable(
            f"this database user lacks a privilege: {said}",
            hint=hint or "grant it a role such as ff_operator, or connect as the owner of the schema",
        )
    if isinstance(error, errors.UndefinedFunction | errors.UndefinedTable | errors.InvalidSchemaName):
        return Unusable(f"the database lacks what this command needs: {said}", hint="run pyff migrate")
    if isinstance(error, errors.ReadOnlySqlTransaction):
        return Unusable(f"the database is read-only: {said}", hint="connect to the primary")
    if isinstance(error, _LATER):
        return Later(said, hint=hint or "try again")
    return Failure(said, hint=hint)


def cannot_connect(error: psycopg.Error) -> Unusable:
    if isinstance(error, psycopg.ProgrammingError):  # its text would repeat the connection string
        return Unusable("cannot connect to the database: the connection string is malformed", hint=_FORMS)
    lines = [text.strip() for text in str(error).splitlines() if text.strip()]
    said = lines[0] if lines else "no reason given"
    if "No such file" in said or "Connection refused" in said:
        hint = _CHECK_DSN
    elif "password" in said:
        hint = "check the user and the password; PGPASSWORD and ~/.pgpass are read too"
    elif "does not exist" in said:
        hint = "check the names in --dsn or PYFF_DSN"
    else:
        hint = _CHECK_DSN
    return Unusable(f"cannot connect to the database: {said}", hint=hint)


_FORMS = "it looks like postgresql://user@host/database or 'host=... dbname=...'"
