"""The engine in a schema of its own, used by a login that has nothing but one of its roles."""

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo

from pyff import Engine
from pyff.migrate import migrate
from tests.sql import one, table, take


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
    migrate(make_conninfo(dsn, options=options))
    with psycopg.connect(dsn, user=login, options=options, autocommit=True) as conn:
        one(conn, "ff_create_execution", lane_id="l")
        assert one(conn, "ff_complete", handle=take(conn, "l")["handle"])["outcome"] == "completed"
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            conn.execute("select from ff_exec_core")
        with Engine(conn) as engine:
            assert engine.ping().ok
    assert table(db, "select count(*) as n from public.ff_exec_core") == [{"n": 0}]


def test_every_function_has_a_comment_and_a_helpers_is_the_one_above_it(db):
    query = """
        select p.proname, obj_description(p.oid, 'pg_proc') as comment from pg_proc p
         where p.proname like 'ff\\_%%' and p.pronamespace = current_schema()::regnamespace
    """
    comments = {row["proname"]: row["comment"] for row in table(db, query)}
    assert [name for name, comment in comments.items() if not comment] == []
    for name, comment in comments.items():
        assert comment.startswith("Internal. ") == name.startswith("ff__"), name
        assert len(comment) > len("Internal. ") + 10, name
