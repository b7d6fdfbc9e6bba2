"""What the catalogue says about every function: documented, pinned, granted to the right roles, honest on errors."""

import re
from pathlib import Path

import pytest

from tests.sql import table

DB = Path(__file__).parents[2] / "db"

# Inlined into every caller and replaced by tests: it touches no object, so it needs neither pinning nor definer rights.
PLAIN = {"ff_now_ms"}
# A procedure that commits can have neither: it calls one that does, by its full name.
COMMITS = {"ff_run_maintenance": "ff_tick"}

ROLES = {"ff_reader", "ff_producer", "ff_worker", "ff_signaler", "ff_operator", "ff_admin"}
READERS = ROLES - {"ff_signaler"}
PRODUCERS = {"ff_producer", "ff_operator", "ff_admin"}
WORKERS = {"ff_worker", "ff_admin"}
OPERATORS = {"ff_operator", "ff_admin"}
SIGNALERS = {"ff_signaler", "ff_admin"}
ADMINS = {"ff_admin"}

MAY_CALL = {
    "ff_now_ms": ROLES,
    "ff_ping": ROLES,
    "ff_capabilities": ROLES,
    "ff_setting": ROLES,
    "ff_handle_encode": READERS,
    "ff_handle_decode": READERS,
    "ff_describe_execution": READERS,
    "ff_read_execution_state": READERS,
    "ff_read_execution_info": READERS,
    "ff_read_execution_context": READERS,
    "ff_read_current_attempt_index": READERS,
    "ff_read_total_attempt_count": READERS,
    "ff_get_execution_namespace": READERS,
    "ff_get_execution_result": READERS,
    "ff_list_attempts": READERS,
    "ff_read_exec_core_fields": READERS,
    "ff_list_executions": READERS,
    "ff_list_children": READERS,
    "ff_get_execution_tag": READERS,
    "ff_list_lanes": READERS,
    "ff_list_workers": READERS,
    "ff_list_expired_leases": READERS,
    "ff_read_dependency_inputs": READERS,
    "ff_evaluate_flow_eligibility": READERS,
    "ff_describe_flow": READERS,
    "ff_list_flows": READERS,
    "ff_list_flow_members": READERS,
    "ff_list_edge_groups": READERS,
    "ff_list_edges": READERS,
    "ff_describe_edge": READERS,
    "ff_resolve_execution_flow_id": READERS,
    "ff_get_flow_tag": READERS,
    "ff_create_flow": PRODUCERS,
    "ff_start_flow": PRODUCERS,
    "ff_submit_flow": PRODUCERS,
    "ff_add_execution_to_flow": PRODUCERS,
    "ff_stage_dependency_edge": PRODUCERS,
    "ff_apply_dependency_to_child": PRODUCERS,
    "ff_add_dependency": PRODUCERS,
    "ff_set_edge_group_policy": PRODUCERS,
    "ff_set_flow_tag": PRODUCERS,
    "ff_cancel_flow": PRODUCERS,
    "ff_cancel_flow_header": PRODUCERS,
    "ff_ack_cancel_member": PRODUCERS,
    "ff_dispatch_completion": PRODUCERS,
    "ff_project_flow_summary": PRODUCERS,
    "ff_wait_children": WORKERS,
    "ff_wait_children_execution": WORKERS | OPERATORS,
    "ff_dispatch_completions": OPERATORS,
    "ff_drain_sibling_cancels": OPERATORS,
    "ff_drain_cancel_backlog": OPERATORS,
    "ff_project_flows": OPERATORS,
    "ff_sweep_expired_leases": OPERATORS,
    "ff_sweep_attempt_timeouts": OPERATORS,
    "ff_sweep_deadlines": OPERATORS,
    "ff_sweep_delayed": OPERATORS,
    "ff_sweep_suspensions": OPERATORS,
    "ff_sweep_waitpoints": OPERATORS,
    "ff_sweep_claim_grants": OPERATORS,
    "ff_sweep_workers": OPERATORS,
    "ff_sweep_expired": OPERATORS,
    "ff_tick": WORKERS | OPERATORS,
    "ff_run_maintenance": WORKERS | OPERATORS,
    "ff_set_reconciler": ADMINS,
    "ff_create_quota_policy": OPERATORS,
    "ff_update_quota_policy": OPERATORS,
    "ff_read_quota_policy_limits": READERS,
    "ff_check_admission": PRODUCERS | WORKERS,
    "ff_release_admission": PRODUCERS | WORKERS,
    "ff_attach_quota": PRODUCERS,
    "ff_detach_quota": PRODUCERS,
    "ff_block_execution_for_admission": OPERATORS,
    "ff_unblock_execution": OPERATORS,
    "ff_sweep_admissions": OPERATORS,
    "ff_create_execution": PRODUCERS,
    "ff_create_executions": PRODUCERS,
    "ff_set_execution_tags": PRODUCERS,
    "ff_set_execution_tag": PRODUCERS,
    "ff_cancel_execution": PRODUCERS,
    "ff_claim": WORKERS,
    "ff_claim_many": WORKERS,
    "ff_complete_many": WORKERS,
    "ff_renew_many": WORKERS,
    "ff_claim_for_worker": WORKERS,
    "ff_issue_claim_grant": WORKERS,
    "ff_claim_execution": WORKERS,
    "ff_claim_resumed_execution": WORKERS,
    "ff_claim_from_resume_grant": WORKERS,
    "ff_claim_from_grant": WORKERS,
    "ff_issue_reclaim_grant": WORKERS,
    "ff_reclaim_execution": WORKERS,
    "ff_renew": WORKERS,
    "ff_renew_lease": WORKERS,
    "ff_progress": WORKERS,
    "ff_update_progress": WORKERS,
    "ff_complete": WORKERS,
    "ff_complete_execution": WORKERS | OPERATORS,
    "ff_fail": WORKERS,
    "ff_fail_execution": WORKERS | OPERATORS,
    "ff_delay": WORKERS,
    "ff_delay_execution": WORKERS | OPERATORS,
    "ff_cancel": WORKERS,
    "ff_register_worker": WORKERS,
    "ff_heartbeat_worker": WORKERS,
    "ff_mark_worker_dead": WORKERS,
    "ff_suspend": WORKERS,
    "ff_suspend_execution": WORKERS,
    "ff_create_waitpoint": WORKERS,
    "ff_close_waitpoint": WORKERS,
    "ff_observe_signals": WORKERS,
    "ff_deliver_signal": SIGNALERS,
    "ff_deliver_approval_signal": OPERATORS,
    "ff_resume_execution": OPERATORS,
    "ff_expire_suspension": OPERATORS,
    "ff_read_waitpoint_token": OPERATORS,
    "ff_list_suspended": OPERATORS,
    "ff_list_pending_waitpoints": OPERATORS,
    "ff_list_signals": OPERATORS,
    "ff_list_waitpoint_hmac_kids": OPERATORS,
    "ff_seed_waitpoint_hmac_secret": ADMINS,
    "ff_rotate_waitpoint_hmac_secret": ADMINS,
    "ff_check_invariants": OPERATORS,
    "ff_revoke_lease": OPERATORS,
    "ff_change_priority": OPERATORS,
    "ff_replay_execution": OPERATORS,
    "ff_issue_grant_and_claim": WORKERS,
    "ff_set_lane_state": OPERATORS,
    "ff_mark_lease_expired_if_due": OPERATORS,
    "ff_promote_delayed": OPERATORS,
    "ff_expire_execution": OPERATORS,
    "ff_set_setting": ADMINS,
    "ff_trim_retention": ADMINS,
    "ff_get_budget_status": READERS,
    "ff_read_budget_usage_and_limits": READERS,
    "ff_attach_budget": PRODUCERS,
    "ff_detach_budget": PRODUCERS,
    "ff_record_spend": PRODUCERS | WORKERS,
    "ff_release_budget": PRODUCERS | WORKERS,
    "ff_report_usage": WORKERS,
    "ff_report_usage_admin": OPERATORS,
    "ff_create_budget": OPERATORS,
    "ff_update_budget": OPERATORS,
    "ff_reset_budget": OPERATORS,
    "ff_sweep_budget_resets": OPERATORS,
    "ff_sweep_budget_breaches": OPERATORS,
    "ff_sweep_terminal_spend": OPERATORS,
    "ff_stream_info": READERS,
    "ff_read_stream": READERS,
    "ff_tail_stream": READERS,
    "ff_watch_stream": READERS,
    "ff_read_summary": READERS,
    "ff_read_events": READERS,
    "ff_read_completions": READERS,
    "ff_read_lease_events": READERS,
    "ff_read_suspension_events": READERS,
    "ff_read_signal_events": READERS,
    "ff_read_operator_events": READERS,
    "ff_read_worker_events": READERS,
    "ff_read_flow_events": READERS,
    "ff_event_cursor": READERS,
    "ff_event_lag": READERS,
    "ff_append_frame": WORKERS,
    "ff_trim_streams": ADMINS,
    "ff_trim_events": ADMINS,
    "ff_set_event_family": ADMINS,
    "ff_rebase_events": ADMINS,
    "ff_record_step": WORKERS,
    "ff_read_steps": READERS,
    "ff_forget_steps": OPERATORS,
    "ff_create_schedule": PRODUCERS,
    "ff_pause_schedule": PRODUCERS,
    "ff_resume_schedule": PRODUCERS,
    "ff_delete_schedule": PRODUCERS,
    "ff_list_schedules": READERS,
    "ff_describe_schedule": READERS,
    "ff_preview_schedule": READERS,
    "ff_fire_schedule": OPERATORS,
    "ff_fire_schedules": OPERATORS,
}

