"""`pyff doctor`: each problem is really made, found, and fixed by the printed commands."""

import os
import re
import shlex
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import make_conninfo
from psycopg.types.json import Jsonb

from pyff.cli import main
from pyff.doctor import CHECKS, CheckContext, Thresholds, examine, grants
from pyff.doctor.context import duration, first_few, run_sql
from pyff.migrate import migrate
from pyff.postgres import temporary
from tests.sql import create, one, rows, table, take
from tests.suspensions.support import suspended


@pytest.fixture
def doctor(pyff):
    """The findings of some checks."""

    def run(*only, args=(), code=1):
        chosen = [word for name in only for word in ("--only", name)]
        said = pyff("doctor", *chosen, *args, "--json", code=None)
        assert said.code == code, said
        found = [row for row in said.objects if row["status"] == "finding"]
        assert all(row["what"] and row["why"] and row["fix"] for row in found)
        return found

    return run


@pytest.fixture
def fix(dsn, monkeypatch):
    """Runs the commands of a finding unchanged."""
    monkeypatch.setenv("PYFF_DSN", dsn)

    def run(finding, steps=None):
        for step in finding["fix"][:steps]:
            words = shlex.split(step, comments=True)
            assert words[0] == "pyff", step
            assert main(words[1:]) == 0, step

    return run


def test_a_database_that_was_just_installed_is_sound(db, pyff):
    assert (
        pyff("doctor", "--skip", "durability").out
        == "ok: " + ", ".join(name for name in CHECKS if name != "durability") + "\n"
    )
    told = pyff("doctor", "--skip", "durability", "--deep", "--json").objects
    assert [row["check"] for row in told if row["status"] == "ok"] == [
        *(name for name in CHECKS if name != "durability"),
        "invariants",
    ]


def test_an_empty_database_needs_the_installation_only(dsn, db, bare):
    db.execute("create schema empty")
    said = bare("doctor", "--skip", "durability", "--dsn", f"{dsn} options='-c search_path=empty'")
    assert said.code == 1
    assert said.out.startswith("functions: pyff is not installed in this database")
    assert "    fix:  pyff migrate\n" in said.out
    assert said.out.endswith("1 finding\n")


def test_an_installation_behind_another_schema_is_found_and_no_second_one_is_advised(dsn, db, bare):
    db.execute('create schema "My Jobs"')
    behind = make_conninfo(dsn, options='-c search_path="My\\ Jobs",public')
    said = bare("doctor", "--skip", "durability", "--dsn", behind)
    assert said.code == 1
    assert said.out.startswith(
        'functions: pyff is installed in schema public, but schema "My Jobs" comes before it'
    )
    assert "fix:  pyff migrate" not in said.out
    advised = re.search(r"options=-csearch_path=(\S+)", said.out)[1]
    assert said.out.endswith("1 finding\n")  # the other checks look at the installation
    followed = make_conninfo(dsn, options=f"-csearch_path={advised}")
    assert bare("doctor", "--skip", "durability", "--dsn", followed).code == 0


def test_migrate_does_not_install_in_front_of_an_installation(dsn, db, bare):
    db.execute("create schema jobs")
    before = make_conninfo(dsn, options="-c search_path=jobs,public")
    refused = bare("migrate", "--dsn", before)
    assert refused.code == 1
    assert "pyff is installed in schema public" in refused.err
    assert "leave public out of the search_path" in refused.err
    assert "schema public of the search_path" in bare("migrate", "--check", "--dsn", before).out
    advised = re.search(r"pyff migrate --schema (\w+)", refused.err)[1]
    assert bare("migrate", "--dsn", before, "--schema", advised).code == 0
    second = ["--schema", "jobs", "--private-schema", "behind"]
    assert bare("migrate", "--dsn", dsn, *second).code == 0
    assert bare("migrate", "--check", "--dsn", dsn, "--schema", "jobs").code == 0
    (two,) = bare("doctor", "--only", "functions", "--json", "--dsn", before).objects
    assert two["what"] == "pyff is installed in two schemas of the search_path: jobs and public"


def test_the_checks_run_without_jit(db, pyff, monkeypatch):
    seen = []
    db.execute(f"alter database {db.info.dbname} set jit = on")
    monkeypatch.setitem(CHECKS, "clock", lambda context: seen.extend(context.rows("show jit")) or ())
    pyff("doctor", "--only", "clock")
    assert seen == [{"jit": "off"}]


