"""Ticks become executions: once each, late ones by the catch-up policy, whatever fails beside them."""

import psycopg
import pytest

from tests.schedules.oracle import utc
from tests.sql import claim, create, execution, one, refused, rows, table, take, violations

MINUTE = 60_000
HOUR = 60 * MINUTE
NOON = utc(2026, 11, 16, 12)


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


def fire(db, **args):
    answer = one(db, "ff_fire_schedules", **args)
    assert violations(db) == []
    return answer


def fired(db, schedule_id="s"):
    """The ticks that have an execution, in hours after noon."""
    found = table(
        db,
        """select (i.tags ->> 'schedule.fire_at_ms')::bigint as tick from ff_exec_input i
            where i.tags ->> 'schedule.id' = %s order by 1""",
        schedule_id,
    )
    return [(row["tick"] - NOON) / HOUR for row in found]


def test_a_tick_becomes_an_execution_with_everything_the_schedule_says(db, now, clock):
    schedule(
        db,
        lane_id="reports",
        payload=b"p",
        payload_encoding="bin",
        execution_kind="report",
        priority=7,
        policy={"retry_policy": {"max_retries": 2}},
        tags={"a.b": "c"},
        required_capabilities=["gpu"],
        namespace="n",
        creator="me",
    )
    clock.advance(HOUR - 1)
    assert fire(db) == {"processed": 0, "errors": 0, "more": False}
    clock.advance(1)
    assert fire(db) == {"processed": 1, "errors": 0, "more": False}
    assert fire(db) == {"processed": 0, "errors": 0, "more": False}
    lease = take(db, "reports", capabilities=["gpu"])
    assert lease["tags"] == {"a.b": "c", "schedule.id": "s", "schedule.fire_at_ms": str(NOON + HOUR)}
    assert (lease["payload"], lease["payload_encoding"], lease["execution_kind"]) == (b"p", "bin", "report")
    assert (lease["priority"], lease["namespace"]) == (7, "n")
    told = one(db, "ff_describe_execution", execution_id=lease["execution_id"])
    assert told["creator"] == "me"
    assert told["policy"]["retry_policy"]["max_retries"] == 2
    shown = describe(db)
    assert shown["next_fire_at_ms"] == shown["due_at_ms"] == NOON + 2 * HOUR
    assert (shown["fire_count"], shown["last_fire_at_ms"], shown["last_fired_at_ms"]) == (
        1,
        NOON + HOUR,
        NOON + HOUR,
    )
    assert shown["last_execution_id"] == lease["execution_id"]


def test_an_interval_keeps_its_grid_however_late_it_is_fired(db, now, clock):
    schedule(db, interval_ms=10_000)
    clock.advance(10_003)
    fire(db)
    assert describe(db)["next_fire_at_ms"] == NOON + 20_000
    clock.advance(25_000)
    fire(db)
    assert describe(db)["last_fire_at_ms"] == NOON + 30_000
    assert describe(db)["next_fire_at_ms"] == NOON + 40_000


# --- missed ticks ---


@pytest.mark.parametrize(
    ("args", "wanted"),
    [
        ({"catch_up": "latest"}, [5]),
        ({"catch_up": "all"}, [1, 2, 3, 4, 5]),
        ({"catch_up": "all", "max_catch_up": 2}, [4, 5]),
        ({"catch_up": "all", "max_catch_up": 1}, [5]),
        ({"catch_up": "skip"}, []),
        ({"catch_up": "skip", "grace_ms": 10 * MINUTE}, [5]),
        ({"catch_up": "skip", "grace_ms": 10 * MINUTE - 1}, []),
    ],
)
@pytest.mark.parametrize("times", [{"cron": "0 * * * *"}, {"interval_ms": HOUR}])
def test_missed_ticks_are_dropped_or_caught_up_as_the_schedule_says(db, now, clock, times, args, wanted):
    schedule(db, **times, **args)
    clock.advance(5 * HOUR + 10 * MINUTE)
    assert fire(db) == {"processed": len(wanted), "errors": 0, "more": False}
    assert fired(db) == wanted
    assert describe(db)["next_fire_at_ms"] == NOON + 6 * HOUR
    clock.advance(HOUR - 10 * MINUTE)
    fire(db)
    assert fired(db) == [*wanted, 6]


