"""Whether an error means that the server is gone, and not that it refuses."""

import psycopg

GONE = ("57P01", "57P02", "57P03")  # admin_shutdown, crash_shutdown, cannot_connect_now


def connection_lost(error: psycopg.OperationalError) -> bool:
    code = error.sqlstate
    return code is None or code.startswith("08") or code in GONE
