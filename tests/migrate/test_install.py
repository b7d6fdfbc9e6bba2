"""Installing into an empty database, and doing it again."""

import getpass
import socket

import psycopg
import pytest

from pyff import Engine, HmacAlreadySeeded
from pyff.migrate import MigrateError, Status, check, migrate, rollback
from tests.migrate.support import Release


def installed_in(database):
    schemas = "select array_agg(distinct relnamespace::regnamespace::text) from pg_class"
    return database.one(f"{schemas} where relname ~ '^(ff_|_yoyo)'")


def test_the_real_tree_installs_and_the_second_run_has_nothing_to_do(database):
    report = migrate(database.dsn)
    assert report.schema == "public"
    assert report.functions_applied
    assert report.dropped == ()
    assert [int(name[:4]) for name in report.applied] == list(range(1, report.schema_version + 1))
    assert check(database.dsn).status is Status.CURRENT

    again = migrate(database.dsn)
    assert (again.applied, again.functions_applied, again.dropped, again.roles_created) == ((), False, (), ())


def wait_for_a_signal(database):
    """What happens to the first execution that waits for a signal."""
    database.rows("select ff_create_execution(p_lane_id => 'l', p_payload => 'x')")
    with database.connect() as conn:
        (handle,) = conn.execute("select handle from ff_claim('l', 'w', 'w-1')").fetchone()
        return conn.execute(
            """select outcome, waitpoint_token is not null from ff_suspend(%s, p_reason_code => 'waiting_for_signal',
               p_condition => '{"kind": "single", "waitpoint_key": "w", "matcher": "wildcard"}')""",
            [handle],
        ).fetchone()


def test_an_installation_has_a_signing_key_so_that_the_first_wait_works(database, caplog, capfd):
    migrate(database.dsn)
    assert wait_for_a_signal(database) == ("suspended", True)
    before = database.rows("select kid, secret, active from ff_waitpoint_hmac")
    assert len(before) == 1
    migrate(database.dsn)
    assert database.rows("select kid, secret, active from ff_waitpoint_hmac") == before
    secret = before[0][1].hex()
    assert secret not in caplog.text + "".join(capfd.readouterr())


def test_an_app_may_seed_a_key_at_each_start_after_the_installation(database):
    migrate(database.dsn)
    before = database.rows("select * from ff_waitpoint_hmac")
    with Engine(database.dsn) as engine:
        for _ in range(2):
            seeded = engine.seed_waitpoint_hmac_secret("key-1")
            assert (seeded.outcome, seeded.active, seeded.same_secret) == ("already_seeded", True, None)
        with pytest.raises(HmacAlreadySeeded, match="is active"):
            engine.seed_waitpoint_hmac_secret("key-1", secret_hex="ab" * 32)
    assert database.rows("select * from ff_waitpoint_hmac") == before


def test_a_key_that_is_there_stays_the_only_one(database):
    migrate(database.dsn)
    database.rows("select ff_rotate_waitpoint_hmac_secret('mine', p_grace_ms => 0)")
    before = database.rows("select kid, secret, active from ff_waitpoint_hmac order by 1")
    migrate(database.dsn)
    assert database.rows("select kid, secret, active from ff_waitpoint_hmac order by 1") == before


@pytest.mark.parametrize(("schema", "path"), [("app", "app"), ("app", "app, public"), ("My App", '"My App"')])
def test_what_callers_use_lands_in_the_first_schema_of_the_search_path(database, release, schema, path):
    database.rows(f'create schema "{schema}"')
    release.function("ff_x", body="select count(*)::int from ff_thing").view("ff_v_x", "select ff_x() as x")
    dsn = database.as_(search_path=path)
    assert migrate(dsn, db=release.tree).schema == schema
    assert migrate(dsn, db=release.tree).applied == ()
    assert installed_in(database) == [f'"{schema}"' if " " in schema else schema, "ff"]
    assert database.rows(
        "select relname from pg_class where relnamespace = %s::regnamespace", f'"{schema}"'
    ) == [("ff_v_x",)]
    assert database.one(f'select x from "{schema}".ff_v_x') == 0


