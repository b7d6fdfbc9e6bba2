"""Which schema is installed, and whether this release can work with it."""

import psycopg
import pytest

from pyff import __version__
from pyff.migrate import (
    MigrateError,
    SchemaGap,
    Status,
    check,
    check_installed,
    migrate,
    require_current,
    require_current_async,
    state,
)


def test_check_tells_an_empty_database_from_an_old_and_a_current_one(database, release):
    nothing = check(database.dsn, db=release.tree)
    assert (nothing.status, nothing.version, nothing.needs) == (Status.NOT_INSTALLED, 0, 1)
    migrate(database.dsn, db=release.tree)
    assert str(check(database.dsn, db=release.tree)) == "schema public: current, at version 1"
    release.migration("0002.more", "create table ff_more (id int);").function("ff_x")
    behind = check(database.dsn, db=release.tree)
    assert (behind.status, behind.missing, behind.functions_differ) == (Status.BEHIND, ("0002.more",), True)
    assert str(behind) == "schema public: behind, at version 1 of 2: missing 0002.more; functions differ"


def test_check_changes_nothing(database, release):
    database.rows(f"alter database {database.name} set default_transaction_read_only = on")
    assert check(database.dsn, db=release.tree).status is Status.NOT_INSTALLED


def test_check_needs_a_schema_and_the_right_to_look(database, release, role):
    with pytest.raises(MigrateError, match="search_path contains no existing schema"):
        check(database.as_(search_path="nowhere"), db=release.tree)
    migrate(database.dsn, db=release.tree)
    with pytest.raises(MigrateError, match="permission denied for schema ff") as refused:
        check(database.as_(role), db=release.tree)
    assert "the role that owns" in refused.value.hint


def test_an_applied_migration_that_was_edited_is_named(database, release):
    migrate(database.dsn, db=release.tree)
    release.migration("0001.core", "create table ff_other (id int);")
    assert check(database.dsn, db=release.tree).edited == ("0001.core",)
    with pytest.raises(MigrateError, match=r"changed after they were applied: 0001\.core"):
        migrate(database.dsn, db=release.tree)


def test_line_ends_of_a_windows_checkout_are_no_edit(database, release):
    migrate(database.dsn, db=release.function("ff_x").tree)
    for file in release.root.rglob("*.sql"):
        file.write_bytes(file.read_bytes().replace(b"\n", b"\r\n"))
    assert check(database.dsn, db=release.tree).status is Status.CURRENT


def test_a_database_that_is_newer_is_left_alone(database, release):
    release.migration("0002.future", "create table ff_future (id int);", "drop table ff_future;")
    migrate(database.dsn, db=release.tree)
    for file in (release.root / "migrations").glob("0002*"):
        file.unlink()
    assert check(database.dsn, db=release.tree).unknown == ("0002.future",)
    with pytest.raises(MigrateError, match=r"newer than pyff .*0002\.future"):
        migrate(database.dsn, db=release.tree)


def test_an_older_release_does_not_put_its_functions_over_those_of_a_newer_one(
    database, release, monkeypatch
):
    monkeypatch.setattr(state, "__version__", "999.1")
    database_version = "update ff_schema_state set pyff_version = '999.1'"
    migrate(database.dsn, db=release.function("ff_x", body="select 2").tree)
    database.rows(database_version)
    monkeypatch.setattr(state, "__version__", __version__)
    assert migrate(database.dsn, db=release.tree).functions_applied is False
    assert database.one("select pyff_version from ff_schema_state") == "999.1"
    release.function("ff_x", body="select 1")
    with pytest.raises(MigrateError, match=r"functions of pyff 999\.1"):
        migrate(database.dsn, db=release.tree)
    assert database.one("select ff_x()") == 2


def test_two_records_that_disagree_are_not_guessed_at(database, release):
    migrate(database.dsn, db=release.tree)
    database.rows("delete from _yoyo_migration")
    with pytest.raises(MigrateError, match=r"disagree about 0001\.core"):
        migrate(database.dsn, db=release.tree)


def test_the_migrations_of_another_yoyo_user_are_ignored(database, release):
    migrate(database.dsn, db=release.tree)
    database.rows("insert into _yoyo_migration values ('x', '20260101_theirs', now())")
    assert migrate(database.dsn, db=release.tree).applied == ()


@pytest.mark.parametrize(
    ("row", "complaint"),
    [
        (None, "not installed"),
        ((None, None, None), "not installed"),
        ((1, "same", __version__), "has schema 1, this pyff needs 2"),
        ((2, "other", __version__), "other functions"),
        ((2, "other", "0.0.1"), "other functions"),
        ((2, None, None), "other functions"),
        ((2, "same", __version__), ""),
        ((2, "other", "999.0"), ""),
        ((3, "other", "999.0"), ""),
    ],
)
def test_the_runtime_refuses_a_gap_and_accepts_a_newer_database(release, row, complaint):
    tree = release.migration("0002.more", "select 1;").tree
    if row and row[1] == "same":
        row = (row[0], tree.functions_sha256, row[2])
    if not complaint:
        check_installed(row, tree)
        return
    with pytest.raises(SchemaGap, match=complaint) as refused:
        check_installed(row, tree)
    assert refused.value.hint == "run pyff migrate"


@pytest.mark.parametrize(
    ("versions", "older"),
    [(("0.9.10", "0.10.0"), True), (("1.0rc1", "1.0"), False), (("1.0", "1.0.1"), True)],
)
def test_releases_are_compared_as_numbers(versions, older):
    assert (state.release(versions[0]) < state.release(versions[1])) is older


@pytest.mark.parametrize(
    "role", ["ff_reader", "ff_producer", "ff_worker", "ff_signaler", "ff_operator", "ff_admin"]
)
async def test_every_role_may_ask_whether_the_schema_is_current(db, dsn, role):
    acting = psycopg.conninfo.make_conninfo(dsn, options=f"-crole={role}")
    with psycopg.connect(acting) as conn:
        require_current(conn)
    async with await psycopg.AsyncConnection.connect(acting) as conn:
        await require_current_async(conn)


async def test_a_database_without_pyff_is_told_from_a_user_without_a_role(database, role):
    with database.connect() as conn, pytest.raises(SchemaGap, match="not installed"):
        require_current(conn)
    async with await psycopg.AsyncConnection.connect(database.dsn) as conn:
        with pytest.raises(SchemaGap, match="not installed"):
            await require_current_async(conn)
    migrate(database.dsn)
    with psycopg.connect(database.as_(role)) as conn, pytest.raises(SchemaGap, match="may not use pyff"):
        require_current(conn)
