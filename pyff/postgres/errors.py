"""Errors of the embedded server, and the translation of PostgreSQL's messages."""

import re

from pyff.failure import Failure


class PgError(Failure):
    """A server could not be found, started, reached or stopped."""


OWN_SERVER = "or bring your own server: PYFF_DSN=postgresql://user@host/database"

# (message of initdb, pg_ctl or the server's log; its meaning; the hint)
_KNOWN = (
    (
        r"No space left on device|Check free disk space",
        "the disk is full",
        "PostgreSQL and a new cluster need 250 MB: make room, or set PYFF_HOME to a directory elsewhere",
    ),
    (
        r"could not look up effective user ID",
        "this user id has no entry in the password database, and PostgreSQL refuses to run without one",
        f"run as a named user, {OWN_SERVER}",
    ),
    (
        r"Address already in use|could not create any TCP/IP sockets",
        "the TCP port named by PYFF_PG_PORT is taken",
        "choose another one, or unset PYFF_PG_PORT: the server is then reached by its socket only",
    ),
    (
        r"database files are incompatible with server|was initialized by PostgreSQL version",
        "the data directory belongs to another major version of PostgreSQL",
        "set PYFF_HOME to another directory, or PYFF_PG_BIN to the version that wrote it",
    ),
    (
        r"could not (create|resize) shared memory segment|could not create semaphores",
        "the system grants PostgreSQL no shared memory",
        f"raise the limit (containers: --shm-size, --ipc), {OWN_SERVER}",
    ),
    (
        r"cannot be run as root|\"root\" execution of the PostgreSQL server",
        "PostgreSQL refuses to run as root",
        "set PYFF_PG_USER to an ordinary account",
    ),
    (
        r"Unix-domain socket path .* is too long",
        "the path of the server's socket is too long",
        "set PYFF_HOME to a shorter path",
    ),
)


def explain(what: str, said: str) -> PgError:
    """The error for an action (`what`) whose tools printed `said`."""
    for pattern, meaning, hint in _KNOWN:
        if re.search(pattern, said):
            return PgError(f"{what}: {meaning}", hint=hint)
    tail = "\n".join(f"    {line}" for line in said.strip().splitlines()[-12:])
    return PgError(f"{what}. PostgreSQL said:\n{tail}")
