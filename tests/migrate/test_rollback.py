"""Rollback, one migration at a time."""

import pytest

from pyff.migrate import MigrateError, Status, check, migrate, rollback

LEFT = r"""
    select relname from pg_class where relname like 'ff\_%'
    union all select proname from pg_proc where proname like 'ff\_%'
    union all select typname from pg_type where typname like 'ff\_%'
"""


def test_every_real_migration_can_be_undone_and_applied_again(database, dump):
    applied = migrate(database.dsn).applied
    before = dump(database.dsn).split("\n(")[0]
    for version in reversed(range(len(applied))):
        assert rollback(database.dsn, version) == (applied[version],)
        assert check(database.dsn).version == version
    assert database.rows(LEFT) == []
    assert migrate(database.dsn).applied == applied
    assert dump(database.dsn).split("\n(")[0] == before


def test_functions_and_views_that_use_a_table_do_not_hold_it_back(database, release):
    release.migration("0002.more", "create table ff_more (id int);", "drop table ff_more;")
    release.function("ff_x", returns="setof ff_more", body="select * from ff_more").view(
        "ff_v_x", "select * from ff_x()"
    )
    migrate(database.dsn, db=release.tree)
    assert rollback(database.dsn, 1, db=release.tree) == ("0002.more",)
    assert database.rows("select proname from pg_proc where proname like 'ff%'") == []
    assert check(database.dsn, db=release.tree).status is Status.BEHIND
    assert migrate(database.dsn, db=release.tree).applied == ("0002.more",)
    assert database.rows("table ff_v_x") == []


def test_functions_that_a_table_calls_go_with_the_table(database, release):
    release.migration("0002.more", "create table ff_more (id int);", "drop table ff_more;")
    release.file(
        "nouns/ff__ok.sql",
        "create or replace function ff__ok(int) returns bool language plpgsql immutable "
        "as 'begin return true; end';",
    )
    release.file(
        "98_rules.sql",
        """
        do $$ begin
            if not exists (select from pg_constraint where conname = 'ok') then
                alter table ff_thing add constraint ok check (ff__ok(id));
            end if;
        end $$;
        """,
    )
    migrate(database.dsn, db=release.function("ff_x").tree)
    assert rollback(database.dsn, 1, db=release.tree) == ("0002.more",)
    assert database.rows(r"select proname from pg_proc where proname like 'ff\_%'") == [("ff__ok",)]
    assert rollback(database.dsn, 0, db=release.tree) == ("0001.core",)
    assert database.rows(LEFT) == []


def test_a_rollback_to_the_present_version_does_nothing(database, release):
    migrate(database.dsn, db=release.function("ff_x").tree)
    assert rollback(database.dsn, 1, db=release.tree) == ()
    assert database.one("select ff_x()") == 1


@pytest.mark.parametrize("version", [-1, 2])
def test_a_version_that_the_database_never_had_is_refused(database, release, version):
    migrate(database.dsn, db=release.tree)
    with pytest.raises(MigrateError, match="the database is at version 1"):
        rollback(database.dsn, version, db=release.tree)


def test_a_newer_database_is_not_rolled_back_by_guesswork(database, release):
    release.migration("0002.future", "create table ff_future (id int);")
    migrate(database.dsn, db=release.tree)
    for file in (release.root / "migrations").glob("0002*"):
        file.unlink()
    with pytest.raises(MigrateError, match=r"newer than pyff .*0002\.future"):
        rollback(database.dsn, 0, db=release.tree)


def test_an_edited_migration_can_be_rolled_back(database, release):
    migrate(database.dsn, db=release.tree)
    text = (release.root / "migrations/0001.core.sql").read_text()
    (release.root / "migrations/0001.core.sql").write_text(text + "-- edited\n")
    assert rollback(database.dsn, 0, db=release.tree) == ("0001.core",)
    assert migrate(database.dsn, db=release.tree).applied == ("0001.core",)


def test_a_rollback_that_fails_is_undone(database, release):
    release.migration(
        "0002.more", "create table ff_more (id int);", "drop table ff_more; drop table nonsense;"
    )
    migrate(database.dsn, db=release.tree)
    with pytest.raises(MigrateError, match=r'0002\.more: table "nonsense" does not exist'):
        rollback(database.dsn, 0, db=release.tree)
    assert database.one("select count(*) from ff_more") == 0
    assert migrate(database.dsn, db=release.tree).functions_applied


def test_a_migration_without_a_transaction_is_undone_without_one(database, release):
    release.migration(
        "0002.index",
        "-- transactional: false\ncreate index concurrently ff_i on ff_thing (name);",
        "drop index concurrently if exists ff_i;",
    )
    migrate(database.dsn, db=release.tree)
    assert rollback(database.dsn, 1, db=release.tree) == ("0002.index",)
    assert database.one("select to_regclass('ff_i')") is None