FUNCTIONS = """
    select p.proname as name, p.oid::regprocedure::text as signature, p.prosecdef, p.proconfig, p.prosrc, p.proacl,
           l.lanname as language, p.proargnames, p.proargmodes, p.prokind, obj_description(p.oid, 'pg_proc') as comment,
           pg_get_function_arguments(p.oid) as arguments
      from pg_proc p join pg_language l on l.oid = p.prolang
     where p.proname like 'ff\\_%%' order by p.proname
"""


def public(db):
    return [f for f in table(db, FUNCTIONS) if not f["name"].startswith("ff__")]


def helpers(db):
    return [f for f in table(db, FUNCTIONS) if f["name"].startswith("ff__")]


def test_every_function_is_defined_in_one_file_and_a_public_one_in_that_of_its_name(db):
    """Beside a public function stand only helpers."""
    defined = {
        path: re.findall(
            r"^create or replace (?:function|procedure|view) (\w+)", path.read_text(), re.MULTILINE
        )
        for path in (DB / "functions").glob("*/*.sql")
    }
    views = {
        row["relname"]
        for row in table(
            db, "select relname from pg_class where relkind = 'v' and relname like 'ff\\_v\\_%%'"
        )
    }
    assert sorted(name for names in defined.values() for name in names) == sorted(
        [f["name"] for f in table(db, FUNCTIONS)] + sorted(views)
    )
    for path, names in defined.items():
        visible = [name for name in names if not name.startswith("ff__")]
        assert visible == [path.stem] * bool(re.match("ff_(?!_)", path.stem)), path.name


