"""Creating, replacing, pausing, deleting and listing schedules."""

import pytest
from psycopg.types.json import Jsonb

from tests.schedules.oracle import utc
from tests.sql import claim, one, refused, rows, table, violations

HOUR = 3_600_000
NOON = utc(2026, 11, 16, 12)

EVERYTHING = {
    "lane_id": "reports",
    "cron": "0 6 * * mon-fri",
    "time_zone": "Europe/Berlin",
    "catch_up": "all",
    "payload": b"\x00p",
    "payload_encoding": "bin",
    "execution_kind": "report",
    "priority": 7,
    "policy": {"retry_policy": {"max_retries": 2}},
    "tags": {"a.b": "c"},
    "required_capabilities": ["gpu"],
    "namespace": "n",
    "start_at_ms": NOON,
    "end_at_ms": NOON + 1000 * HOUR,
    "max_catch_up": 5,
    "grace_ms": 1000,
    "creator": "me",
}
OTHER = {
    "lane_id": "x",
    "cron": "0 7 * * *",
    "time_zone": "UTC",
    "catch_up": "skip",
    "payload": b"",
    "payload_encoding": "x",
    "execution_kind": "x",
    "priority": 8,
    "policy": {},
    "tags": {},
    "required_capabilities": [],
    "namespace": "x",
    "start_at_ms": NOON + 1,
    "end_at_ms": NOON + 1001 * HOUR,
    "max_catch_up": 6,
    "grace_ms": 1001,
    "creator": "you",
}
TIMES = {"cron", "time_zone", "start_at_ms", "end_at_ms"}


@pytest.fixture
def now(clock):
    clock.set(NOON)
    return NOON


def schedule(db, schedule_id="s", **args):
    if not {"cron", "interval_ms"} & set(args):
        args["cron"] = "@hourly"
    return one(db, "ff_create_schedule", **{"schedule_id": schedule_id, "lane_id": "default", **args})


def describe(db, schedule_id="s"):
    return one(db, "ff_describe_schedule", schedule_id=schedule_id)


def test_a_schedule_is_stored_as_it_was_given(db, now):
    answer = schedule(db, **EVERYTHING)
    first = utc(2026, 11, 17, 5)
    assert answer == {"outcome": "created", "schedule_id": "s", "next_fire_at_ms": first}
    assert describe(db) == EVERYTHING | {
        "schedule_id": "s",
        "state": "active",
        "interval_ms": None,
        "next_fire_at_ms": first,
        "due_at_ms": first,
        "fire_count": 0,
        "last_fire_at_ms": None,
        "last_fired_at_ms": None,
        "last_execution_id": None,
        "error_count": 0,
        "last_error": None,
        "last_error_at_ms": None,
        "paused_at_ms": None,
        "paused_reason": None,
        "created_at_ms": now,
        "updated_at_ms": now,
    }
    assert violations(db) == []


def test_a_schedule_registers_its_lane(db, now):
    schedule(db, lane_id="new")
    assert [row["registered_by"] for row in rows(db, "ff_list_lanes")] == ["create_schedule"]


@pytest.mark.parametrize(
    ("times", "first"),
    [
        ({"cron": "0 12 * * *"}, 24 * HOUR),  # after now, not now
        ({"cron": "0 12 * * *", "start_at_ms": NOON}, 0),
        ({"cron": "0 * * * *", "start_at_ms": NOON - 2 * HOUR + 1}, -HOUR),
        ({"interval_ms": 5000}, 5000),
        ({"interval_ms": 5000, "start_at_ms": NOON}, 0),
        ({"interval_ms": 5000, "start_at_ms": NOON + 7}, 7),
        ({"interval_ms": 5000, "start_at_ms": NOON - 7}, -7),
        ({"interval_ms": 5000, "end_at_ms": NOON + 5001}, 5000),
    ],
)
def test_the_first_tick_comes_from_the_start(db, now, times, first):
    assert schedule(db, **times)["next_fire_at_ms"] == NOON + first