def test_old_functions_are_found_and_fixed(db, doctor, fix):
    db.execute("update ff_schema_state set functions_sha256 = 'old', pyff_version = '0.0.9'")
    (found,) = doctor("functions")
    assert "functions differ" in found["what"]
    fix(found)
    assert doctor("functions", code=0) == []


def test_functions_changed_or_dropped_by_hand_are_found_and_fixed(db, doctor, fix):
    db.execute("drop function ff_list_lanes")
    db.execute("create or replace function ff_now_ms() returns bigint language sql as 'select 7::bigint'")
    gone, changed = doctor("functions")
    assert gone["what"] == "functions are missing: ff_list_lanes"
    assert changed["what"] == "functions were changed by hand: ff_now_ms"
    (skewed,) = doctor("clock")
    assert "ff_now_ms() is" in skewed["what"]
    fix(changed)
    assert doctor("functions", "clock", code=0) == []


def test_a_missing_extension_and_one_in_another_schema_are_found_and_fixed(db, doctor, fix):
    db.execute("drop extension pgcrypto")
    (found,) = doctor("extension")
    assert found["what"] == "the extension pgcrypto is missing"
    fix(found)
    assert doctor("extension", code=0) == []
    db.execute("create schema away")
    db.execute("alter extension pgcrypto set schema away")
    (found,) = doctor("extension")
    assert "is in schema away, outside the path of the functions" in found["what"]
    fix(found)
    assert doctor("extension", code=0) == []


def test_an_extension_is_brought_back_into_a_schema_of_any_name(db, dsn, bare, fix, monkeypatch):
    db.execute('create schema "My Jobs"')
    db.execute("create schema away")
    there = make_conninfo(dsn, options='-c search_path="My\\ Jobs"')
    migrate(there, private_schema="My private")
    db.execute("alter extension pgcrypto set schema away")
    monkeypatch.setenv("PYFF_DSN", there)
    found = bare("doctor", "--only", "extension", "--json").object
    fix(found)
    assert bare("doctor", "--only", "extension").code == 0


def test_missing_and_excessive_grants_are_found_and_fixed(db, doctor, fix):
    db.execute("revoke execute on function ff_append_frame, ff_claim, ff_renew from ff_worker")
    db.execute("revoke select on ff_v_stuck from ff_operator, ff_worker")
    db.execute("revoke usage on schema public from ff_reader, public")
    db.execute("grant execute on function ff_set_setting to public")
    missing, public = doctor("grants")
    assert "grant execute on routine ff_append_frame(" in missing["what"]
    assert 'pyff sql "grant select on ff_v_stuck to ff_worker, ff_operator"' in missing["fix"]
    assert 'pyff sql "grant usage on schema public to ff_reader"' in missing["fix"]
    assert public["fix"] == ['pyff sql "revoke execute on routine ff_set_setting(text,text) from public"']
    fix(missing)
    fix(public)
    assert doctor("grants", code=0) == []


def test_a_schema_that_others_may_create_in_is_found_and_fixed(db, doctor, fix):
    """Grants on public as before PostgreSQL 15, and in databases upgraded from there."""
    db.execute("grant create on schema public to public, ff_worker")
    (found,) = doctor("grants")
    assert set(found["fix"]) == {
        'pyff sql "revoke create on schema public from public"',
        'pyff sql "revoke create on schema public from ff_worker"',
    }
    fix(found)
    assert doctor("grants", code=0) == []


def test_the_grants_that_are_expected_are_those_of_the_catalogue(db):
    wanted = grants.expected()
    assert "ff_claim" in wanted["ff_worker"] - wanted["ff_producer"]
    assert "ff_rotate_waitpoint_hmac_secret" in wanted["ff_admin"] - wanted["ff_operator"]
    assert wanted["ff_signaler"] >= {"ff_deliver_signal", "ff_ping"}
    known = table(
        db,
        "select proname as name from pg_proc where proname like 'ff\\_%%'"
        " union all select relname from pg_class where relname like 'ff\\_v\\_%%'",
    )
    assert wanted["ff_admin"] <= {row["name"] for row in known}


def test_a_paused_lane_with_work_is_found_and_fixed(db, doctor, fix):
    create(db, "a lane")
    one(db, "ff_set_lane_state", lane_id="a lane", state="paused", reason="provider is down")
    one(db, "ff_set_lane_state", lane_id="idle", state="paused")
    (found,) = doctor("lanes")
    assert re.fullmatch(
        r"lane a lane has been paused for \d+ seconds \(provider is down\) and 1 executions wait on it",
        found["what"],
    )
    fix(found)
    assert doctor("lanes", code=0) == []


