"""Through a pooler that gives the connection to another client after every transaction."""

import psycopg
import pytest

from pyff.migrate import Status, check, migrate, require_current
from tests.pgbouncer import pooled as pooler


@pytest.fixture
def pooled(database):
    """The database behind a pgbouncer in transaction mode with two connections."""
    with pooler(database.dsn) as through:
        yield through


def test_the_real_tree_is_installed_through_a_pooler(pooled, database, empty, dump):
    assert migrate(pooled).functions_applied
    assert migrate(pooled).applied == ()
    assert check(pooled).status is Status.CURRENT
    with psycopg.connect(pooled, prepare_threshold=None) as conn:
        require_current(conn)
    direct = empty()
    migrate(direct.dsn)
    assert dump(database.dsn) == dump(direct.dsn)
    held = "select from pg_locks l join pg_database d on d.oid = l.database where locktype = 'advisory'"
    assert database.rows(f"{held} and datname = current_database()") == []


def test_an_index_is_built_concurrently_through_a_pooler(pooled, release):
    release.migration(
        "0002.index",
        "-- transactional: false\ncreate index concurrently ff_i on ff_thing (name);",
        "drop index ff_i;",
    )
    assert migrate(pooled, db=release.tree).applied == ("0001.core", "0002.index")
