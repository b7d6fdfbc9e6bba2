"""Ping, capabilities, settings, the clock, and the error registry."""

import time

import pytest

from tests.sql import create, one, refused, rows, table

# Contention that the same call cannot get past: it needs another function or another grant.
NEEDS_ANOTHER_CALL = {"use_claim_resumed_execution", "invalid_claim_grant", "claim_grant_expired"}


def test_the_clock_counts_milliseconds_since_the_epoch(db):
    (found,) = rows(db, "ff_now_ms")
    assert abs(found["ff_now_ms"] - time.time() * 1000) < 60_000


def test_the_clock_moves_inside_a_transaction(connect):
    conn = connect(autocommit=False)
    first = rows(conn, "ff_now_ms")[0]["ff_now_ms"]
    conn.execute("select pg_sleep(0.02)")
    assert rows(conn, "ff_now_ms")[0]["ff_now_ms"] >= first + 20


def test_ping_answers_with_clock_and_schema_version(db):
    answer = one(db, "ff_ping")
    assert answer["ok"] is True
    assert abs(answer["server_time_ms"] - time.time() * 1000) < 60_000
    assert answer["schema_version"] == table(db, "select max(version) as v from ff_schema_version")[0]["v"]


def test_every_supported_capability_names_a_function_that_exists(db):
    found = rows(db, "ff_capabilities")
    assert {"submission", "claiming", "completion"} <= {
        row["capability"] for row in found if row["supported"]
    }
    functions = {row["proname"] for row in table(db, "select proname from pg_proc")}
    for row in found:
        assert (row["note"] in functions) == row["supported"], row


def test_a_setting_is_read_and_changed(db):
    assert one(db, "ff_setting", name="notify")["value"] == "on"
    assert one(db, "ff_set_setting", name="notify", value="off") == {
        "name": "notify",
        "value": "off",
        "previous": "on",
    }
    assert one(db, "ff_setting", name="notify")["value"] == "off"
    assert one(db, "ff_set_setting", name="notify", value="off")["previous"] == "off"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("notify", "maybe"),
        ("notify", None),
        ("retention_ms", "-1"),
        ("retention_ms", "soon"),
        ("retention_ms", "9" * 30),
        ("no_such_setting", "1"),
        (None, "1"),
        ("functions_sha256", "x"),
    ],
)
def test_an_unusable_setting_is_refused_and_changes_nothing(db, name, value):
    before = table(db, "select * from ff_setting order by name")
    with refused("invalid_input"):
        one(db, "ff_set_setting", name=name, value=value)
    assert table(db, "select * from ff_setting order by name") == before


@pytest.mark.parametrize("name", ["no_such_setting", None, "", "x" * 100_000])
def test_reading_an_unknown_setting_is_refused(db, name):
    with refused("invalid_input"):
        one(db, "ff_setting", name=name)


def test_every_code_of_the_registry_has_a_class_a_description_and_a_hint(db):
    registry = table(db, "select * from ff_error_code")
    assert len(registry) > 100
    for code in registry:
        assert code["description"].endswith(".")
        assert code["hint"].strip()
        assert code["retryable"] == (code["class"] == "contention" and code["kind"] not in NEEDS_ANOTHER_CALL)


def test_an_error_kind_outside_the_registry_is_reported_as_corruption(db):
    with refused("corrupt_state") as refusal:
        table(db, "select ff__raise('no_such_kind', 'x')")
    assert refusal.error.sqlstate == "WF500"


@pytest.mark.parametrize("limit", [-1, 100_001, None])
def test_the_number_of_violations_asked_for_is_checked(db, limit):
    with refused("invalid_input"):
        rows(db, "ff_check_invariants", limit=limit)


def test_a_broken_row_is_found_by_the_invariants(db):
    eid = create(db)
    assert rows(db, "ff_check_invariants") == []
    db.execute(
        "update ff_execution set lane_id = 'other', priority = 9001, started_at_ms = 1, delay_until_ms = 5"
    )
    found = {(row["invariant"], row["subject"]) for row in rows(db, "ff_check_invariants")}
    assert {(name, eid) for name in ("queue_row", "priority", "started_at", "delay_columns")} <= found
    assert len(rows(db, "ff_check_invariants", limit=2)) == 2
    assert rows(db, "ff_check_invariants", limit=0) == []
