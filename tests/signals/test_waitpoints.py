"""Waitpoints before a suspension: created, signalled, closed, expired, bound again; and how they are listed."""

import uuid

import pytest
from psycopg.types.json import Jsonb

from tests.sql import create, events, execution, one, refused, rows, table, take, violations
from tests.suspensions.support import (
    OPERATOR_ONLY,
    UNKNOWN,
    all_of,
    count,
    deliver,
    everything,
    run,
    seed,
    signals,
    single,
    stored,
    suspend,
    suspended,
    waitpoint,
)


def close(db, claim, point, **args):
    return one(db, "ff_close_waitpoint", handle=claim["handle"], waitpoint_id=point["waitpoint_id"], **args)


def pending(point):
    return [{"use_pending": str(point["waitpoint_id"])}]


def expire_waitpoint(db, point):
    """The row that a sweep works on: the execution is locked first."""
    query = """
        select ff__expire_waitpoint(ff__open(w.execution_id), w.waitpoint_id) as done
          from ff_waitpoint w where w.waitpoint_id = %s
    """
    return table(db, query, point["waitpoint_id"])[0]["done"]


def test_a_waitpoint_is_made_while_the_work_goes_on(db, clock):
    now = clock.freeze()
    claim = run(db)
    before = events(db, claim["execution_id"])
    point = waitpoint(db, claim["handle"], expires_in_ms=500)
    assert (point["outcome"], point["waitpoint_key"], point["expires_at_ms"]) == (
        "created",
        "approval",
        now + 500,
    )
    w = stored(db, "ff_waitpoint")
    assert (w["state"], w["required_signal_names"], w["suspension_id"], w["attempt_index"]) == (
        "pending",
        [],
        None,
        0,
    )
    assert point["waitpoint_id"].bytes[-1] == execution(db, claim["execution_id"])["partition_key"]
    assert execution(db, claim["execution_id"])["open_waitpoints"] == 1
    assert events(db, claim["execution_id"]) == before
    one(db, "ff_renew", handle=claim["handle"])
    assert violations(db) == []


def test_without_a_key_it_is_called_after_its_id(db):
    claim = run(db)
    point = waitpoint(db, claim["handle"], key=None)
    assert point["waitpoint_key"] == f"wpk:{point['waitpoint_id']}"
    mine = waitpoint(db, claim["handle"], key=None, waitpoint_id=UNKNOWN)
    assert waitpoint(db, claim["handle"], key=None, waitpoint_id=UNKNOWN) == {
        **mine,
        "outcome": "already_exists",
    }


def test_the_same_id_and_key_is_the_same_waitpoint_and_anything_else_a_conflict(db):
    claim, other = run(db), run(db)
    point = waitpoint(db, claim["handle"], waitpoint_id=UNKNOWN)
    before = everything(db)
    assert waitpoint(db, claim["handle"], waitpoint_id=UNKNOWN, expires_in_ms=1) == {
        **point,
        "outcome": "already_exists",
    }
    assert everything(db) == before
    with refused("waitpoint_conflict"):
        waitpoint(db, claim["handle"], "other", waitpoint_id=UNKNOWN)
    with refused("waitpoint_conflict"):
        waitpoint(db, other["handle"], waitpoint_id=UNKNOWN)
    close(db, claim, point)
    with refused("waitpoint_conflict"):
        waitpoint(db, claim["handle"], waitpoint_id=UNKNOWN)


def test_equal_keys_make_different_waitpoints(db):
    claim = run(db)
    assert waitpoint(db, claim["handle"])["waitpoint_id"] != waitpoint(db, claim["handle"])["waitpoint_id"]


@pytest.mark.parametrize("key", ["", "x" * 257, "a\tb", "\x7f"])
def test_a_key_has_a_grammar(db, key):
    claim = run(db)
    with refused("invalid_waitpoint_key"):
        waitpoint(db, claim["handle"], key)


@pytest.mark.parametrize("ms", [0, -1, 2_592_000_001, None])
def test_a_waitpoint_lives_for_a_millisecond_to_thirty_days(db, ms):
    claim = run(db)
    with refused("invalid_input"):
        waitpoint(db, claim["handle"], expires_in_ms=ms)


def test_only_the_holder_of_the_lease_makes_and_closes_waitpoints(db, clock):
    clock.freeze()
    claim = run(db)
    point = waitpoint(db, claim["handle"])
    clock.advance(30_000)
    with refused("lease_expired"):
        waitpoint(db, claim["handle"])
    with refused("lease_expired"):
        close(db, claim, point)
    again = take(db)
    for call in (waitpoint, lambda db, handle: close(db, {"handle": handle}, point)):
        with refused("stale_lease"):
            call(db, claim["handle"])
    assert stored(db, "ff_waitpoint")["close_reason"] == "attempt_ended"
    suspend(db, again["handle"])
    with refused("execution_not_active"):
        waitpoint(db, again["handle"])


