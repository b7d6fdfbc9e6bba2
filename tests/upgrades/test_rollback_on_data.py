"""Each migration is undone and applied again on a database that has been at work."""

import shutil

import pytest

from pyff.migrate import DbTree, Status, check, migrate, rollback
from tests.catalogue.test_bad_input import Scene
from tests.sql import one, table, take
from tests.upgrades.releases import DB

COLUMNS = """
    select c.relname, array_agg(a.attname order by a.attname) as columns
      from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
     where c.relnamespace = 'ff'::regnamespace and c.relkind = 'r' and c.relname like 'ff\\_%%'
       and c.relname not like 'ff\\_schema\\_%%' and a.attgenerated = ''
     group by 1
"""
# Tables that hold rows of the engine's own, to which later migrations add.
SEEDED = {"ff_setting", "ff_reconciler", "ff_error_code", "ff_event_family", "ff_event_generation"}


def columns(db):
    return {row["relname"]: row["columns"] for row in table(db, COLUMNS)}


def contents(db, shape):
    """Every row of these tables, as far as these columns go."""
    return {
        name: table(db, f"select {', '.join(f'{c}::text' for c in cs)} from {name} order by {name}::text")
        for name, cs in shape.items()
        if name not in SEEDED
    }


@pytest.fixture
def bare(tmp_path):
    """The migrations of this release without its functions, which take most of the time."""
    shutil.copytree(DB / "migrations", tmp_path / "db" / "migrations")
    (tmp_path / "db" / "functions").mkdir()
    return DbTree.load(tmp_path / "db")


@pytest.mark.slow("long run")
def test_every_migration_is_undone_on_data_and_applied_again(db, dsn, bare):
    with db.transaction():
        Scene(db)
    full = columns(db)
    filled = {name for name, found in contents(db, full).items() if found}
    assert len(filled) > 20, "the database has been at work"
    everything = check(dsn).version
    for version in reversed(range(3, everything)):
        rollback(dsn, version, db=bare)
        shape = {name: [c for c in cs if c in full[name]] for name, cs in columns(db).items()}
        kept = contents(db, shape)
        assert migrate(dsn, db=bare).schema_version == everything
        assert contents(db, shape) == kept, "applying it again leaves what was kept"
        assert filled & kept.keys() == {name for name, found in kept.items() if found}, (
            "undoing keeps the rest"
        )
        again = contents(db, columns(db))
        assert not [name for name in filled - kept.keys() if again.get(name)], "what it made is empty again"
    migrate(dsn)
    assert check(dsn).status is Status.CURRENT
    assert columns(db) == full
    one(db, "ff_create_execution", lane_id="after", payload=b"x")
    assert one(db, "ff_complete", handle=take(db, "after")["handle"])["outcome"] == "completed"
    rollback(dsn, 0)
    assert columns(db) == {}