def test_a_tick_within_its_grace_is_not_missed(db, now, clock):
    schedule(db, catch_up="skip")
    clock.advance(HOUR + 60_000)
    fire(db)
    assert fired(db) == [1]
    clock.advance(HOUR + 1)
    fire(db)
    assert fired(db) == [1]


def test_executions_of_missed_ticks_are_claimed_in_the_order_of_the_ticks(db, now, clock):
    schedule(db, catch_up="all")
    clock.advance(3 * HOUR)
    fire(db)
    seen = [int(take(db)["tags"]["schedule.fire_at_ms"]) for _ in range(3)]
    assert seen == [NOON + n * HOUR for n in (1, 2, 3)]


def test_a_limit_stops_between_two_ticks_and_loses_none(db, now, clock):
    schedule(db, catch_up="all", max_catch_up=5)
    schedule(db, "t")
    clock.advance(7 * HOUR)
    assert fire(db, limit=2) == {"processed": 2, "errors": 0, "more": True}
    assert fired(db) == [3, 4]
    assert fire(db, limit=2) == {"processed": 2, "errors": 0, "more": True}
    assert fire(db, limit=0) == {"processed": 0, "errors": 0, "more": False}
    assert fire(db, limit=2) == {"processed": 2, "errors": 0, "more": False}
    assert (fired(db), fired(db, "t")) == ([3, 4, 5, 6, 7], [7])


def test_a_start_in_the_past_makes_missed_ticks(db, now):
    schedule(db, catch_up="all", start_at_ms=NOON - 3 * HOUR)
    schedule(db, "t", catch_up="latest", start_at_ms=NOON - 3 * HOUR)
    fire(db)
    assert (fired(db), fired(db, "t")) == ([-3, -2, -1, 0], [0])


def test_a_year_of_missed_minutes_is_no_work(db, now, clock):
    db.execute("set local statement_timeout = '60s'")
    for policy in ("skip", "latest", "all"):
        schedule(db, policy, cron="*/2 * * * *", time_zone="Europe/Berlin", catch_up=policy)
    clock.advance(365 * 24 * HOUR)
    assert fire(db)["processed"] == 1 + 1 + 100  # the tick of this very moment is not missed


def test_missed_ticks_over_a_change_of_the_clock_are_those_that_were(db, clock):
    clock.set(utc(2026, 10, 24, 12))
    schedule(db, cron="30 2 * * *", time_zone="Europe/Berlin", catch_up="all")
    schedule(db, "hourly", cron="30 * * * *", time_zone="Europe/Berlin", catch_up="all")
    clock.set(utc(2026, 10, 26, 12))
    fire(db)
    assert [NOON + hours * HOUR for hours in fired(db)] == [
        utc(2026, 10, 25, 0, 30),
        utc(2026, 10, 26, 1, 30),
    ]
    assert len(fired(db, "hourly")) == 48


def test_an_ended_schedule_fires_what_it_missed_and_then_nothing(db, now, clock):
    schedule(db, catch_up="all", end_at_ms=NOON + 3 * HOUR)
    clock.advance(10 * HOUR)
    fire(db)
    assert fired(db) == [1, 2]
    shown = describe(db)
    assert (shown["state"], shown["next_fire_at_ms"], shown["due_at_ms"]) == ("ended", None, None)
    clock.advance(10 * HOUR)
    assert fire(db)["processed"] == 0


# --- a tick has one execution ---


