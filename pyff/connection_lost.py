"""The error of a connection that is lost, refused or timed out."""

import psycopg

from pyff.engine_error import EngineError

_GONE = (
    "57P01",
    "57P02",
    "57P03",
    "57P05",
)  # shutdown by an administrator or a crash, start-up, idle timeout


class ConnectionLost(EngineError, psycopg.OperationalError):  # noqa: N818 - named as the other kinds
    """The connection to the database was lost, refused or timed out. `__cause__` is psycopg's error.

    `may_have_run`: whether the call may have taken effect. It is False if the call was never sent, or was part of a
    transaction of the caller that is rolled back; True if the connection broke during the call or its commit.
    `sqlstate` is the server's, and empty if the server sent none.
    """

    sqlstate: str = ""
    kind = "connection_lost"
    retryable = True
    description = "The connection to the database was lost."
    advice = (
        "Call again when the server can be reached. If may_have_run is true the call may have taken effect: "
        "repeat it with an idempotency key, or read the state first."
    )

    def __init__(self, message: str | None = None, *, may_have_run: bool = True, sqlstate: str = "") -> None:
        super().__init__(message, detail={"may_have_run": may_have_run})
        self.may_have_run = may_have_run
        self.sqlstate = sqlstate


def connection_lost(error: psycopg.Error) -> bool:
    """Whether an error means that the server is unreachable, and not that it rejects a statement."""
    if error.diag.severity_nonlocalized in {
        "FATAL",
        "PANIC",
    }:  # the server ends the session
        return True
    if not isinstance(error, psycopg.OperationalError) or isinstance(error, psycopg.errors.PipelineAborted):
        return False
    return not error.sqlstate or error.sqlstate.startswith("08") or error.sqlstate in _GONE


__all__ = ["ConnectionLost"]
