"""The embedded PostgreSQL: found, started and stopped without system services.

`start`, `stop` and `status` manage the durable server (one per PYFF_HOME), `temporary` starts a throw-away one.
PYFF_DSN names an external server; then none is started.
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
