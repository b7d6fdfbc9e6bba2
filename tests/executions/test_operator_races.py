"""Holder, operator and time meet on one execution: the second one gets the outcome of the first."""

import json
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from tests.executions.test_lifecycle_races import together, wait_for_lock
from tests.sql import claim, create, events, execution, one, take, violations

pytestmark = pytest.mark.modes

POLICY = {
    "retry_policy": {"backoff": {"type": "fixed", "delay_ms": 0}},
    "timeout_policy": {"attempt_timeout_ms": 1000},
    "max_replay_count": 1000,
}


def verb(name, **args):
    return lambda conn, row: one(conn, name, handle=row["handle"], **args)


def control(name, **args):
    return lambda conn, row: one(conn, name, execution_id=row["execution_id"], **args)


OPERATIONS = {
    "complete": verb("ff_complete"),
    "fail": verb("ff_fail"),
    "delay": verb("ff_delay", delay_ms=0),
    "cancel": verb("ff_cancel"),
    "renew": verb("ff_renew"),
    "progress": verb("ff_progress", percent=1),
    "operator cancel": control("ff_cancel_execution"),
    "override": control("ff_complete_execution", source="operator_override"),
    "revoke": control("ff_revoke_lease"),
    "priority": control("ff_change_priority", priority=5),
    "replay": control("ff_replay_execution"),
    "mark": control("ff_mark_lease_expired_if_due"),
    "time out": control("ff_expire_execution", phase="attempt_timeout"),
}

# first, second, the answer to the first, the answer to the second once the first has committed
RACES = [
    ("complete", "revoke", "completed", "already_satisfied no_active_lease"),
    ("revoke", "complete", "revoked operator", "lease_revoked"),
    ("complete", "operator cancel", "completed", "execution_already_terminal"),
    ("operator cancel", "complete", "cancelled", "execution_not_active"),
    ("complete", "cancel", "completed", "execution_not_active"),
    ("cancel", "complete", "cancelled", "execution_not_active"),
    ("complete", "override", "completed", "execution_not_active"),
    ("override", "complete", "completed", "execution_not_active"),
    ("complete", "fail", "completed", "execution_not_active"),
    ("fail", "complete", "retry_scheduled", "execution_not_active"),
    ("fail", "fail", "retry_scheduled", "retry_scheduled replayed"),
    ("cancel", "cancel", "cancelled", "cancelled replayed"),
    ("delay", "delay", "eligible", "eligible replayed"),
    ("cancel", "operator cancel", "cancelled", "already_cancelled"),
    ("operator cancel", "cancel", "cancelled", "execution_not_active"),
    ("operator cancel", "operator cancel", "cancelled", "already_cancelled"),
    ("operator cancel", "revoke", "cancelled", "already_satisfied no_active_lease"),
    ("revoke", "operator cancel", "revoked operator", "cancelled"),
    ("renew", "revoke", "", "revoked operator"),
    ("revoke", "renew", "revoked operator", "lease_revoked"),
    ("revoke", "revoke", "revoked operator", "already_satisfied already_revoked"),
    ("progress", "revoke", "", "revoked operator"),
    ("revoke", "progress", "revoked operator", "lease_revoked"),
    ("fail", "revoke", "retry_scheduled", "already_satisfied no_active_lease"),
    ("revoke", "fail", "revoked operator", "lease_revoked"),
    ("delay", "operator cancel", "eligible", "cancelled"),
    ("operator cancel", "delay", "cancelled", "execution_not_active"),
    ("priority", "complete", "changed", "completed"),
    ("complete", "priority", "completed", "execution_already_terminal"),
    ("complete", "replay", "completed", "replayed"),
]

# The same, where the time of the attempt runs out while the second one waits.
LATE_RACES = [
    ("fail", "time out", "retry_scheduled", "not_due"),
    ("fail", "mark", "retry_scheduled", "already_satisfied not_active"),
    ("delay", "time out", "eligible", "not_due"),
    ("complete", "time out", "completed", "already_terminal"),
    ("progress", "fail", "", "lease_expired"),
    ("progress", "complete", "", "lease_expired"),
    ("progress", "revoke", "", "already_satisfied already_expired"),
    ("progress", "mark", "", "marked_expired"),
    ("progress", "time out", "", "retry_scheduled"),
]

# The same, where it had run out before.
LAPSED_RACES = [
    ("mark", "fail", "marked_expired", "lease_expired"),
    ("mark", "mark", "marked_expired", "already_satisfied already_expired"),
    ("mark", "revoke", "marked_expired", "already_satisfied already_expired"),
    ("mark", "override", "marked_expired", "completed"),
    ("time out", "fail", "retry_scheduled", "execution_not_active"),
    ("time out", "mark", "retry_scheduled", "already_satisfied not_active"),
    ("time out", "time out", "retry_scheduled", "not_due"),
    ("override", "time out", "completed", "already_terminal"),
    ("mark", "time out", "marked_expired", "retry_scheduled"),
]


def told(call, *args):
    """The outcome in a word or two, or the kind of the error."""
    try:
        answer = call(*args)
    except psycopg.Error as error:
        assert (error.sqlstate or "").startswith("WF"), error
        return str(json.loads(error.diag.message_detail or "")["kind"])
    words = [answer.get("outcome"), answer.get("reason"), "replayed" if answer.get("replayed") else None]
    return " ".join(filter(None, words))


