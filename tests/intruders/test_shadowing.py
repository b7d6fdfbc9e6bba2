"""A role that may create objects cannot make the engine use them."""

import psycopg
import pytest

from tests.sql import one, refused, rows, table, take

pytestmark = pytest.mark.own_session("plants things in its session")

HMAC = "hmac(bytea, bytea, text) returns bytea"
TABLES = (
    "select c.relname from pg_class c where c.relkind = 'r' and c.relname like 'ff\\_%%'"
    " and c.relnamespace = 'ff'::regnamespace"
)


def cycle(producer, worker):
    """The life of an execution, by the connected role."""
    created = one(producer, "public.ff_create_execution", lane_id="l", payload=b"x")
    (claim,) = rows(worker, "public.ff_claim", lane_id="l", worker_id="w", worker_instance_id="w")
    assert claim["execution_id"] == created["execution_id"]
    one(worker, "public.ff_renew", handle=claim["handle"])
    assert one(worker, "public.ff_complete", handle=claim["handle"], result=b"y")["outcome"] == "completed"
    return created["execution_id"]


@pytest.fixture
def intruder(enter, db):
    """A login that may both submit and work."""
    conn = enter("ff_worker")
    db.execute(f"grant ff_producer to {conn.info.user}")
    return conn


@pytest.mark.parametrize("place", ["pg_temp", "lair"])
def test_tables_of_the_same_names_are_not_seen(db, intruder, place):
    for row in table(db, TABLES):
        intruder.execute(f"create table {place}.{row['relname']} (nothing int)")
    execution = cycle(intruder, intruder)
    (stored,) = table(
        db,
        "select public_state from ff_exec_core where ff__wire_id(partition_key, execution_id) = %s",
        execution,
    )
    assert stored["public_state"] == "completed"


def test_functions_of_the_same_names_are_not_called(db, intruder):
    intruder.execute("create table lair.loot (said text)")
    for name, arguments, result in [
        ("ff_now_ms", "", "bigint"),
        ("ff__raise", "text, text, jsonb", "void"),
        ("ff__mint_id", "bigint, smallint", "uuid"),
        ("ff__fence_handle", "text, text", "record"),
        ("ff__open", "uuid", "record"),
        ("hmac", "bytea, bytea, text", "bytea"),
        ("digest", "bytea, text", "bytea"),
        ("coalesce_all", "text", "text"),
        ("length", "text", "int"),
        ("lower", "text", "text"),
    ]:
        intruder.execute(
            f"""
            create function lair.{name}({arguments}) returns {result} language plpgsql security invoker as $$
            begin insert into lair.loot values (current_user); return null; end $$
            """
            if result != "void"
            else f"""
            create function lair.{name}({arguments}) returns void language plpgsql as $$
            begin insert into lair.loot values (current_user); end $$
            """
        )
    cycle(intruder, intruder)
    assert intruder.execute("select count(*) from lair.loot").fetchone() == (0,)


def test_operators_and_casts_of_an_intruder_are_not_used(db, intruder):
    intruder.execute("create table lair.loot (said text)")
    intruder.execute(
        """
        create function lair.spy(a text, b text) returns boolean language plpgsql as $$
        begin insert into lair.loot values (current_user || ' ' || a); return true; end $$
        """
    )
    intruder.execute(
        """
        create function lair.spy(a uuid, b uuid) returns boolean language plpgsql as $$
        begin insert into lair.loot values (current_user || ' ' || a); return true; end $$
        """
    )
    for kind in ("text", "uuid"):
        for operator in ("=", "<>", "<", ">="):
            intruder.execute(
                f"create operator lair.{operator} (leftarg = {kind}, rightarg = {kind}, function = lair.spy)"
            )
    cycle(intruder, intruder)
    assert intruder.execute("select count(*) from lair.loot").fetchone() == (0,)