@pytest.mark.parametrize(
    "times",
    [
        {"interval_ms": 5000, "end_at_ms": NOON + 5000},
        {"cron": "0 13 * * *", "end_at_ms": NOON + HOUR},
        {"cron": "0 13 * * *", "end_at_ms": 0},
        {"interval_ms": 5000, "start_at_ms": NOON + 1, "end_at_ms": NOON + 1},
    ],
)
def test_a_schedule_without_a_tick_before_its_end_is_refused(db, now, times):
    with refused("invalid_schedule") as refusal:
        schedule(db, **times)
    assert refusal.detail["field"] == "end_at_ms"
    assert rows(db, "ff_list_schedules") == []


def test_the_same_definition_again_changes_nothing(db, now, clock):
    first = schedule(db, **EVERYTHING)
    before = table(db, "select * from ff_schedule")
    clock.advance(1)
    for replace in (False, True):
        again = schedule(db, **EVERYTHING, replace=replace)
        assert again == {**first, "outcome": "already_satisfied"}
    assert table(db, "select * from ff_schedule") == before


@pytest.mark.parametrize("argument", sorted(OTHER))
def test_another_definition_is_refused_unless_it_is_to_replace(db, now, clock, argument):
    schedule(db, **EVERYTHING)
    before = describe(db)
    clock.advance(1)
    changed = EVERYTHING | {argument: OTHER[argument]}
    with refused("schedule_conflict") as refusal:
        schedule(db, **changed)
    assert refusal.detail == {"kind": "schedule_conflict", "schedule_id": "s"}
    assert describe(db) == before
    assert schedule(db, **changed, replace=True)["outcome"] == "replaced"
    after = describe(db)
    assert {name for name in after if after[name] != before[name]} - {"next_fire_at_ms", "due_at_ms"} == {
        argument,
        "updated_at_ms",
    }
    assert schedule(db, **changed)["outcome"] == "already_satisfied"
    if argument in TIMES | {"lane_id"}:
        assert violations(db) == []


def test_new_times_count_from_now_and_other_changes_leave_the_next_tick(db, now, clock):
    schedule(db, cron="0 11 * * *", start_at_ms=NOON - 100 * HOUR)
    overdue = describe(db)["next_fire_at_ms"]
    assert overdue < NOON
    answer = schedule(db, cron="0 11 * * *", start_at_ms=NOON - 100 * HOUR, payload=b"x", replace=True)
    assert answer == {"outcome": "replaced", "schedule_id": "s", "next_fire_at_ms": overdue}
    answer = schedule(db, cron="0 11 * * *", start_at_ms=NOON - 99 * HOUR, payload=b"x", replace=True)
    assert answer["next_fire_at_ms"] == NOON + 23 * HOUR
    answer = schedule(db, interval_ms=5000, replace=True)
    assert answer["next_fire_at_ms"] == NOON + 5000
    assert violations(db) == []


def test_a_replaced_schedule_never_fires_a_tick_again(db, now, clock):
    schedule(db, cron="* * * * *")
    clock.advance(60_000)
    assert one(db, "ff_fire_schedules")["processed"] == 1
    clock.set(NOON + 30_000)  # the clock was set back
    assert schedule(db, cron="*/1 * * * *", replace=True)["next_fire_at_ms"] == NOON + 120_000
    assert violations(db) == []


def test_a_replacement_with_no_tick_left_is_refused(db, now):
    schedule(db)
    with refused("invalid_schedule"):
        schedule(db, end_at_ms=NOON + 1, replace=True)
    assert describe(db)["end_at_ms"] is None


# --- pausing ---


