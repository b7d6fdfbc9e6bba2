"""The privileges that migrating needs, and those that it grants."""

from pathlib import Path

import pytest

from pyff.migrate import MigrateError, check, migrate
from pyff.migrate.tree import ROLES

DB = Path(__file__).parents[2] / "db"

GRANTS = """\
do $$
begin
    revoke all on all functions in schema public from public;
    if to_regrole('ff_reader') is not null then
        grant execute on function ff_x to ff_reader;
    end if;
end $$;
"""
MAY = "select has_function_privilege(%s, oid, 'execute') from pg_proc where proname = 'ff_x'"


def test_grants_are_applied_again_even_if_nothing_else_changed(database, release):
    release.function("ff_x").file("grants.sql", GRANTS)
    migrate(database.dsn, db=release.tree)
    assert (database.one(MAY, "ff_reader"), database.one(MAY, "ff_worker")) == (True, False)
    database.rows("revoke execute on function ff_x from ff_reader; grant execute on function ff_x to public")
    report = migrate(database.dsn, db=release.tree)
    assert not report.functions_applied
    assert (database.one(MAY, "ff_reader"), database.one(MAY, "ff_worker")) == (True, False)


def test_the_grant_lines_of_all_files_are_passed_to_scripts(database, release):
    release.function("ff_x").function("ff__y").view("ff_v_z", "select 1 as z").file(
        "grants.sql", "create table granted as select '@grants@'::jsonb as roles;"
    )
    migrate(database.dsn, db=release.tree)
    roles = ["ff_reader", "ff_admin"]
    assert database.one("table granted") == {"ff_x": roles, "ff_v_z": roles}


def test_a_changed_grant_line_is_a_difference_and_is_applied(database, release):
    root = release.function("ff_x").root
    (root / "functions" / "grants.sql").write_text((DB / "functions" / "grants.sql").read_text())
    may = lambda: [role for role in ROLES if database.one(MAY, role)]  # noqa: E731
    migrate(database.dsn, db=release.tree)
    assert may() == ["ff_reader", "ff_admin"]
    path = root / "functions" / "nouns" / "ff_x.sql"
    path.write_text(path.read_text().replace("-- grant: ff_reader,", "-- grant: ff_signaler,"))
    assert check(database.dsn, db=release.tree).functions_differ
    migrate(database.dsn, db=release.tree)
    assert may() == ["ff_signaler", "ff_admin"]


def test_a_function_that_had_to_be_dropped_gets_its_grants_again(database, release):
    release.function("ff_x").file("grants.sql", GRANTS)
    migrate(database.dsn, db=release.tree)
    migrate(database.dsn, db=release.function("ff_x", returns="text", body="select 'x'").tree)
    assert (database.one(MAY, "ff_reader"), database.one(MAY, "ff_worker")) == (True, False)


def test_roles_are_created_where_they_are_missing_and_only_if_allowed(empty, other_server, release):
    database = empty(on=other_server.dsn)
    release.function("ff_x").file("grants.sql", GRANTS)
    assert migrate(database.dsn, roles=False, db=release.tree).roles_created == ()
    assert database.rows(r"select from pg_roles where rolname like 'ff\_%'") == []

    database.rows("create role plain")
    plain = empty(on=other_server.dsn)
    plain.rows(
        "grant all on schema public to plain; create extension pgcrypto; create schema ff authorization plain"
    )
    with pytest.raises(
        MigrateError, match="role ff_reader is missing and plain may not create roles"
    ) as refused:
        migrate(plain.as_("plain"), db=release.tree)
    assert "--no-roles" in refused.value.hint
    assert migrate(plain.as_("plain"), roles=False, db=release.tree).applied == ("0001.core",)

    assert migrate(database.dsn, db=release.tree).roles_created == (
        "ff_admin",
        "ff_operator",
        "ff_producer",
        "ff_reader",
        "ff_signaler",
        "ff_worker",
    )
    assert (
        database.rows(r"select from pg_roles where rolname like 'ff\_%' and (rolcanlogin or rolsuper)") == []
    )
    assert database.one(MAY, "ff_reader")
    assert migrate(plain.as_("plain"), db=release.tree).roles_created == ()
    assert plain.one(MAY, "ff_reader")


def test_a_missing_pgcrypto_that_may_not_be_created_says_what_to_run(database, release, role):
    database.rows(f"grant all on schema public to {role}; create schema ff authorization {role}")
    with pytest.raises(MigrateError, match=f"pgcrypto is missing and {role} may not create it") as refused:
        migrate(database.as_(role), db=release.tree)
    assert f"in database {database.name}: create extension pgcrypto" in refused.value.hint
    database.rows("create extension pgcrypto")
    assert migrate(database.as_(role), db=release.tree).applied == ("0001.core",)


def test_a_private_schema_that_may_not_be_created_says_what_to_run(database, release, role):
    database.rows(f"grant all on schema public to {role}; create extension pgcrypto")
    with pytest.raises(
        MigrateError, match=f"missing or not owned by {role}, which may not create it"
    ) as refused:
        migrate(database.as_(role), db=release.tree)
    advice = f"create schema ff authorization {role}"
    assert f"in database {database.name}: {advice}" in refused.value.hint
    database.rows(advice)
    assert migrate(database.as_(role), db=release.tree).applied == ("0001.core",)


def test_the_owner_of_a_database_needs_no_superuser(database, release, role):
    database.rows(f"alter database {database.name} owner to {role}")
    assert migrate(database.as_(role), db=release.function("ff_x").tree).functions_applied
    database.rows(f"alter database {database.name} owner to current_user")


def test_a_schema_that_may_not_be_written_to_is_refused(database, release, role):
    with pytest.raises(MigrateError, match=f"{role} may not create anything in schema public") as refused:
        migrate(database.as_(role), db=release.tree)
    assert f"grant usage, create on schema public to {role}" in refused.value.hint


def test_the_real_tree_can_be_installed_by_an_ordinary_owner_of_a_schema(database, role):
    database.rows(f"create extension pgcrypto; create schema app authorization {role}")
    database.rows(f"create schema ff authorization {role}")
    dsn = database.as_(role, search_path="app,public")
    assert migrate(dsn).schema == "app"
    assert migrate(dsn).applied == ()