def test_a_closed_waitpoint_discards_what_it_had_and_takes_no_more(db):
    claim = run(db)
    point = waitpoint(db, claim["handle"])
    deliver(db, claim, point)
    assert close(db, claim, point) == {"outcome": "closed", "close_reason": "proactive_close"}
    assert [g["discarded"] for g in signals(db, claim)] == [True]
    assert execution(db, claim["execution_id"])["open_waitpoints"] == 0
    assert events(db, claim["execution_id"])[-1] == "suspension/waitpoint_closed:proactive_close"
    before = everything(db)
    assert close(db, claim, point, reason="again") == {
        "outcome": "already_closed",
        "close_reason": "proactive_close",
    }
    assert everything(db) == before
    with refused("waitpoint_closed") as refusal:
        deliver(db, claim, point)
    assert refusal.detail["close_reason"] == "proactive_close"
    assert violations(db) == []


def test_closing_what_is_not_there_not_mine_or_not_pending_is_refused(db):
    claim, other = run(db), run(db)
    with refused("waitpoint_not_found"):
        close(db, claim, {"waitpoint_id": UNKNOWN})
    with refused("invalid_waitpoint_for_execution"):
        close(db, claim, waitpoint(db, other["handle"]))
    with refused("invalid_input"):
        close(db, claim, {"waitpoint_id": None})
    with refused("invalid_input"):
        close(db, claim, waitpoint(db, claim["handle"]), reason="")
    point = waitpoint(db, claim["handle"])
    db.execute("update ff_waitpoint set state = 'active' where waitpoint_id = %s", [point["waitpoint_id"]])
    with refused("waitpoint_not_pending"):
        close(db, claim, point)


def test_an_unbound_waitpoint_expires(db, clock):
    clock.freeze()
    claim = run(db)
    point = waitpoint(db, claim["handle"], expires_in_ms=10)
    deliver(db, claim, point)
    clock.advance(9)
    assert expire_waitpoint(db, point) is False
    assert deliver(db, claim, point, "x")["outcome"] == "accepted"
    clock.advance(1)
    with refused("pending_waitpoint_expired"):
        deliver(db, claim, point)
    assert expire_waitpoint(db, point) is True
    w = stored(db, "ff_waitpoint")
    assert (w["state"], w["close_reason"], w["closed_at_ms"]) == ("expired", "never_committed", clock.now())
    assert {g["discarded"] for g in signals(db, claim)} == {True}
    assert execution(db, claim["execution_id"])["open_waitpoints"] == 0
    assert expire_waitpoint(db, point) is False
    assert close(db, claim, point) == {"outcome": "already_closed", "close_reason": "never_committed"}
    with refused("waitpoint_closed") as refusal:
        deliver(db, claim, point)
    assert refusal.detail["close_reason"] == "never_committed"
    assert violations(db) == []


# What becomes of waitpoints and signals at a resume.


def resumed(db, **policy):
    """A suspension with one signal that matched, one that did not, and one that resumed it."""
    claim, point = suspended(db, count(2, "signals", ["a"], {"by_name": "go"}), policy=policy)
    for name in ("go", "noise", "go"):
        answer = deliver(db, claim, point, name)
    assert answer["resumed"]
    return claim, point


def marks(db, claim):
    return [(g["signal_name"], g["matched"], g["consumed"], g["discarded"]) for g in signals(db, claim)]


def test_as_a_rule_the_waitpoint_closes_and_its_signals_are_used_up(db):
    claim, point = resumed(db)
    assert marks(db, claim) == [
        ("go", True, True, False),
        ("noise", False, False, True),
        ("go", True, True, False),
    ]
    assert stored(db, "ff_waitpoint")["close_reason"] == "resumed"
    with refused("waitpoint_closed") as refusal:
        deliver(db, claim, point)
    assert refusal.detail["close_reason"] == "resumed"
    assert violations(db) == []


def test_a_waitpoint_may_be_kept_and_bound_again_with_the_same_token(db):
    claim, point = resumed(db, close_waitpoint_on_resume=False)
    w = stored(db, "ff_waitpoint")
    assert (w["state"], w["suspension_id"], w["expires_at_ms"]) == ("pending", None, None)
    assert execution(db, claim["execution_id"])["open_waitpoints"] == 1
    assert deliver(db, claim, point, "go")["effect"] == "buffered_for_pending_waitpoint"
    again = take(db)
    (bound,) = suspend(db, again["handle"], single("a", "stop"), waitpoints=pending(point))
    assert (bound["outcome"], bound["waitpoint_token"]) == ("suspended", point["waitpoint_token"])
    assert deliver(db, claim, bound, "stop")["resumed"] is True
    assert [m[2:] for m in marks(db, claim)] == [
        (True, False),
        (False, True),
        (True, False),
        (False, True),
        (True, False),
    ]
    assert suspend(db, again["handle"], single("a", "stop"), waitpoints=pending(point)) == [
        {**bound, "replayed": True}
    ]
    assert violations(db) == []