def test_a_schedule_that_is_made_again_does_not_fire_its_ticks_again(db, now, clock):
    schedule(db, start_at_ms=NOON - HOUR, catch_up="all")
    fire(db)
    lease = take(db)
    one(db, "ff_delete_schedule", schedule_id="s")
    schedule(db, start_at_ms=NOON - HOUR, catch_up="all", payload=b"other")
    fire(db)
    assert fired(db) == [-1, 0]
    assert execution(db, lease["execution_id"])["lifecycle_phase"] == "active"


def test_an_execution_can_be_looked_up_by_its_schedule(db, now, clock):
    schedule(db)
    clock.advance(HOUR)
    fire(db)
    (found,) = rows(db, "ff_list_executions", tag_key="schedule.id", tag_value="s")
    assert found["execution_id"] == describe(db)["last_execution_id"]


# --- failures ---


def test_a_schedule_that_cannot_be_fired_does_not_stop_the_others(db, now, clock):
    schedule(db, "a", lane_id="closed")
    schedule(db, "b")
    schedule(db, "c")
    one(db, "ff_set_lane_state", lane_id="closed", state="disabled")
    clock.advance(HOUR)
    assert fire(db) == {"processed": 2, "errors": 1, "more": False}
    shown = describe(db, "a")
    assert (shown["error_count"], shown["last_error"], shown["last_error_at_ms"]) == (
        1,
        "lane closed is disabled",
        NOON + HOUR,
    )
    assert (shown["next_fire_at_ms"], shown["due_at_ms"]) == (NOON + HOUR, NOON + HOUR + 1000)
    assert fire(db) == {"processed": 0, "errors": 0, "more": False}


def test_failures_that_fill_the_limit_say_that_there_is_more(db, now, clock):
    schedule(db, "a", lane_id="closed")
    schedule(db, "b")
    one(db, "ff_set_lane_state", lane_id="closed", state="disabled")
    clock.advance(HOUR)
    assert fire(db, limit=1) == {"processed": 0, "errors": 1, "more": True}
    assert fire(db, limit=1) == {"processed": 1, "errors": 0, "more": False}


def test_ticks_that_are_dropped_do_not_hide_that_there_is_more(db, now, clock):
    schedule(db, "a", catch_up="skip", cron="59 * * * *")
    schedule(db, "b")
    clock.advance(2 * HOUR + 30 * MINUTE)
    assert fire(db, limit=1) == {"processed": 0, "errors": 0, "more": True}
    assert fire(db, limit=1) == {"processed": 1, "errors": 0, "more": False}


def test_an_error_that_is_not_the_schedules_own_is_the_callers_to_repeat(db, now, clock):
    schedule(db)
    clock.advance(HOUR)
    db.execute(
        """create function fail() returns trigger language plpgsql as
           $$begin raise serialization_failure; end$$;
           create trigger fail before insert on ff_execution execute function fail()"""
    )
    with pytest.raises(psycopg.errors.SerializationFailure):
        one(db, "ff_fire_schedules")
    assert describe(db)["error_count"] == 0


def test_a_failing_schedule_is_tried_again_ever_more_slowly_and_fires_its_tick_at_last(db, now, clock):
    schedule(db, lane_id="closed")
    one(db, "ff_set_lane_state", lane_id="closed", state="draining")
    clock.advance(HOUR)
    waits = []
    for _ in range(11):
        assert fire(db)["errors"] == 1
        waits.append(describe(db)["due_at_ms"] - clock.now())
        clock.advance(waits[-1] - 1)
        assert fire(db)["errors"] == 0
        clock.advance(1)
    assert waits == [1000 * 2**n for n in range(9)] + [300_000] * 2
    one(db, "ff_set_lane_state", lane_id="closed", state="active")
    assert fire(db) == {"processed": 1, "errors": 0, "more": False}
    assert fired(db) == [1]
    shown = describe(db)
    assert (shown["error_count"], shown["last_error"], shown["last_error_at_ms"]) == (0, None, None)


