"""A login with nothing but ff_signaler: it delivers its signal, and can do, read and list nothing else."""

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo

from tests.catalogue.test_functions import MAY_CALL
from tests.sql import one, refused, table
from tests.suspensions.support import UNKNOWN, deliver, suspended


@pytest.fixture
def outsider(db, dsn):
    """A connection of such a login; roles outlive the database."""
    name = f"signaler_{db.info.dbname}"
    drop = sql.SQL("drop role if exists {}").format(sql.Identifier(name))
    db.execute(drop)
    db.execute(
        sql.SQL("create role {} login password 'outside' in role ff_signaler").format(sql.Identifier(name))
    )
    with psycopg.connect(make_conninfo(dsn, user=name, password="outside"), autocommit=True) as conn:
        yield conn
        conn.execute("discard temp")  # else it is dropped some time after the end of the session
    db.execute(drop)


def test_it_delivers_its_signal_and_learns_nothing_by_trying(db, outsider):
    claim, point = suspended(db)
    assert deliver(outsider, claim, point, "hello")["outcome"] == "accepted"
    for execution_id, waitpoint_id in (
        (f"{{fp:7}}:{UNKNOWN}", point["waitpoint_id"]),
        (claim["execution_id"], UNKNOWN),
    ):
        with refused("invalid_token"):
            deliver(outsider, {"execution_id": execution_id}, {**point, "waitpoint_id": waitpoint_id})
    answer = deliver(outsider, claim, point)
    assert (answer["resumed"], answer["public_state"]) == (True, "resumable")


def test_it_may_call_nothing_else(db, outsider):
    harmless = {"ff_now_ms", "ff_ping", "ff_capabilities", "ff_setting"}
    assert {name for name, roles in MAY_CALL.items() if "ff_signaler" in roles} == {
        *harmless,
        "ff_deliver_signal",
    }
    query = """
        select p.oid::regprocedure::text as signature, p.proname,
               has_function_privilege(session_user, p.oid, 'execute') as may
          from pg_proc p where p.proname like 'ff\\_%%'
    """
    functions = table(outsider, query)
    assert {f["proname"] for f in functions if f["may"]} == {*harmless, "ff_deliver_signal"}
    assert len(functions) > 150
    for call in (
        "select * from ff_list_suspended()",
        "select * from ff_list_waitpoint_hmac_kids()",
        "select * from ff_list_executions()",
        "select ff.ff__waitpoint_token('k1', '', '', null)",
        "select ff.ff__verify_token('', '', null, null)",
    ):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            outsider.execute(call)


def test_it_reads_no_table_and_no_view(db, outsider):
    suspended(db)
    kinds = {
        r["name"]: r["relkind"]
        for r in table(
            db,
            "select format('%%I.%%I', relnamespace::regnamespace, relname) as name, relkind::text from pg_class"
            " where relname like 'ff\\_%%' and relkind in ('r', 'v')",
        )
    }
    assert "ff.ff_waitpoint_hmac" in kinds
    assert len(kinds) > 15
    for name, kind in kinds.items():
        for statement in ("select 1 from {}", "delete from {}", "truncate {}")[: 3 if kind == "r" else 1]:
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                outsider.execute(statement.format(name))
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        outsider.execute("create table public.mine (x int)")
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        outsider.execute("select nextval('ff.ff_event_id_seq')")


def test_it_cannot_slip_functions_of_its_own_under_the_engine(db, outsider):
    """Entry points pin their search path, with temporary objects last."""
    claim, point = suspended(db)
    outsider.execute(
        "create function pg_temp.ff__verify_token(text, text, uuid, uuid) returns void language sql as ''"
    )
    outsider.execute("create temp table ff_waitpoint_hmac (kid text)")
    outsider.execute("set search_path = pg_temp, public")
    with refused("invalid_token"):
        deliver(outsider, claim, {**point, "waitpoint_token": "k1:" + "0" * 64})
    assert one(outsider, "ff_ping")["ok"]
