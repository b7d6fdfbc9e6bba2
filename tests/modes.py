"""Other ways to run the tests: stricter isolation, through PgBouncer, with another clock. See conftest.py."""

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from tests.pgbouncer import PORT, pooled, through

ISOLATION = os.environ.get("PYFF_TEST_ISOLATION", "").replace("_", " ")
STRICT = ISOLATION not in {"", "read committed"}
TIME = os.environ.get("PYFF_TEST_TIME", "")
PGBOUNCER = os.environ.get("PYFF_TEST_PGBOUNCER") == "1"
# Of every server that tests start for themselves. Without statistics, each look at the invariants of an empty database
# would start two parallel workers.
SERVER: dict[str, str | int] = {"max_parallel_workers_per_gather": 0}
if ISOLATION:
    SERVER["default_transaction_isolation"] = ISOLATION

MARKS = {
    "read_committed(reason)": "holds at READ COMMITTED alone",
    "no_serializable(reason)": "has a transaction that SERIALIZABLE must refuse",
    "own_session(reason)": "needs a server connection of its own, which a pooler does not give",
    "modes": ".ci/run repeats it at SERIALIZABLE and through PgBouncer",
    "programs": "runs programs, which connect by themselves: left out through PgBouncer",
}


@contextmanager
def way(server: str) -> Iterator[Callable[[str], str]]:
    """How tests reach a database of this server: as it is, or through a pooler that is there meanwhile."""
    if not PGBOUNCER:
        yield lambda dsn: dsn
        return
    with pooled(server, size=60, kept=0, behind=True) as pooler:
        yield lambda dsn: through(pooler, dsn)


def configure(config: pytest.Config) -> None:
    for name, meaning in MARKS.items():
        config.addinivalue_line("markers", f"{name}: {meaning}")
    if ISOLATION not in {"", "read committed", "repeatable read", "serializable"}:
        raise pytest.UsageError(f"PYFF_TEST_ISOLATION: no such level: {ISOLATION}")
    if TIME and not re.fullmatch(r"(coarse|leaping) [1-9][0-9]*", TIME):
        raise pytest.UsageError(f"PYFF_TEST_TIME: neither 'coarse MS' nor 'leaping MS': {TIME}")
    if PGBOUNCER:
        _prepare_nothing()


def leave_out(items: list[pytest.Item]) -> None:
    modes = {
        "read_committed": STRICT,
        "no_serializable": ISOLATION == "serializable",
        "own_session": PGBOUNCER,
    }
    for item in items:
        if PGBOUNCER and item.get_closest_marker("programs"):
            item.add_marker(pytest.mark.skip(reason="runs programs, which connect by themselves"))
        for name, mode in modes.items():
            if mode and (mark := item.get_closest_marker(name)):
                item.add_marker(pytest.mark.skip(reason=f"{name}: {mark.args[0]}"))


def _prepare_nothing() -> None:
    """As docs/dba.md says: no prepared statements through this pooler, for any login."""
    for cls in (psycopg.Connection, psycopg.AsyncConnection):
        _patch(cls)
    psycopg.connect = psycopg.Connection.connect


def _patch(cls: Any) -> None:
    real = cls.connect.__func__

    @wraps(real)
    def connect(kind: Any, conninfo: str = "", **options: Any) -> Any:
        port = options.get("port") or conninfo_to_dict(conninfo).get("port")
        if str(port) == str(PORT):
            options["prepare_threshold"] = None
        return real(kind, conninfo, **options)

    cls.connect = classmethod(connect)


_REAL = "floor(date_part('epoch', pg_catalog.clock_timestamp()) * 1000)::bigint"
_CLOCKS = {"coarse": f"{_REAL} / {{0}} * {{0}}", "leaping": f"{_REAL} + nextval('public.test_leap') * {{0}}"}


def bend_time(conninfo: str) -> None:
    """Replaces the clock of a database, and how it makes ids: each one sorts before those of the same millisecond."""
    if not TIME:
        return
    kind, ms = TIME.split()
    clock = _CLOCKS[kind].format(int(ms))
    with psycopg.connect(conninfo, autocommit=True) as conn:
        conn.execute("set search_path = public, ff")
        conn.execute("create sequence test_leap; grant usage on sequence test_leap to public")
        conn.execute("create sequence test_mint increment -1 minvalue 0 maxvalue 4095 cycle")
        conn.execute(
            f"create or replace function ff_now_ms() returns bigint language sql volatile as $$ select {clock} $$"
        )
        conn.execute(
            """
            create or replace function ff.ff__mint_id(p_now_ms bigint, p_partition int default null) returns uuid
            language sql volatile as $$
                select (lpad(to_hex(p_now_ms & 281474976710655), 12, '0')
                        || '7' || lpad(to_hex(nextval('public.test_mint')), 3, '0')
                        || substr(gen_random_uuid()::text, 20, 15)
                        || lpad(to_hex(coalesce(p_partition, floor(random() * 256)::int)), 2, '0'))::uuid
            $$
            """
        )