def plant_reconcilers(db, silent_ms):
    """Steps of maintenance which ran last that long ago."""
    db.execute("update ff_reconciler set enabled = true, last_run_at_ms = ff_now_ms() - %s", [silent_ms])
    db.execute("update ff_schema_state set applied_at_ms = ff_now_ms() - 86400000")


def test_dead_maintenance_is_found(db, doctor, clock):
    clock.freeze()
    plant_reconcilers(db, 1000)
    assert doctor("maintenance", code=0) == []
    plant_reconcilers(db, 3_600_000)
    (found,) = doctor("maintenance")
    assert found["what"] == "maintenance has not run for 60 minutes"
    assert found["fix"][0].startswith("pyff maintain")
    db.execute("update ff_reconciler set last_run_at_ms = null")
    (found,) = doctor("maintenance")
    assert found["what"] == "maintenance has never run"


def test_single_steps_that_lag_are_off_or_fail_are_found(db, doctor):
    plant_reconcilers(db, 1000)
    db.execute("update ff_reconciler set last_run_at_ms = ff_now_ms() - 3600000 where name = 'sweep_workers'")
    db.execute("update ff_reconciler set enabled = false where name = 'sweep_expired'")
    db.execute(
        "insert into ff_reconciler_error (name, row_key, attempts, last_error, next_retry_at_ms)"
        " values ('sweep_delayed', 'x', 3, 'division by zero', 0)"
    )
    slow, off, poison = doctor("maintenance")
    assert slow["what"].endswith("while others have: sweep_workers")
    assert off["what"] == "steps of maintenance are switched off: sweep_expired"
    assert poison["what"] == "sweep_delayed fails on 1 rows, for example: division by zero"


def test_a_long_transaction_is_found_and_ended(db, doctor, fix, connect):
    holder = connect(autocommit=False, application_name="the culprit")
    holder.execute("select pg_current_xact_id()")
    pid = holder.info.backend_pid
    assert not [f for f in doctor("horizon", code=0) if f"pid {pid}" in f["what"]]
    (found,) = [f for f in doctor("horizon", args=["--held-for", "0s"]) if f"pid {pid}" in f["what"]]
    assert "the culprit" in found["what"]
    fix(found, steps=1)
    with pytest.raises(psycopg.OperationalError):
        holder.execute("select 1")


def test_dead_rows_and_neglected_tables_are_found_and_fixed(db, doctor, fix):
    assert doctor("bloat", code=0) == []
    db.execute("alter table ff_execution set (autovacuum_enabled = false)")
    for _ in range(2):
        rows(db, "ff_create_executions", lane_id="mail", payloads=[b""] * 6000)
    db.execute("update ff_execution set last_mutation_at_ms = last_mutation_at_ms + 1")
    db.execute("select pg_stat_force_next_flush()")
    db.execute("select 1")
    neglected, dead = doctor("bloat")
    assert neglected["what"] == "autovacuum is switched off for ff.ff_execution"
    assert re.match(
        r"ff\.ff_execution has 1\d{4} dead rows and 12000 live ones, never vacuumed", dead["what"]
    )
    fix(neglected)
    fix(dead, steps=1)
    assert doctor("bloat", code=0) == []


def test_a_file_that_is_much_larger_than_its_rows_is_found(db, dsn):
    rows(db, "ff_create_executions", lane_id="mail", payloads=[b""] * 2000)
    db.execute(
        "delete from ff_execution where execution_id <> (select min(execution_id::text)::uuid from ff_execution)"
    )
    for _ in range(2):
        db.execute("select pg_stat_force_next_flush()")
        db.execute("vacuum (truncate off) ff_execution")
    db.execute("select pg_stat_clear_snapshot()")
    context = CheckContext(db, Thresholds(slack_bytes=65536))
    (result,) = examine(context, ["bloat"])
    (found,) = [f for f in result.findings if f.what.startswith("ff.ff_execution takes ")]
    assert "vacuum full" in found.fix[0]