def test_a_comment_follows_its_function():
    statement = re.compile(
        r"^(create or replace|comment on) (?:function|procedure|view|column) (\w+)", re.MULTILINE
    )
    for path in (DB / "functions").glob("*/*.sql"):
        defined = ""
        for verb, name in statement.findall(path.read_text()):
            assert verb != "comment on" or name == defined, path.name
            defined = name


def test_migrations_define_no_function(db):
    for path in (DB / "migrations").glob("*.sql"):
        assert not re.search(r"create\s+(or\s+replace\s+)?(function|procedure)", path.read_text(), re.I), (
            path.name
        )


def test_no_function_is_overloaded(db):
    names = [f["name"] for f in table(db, FUNCTIONS)]
    assert len(names) == len(set(names))


def test_every_public_function_table_and_view_is_commented(db):
    assert [f["name"] for f in public(db) if not f["comment"]] == []
    query = """
        select c.relname from pg_class c
         where c.relkind in ('r', 'v') and c.relname like 'ff\\_%%'
           and c.relnamespace in ('public'::regnamespace, 'ff'::regnamespace)
           and obj_description(c.oid, 'pg_class') is null
    """
    assert table(db, query) == []


def test_every_entry_point_is_security_definer_and_pins_its_search_path(db):
    for function in public(db):
        if function["name"] in PLAIN:
            assert "pg_catalog." in function["prosrc"]
            continue
        if function["name"] in COMMITS:
            called = re.findall(r"([\w\".]*)" + COMMITS[function["name"]] + r"\(", function["prosrc"])
            assert set(called) == {'"public".'}
            assert not re.search(r"(?<![.\w])ff_", function["prosrc"]), function["name"]
            continue
        assert function["prosecdef"], function["name"]
        paths = [
            c.removeprefix("search_path=")
            for c in function["proconfig"] or []
            if c.startswith("search_path=")
        ]
        assert len(paths) == 1, function["name"]
        # pgcrypto is in public here.
        assert paths[0] == "ff, public, pg_temp", function["name"]


