"""A PostgreSQL of our own: found, started and stopped without the help of the system.

`start`, `stop` and `status` handle the kept server (durable, one per PYFF_HOME), `temporary` makes a
throw-away one. PYFF_DSN names a server that somebody else runs; then none is started.
"""

from pyff.postgres.binaries import Binaries, find
from pyff.postgres.errors import PgError
from pyff.postgres.kept import Server, Status, dsn, external_dsn, start, status, stop
from pyff.postgres.scratch import TemporaryServer, temporary

__all__ = [
    "Binaries",
    "PgError",
    "Server",
    "Status",
    "TemporaryServer",
    "dsn",
    "external_dsn",
    "find",
    "start",
    "status",
    "stop",
    "temporary",
]