def race(db, clock, holder, waiter, first, second, row, *, commit, late=False):
    """The second waits for the first, which then commits or rolls back: the answers to both."""
    answer = told(OPERATIONS[first], holder, row)
    with ThreadPoolExecutor(1) as pool:
        other = pool.submit(told, OPERATIONS[second], waiter, row)
        wait_for_lock(db, waiter)
        if late:
            clock.advance(1000)
        if commit:
            holder.commit()
        else:
            holder.rollback()
        return answer, other.result(90)


CLOCK_STANDS_STILL = pytest.mark.read_committed(
    "the clock of the tests is a row, which a snapshot shows as it was"
)


@pytest.mark.parametrize(
    ("when", "races"),
    [
        ("in time", RACES),
        pytest.param("late", LATE_RACES, marks=CLOCK_STANDS_STILL, id="late"),
        ("lapsed", LAPSED_RACES),
    ],
    ids=lambda x: x if isinstance(x, str) else "",
)
def test_the_second_caller_gets_the_outcome_of_the_first(db, connect, clock, when, races):
    clock.freeze()
    holder, waiter = connect(autocommit=False), connect()
    for number, (first, second, to_first, to_second) in enumerate(races):
        lane = f"lane-{number}"
        create(db, lane, policy=POLICY)
        row = take(db, lane)
        if when == "lapsed":
            clock.advance(1000)
        found = race(db, clock, holder, waiter, first, second, row, commit=True, late=when == "late")
        assert found == (to_first, to_second), (first, second)
        said = events(db, row["execution_id"])
        ends = execution(db, row["execution_id"])
        assert sum(e.startswith("completion/") for e in said) == ends["replay_count"] + (
            ends["lifecycle_phase"] == "terminal"
        )
    assert violations(db) == []


@pytest.mark.parametrize(
    ("first", "second", "to_second"),
    [
        ("complete", "revoke", "revoked operator"),
        ("revoke", "complete", "completed"),
        ("complete", "operator cancel", "cancelled"),
        ("operator cancel", "complete", "completed"),
        ("operator cancel", "operator cancel", "cancelled"),
        ("fail", "fail", "retry_scheduled"),
        ("revoke", "renew", ""),
    ],
)
def test_a_first_that_rolls_back_leaves_no_trace(db, connect, clock, first, second, to_second):
    clock.freeze()
    holder, waiter = connect(autocommit=False), connect()
    create(db, policy=POLICY)
    row = take(db)
    assert race(db, clock, holder, waiter, first, second, row, commit=False)[1] == to_second
    assert violations(db) == []


def test_of_two_replays_one_is_refused(db, connect, clock):
    holder, waiter = connect(autocommit=False), connect()
    create(db, policy=POLICY)
    row = take(db)
    one(db, "ff_complete", handle=row["handle"])
    found = race(db, clock, holder, waiter, "replay", "replay", row, commit=True)
    assert found == ("replayed", "execution_not_terminal")
    assert execution(db, row["execution_id"])["replay_count"] == 1
    assert violations(db) == []


def test_of_many_at_once_one_cancels_and_one_replays(db, connect):
    conns = [connect() for _ in range(8)]
    row = {"execution_id": create(db, policy=POLICY)}
    for _ in range(5):
        cancels = together(8, lambda n: told(OPERATIONS["operator cancel"], conns[n], row))
        assert Counter(cancels) == {"cancelled": 1, "already_cancelled": 7}
        replays = together(8, lambda n: told(OPERATIONS["replay"], conns[n], row))
        assert Counter(replays) == {"replayed": 1, "execution_not_terminal": 7}
    said = Counter(events(db, row["execution_id"]))
    assert said == {"operator/cancelled": 5, "completion/cancelled": 5, "operator/replayed": 5}
    assert violations(db) == []


def test_of_all_at_once_one_ends_it(db, connect, clock):
    """No call waits for ever, no deadlock occurs, and the events are consistent."""
    clock.freeze()
    conns = [connect() for _ in range(8)]
    names = ["complete", "fail", "cancel", "operator cancel", "override", "revoke", "delay", "renew"]
    seen: Counter[str] = Counter()
    for round_ in range(25):
        lane = f"lane-{round_}"
        create(db, lane, policy=POLICY)
        row = take(db, lane)
        order = names[round_ % 8 :] + names[: round_ % 8]
        found = together(8, lambda n, order=order, row=row: told(OPERATIONS[order[n]], conns[n], row))
        seen.update(dict(zip(order, found, strict=True)).values())
        said = events(db, row["execution_id"])
        assert sum(e.split(":")[0] in ("lease/released", "lease/revoked") for e in said) == 1, said
        assert sum(e.startswith("completion/") for e in said) <= 1, said
    assert violations(db) == []
    assert seen["execution_not_active"] > 25, seen


def test_a_reclaim_and_the_end_of_an_attempt_do_not_both_win(db, connect, clock):
    clock.freeze()
    conns = [connect() for _ in range(4)]
    for round_ in range(15):
        lane = f"lane-{round_}"
        create(db, lane, policy=POLICY)
        row = take(db, lane, lease_ttl_ms=10)
        clock.advance(10)

        def work(n, row=row, lane=lane):
            if n % 2:
                return "claimed" if claim(conns[n], lane, worker=f"w{n}") else "nothing"
            return told(OPERATIONS["override" if n else "operator cancel"], conns[n], row)

        found = Counter(together(4, work))
        assert found["claimed"] <= 1, found
        said = events(db, row["execution_id"])
        assert sum(e.startswith("completion/") for e in said) == 1, (found, said)
    assert violations(db) == []