def test_expired_keys_of_open_waitpoints_are_found_and_fixed_by_new_tokens(db, doctor, fix, clock, capsys):
    clock.freeze()
    waiting, point = suspended(db)
    (key,) = rows(db, "ff_list_waitpoint_hmac_kids")
    assert doctor("keys", code=0) == []
    one(db, "ff_rotate_waitpoint_hmac_secret", new_kid="newer", grace_ms=60_000)
    (soon,) = doctor("keys")
    assert f"the key {key['kid']} expires in" in soon["what"]
    clock.advance(60_000)
    (found,) = doctor("keys")
    assert found["what"].startswith(f"the key {key['kid']} has expired, but 1 open waitpoints")
    capsys.readouterr()
    fix(found, steps=1)
    said = capsys.readouterr().out
    assert waiting["execution_id"] in said
    token = re.search(r"newer:[0-9a-f]{64}", said)[0]
    assert doctor("keys", code=0) == []
    done = one(
        db,
        "ff_deliver_signal",
        execution_id=waiting["execution_id"],
        waitpoint_id=point["waitpoint_id"],
        waitpoint_token=token,
        signal_name="approve",
    )
    assert done["resumed"]


def test_a_clock_that_differs_is_found(db, doctor, monkeypatch):
    import time

    real = time.time
    assert doctor("clock", code=0) == []
    monkeypatch.setattr(time, "time", lambda: real() - 90)
    (found,) = doctor("clock")
    assert found["what"] == "this machine's clock is 90 seconds behind the server's"
    monkeypatch.setattr(time, "time", lambda: real() + 600)
    (found,) = doctor("clock")
    assert found["what"] == "this machine's clock is 10 minutes ahead of the server's"


def test_work_that_stands_still_is_found(db, doctor, clock):
    clock.freeze()
    create(db, "mail")
    create(db, "lost")
    take(db, "lost")
    create(db, "later", delay_ms=1000)
    suspended(db, create={}, timeout_ms=1000, timeout_behavior="fail")
    assert doctor("stuck", code=0) == []
    clock.advance(1_200_000)
    told = [found["what"] for found in doctor("stuck")]
    assert "work on lane mail has waited 20 minutes for a worker; no live worker serves the lane" in told
    assert any(re.match(r"the lease of w-1 on lane lost ended \d+ minutes ago", what) for what in told)
    assert any(re.match(r"a delay on lane later ended \d+ minutes ago", what) for what in told)
    assert "1 timed-out suspensions have not been processed for up to 20 minutes" in told
    one(db, "ff_register_worker", worker_id="w", worker_instance_id="w-1", lanes=["mail"])
    told = [found["what"] for found in doctor("stuck")]
    assert any("live workers do not claim it" in what for what in told)


def test_ends_of_flow_members_that_are_not_dispatched_are_found(db, doctor, connect, clock):
    nodes = [{"key": key, "lane_id": "default"} for key in "ab"]
    made = rows(db, "ff_submit_flow", nodes=Jsonb(nodes), edges=Jsonb([{"from": "a", "to": "b"}]))
    taken = take(db)
    holder = connect(autocommit=False)
    holder.execute("select * from ff_flow_core where flow_id = %s for update", [made[0]["flow_id"]])
    one(db, "ff_complete", handle=taken["handle"])
    holder.rollback()
    clock.advance(1_200_000)
    assert any(f["what"].startswith("1 flows with ended members") for f in doctor("stuck"))


def test_broken_invariants_are_found_by_a_deep_look(db, doctor):
    create(db)
    db.execute("update ff_execution set ready_in = null")
    assert doctor("invariants")[0]["fix"]


def test_an_operator_who_may_monitor_sees_everything_and_others_are_told_what_they_lack(db, dsn, bare):
    create(db)
    one(db, "ff_set_lane_state", lane_id="default", state="paused")
    roles = {
        "pyff_test_doctor": "ff_operator, pg_monitor",
        "pyff_test_looker": "ff_reader",
        "pyff_test_stranger": "",
    }
    try:
        for name, member in roles.items():
            db.execute(f"create role {name} login" + (f" in role {member}" if member else ""))
        full, part, nothing = [
            bare("doctor", "--skip", "durability", "--deep", "--dsn", f"{dsn} user={name}") for name in roles
        ]
        told = bare("doctor", "--only", "keys", "--json", "--dsn", f"{dsn} user=pyff_test_looker").object
    finally:
        for name in roles:
            db.execute(f"drop role if exists {name}")
    assert (full.code, full.err) == (1, "")
    assert full.out.startswith("lanes: lane default has been paused")
    assert full.out.endswith("ok: " + ", ".join(
        name for name in (*CHECKS, "invariants") if name not in ("durability", "lanes")
    ) + "\n1 finding\n")  # fmt: skip
    assert part.code == 1
    assert [line.partition(":")[0] for line in part.err.splitlines()] == ["horizon", "keys", "invariants"]
    assert "it needs pg_monitor" in part.err
    assert (told["status"], told["check"]) == ("unseen", "keys")
    assert "ff_operator" in told["reason"]
    assert nothing.code == 2
    assert "functions: could not check: this database user may not use pyff" in nothing.err