def test_signals_that_are_not_consumed_count_again(db):
    claim, point = resumed(db, close_waitpoint_on_resume=False, consume_matched_signals=False)
    assert [m[2:] for m in marks(db, claim)] == [(False, False), (False, True), (False, False)]
    again = take(db)
    (bound,) = suspend(db, again["handle"], single("a", "go"), waitpoints=pending(point))
    assert bound["outcome"] == "already_satisfied"
    assert violations(db) == []


def test_a_signal_that_matched_before_and_does_not_now_stays_with_its_suspension(db):
    claim, point = resumed(db, close_waitpoint_on_resume=False, consume_matched_signals=False)
    again = take(db)
    (bound,) = suspend(db, again["handle"], single("a", "stop"), waitpoints=pending(point))
    assert bound["outcome"] == "suspended"
    assert [m[1] for m in marks(db, claim)] == [True, False, True]
    assert deliver(db, claim, bound, "stop")["resumed"] is True
    assert violations(db) == []


def test_unmatched_signals_may_be_kept_while_the_waitpoint_is_open(db):
    claim, point = resumed(db, close_waitpoint_on_resume=False, retain_signal_buffer_until_closed=True)
    assert marks(db, claim)[1] == ("noise", False, False, False)
    (bound,) = suspend(db, take(db)["handle"], single("a", "noise"), waitpoints=pending(point))
    assert bound["outcome"] == "already_satisfied"
    claim, point = resumed(db, retain_signal_buffer_until_closed=True)
    assert marks(db, claim)[1] == ("noise", False, False, True)
    assert violations(db) == []


def test_the_signal_of_a_timeout_stays_with_its_suspension(db, clock):
    clock.freeze()
    policy = {"close_waitpoint_on_resume": False, "consume_matched_signals": False}
    behavior = "auto_resume_with_timeout_signal"
    claim, point = suspended(
        db, single("a"), timeout_ms=1000, timeout_behavior=behavior, policy=Jsonb(policy)
    )
    clock.advance(1000)
    one(db, "ff_expire_suspension", execution_id=claim["execution_id"])
    again = take(db)
    bind = [{"use_pending": str(point["waitpoint_id"])}]
    (row,) = suspend(db, again["handle"], single("a"), waitpoints=bind)
    assert row["outcome"] == "suspended"
    (g,) = signals(db, claim)
    assert (g["signal_name"], g["suspension_id"], g["matched"]) == ("timeout", point["suspension_id"], True)
    assert violations(db) == []
    assert deliver(db, claim, point)["resumed"]
    assert violations(db) == []


def test_kept_waitpoints_live_until_the_attempt_ends(db, clock):
    clock.freeze()
    claim, point = resumed(db, close_waitpoint_on_resume=False)
    again = take(db, lease_ttl_ms=86_400_000)
    clock.advance(80_000_000)
    assert deliver(db, claim, point)["outcome"] == "accepted"
    one(db, "ff_complete", handle=again["handle"])
    assert stored(db, "ff_waitpoint")["close_reason"] == "attempt_ended"
    with refused("target_not_signalable"):
        deliver(db, claim, point)
    assert violations(db) == []


# Lists.


def test_open_waitpoints_are_listed_by_page_and_without_their_token(db):
    claim = run(db)
    points = [waitpoint(db, claim["handle"], f"k{n}") for n in range(5)]
    close(db, claim, points[0])
    deliver(db, claim, points[1])
    listed = rows(db, "ff_list_pending_waitpoints", execution_id=claim["execution_id"])
    assert [r["waitpoint_id"] for r in listed] == sorted(p["waitpoint_id"] for p in points[1:])
    assert "waitpoint_token" not in listed[0]
    by_key = {r["waitpoint_key"]: r for r in listed}
    assert (by_key["k1"]["signal_count"], by_key["k1"]["state"], by_key["k1"]["token_kid"]) == (
        1,
        "pending",
        "k1",
    )
    assert by_key["k1"]["execution_id"] == claim["execution_id"]
    pages, after = [], None
    while page := rows(
        db, "ff_list_pending_waitpoints", execution_id=claim["execution_id"], after=after, limit=3
    ):
        pages.append(page)
        after = page[-1]["waitpoint_id"]
    assert [row for page in pages for row in page] == listed
    suspend(db, claim["handle"])
    listed = rows(db, "ff_list_pending_waitpoints", execution_id=claim["execution_id"])
    assert sorted(r["state"] for r in listed) == ["active"] + ["pending"] * 4
    with refused("execution_not_found"):
        rows(db, "ff_list_pending_waitpoints", execution_id=f"{{fp:7}}:{UNKNOWN}")
    with refused("invalid_input"):
        rows(db, "ff_list_pending_waitpoints", execution_id=claim["execution_id"], limit=1001)
    assert rows(db, "ff_list_pending_waitpoints", execution_id=claim["execution_id"], limit=0) == []


