"""Signing keys are only in their table, and the engine logs no tokens."""

import re
import secrets
from contextlib import suppress

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from pyff.migrate import migrate
from pyff.postgres import temporary
from tests.sql import one, rows, table
from tests.suspensions.support import seed, suspended


@pytest.fixture(scope="module")
def loud():
    """A server that logs everything: statements, durations, plans of nested statements, full errors."""
    settings = {
        "shared_preload_libraries": "auto_explain,pg_stat_statements",
        "log_statement": "none",
        "log_min_error_statement": "panic",
        "log_error_verbosity": "verbose",
        "log_min_messages": "debug1",
        "auto_explain.log_min_duration": 0,
        "auto_explain.log_nested_statements": True,
        "auto_explain.log_verbose": True,
        "pg_stat_statements.track": "all",
    }
    with temporary(**settings) as server:
        with psycopg.connect(server.dsn, autocommit=True) as conn:
            conn.execute("create database secrets")
        dsn = make_conninfo(server.dsn, dbname="secrets")
        migrate(dsn)
        with psycopg.connect(dsn, autocommit=True) as conn:
            conn.execute("create extension pg_stat_statements")
            conn.execute("set search_path = public, ff")
            yield conn, server.log


def inner(log: str) -> str:
    """The log without the caller's own statements, which hold what the caller passed."""
    entries = re.split(r"\n(?=\d{4}-\d\d-\d\d )", log)
    return "\n".join(entry for entry in entries if not re.search(r"Query Text: select \* from ff_", entry))


def test_secrets_and_tokens_are_in_no_log_and_no_statistics(loud):
    conn, log = loud
    one(conn, "ff_seed_waitpoint_hmac_secret", kid="first")
    tokens = []
    for _ in range(3):
        claim, point = suspended(conn)
        tokens.append(point["waitpoint_token"])
        with pytest.raises(psycopg.Error):
            one(
                conn,
                "ff_deliver_signal",
                execution_id=claim["execution_id"],
                waitpoint_id=point["waitpoint_id"],
                waitpoint_token=tokens[-1][:-1] + ("0" if tokens[-1][-1] != "0" else "1"),
                signal_name="approve",
            )
        one(
            conn,
            "ff_deliver_signal",
            execution_id=claim["execution_id"],
            waitpoint_id=point["waitpoint_id"],
            waitpoint_token=tokens[-1],
            signal_name="approve",
        )
    one(conn, "ff_rotate_waitpoint_hmac_secret", new_kid="second")
    keys = [bytes(row["secret"]).hex() for row in table(conn, "select secret from ff_waitpoint_hmac")]
    assert len(keys) == 2
    written = inner(log.read_text(errors="replace"))
    counted = " ".join(row["query"] for row in table(conn, "select s.query from pg_stat_statements s"))
    for text in (*keys, *(token.split(":")[1] for token in tokens)):
        assert text not in written
        assert text not in counted
    assert re.search(r"ff__verify_token", written), "the log must have seen the calls"


def test_a_literal_is_in_no_statistics_either(loud):
    """A caller that writes values into its statement: PostgreSQL keeps the statement without them."""
    conn, _ = loud
    kept_out = secrets.token_hex(32)
    claim, point = suspended(conn)
    for statement in [
        f"select * from ff_seed_waitpoint_hmac_secret('literal', '{kept_out}')",
        f"select * from ff_rotate_waitpoint_hmac_secret('literal', '{kept_out}')",
        f"select * from ff_deliver_signal('{claim['execution_id']}', '{point['waitpoint_id']}',"
        f" '{point['waitpoint_token']}', 'approve')",
    ]:
        with suppress(psycopg.Error):
            conn.execute(statement)
    assert table(conn, "select from ff_waitpoint_hmac h where h.kid = 'literal' and h.active")
    counted = " ".join(row["query"] for row in table(conn, "select s.query from pg_stat_statements s"))
    assert "ff_rotate_waitpoint_hmac_secret" in counted
    assert kept_out not in counted
    assert point["waitpoint_token"].split(":")[1] not in counted


