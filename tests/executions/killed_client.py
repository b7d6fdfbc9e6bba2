"""A random client as a process of its own, to be killed: `python -m tests.executions.killed_client DSN SEED LOG`.

Every acknowledged completion is one line of the log, written before the next call.
"""

import json
import os
import sys

import psycopg

from tests.executions.driver import Client


def main(dsn: str, seed: str, log: str) -> None:
    descriptor = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    with psycopg.connect(dsn, autocommit=True) as conn:
        client = Client(conn, int(seed))
        said: set[str] = set()
        while True:
            client.step()
            for handle, result in client.completed.items():
                if handle not in said:
                    said.add(handle)
                    os.write(descriptor, json.dumps([handle, result.hex()]).encode() + b"\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