def test_a_token_is_read_for_an_open_waitpoint_of_this_execution_only(db):
    claim, other = run(db), run(db)
    point = waitpoint(db, claim["handle"])
    read = {"execution_id": claim["execution_id"], "waitpoint_id": point["waitpoint_id"]}
    assert one(db, "ff_read_waitpoint_token", **read)["waitpoint_token"] == point["waitpoint_token"]
    assert rows(db, "ff_read_waitpoint_token", **{**read, "execution_id": other["execution_id"]}) == []
    assert rows(db, "ff_read_waitpoint_token", **{**read, "waitpoint_id": UNKNOWN}) == []
    assert rows(db, "ff_read_waitpoint_token", **{**read, "execution_id": f"{{fp:7}}:{UNKNOWN}"}) == []
    close(db, claim, point)
    assert rows(db, "ff_read_waitpoint_token", **read) == []
    with refused("invalid_input"):
        rows(db, "ff_read_waitpoint_token", **{**read, "waitpoint_id": None})


def test_suspended_executions_are_listed_longest_first(db, clock):
    clock.freeze()
    expected = []
    for n in range(6):
        create(db, "red" if n % 2 else "blue", namespace=f"n{n % 3}")
        claim = take_any(db)
        suspend(
            db,
            claim["handle"],
            all_of(single("a"), single("b")),
            reason_code="waiting_for_approval" if n < 3 else "manual_pause",
            reason_detail=f"no {n}",
            timeout_ms=1000 if n == 0 else None,
        )
        expected.append(claim["execution_id"])
        clock.advance(n % 2)
    listed = rows(db, "ff_list_suspended")
    assert {r["execution_id"] for r in listed} == set(expected)
    assert [(r["suspended_at_ms"], r["execution_id"][-36:]) for r in listed] == sorted(
        (r["suspended_at_ms"], r["execution_id"][-36:]) for r in listed
    )
    (first,) = [r for r in listed if r["execution_id"] == expected[0]]
    assert (first["reason_code"], first["reason_detail"], first["timeout_behavior"]) == (
        "waiting_for_approval",
        "no 0",
        "fail",
    )
    assert (first["open_waitpoints"], first["condition"]["kind"], first["lane_id"]) == (2, "all_of", "blue")
    assert first["cursor"] == f"{first['suspended_at_ms']}-{expected[0][-36:]}"

    def ids(**args):
        return {r["execution_id"] for r in rows(db, "ff_list_suspended", **args)}

    assert ids(lane_id="red") == set(expected[1::2])
    assert ids(reason_code="manual_pause") == set(expected[3:])
    assert ids(namespace="n1") == {expected[1], expected[4]}
    assert ids(partition=uuid.UUID(expected[2][-36:]).bytes[-1]) >= {expected[2]}
    pages, after = [], None
    while page := rows(db, "ff_list_suspended", after=after, limit=2):
        pages += page
        after = page[-1]["cursor"]
        # The row under the cursor goes away: the place is not lost.
        one(db, "ff_resume_execution", execution_id=page[-1]["execution_id"])
    assert [r["execution_id"] for r in pages] == [r["execution_id"] for r in listed]
    for bad in ({"partition": 256}, {"partition": -1}, {"limit": -1}):
        with refused("invalid_input"):
            ids(**bad)
    with refused("invalid_reason_code"):
        ids(reason_code="x")
    with refused("invalid_cursor"):
        ids(after="x")


def take_any(db):
    seed(db)
    for lane in ("red", "blue"):
        if found := rows(db, "ff_claim", lane_id=lane, worker_id="w", worker_instance_id="w-1"):
            return found[0]
    raise AssertionError


def test_an_operator_only_suspension_takes_signals_that_change_nothing(db):
    claim, point = suspended(db, OPERATOR_ONLY)
    answer = deliver(db, claim, point, "anything")
    assert (answer["matched"], answer["resumed"], answer["effect"]) == (False, False, "appended_to_waitpoint")


def test_the_key_is_checked_before_the_expiry_and_both_before_the_handle(db):
    with refused("invalid_waitpoint_key"):
        one(db, "ff_create_waitpoint", handle="x", waitpoint_key="", expires_in_ms=0)
    with refused("invalid_input"):
        one(db, "ff_create_waitpoint", handle="x", expires_in_ms=0)
    with refused("invalid_handle"):
        one(db, "ff_create_waitpoint", handle="x")