def test_two_schemas_of_one_database_are_two_installations(database, release):
    database.rows("create schema one; create schema two")
    release.function("ff_x", body="select count(*)::int from ff_thing")
    assert migrate(database.as_(search_path="one"), db=release.tree).applied == ("0001.core",)
    with pytest.raises(
        MigrateError, match='schema ff is used for something else: its comment is "pyff: '
    ) as refused:
        migrate(database.as_(search_path="two"), db=release.tree)
    assert "--private-schema" in refused.value.hint
    assert check(database.dsn, schema="two", db=release.tree).status is Status.NOT_INSTALLED
    assert migrate(database.dsn, schema="two", private_schema="behind", db=release.tree).applied == (
        "0001.core",
    )
    again = migrate(database.dsn, schema="two", db=release.tree)
    assert (again.schema, again.private_schema, again.applied) == ("two", "behind", ())
    with pytest.raises(MigrateError, match="schema two have their tables in schema behind, not in other"):
        migrate(database.dsn, schema="two", private_schema="other", db=release.tree)
    database.rows("insert into behind.ff_thing values (1, 'x')")
    assert database.rows("select one.ff_x(), two.ff_x()") == [(0, 1)]
    release.remove("nouns/ff_x.sql")
    migrate(database.as_(search_path="one"), db=release.tree)
    assert database.one(
        "select array_agg(pronamespace::regnamespace::text) from pg_proc where proname = 'ff_x'"
    ) == ["two"]
    assert rollback(database.dsn, 0, schema="two", db=release.tree) == ("0001.core",)
    assert check(database.dsn, schema="one", db=release.tree).status is Status.CURRENT


def test_the_private_schema_is_made_for_its_owner_alone_and_found_again_by_its_comment(database, release):
    migrate(database.dsn, db=release.tree)
    assert database.rows(
        "select obj_description(oid, 'pg_namespace'), nspowner = current_user::regrole,"
        " has_schema_privilege('ff_admin', oid, 'usage') from pg_namespace where nspname = 'ff'"
    ) == [("pyff: tables and helpers of the functions in schema public", True, False)]
    assert database.rows(r"select relname from pg_class where relnamespace = 'public'::regnamespace") == []


def test_a_schema_with_another_purpose_is_not_taken(database, release):
    database.rows("create schema ff; comment on schema ff is 'fast food'")
    with pytest.raises(
        MigrateError, match='schema ff is used for something else: its comment is "fast food"'
    ):
        migrate(database.dsn, db=release.tree)
    with pytest.raises(MigrateError, match="cannot live in schema public"):
        migrate(database.dsn, private_schema="public", db=release.tree)
    assert migrate(database.dsn, private_schema="engine", db=release.tree).private_schema == "engine"


@pytest.mark.parametrize("name", ["a'b", 'a"b', "a$b", "a@b"])
def test_a_name_that_cannot_be_written_into_functions_is_refused(database, release, name):
    database.rows('create schema "{}"'.format(name.replace('"', '""')))
    for options in ({"schema": name}, {"private_schema": name}):
        with pytest.raises(MigrateError, match="the name of a schema has a quote"):
            migrate(database.dsn, **options, db=release.tree)


@pytest.mark.parametrize("path", ["nowhere", "nowhere, public", '""'])
def test_a_missing_schema_is_named_and_never_created(database, release, path):
    with pytest.raises(MigrateError, match="no schema to install into: search_path is") as refused:
        migrate(database.as_(search_path=path), db=release.tree)
    assert "creates no schema but its private one" in refused.value.hint
    with pytest.raises(MigrateError, match="there is no schema nowhere to install into"):
        migrate(database.dsn, schema="nowhere", db=release.tree)
    assert installed_in(database) is None