def test_a_cast_of_an_intruder_runs_with_the_rights_of_the_intruder(db, intruder):
    """A type of its own, with casts that PostgreSQL uses by itself, passed as an argument."""
    intruder.execute("create table lair.loot (said text)")
    intruder.execute("create type lair.bait as (word text)")
    for target, value in [("text", "'l'"), ("jsonb", "'{}'::jsonb"), ("bytea", "'x'::bytea")]:
        intruder.execute(
            f"""
            create function lair.turn_{target}(lair.bait) returns {target} language plpgsql as $$
            begin insert into lair.loot values (current_user); return {value}; end $$
            """
        )
        intruder.execute(
            f"create cast (lair.bait as {target}) with function lair.turn_{target}(lair.bait) as implicit"
        )
    intruder.execute(
        """select public.ff_create_execution(p_lane_id => row('l')::lair.bait::text,
               p_policy => row('x')::lair.bait, p_payload => row('x')::lair.bait, p_tags => row('x')::lair.bait)"""
    )
    said = [row[0] for row in intruder.execute("select said from lair.loot")]
    assert len(said) == 4
    assert set(said) == {intruder.info.user}


@pytest.mark.parametrize(
    "path", ["lair, pg_temp, public", "pg_temp, public", "", "lair, pg_catalog", "nowhere"]
)
def test_a_crafted_search_path_changes_nothing(db, intruder, path):
    """Types, tables and functions of the engine's names lie in wait in both schemas, and what it calls of others'."""
    intruder.execute("create table lair.loot (said text)")
    for place in ("lair", "pg_temp"):
        intruder.execute(f"create type {place}.ff_exec as (nothing int)")
        intruder.execute(f"create table {place}.ff_exec_core (execution_id uuid, lane_id text)")
        intruder.execute(f"create table {place}.pg_class (nothing int)")
        intruder.execute(
            f"create view {place}.ff_setting as select 'notify'::text as name, 'x'::text as value"
        )
        for head in (
            "ff_now_ms() returns bigint",
            "now() returns timestamptz",
            "hmac(bytea, bytea, text) returns bytea",
        ):
            intruder.execute(
                f"""create function {place}.{head} language plpgsql as
                    $$ begin insert into lair.loot values (current_user); return null; end $$"""
            )
    intruder.execute(f"select set_config('search_path', '{path}', false)")
    cycle(intruder, intruder)
    assert intruder.execute("select count(*) from lair.loot").fetchone() == (0,)


def test_settings_of_the_caller_lose_nothing(db, intruder):
    """No setting of the session changes what a call does."""
    flow = one(db, "ff_create_flow")["flow_id"]
    up, down = (one(db, "ff_create_execution", lane_id="l", flow_id=flow)["execution_id"] for _ in range(2))
    one(db, "ff_add_dependency", flow_id=flow, upstream_execution_id=up, downstream_execution_id=down)
    for setting, value in {
        "ff.flow": flow,
        "ff.anything": "on",
        "enable_indexscan": "off",
        "plan_cache_mode": "force_custom_plan",
        "default_transaction_read_only": "off",
        "TimeZone": "Asia/Kathmandu",
        "DateStyle": "German",
        "IntervalStyle": "sql_standard",
        "bytea_output": "escape",
        "extra_float_digits": "-15",
        "standard_conforming_strings": "on",
        "check_function_bodies": "off",
        "row_security": "off",
    }.items():
        intruder.execute("select set_config(%s, %s, false)", [setting, str(value)])
    (claim,) = rows(intruder, "public.ff_claim", lane_id="l", worker_id="w", worker_instance_id="w")
    assert claim["execution_id"] == up
    one(intruder, "public.ff_complete", handle=claim["handle"])
    one(db, "ff_dispatch_completions")
    assert take(db, "l")["execution_id"] == down
    assert rows(db, "ff_check_invariants") == []