def test_an_unknown_check_is_refused(pyff):
    assert (
        "unknown check 'nothing' (hint: one of functions"
        in pyff("doctor", "--only", "nothing", code=2).err  # 1 would be a finding
    )


def test_a_sound_server_is_exit_code_0_and_what_holds_its_horizon_is_found(bare, fix, monkeypatch):
    """A server of its own: sound settings, prepared transactions and replication slots."""
    durable = {"fsync": True, "synchronous_commit": True, "full_page_writes": True}
    memory = Path("/dev/shm")  # noqa: S108, the settings count here and not the disk
    with temporary(
        where=memory if os.access(memory, os.W_OK) else None,
        **durable,
        wal_level="logical",
        max_prepared_transactions=5,
        max_connections=100,
    ) as server:
        migrate(server.dsn)
        monkeypatch.setenv("PYFF_DSN", server.dsn)
        assert bare("doctor").code == 0
        with psycopg.connect(server.dsn, autocommit=True) as conn:
            conn.execute("select pg_create_logical_replication_slot('abandoned', 'pgoutput')")
        with psycopg.connect(server.dsn) as conn:
            conn.execute("create table t ()")
            conn.execute("prepare transaction 'it''s forgotten'")
        said = bare("doctor", "--only", "horizon", "--held-for", "0s", "--json")
        assert said.code == 1
        prepared, slot = said.objects
        assert prepared["what"].startswith("the prepared transaction 'it''s forgotten' in database ")
        assert slot["what"].startswith("the replication slot abandoned is not used: it keeps ")
        fix(prepared)
        fix(slot)
        with psycopg.connect(server.dsn) as idle:
            idle.execute("select pg_current_xact_id()")
            fix(bare("doctor", "--only", "horizon", "--held-for", "0s", "--json").object)
            with pytest.raises(psycopg.OperationalError):
                idle.execute("select 1")
        limit = bare("sql", "--json", "show idle_in_transaction_session_timeout").object
        assert limit == {"idle_in_transaction_session_timeout": "5min"}
        assert bare("doctor", "--held-for", "0s").code == 0


def test_few_connections_no_autovacuum_and_weak_settings_are_found_on_a_server_without_pyff(bare):
    with temporary(max_connections=20, autovacuum=False) as server:
        said = bare("doctor", "--json", "--dsn", server.dsn)
        assert said.code == 1
        found = {}
        for row in said.objects:
            if row["status"] == "finding":
                found.setdefault(row["check"], []).append(row)
        assert set(found) == {"functions", "extension", "connections", "durability", "bloat"}
        assert "max_connections is low: 20, of which 3 are reserved" in found["connections"][0]["what"]
        assert found["connections"][0]["fix"][0] == 'pyff sql "alter system set max_connections = 100"'
        assert [row["what"] for row in found["durability"]] == [
            "fsync is off",
            "full_page_writes is off",
            "synchronous_commit is off",
        ]
        assert found["bloat"][0]["what"] == "autovacuum is off"
        opened = [psycopg.connect(server.dsn) for _ in range(14)]
        with psycopg.connect(server.dsn, autocommit=True) as conn:
            (result,) = examine(CheckContext(conn), ["connections"])
            assert "max_connections is low" in result.findings[0].what
        for conn in opened:
            conn.close()


def test_how_things_are_told():
    assert [duration(ms) for ms in (1500, 119_000, 120_000, 7_200_000, 200_000_000)] == [
        "2 seconds",
        "119 seconds",
        "2 minutes",
        "2 hours",
        "2 days",
    ]
    assert first_few(list("abcdefg")) == "a, b, c, d, e and 2 more"
    for statement in ("select 'x'", 'select "x"', "select '$HOME'"):
        assert shlex.split(run_sql(statement, "why"), comments=True) == ["pyff", "sql", statement]