def test_functions_see_pgcrypto_where_it_is(database, release):
    database.rows("create schema crypto; create extension pgcrypto schema crypto")
    release.function("ff_x", returns="bytea", body="select digest('x', 'sha256')")
    migrate(database.dsn, db=release.tree)
    assert database.one("select proconfig from pg_proc where proname = 'ff_x'") == [
        "search_path=ff, crypto, pg_temp"
    ]
    with database.connect() as conn:
        conn.execute("set search_path to pg_catalog")
        assert conn.execute("select length(public.ff_x())").fetchone() == (32,)


def test_neither_the_name_of_the_system_user_nor_dns_is_needed(database, release, monkeypatch):
    def unknown(*_):
        raise KeyError("getpwuid(): uid not found")

    monkeypatch.setattr(getpass, "getuser", unknown)
    monkeypatch.setattr(socket, "getfqdn", unknown)
    assert migrate(database.dsn, db=release.tree).applied == ("0001.core",)


def test_the_rows_of_a_select_in_a_migration_are_not_printed(database, release, capfd):
    release.migration(
        "0002.look", "select 'printed by yoyo' from ff_thing right join (values (1)) one on true;"
    )
    migrate(database.dsn, db=release.tree)
    assert capfd.readouterr() == ("", "")


def test_a_directory_that_looks_like_a_pattern_is_read(database, tmp_path):
    release = Release(tmp_path / "db[1]*")
    assert migrate(database.dsn, db=release.tree).applied == ("0001.core",)


def test_settings_of_the_database_do_not_get_in_the_way(database, release):
    with database.connect() as conn:  # one session from before: they would get in the way of this test, too
        for setting in (
            "default_transaction_isolation = 'serializable'",
            "statement_timeout = '200ms'",
            "idle_in_transaction_session_timeout = '200ms'",
            "lock_timeout = '200ms'",
            "check_function_bodies = off",
            "default_transaction_read_only = on",
        ):
            conn.execute(f"alter database {database.name} set {setting}")
    release.migration("0002.slow", "select pg_sleep(0.5);").function("ff_x")
    assert migrate(database.dsn, db=release.tree).applied == ("0001.core", "0002.slow")


def test_the_log_of_the_server_stays_clean(empty, other_server, release):
    database = empty(on=other_server.dsn)
    release.migration(
        "0002.index",
        "-- transactional: false\ndrop index concurrently if exists ff_i;\n"
        "create index concurrently ff_i on ff_thing (name);",
        "drop index ff_i;",
    )
    release.function("ff_x")
    before = other_server.log.stat().st_size
    migrate(database.dsn, db=release.tree)
    migrate(database.dsn, db=release.tree)
    log = other_server.log.read_text()[before:]
    assert not [line for line in log.splitlines() if "ERROR" in line or "WARNING" in line]


def test_a_database_that_cannot_be_reached_is_a_failure_without_a_password(database):
    with pytest.raises(MigrateError, match="cannot connect") as refused:
        migrate("host=/nonexistent user=missing password=secret-word")
    assert "secret-word" not in str(refused.value)


def test_a_connection_string_may_hold_any_password(release, database):
    with pytest.raises(MigrateError, match="cannot connect"):
        migrate(psycopg.conninfo.make_conninfo("host=/nonexistent", password="%&=?/ :@'\\"), db=release.tree)
    dsn = psycopg.conninfo.make_conninfo(database.dsn, password="%&=?/ :@'\\")
    assert migrate(dsn, db=release.tree).applied == ("0001.core",)


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("0003.gap", "numbered"),
        ("2.short", "is called"),
        ("0002.Upper", "is called"),
        ("0001.twice", "numbered"),
    ],
)
def test_a_tree_with_wrong_numbers_is_refused(release, name, complaint):
    release.migration(name, "select 1;")
    with pytest.raises(MigrateError, match=complaint):
        _ = release.tree


def test_a_migration_without_a_rollback_is_refused(release):
    (release.root / "migrations/0001.core.rollback.sql").unlink()
    with pytest.raises(MigrateError, match=r"0001\.core\.rollback\.sql is missing"):
        _ = release.tree
