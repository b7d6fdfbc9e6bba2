"""The engine in a schema other than public, used by a login with one of its roles only."""

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo

from pyff import Engine
from pyff.migrate import migrate
from tests.sql import create, one, rows, table, take


@pytest.fixture
def login(db):
    """A role that may log in and holds ff_worker and ff_producer; roles outlive the database."""
    name = f"app_{db.info.backend_pid}"
    db.execute(sql.SQL("create role {} login in role ff_worker, ff_producer").format(sql.Identifier(name)))
    yield name
    db.execute(sql.SQL("drop role {}").format(sql.Identifier(name)))


@pytest.mark.own_session("connects with options")
@pytest.mark.parametrize("schema", ["jobs", "Odd name"])
def test_a_login_with_a_role_works_in_whatever_schema_was_chosen(db, dsn, login, schema):
    db.execute(sql.SQL("create schema {}").format(sql.Identifier(schema)))
    options = f'-csearch_path="{schema}"'.replace(" ", "\\ ")
    migrate(make_conninfo(dsn, options=options), private_schema=f"{schema} private")
    with psycopg.connect(dsn, user=login, options=options, autocommit=True) as conn:
        one(conn, "ff_create_execution", lane_id="l")
        assert one(conn, "ff_complete", handle=take(conn, "l")["handle"])["outcome"] == "completed"
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            conn.execute(
                sql.SQL("select from {}").format(sql.Identifier(f"{schema} private", "ff_exec_core"))
            )
        with Engine(conn) as engine:
            assert engine.ping().ok
            assert all(group.supported for group in engine.capabilities())
            engine.set_execution_tag(create(conn, "l"), "a.b", "c")
        rows(conn, "ff_read_completions")
        assert rows(conn, "ff_tick", force=True)
        conn.execute("call ff_run_maintenance()")
    assert table(db, "select count(*) as n from ff.ff_exec_core") == [{"n": 0}]


def test_every_function_has_a_comment_and_a_helpers_is_the_one_above_it(db):
    query = """
        select p.proname, obj_description(p.oid, 'pg_proc') as comment from pg_proc p
         where p.proname like 'ff\\_%%' and p.pronamespace in ('public'::regnamespace, 'ff'::regnamespace)
    """
    comments = {row["proname"]: row["comment"] for row in table(db, query)}
    assert [name for name, comment in comments.items() if not comment] == []
    for name, comment in comments.items():
        assert comment.startswith("Internal. ") == name.startswith("ff__"), name
        assert len(comment) > len("Internal. ") + 10, name


def test_the_schema_of_the_callers_has_only_functions_and_views(db):
    query = """
        select c.relkind::text || ' ' || c.relname as relation from pg_class c
         where c.relnamespace = (select p.pronamespace from pg_proc p where p.proname = 'ff_claim')
           and c.relkind <> 'v'
           and not exists (select from pg_depend d where d.objid = c.oid and d.deptype = 'e')
    """
    assert table(db, query) == []


def test_the_schema_of_the_callers_has_no_helper(db):
    query = """
        select p.proname from pg_proc p
         where p.pronamespace = (select x.pronamespace from pg_proc x where x.proname = 'ff_claim')
           and p.proname like 'ff\\_\\_%%'
    """
    assert table(db, query) == []


def test_tables_and_helpers_live_in_a_private_schema_that_only_its_owner_may_use(db):
    query = """
        select n.nspacl is null
               or not exists (select from aclexplode(n.nspacl) a where a.grantee <> n.nspowner) as private
          from pg_namespace n
         where n.nspname = 'ff'
           and exists (select from pg_class c where c.relnamespace = n.oid and c.relname = 'ff_exec_core')
           and exists (select from pg_proc p where p.pronamespace = n.oid and p.proname like 'ff\\_\\_%%')
    """
    assert table(db, query) == [{"private": True}]