def test_bodies_name_the_schema_of_a_public_function_that_they_call(db):
    """It is not on their search_path. Here it is, by pgcrypto; elsewhere such a call would fail."""
    names = "|".join(f["name"] for f in public(db))
    for function in table(db, FUNCTIONS):
        code = re.sub(r"--[^\n]*|'(?:[^']|'')*'", "", function["prosrc"])
        assert re.findall(rf'(?<![\w."])(?:{names})\(', code) == [], function["name"]


def test_helpers_inherit_rights_and_search_path(db):
    for function in helpers(db):
        assert not function["prosecdef"], function["name"]
        # What the planner may do is another matter.
        settings = [c for c in function["proconfig"] or [] if not c.startswith("enable_")]
        assert not settings, function["name"]


def test_no_body_depends_on_how_its_caller_reads_backslashes(db):
    """Bodies are parsed under the caller's standard_conforming_strings: E'' means the same under both."""
    for function in table(db, FUNCTIONS):
        assert "\\" not in re.sub(r"\bE'(?:[^'\\]|\\.)*'", "", function["prosrc"]), function["name"]


def test_nobody_may_call_a_function_who_is_not_named_in_the_grants(db):
    query = "select has_function_privilege(%s, %s::regprocedure, 'execute') as may"
    assert set(MAY_CALL) == {f["name"] for f in public(db)}
    for function in public(db):
        allowed = {r for r in ROLES if table(db, query, r, function["signature"])[0]["may"]}
        assert allowed == MAY_CALL[function["name"]], function["name"]
    for function in table(db, FUNCTIONS):
        # A NULL acl would be PostgreSQL's default: everybody may.
        assert function["proacl"] is not None, function["name"]
        assert not any(entry.startswith("=") for entry in str(function["proacl"]).strip("{}").split(",")), (
            function["name"]
        )


def test_helpers_are_granted_to_nobody(db):
    query = "select has_function_privilege(%s, %s::regprocedure, 'execute') as may"
    for function in helpers(db):
        assert not [r for r in ROLES if table(db, query, r, function["signature"])[0]["may"]], function[
            "name"
        ]


def test_no_role_has_a_privilege_on_a_table_or_sequence(db):
    query = """
        select c.relname, r.rolname from pg_class c cross join pg_roles r
         where c.relnamespace = 'ff'::regnamespace and c.relname like 'ff\\_%%'
           and c.relkind in ('r', 'S') and r.rolname = any (%s)
           and case c.relkind
                   when 'r' then has_table_privilege(
                       r.rolname, c.oid, 'select,insert,update,delete,truncate,references,trigger')
                   else has_sequence_privilege(r.rolname, c.oid, 'usage,select,update') end
    """
    assert table(db, query, sorted(ROLES)) == []


@pytest.mark.parametrize("role", sorted(ROLES))
def test_a_role_calls_what_it_may_and_nothing_else(db, role):
    for function in public(db):
        # NULL for every argument: either refused for lack of rights, or by the function itself.
        required = function["arguments"].split("OUT ")[0].count("p_") - function["arguments"].count("DEFAULT")
        arguments = ", ".join(["null"] * required)
        call = f"select * from {function['name']}({arguments})"
        if function["prokind"] == "p":
            call = f"call {function['name']}({arguments})"
        try:
            with db.transaction():
                db.execute(f"set local role {role}")
                db.execute(call)
            state = "00000"
        except Exception as error:
            state = error.sqlstate
        assert (state != "42501") == (role in MAY_CALL[function["name"]]), (function["name"], state)


def test_parameters_start_with_p_and_locals_are_told_apart(db):
    for function in public(db):
        modes = function["proargmodes"] or ["i"] * len(function["proargnames"] or [])
        for name, mode in zip(function["proargnames"] or [], modes, strict=True):
            assert name.startswith("p_") == (mode in ("i", "b")), (function["name"], name)


def raised(body: str) -> set[str]:
    found = set(re.findall(r"ff__raise\(\s*'([a-z_]+)'", body))
    if re.search(r"\bff__invalid\(", body):
        found.add("invalid_input")
    return found


def test_only_registered_errors_are_raised(db):
    registered = {row["kind"] for row in table(db, "select kind from ff_error_code")}
    for function in table(db, FUNCTIONS):
        assert raised(function["prosrc"]) <= registered, function["name"]
        if function["name"] != "ff__raise":
            assert not re.search(r"\braise\s+(exception|sqlstate)\b", function["prosrc"], re.I), function[
                "name"
            ]


