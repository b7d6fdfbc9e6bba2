"""Short ways to write and read a stream."""

import json

from tests.sql import create, one, rows, take

RETRY = {"retry_policy": {"max_retries": 1, "backoff": {"type": "fixed", "delay_ms": 0}}}


def attempt(db, **args):
    """A claimed execution."""
    create(db, **args)
    return take(db, lease_ttl_ms=86_400_000)


def append(db, row, payload=b"x", **args):
    return one(db, "ff_append_frame", handle=row["handle"], payload=payload, **args)


def patch(db, row, document, **args):
    return append(db, row, json.dumps(document).encode(), mode="durable_summary", **args)


def where(row, attempt_index=None):
    index = row["attempt_index"] if attempt_index is None else attempt_index
    return {"execution_id": row["execution_id"], "attempt_index": index}


def read(db, row, **args):
    return rows(db, "ff_read_stream", **where(row), **args)


def payloads(db, row, **args):
    return [bytes(frame["payload"]) for frame in read(db, row, **args)]


def tail(db, row, **args):
    return rows(db, "ff_tail_stream", **where(row), **args)


def info(db, row, attempt_index=None):
    return one(db, "ff_stream_info", **where(row, attempt_index))


def summary(db, row):
    found = rows(db, "ff_read_summary", **where(row))
    return found[0] if found else None