def test_a_paused_schedule_does_not_fire_and_drops_what_falls_into_the_pause(db, now, clock):
    schedule(db, catch_up="all")
    clock.advance(HOUR // 2)
    answer = one(db, "ff_pause_schedule", schedule_id="s", reason="holidays")
    assert answer == {"outcome": "paused", "paused_at_ms": NOON + HOUR // 2}
    shown = describe(db)
    assert (shown["state"], shown["paused_reason"], shown["due_at_ms"]) == ("paused", "holidays", None)
    clock.advance(10 * HOUR)
    assert one(db, "ff_pause_schedule", schedule_id="s") == {**answer, "outcome": "already_satisfied"}
    assert one(db, "ff_fire_schedules") == {"processed": 0, "errors": 0, "more": False}
    assert claim(db) is None
    answer = one(db, "ff_resume_schedule", schedule_id="s")
    assert answer == {"outcome": "resumed", "next_fire_at_ms": NOON + 11 * HOUR}
    assert one(db, "ff_resume_schedule", schedule_id="s") == {**answer, "outcome": "already_satisfied"}
    assert one(db, "ff_fire_schedules")["processed"] == 0
    shown = describe(db)
    assert (shown["state"], shown["paused_at_ms"], shown["paused_reason"]) == ("active", None, None)
    clock.advance(HOUR)
    assert one(db, "ff_fire_schedules")["processed"] == 1
    assert violations(db) == []


def test_a_paused_schedule_can_be_replaced_and_stays_paused(db, now, clock):
    schedule(db)
    one(db, "ff_pause_schedule", schedule_id="s")
    schedule(db, interval_ms=1000, replace=True)
    clock.advance(HOUR)
    assert describe(db)["state"] == "paused"
    assert one(db, "ff_fire_schedules")["processed"] == 0
    assert violations(db) == []


def test_a_schedule_that_ends_in_its_pause_resumes_into_its_end(db, now, clock):
    schedule(db, end_at_ms=NOON + 2 * HOUR)
    one(db, "ff_pause_schedule", schedule_id="s")
    clock.advance(3 * HOUR)
    assert one(db, "ff_resume_schedule", schedule_id="s") == {"outcome": "resumed", "next_fire_at_ms": None}
    assert describe(db)["state"] == "ended"
    assert violations(db) == []


def test_a_schedule_that_does_not_exist_cannot_be_paused_resumed_or_fired(db):
    for function in ("ff_pause_schedule", "ff_resume_schedule", "ff_fire_schedule"):
        with refused("schedule_not_found") as refusal:
            one(db, function, schedule_id="s")
        assert refusal.detail == {"kind": "schedule_not_found", "schedule_id": "s"}
        assert refusal.error.sqlstate == "WF008"


# --- deleting, listing ---


def test_a_deleted_schedule_is_gone_and_its_executions_stay(db, now, clock):
    schedule(db)
    clock.advance(HOUR)
    one(db, "ff_fire_schedules")
    assert one(db, "ff_delete_schedule", schedule_id="s") == {"outcome": "deleted"}
    assert one(db, "ff_delete_schedule", schedule_id="s") == {"outcome": "already_satisfied"}
    assert rows(db, "ff_describe_schedule", schedule_id="s") == []
    clock.advance(HOUR)
    assert one(db, "ff_fire_schedules")["processed"] == 0
    assert claim(db) is not None
    assert violations(db) == []


def test_schedules_are_listed_page_by_page_and_by_lane_and_namespace(db, now):
    for n in range(7):
        schedule(db, f"s{n}", lane_id=f"l{n % 2}", namespace=f"n{n % 3}", execution_kind=f"k{n}")
    seen, after = [], None
    while page := rows(db, "ff_list_schedules", after=after, limit=3):
        seen += page
        after = page[-1]["cursor"]
    assert [row["schedule_id"] for row in seen] == [f"s{n}" for n in range(7)]
    assert seen[0] == {
        "cursor": "s0",
        "schedule_id": "s0",
        "namespace": "n0",
        "lane_id": "l0",
        "execution_kind": "k0",
        "state": "active",
        "cron": "@hourly",
        "interval_ms": None,
        "time_zone": "UTC",
        "catch_up": "latest",
        "next_fire_at_ms": NOON + HOUR,
        "last_fire_at_ms": None,
        "last_execution_id": None,
        "fire_count": 0,
        "error_count": 0,
        "last_error": None,
    }
    named = [row["schedule_id"] for row in rows(db, "ff_list_schedules", lane_id="l1", namespace="n0")]
    assert named == ["s3"]
    assert rows(db, "ff_list_schedules", limit=0) == []


@pytest.mark.parametrize("after", ["", "a\nb", "x" * 257])
def test_a_malformed_cursor_is_refused(db, after):
    with refused("invalid_cursor"):
        rows(db, "ff_list_schedules", after=after)


# --- what is refused ---


@pytest.mark.parametrize(
    ("args", "kind", "arg"),
    [
        ({"schedule_id": None}, "invalid_input", "p_schedule_id"),
        ({"schedule_id": ""}, "invalid_input", "p_schedule_id"),
        ({"schedule_id": "x" * 257}, "invalid_input", "p_schedule_id"),
        ({"schedule_id": "a\nb"}, "invalid_input", "p_schedule_id"),
        ({"lane_id": None}, "invalid_input", "p_lane_id"),
        ({"lane_id": "a b\n"}, "invalid_lane_id", None),
        ({"catch_up": None}, "invalid_input", "p_catch_up"),
        ({"catch_up": "ALL"}, "invalid_input", "p_catch_up"),
        ({"max_catch_up": 0}, "invalid_input", "p_max_catch_up"),
        ({"max_catch_up": 1001}, "invalid_input", "p_max_catch_up"),
        ({"max_catch_up": None}, "invalid_input", "p_max_catch_up"),
        ({"grace_ms": 999}, "invalid_input", "p_grace_ms"),
        ({"grace_ms": 86_400_001}, "invalid_input", "p_grace_ms"),
        ({"replace": None}, "invalid_input", "p_replace"),
        ({"namespace": ""}, "invalid_input", "p_namespace"),
        ({"execution_kind": "x" * 129}, "invalid_input", "p_execution_kind"),
        ({"payload_encoding": "x" * 65}, "invalid_input", "p_payload_encoding"),
        ({"creator": "x" * 257}, "invalid_input", "p_creator"),
        ({"policy": {"no_such": 1}}, "invalid_policy", None),
        ({"policy": None}, "invalid_input", "p_policy"),
        ({"required_capabilities": ["a b"]}, "invalid_capabilities", None),
        ({"required_capabilities": None}, "invalid_input", "p_required_capabilities"),
        ({"tags": None}, "invalid_input", "p_tags"),
        ({"tags": Jsonb([])}, "invalid_input", "p_tags"),
        ({"tags": {"X": "y"}}, "invalid_tag_key", None),
        ({"tags": {"schedule.id": "y"}}, "invalid_input", "p_tags"),
        ({"tags": {f"a.b{n}": "c" for n in range(63)}}, "invalid_input", "p_tags"),
    ],
)
def test_what_no_tick_could_do_is_refused_at_once(db, args, kind, arg):
    with refused(kind) as refusal:
        schedule(db, **args)
    if arg:
        assert refusal.detail["arg"] == arg
    assert rows(db, "ff_list_schedules") == []


def test_as_many_tags_as_leave_room_for_two_are_allowed(db, now, clock):
    schedule(db, tags={f"a.b{n}": "c" for n in range(62)})
    clock.advance(HOUR)
    assert one(db, "ff_fire_schedules") == {"processed": 1, "errors": 0, "more": False}


@pytest.mark.parametrize(
    ("damage", "invariant"),
    [
        ("update ff_schedule set last_fire_at_ms = next_fire_at_ms", "schedule_next"),
        ("update ff_schedule set first_at_ms = next_fire_at_ms + 1", "schedule_next"),
        ("update ff_schedule set end_at_ms = next_fire_at_ms", "schedule_next"),
        ("update ff_schedule set next_fire_at_ms = null, due_at_ms = null", "schedule_ended"),
        ("update ff_schedule set fire_count = 0", "schedule_fired"),
        ("update ff_schedule set last_execution_id = gen_random_uuid()", "schedule_fired"),
        ("update ff_schedule set error_count = 1", "schedule_error"),
        ("update ff_schedule set last_error = 'x'", "schedule_error"),
        ("update ff_schedule set lane_id = 'nowhere'", "schedule_lane"),
    ],
)
def test_a_broken_schedule_is_found(db, now, clock, damage, invariant):
    schedule(db)
    clock.advance(HOUR)
    one(db, "ff_fire_schedules")
    assert violations(db) == []
    db.execute(damage)
    assert invariant in {v["invariant"] for v in violations(db)}