def test_text_means_the_same_however_the_caller_reads_backslashes(db, intruder):
    """standard_conforming_strings is the caller's: bodies are parsed under it, patterns and all."""
    intruder.execute("set standard_conforming_strings = off")
    for key in ("a!b", "a b", "axb", "a\nb"):
        with refused("invalid_tag_key"):
            one(intruder, "public.ff_create_execution", lane_id="l", tags={key: "x"})
    one(intruder, "public.ff_create_execution", lane_id="l", tags={"a.b": "x"})
    (claim,) = rows(intruder, "public.ff_claim", lane_id="l", worker_id="w", worker_instance_id="w")
    handle = claim["handle"]
    patch = {"mode": "durable_summary", "payload": b'{"kept": "__ff_null__", "text": "x"}'}
    one(intruder, "public.ff_append_frame", handle=handle, **patch)
    summary = one(intruder, "public.ff_read_summary", execution_id=claim["execution_id"], attempt_index=0)
    assert summary["document"] == {"kept": None, "text": "x"}
    for _ in range(2):  # the second is taken apart and answered from the record
        assert one(intruder, "public.ff_complete", handle=handle)["outcome"] == "completed"
    with refused("invalid_cursor"):
        rows(intruder, "public.ff_read_events", after="e1x0x0x0")
    timing = {"schedule_id": "s", "lane_id": "l", "cron": "*/5 * * * *"}
    assert one(intruder, "public.ff_create_schedule", **timing)["schedule_id"] == "s"


def test_no_login_keeps_a_key_that_has_leaked_from_being_changed(db, intruder):
    """Advisory locks are open to every login, and so is pg_locks: whichever are seen there can be held up."""
    with db.transaction():
        one(db, "ff_seed_waitpoint_hmac_secret", kid="leaked")
        seen = intruder.execute(
            "select l.classid::bigint << 32 | l.objid::bigint from pg_locks l where l.locktype = 'advisory'"
        ).fetchall()
    for (key,) in seen:
        intruder.execute("select pg_advisory_lock(%s)", [key])
    db.execute("set lock_timeout = '2s'")
    assert one(db, "ff_rotate_waitpoint_hmac_secret", new_kid="next", grace_ms=0)["outcome"] == "rotated"


def test_a_domain_that_spies_sees_no_more_than_its_owner_may(db, intruder):
    """Arguments are cast before the function runs, with the rights of the caller."""
    intruder.execute("create table lair.loot (said text)")
    intruder.execute(
        """
        create function lair.spy(a text) returns boolean language plpgsql as $$
        begin insert into lair.loot values (current_user); return true; end $$
        """
    )
    intruder.execute("create domain lair.lane as text check (lair.spy(value))")
    intruder.execute("select public.ff_create_execution(p_lane_id => 'l'::lair.lane)")
    said = {row[0] for row in intruder.execute("select said from lair.loot")}
    assert said == {intruder.info.user}


@pytest.mark.parametrize(
    "role", ["ff_reader", "ff_producer", "ff_worker", "ff_signaler", "ff_operator", "ff_admin"]
)
def test_a_role_leads_nowhere_else(db, enter, role):
    conn = enter(role)
    owner = db.info.user
    for statement, code in [
        (f"set role {owner}", "42501"),
        ("set session authorization postgres", "42501"),
        ("select from ff.ff_waitpoint_hmac", "42501"),
        ("select from ff.ff_exec_core", "42501"),
        ("delete from ff.ff_event", "42501"),
        ("select pg_read_file('/etc/passwd')", "42501"),
        ("select lo_import('/etc/passwd')", "42501"),
        ("copy (select 1) to program 'true'", "42501"),
        ("create function ff.ff_extra() returns int language sql as 'select 1'", "42501"),
        ("create function public.ff_extra() returns int language sql as 'select 1'", "42501"),
        (
            "create or replace function public.ff_now_ms() returns bigint language sql as 'select 1::bigint'",
            "42501",
        ),
        ("alter function public.ff_claim set search_path = lair", "42501"),
        ("select ff.ff__open(gen_random_uuid())", "42501"),
    ]:
        with pytest.raises(psycopg.Error) as refused:
            conn.execute(statement)
        assert refused.value.sqlstate == code, (statement, refused.value)


def test_a_role_of_the_other_side_is_no_way_round(db, enter):
    """A signaler knows a token, and nothing else."""
    conn = enter("ff_signaler")
    one(db, "ff_create_execution", lane_id="l")
    take(db, "l")
    for function in (
        "ff_list_executions",
        "ff_list_pending_waitpoints",
        "ff_read_waitpoint_token",
        "ff_claim",
    ):
        with pytest.raises(psycopg.Error) as refused:
            conn.execute(f"select * from public.{function}('{{fp:1}}:018f3a2e-7b6c-7d1e-9f00-aabbccddee07')")
        assert refused.value.sqlstate in {"42501", "42883"}
