"""Every view in the catalogue: documented, granted to the reading roles, without secrets."""

import re
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from pyff.migrate.tree import ROLES
from tests.catalogue.test_functions import MAY_READ
from tests.sql import table

FILES = Path(__file__).parents[2] / "db" / "functions" / "views"

VIEWS = {
    "ff_v_execution",
    "ff_v_attempt",
    "ff_v_suspension",
    "ff_v_flow",
    "ff_v_event",
    "ff_v_lane",
    "ff_v_worker",
    "ff_v_stuck",
    "ff_v_lane_stats",
    "ff_v_bloat",
    "ff_v_budget",
    "ff_v_quota",
    "ff_v_maintenance",
}

COLUMNS = """
    select c.relname as view, a.attname as name, format_type(a.atttypid, null) as type,
           col_description(c.oid, a.attnum) as comment
      from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0
     where c.relnamespace = current_schema()::regnamespace and c.relname like 'ff\\_v\\_%%' and c.relkind = 'v'
"""

# Secrets, and the user's own content, which other functions return.
SECRET = re.compile(r"secret|token|hmac|hash|handle|lease_id|payload$|result$|kid$|fingerprint|idempotency")


def test_every_view_has_a_file_and_every_file_a_view(db):
    assert {row["view"] for row in table(db, COLUMNS)} == VIEWS
    assert {path.stem for path in FILES.glob("*.sql")} == VIEWS


def test_every_view_and_every_column_is_commented(db):
    for row in table(db, COLUMNS):
        assert row["comment"], row
        assert row["comment"].endswith("."), row
    comments = table(
        db,
        "select c.relname, obj_description(c.oid, 'pg_class') as comment from pg_class c"
        " where c.relkind = 'v' and c.relname like 'ff\\_v\\_%%' and c.relnamespace = current_schema()::regnamespace",
    )
    assert all(row["comment"] and len(row["comment"]) > 30 for row in comments), comments


def test_no_view_shows_a_secret(db):
    assert [row for row in table(db, COLUMNS) if SECRET.search(row["name"])] == []
    query = """
        select c.relname, d.refobjid::regclass::text as reads
          from pg_class c
          join pg_rewrite r on r.ev_class = c.oid
          join pg_depend d on d.classid = 'pg_rewrite'::regclass and d.objid = r.oid
         where c.relkind = 'v' and c.relname like 'ff\\_v\\_%%' and d.refclassid = 'pg_class'::regclass
    """
    read = {row["reads"] for row in table(db, query)}
    assert "ff_execution" in read
    assert not read & {"ff_waitpoint_hmac", "ff_waitpoint", "ff_signal", "ff_idempotency", "ff_claim_grant"}


def test_times_are_timestamps_and_execution_ids_are_as_functions_take_them(db):
    for row in table(db, COLUMNS):
        assert not row["name"].endswith("_ms"), row
        if row["name"].endswith(("_at", "_until", "not_before", "since")):
            assert row["type"] == "timestamp with time zone", row
        if row["name"] == "execution_id":
            assert row["type"] == "text", row
        if row["name"] == "execution_uuid":
            assert row["type"] == "uuid", row


def test_views_are_for_those_who_may_read_and_only_to_be_read(db):
    query = "select has_table_privilege(%s, %s, %s) as may"
    for view in sorted(VIEWS):
        assert set(ROLES) - MAY_READ[view] == {"ff_signaler"}
        for role in ROLES:
            assert table(db, query, role, view, "select")[0]["may"] == (role in MAY_READ[view]), (
                view,
                role,
            )
            assert not table(db, query, role, view, "insert,update,delete,truncate,references,trigger")[0][
                "may"
            ]
        (acl,) = table(db, "select relacl::text as acl from pg_class where oid = %s::regclass", view)
        assert acl["acl"] is not None
        assert not any(entry.startswith("=") for entry in acl["acl"].strip("{}").split(",")), acl


def select_as(db, role, *relation):
    with db.transaction():
        db.execute(sql.SQL("set local role {}").format(sql.Identifier(role)))
        db.execute(sql.SQL("select * from {}").format(sql.Identifier(*relation)))


@pytest.mark.parametrize("view", sorted(VIEWS))
def test_a_reader_selects_from_the_view_though_not_from_its_tables(db, view):
    select_as(db, "ff_reader", view)
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        select_as(db, "ff_signaler", view)
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        select_as(db, "ff_reader", "ff", "ff_exec_core")


def test_select_on_the_view_is_all_it_takes(db):
    """A login outside the roles, for a dashboard; where a view asks the clock, it needs ff_now_ms too."""
    clocks = {"ff_v_worker", "ff_v_stuck", "ff_v_lane_stats"}
    with db.transaction(force_rollback=True):
        db.execute("create role pyff_test_dashboard")
        db.execute(
            sql.SQL("grant usage on schema {} to pyff_test_dashboard").format(
                sql.Identifier(table(db, "select current_schema() as s")[0]["s"])
            )
        )
        for view in sorted(VIEWS):
            db.execute(
                sql.SQL("grant select on {} to pyff_test_dashboard").format(sql.Identifier(view)),
            )
        db.execute("set local role pyff_test_dashboard")
        for view in sorted(VIEWS - clocks):
            db.execute(sql.SQL("select * from {}").format(sql.Identifier(view)))
        db.execute("reset role")
        db.execute("grant execute on function ff_now_ms() to pyff_test_dashboard")
        db.execute("set local role pyff_test_dashboard")
        for view in sorted(clocks):
            db.execute(sql.SQL("select * from {}").format(sql.Identifier(view)))


def test_views_name_their_columns(db):
    """A column that a migration adds to a table must not change a view."""
    for path in FILES.glob("*.sql"):
        assert not re.search(r"select \*|\.\*", path.read_text()), path.name