def test_no_error_repeats_a_secret_or_a_token(loud):
    """Neither its message, detail, hint nor context, however wrong the call is; nor does the log of it."""
    conn, log = loud
    seed(conn)
    claim, point = suspended(conn)
    mac = point["waitpoint_token"].split(":")[1]
    mark = secrets.token_hex(16)
    begin = len(log.read_text(errors="replace"))
    signal = {
        "execution_id": claim["execution_id"],
        "waitpoint_id": point["waitpoint_id"],
        "signal_name": "x",
    }
    calls = [
        *[
            (name, {kid: key, hex_: wrong})
            for name, kid, hex_ in (
                ("ff_seed_waitpoint_hmac_secret", "kid", "secret_hex"),
                ("ff_rotate_waitpoint_hmac_secret", "new_kid", "new_secret_hex"),
            )
            for key in ("k1", "k9", "no:kid", "")
            for wrong in (
                mark,
                mark * 3,
                f"{mark}zz",
                f"\n{mark * 2}"[:64],
                f"{mark}'",
                mark.upper() + "\u00e9",
            )
        ],
        ("ff_rotate_waitpoint_hmac_secret", {"new_kid": "k8", "new_secret_hex": mark * 2, "grace_ms": -1}),
        *[
            ("ff_deliver_signal", {**signal, **wrong})
            for wrong in (
                {"waitpoint_token": f"k1:{mark * 2}"},
                {"waitpoint_token": f"{mark}:{mark}"},
                {"waitpoint_token": mark * 100},
                {"waitpoint_token": f"k1:{mac}", "signal_name": ""},
                {"waitpoint_token": f"k1:{mac}", "source_type": "\x01"},
                {"waitpoint_token": f"k1:{mac}", "execution_id": "nonsense"},
                {"waitpoint_token": f"nokid:{mac}"},
                {"waitpoint_token": f"k1:{mac}x"},
            )
        ],
    ]
    raised = 0
    for name, args in calls:
        try:
            one(conn, name, **args)
        except psycopg.Error as error:
            raised += 1
            fields = [getattr(error.diag, field) for field in dir(error.diag) if not field.startswith("_")]
            said = " ".join(str(field) for field in fields)
            for kept_out in (mark, mark.upper(), mac):
                assert kept_out not in said, (name, args)
    assert raised > len(calls) - 12, "nearly all of them are refused"
    written = inner(log.read_text(errors="replace")[begin:])
    assert mark not in written
    assert mac not in written


def test_nothing_that_can_be_read_contains_a_secret_or_a_token(loud):
    """Every view, every reading function, every event, by what they answer and not by their names."""
    conn, _ = loud
    seed(conn)
    points = [suspended(conn) for _ in range(3)]
    one(conn, "ff_rotate_waitpoint_hmac_secret", new_kid=secrets.token_hex(4))
    points += [suspended(conn)]
    keys = [
        bytes(r["secret"])
        for r in table(conn, "select secret from ff_waitpoint_hmac where secret is not null")
    ]
    hidden = [k.hex() for k in keys] + [str(k) for k in keys]
    hidden += [point["waitpoint_token"].split(":")[1] for _, point in points]
    assert len(hidden) >= 8
    readers = table(
        conn,
        r"""select p.proname, p.pronargs - p.pronargdefaults as required, p.proargnames[1] as first
              from pg_proc p where p.proname ~ '^ff_(list|read|describe|get|event|stream|tail|evaluate|resolve)_'
               and p.proname not in ('ff_read_waitpoint_token', 'ff_get_execution_result')""",
    )
    answers = [
        str(table(conn, f"select * from {v['relname']}"))
        for v in table(
            conn, "select c.relname from pg_class c where c.relkind = 'v' and c.relname like 'ff\\_%%'"
        )
    ]
    called = set()
    for reader in readers:
        for claim, _point in points:
            args = (
                [claim["execution_id"]]
                if reader["required"] == 1 and reader["first"] == "p_execution_id"
                else []
            )
            if len(args) != reader["required"]:
                continue
            with suppress(psycopg.Error):
                answers.append(
                    str(
                        conn.execute(
                            f"select * from {reader['proname']}({'%s' if args else ''})", args
                        ).fetchall()
                    )
                )
                called.add(reader["proname"])
    assert {
        "ff_list_pending_waitpoints",
        "ff_list_signals",
        "ff_describe_execution",
        "ff_read_events",
    } <= called
    assert any(points[0][0]["execution_id"].split(":")[-1] in answer for answer in answers)
    for answer in answers:
        for text in hidden:
            assert text not in answer


def test_the_statistics_of_the_planner_are_closed_too(loud):
    """They hold values of the columns: a role that may not read a table must not read them in pg_stats."""
    conn, _ = loud
    seed(conn)
    suspended(conn)
    conn.execute("analyze")
    for role in ("ff_reader", "ff_operator", "ff_admin"):
        with conn.transaction():
            conn.execute(f"set local role {role}")
            for view in ("pg_stats", "pg_stats_ext"):
                found = conn.execute(f"select count(*) from {view} where tablename like 'ff\\_%'").fetchone()
                assert found == (0,), (role, view)
            with pytest.raises(psycopg.errors.InsufficientPrivilege), conn.transaction():
                conn.execute("select * from pg_statistic")
    assert table(conn, "select from pg_stats where tablename = 'ff_waitpoint_hmac'"), "the owner has them"


def test_a_login_sees_no_statement_of_another(loud):
    """pg_stat_activity and pg_stat_statements show statements of others, which may hold tokens, to no login."""
    conn, _ = loud
    mark = secrets.token_hex(16)
    conn.execute(f"select '{mark}'")
    with conn.transaction():
        conn.execute("set local role ff_admin")
        for view in ("pg_stat_activity", "pg_stat_statements"):
            seen = " ".join(str(row[0]) for row in conn.execute(f"select query from {view}"))
            assert mark not in seen


def test_what_people_read_shows_no_secret(loud):
    conn, _ = loud
    for view in table(
        conn, "select c.relname from pg_class c where c.relkind = 'v' and c.relname like 'ff\\_%%'"
    ):
        columns = {d.name for d in conn.execute(f"select * from {view['relname']} limit 0").description or ()}
        assert not columns & {"secret", "token", "waitpoint_token", "token_fingerprint"}
    for row in rows(conn, "ff_list_waitpoint_hmac_kids"):
        assert "secret" not in row
