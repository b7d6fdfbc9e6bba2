"""A worker that claims what its arguments name and then waits until it is killed."""

import sys
import time

import psycopg

from tests.sql import claim


def main(dsn: str, lane: str, commit: str) -> None:
    with psycopg.connect(dsn) as conn:
        row = claim(conn, lane, "killed", lease_ttl_ms=60_000)
        if commit == "commit":
            conn.commit()
        print(row["execution_id"] if row else "none", flush=True)
        time.sleep(600)


if __name__ == "__main__":
    main(*sys.argv[1:])