def test_an_error_among_several_ticks_creates_none_of_them(db, now, clock):
    schedule(db, catch_up="all")
    clock.advance(3 * HOUR)
    # The second of the ticks meets an execution that is half there.
    db.execute("create unique index on ff_execution ((tags ->> 'schedule.id'))")
    assert fire(db) == {"processed": 0, "errors": 1, "more": False}
    assert fired(db) == []
    db.execute("drop index ff_execution_expr_idx")
    clock.advance(1000)
    assert fire(db)["processed"] == 3


# --- by claims ---


def test_an_idle_claim_fires_what_is_due_on_any_lane(db, now, clock):
    schedule(db)
    schedule(db, "t", lane_id="other")
    clock.advance(HOUR)
    assert take(db)["tags"]["schedule.id"] == "s"
    assert fired(db, "t") == [1]
    assert violations(db) == []


@pytest.mark.parametrize("function", ["ff_claim", "ff_claim_for_worker", "ff_claim_many"])
def test_every_claim_that_finds_nothing_fires(db, now, clock, function):
    schedule(db)
    clock.advance(HOUR)
    assert len(rows(db, function, lane_id="default", worker_id="w", worker_instance_id="w-1")) == 1
    assert fired(db) == [1]


def test_a_claim_that_finds_work_does_not_look_at_schedules(db, now, clock):
    schedule(db)
    create(db)
    clock.advance(HOUR)
    assert "schedule.id" not in take(db)["tags"]
    assert fired(db) == []


def test_an_idle_claim_with_nothing_due_is_still_empty(db, now):
    schedule(db)
    assert claim(db) is None


# --- by hand ---


def test_an_operator_fires_a_schedule_now_and_its_ticks_stay(db, now, clock):
    schedule(db, payload=b"p")
    before = describe(db)
    answer = one(db, "ff_fire_schedule", schedule_id="s")
    assert answer["outcome"] == "fired"
    assert describe(db) == before
    lease = take(db)
    assert (lease["execution_id"], lease["payload"]) == (answer["execution_id"], b"p")
    assert lease["tags"] == {"schedule.id": "s", "schedule.fire_at_ms": str(NOON)}
    assert one(db, "ff_fire_schedule", schedule_id="s")["execution_id"] != answer["execution_id"]


def test_firing_by_hand_at_the_moment_of_a_tick_is_beside_the_tick(db, now, clock):
    schedule(db)
    clock.advance(HOUR)
    one(db, "ff_fire_schedule", schedule_id="s")
    fire(db)
    assert fired(db) == [1, 1]


def test_firing_by_hand_twice_with_one_key_is_once(db, now, clock):
    schedule(db)
    first = one(db, "ff_fire_schedule", schedule_id="s", idempotency_key="k")
    clock.advance(1)
    again = one(db, "ff_fire_schedule", schedule_id="s", idempotency_key="k")
    assert again == {"outcome": "duplicate", "execution_id": first["execution_id"]}


def test_a_paused_or_ended_schedule_can_be_fired_by_hand(db, now, clock):
    schedule(db)
    one(db, "ff_pause_schedule", schedule_id="s")
    one(db, "ff_fire_schedule", schedule_id="s")
    schedule(db, "t", end_at_ms=NOON + HOUR + 1)
    clock.advance(2 * HOUR)
    fire(db)
    one(db, "ff_fire_schedule", schedule_id="t")
    assert (fired(db), fired(db, "t")) == ([0], [1, 2])


def test_firing_by_hand_into_a_closed_lane_is_refused(db, now):
    schedule(db)
    one(db, "ff_set_lane_state", lane_id="default", state="disabled")
    with refused("lane_not_accepting"):
        one(db, "ff_fire_schedule", schedule_id="s")


@pytest.mark.parametrize("limit", [-1, 100_001, None])
def test_a_bad_limit_is_refused(db, limit):
    with refused("invalid_input"):
        one(db, "ff_fire_schedules", limit=limit)