# What a shared body could raise, but not for this caller.
NOT_RAISED = {
    # Drops the lock of a policy that is full, and is caught at once.
    "ff_claim": {"concurrency_limit_exceeded"},
    "ff_claim_many": {"concurrency_limit_exceeded"},
    "ff_claim_for_worker": {"concurrency_limit_exceeded"},
    "ff_check_admission": {"concurrency_limit_exceeded"},
    # Only a resume without a grant meets the grant of another worker.
    "ff_claim_execution": {"not_a_resumed_execution", "grant_already_exists"},
    "ff_claim_from_grant": {"grant_already_exists"},
    "ff_claim_from_resume_grant": {"grant_already_exists"},
    "ff_claim_resumed_execution": {"use_claim_resumed_execution"},
    "ff_deliver_approval_signal": {"invalid_source_type", "signal_limit_exceeded"},
    # The single body is called for handles that were judged good.
    "ff_complete_many": {
        "invalid_execution_id",
        "execution_not_found",
        "execution_not_active",
        "stale_lease",
        "lease_revoked",
        "lease_expired",
    },
    # It creates no member of a flow and names no execution.
    "ff_fire_schedule": {
        "execution_already_terminal",
        "execution_id_conflict",
        "execution_not_found",
        "flow_already_terminal",
        "flow_not_found",
        "invalid_execution_id",
        "partition_mismatch",
    },
}

# What is raised in them is caught there, or around every call of them.
CONTAINED = {"ff__sweep_rows", "ff__run_step", "ff__drain_children"}


# Called inside a block that catches whatever they raise.
CAUGHT = {"ff__fire_due"}


def test_the_errors_in_a_comment_are_registered_and_cover_what_the_body_raises(db):
    functions = {f["name"]: f for f in table(db, FUNCTIONS)}
    registered = {row["kind"] for row in table(db, "select kind from ff_error_code")}

    def reachable(name: str, seen: set[str]) -> set[str]:
        seen.add(name)
        body = functions[name]["prosrc"]
        found = raised(body)
        for called in set(re.findall(r"\b(ff_[a-z0-9_]+)\(", body)) & set(functions) - seen - CONTAINED - {
            "ff__raise",
            "ff__invalid",
            *CAUGHT,
        }:
            found |= reachable(called, seen)
        return found

    wrong = {}
    for function in public(db):
        line = re.search(r"^Errors: (.*)$", function["comment"], re.M)
        said = set(line[1].split(", ")) if line else set()
        assert said <= registered, function["name"]
        if silent := reachable(function["name"], set()) - said - NOT_RAISED.get(function["name"], set()):
            wrong[function["name"]] = silent
    assert wrong == {}


# Sweeps open a block per row, so that one bad row does not stop the others; ff_submit_flow opens one to say which
# node an error is about; ff__parse_patch, because PostgreSQL 15 cannot say whether a text is json without trying.
# ff__admit opens one to drop the lock of a policy that is full, ff__lock_parent that of a parent that runs;
# ff__parse_handle, ff__handle_ids and ff_complete one per call, cheaper than looking at a handle before it is cast;
# ff_create_execution for an id that the caller names. On a lane with limited work,
# and only there, ff__pick opens one to drop the locks of rows whose policy another transaction has locked.
CATCHES = {
    "ff__admit",
    "ff__pick",
    "ff__handle_ids",
    "ff__parse_handle",
    "ff_complete",
    "ff_create_execution",
    "ff__parse_patch",
    "ff__sweep",
    "ff_tick",
    "ff_trim_events",
    "ff_dispatch_completions",
    "ff__drain_members",
    "ff__drain_children",
    "ff__lock_parent",
    "ff_drain_cancel_backlog",
    "ff_submit_flow",
    "ff_fire_schedules",
    "ff_update_quota_policy",
}


def test_no_hot_function_uses_dynamic_sql_or_catches_exceptions(db):
    for function in table(db, FUNCTIONS):
        body = re.sub(r"--.*", "", function["prosrc"])
        assert not re.search(r"\bexecute\s+(format|'|v_|\()", body, re.I), function["name"]
        catches = bool(re.search(r"\bexception\s+when\b", body, re.I))
        assert catches == (function["name"] in CATCHES), function["name"]
