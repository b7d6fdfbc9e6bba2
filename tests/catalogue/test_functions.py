"""Every function in the catalogue: documented, with its search_path, the right grants, and all errors listed."""

import re
from pathlib import Path

import pytest

from pyff.migrate.tree import ROLES, shipped
from tests.sql import table

DB = Path(__file__).parents[2] / "db"

# Inlined into every caller and replaced by tests: it touches no object, so it needs neither pinning nor definer rights.
PLAIN = {"ff_now_ms"}
# A procedure that commits can have neither: it calls one that does, by its full name.
COMMITS = {"ff_run_maintenance": "ff_tick"}

OBJECTS = shipped().objects
# As their files grant them; docs/reliability.md has the same as a table, which tests/intruders compares.
MAY_CALL = {
    file.name: set(file.roles) for file in OBJECTS if file.kind != "view" and not file.name.startswith("ff__")
}
MAY_READ = {file.name: set(file.roles) for file in OBJECTS if file.kind == "view"}

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
    """The other functions of a file of a public function are helpers."""
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


def test_only_the_granted_roles_may_call_a_function(db):
    query = "select has_function_privilege(%s, %s::regprocedure, 'execute') as may"
    assert set(MAY_CALL) == {f["name"] for f in public(db)}
    for function in public(db):
        allowed = {r for r in ROLES if table(db, query, r, function["signature"])[0]["may"]}
        assert allowed == MAY_CALL[function["name"]], function["name"]
    for function in table(db, FUNCTIONS):
        # A NULL acl would be PostgreSQL's default: granted to PUBLIC.
        assert function["proacl"] is not None, function["name"]
        assert not any(entry.startswith("=") for entry in str(function["proacl"]).strip("{}").split(",")), (
            function["name"]
        )


def test_helpers_are_granted_to_no_role(db):
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
    # The single body is called for handles that passed the check.
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
        said = {
            kind
            for line in re.findall(r"^Errors: (.*)$", function["comment"], re.M)
            for kind in line.split(", ")
        }
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
