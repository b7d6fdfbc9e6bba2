"""ff_record_step: what is recorded stays, by whomever it is recorded again, and only under the fence."""

import uuid

import pytest
from psycopg.types.json import Jsonb

from tests.sql import claim, create, execution, one, refused, rows, table, take, violations

pytestmark = pytest.mark.modes

RETRIES = {"retry_policy": {"max_retries": 5}}


def record(db, lease, name, result=None, encoding=None):
    return one(
        db, "ff_record_step", handle=lease["handle"], name=name, result=result, result_encoding=encoding
    )


def steps(db, execution_id):
    return [(s["name"], s["result"]) for s in rows(db, "ff_read_steps", execution_id=execution_id)]


def test_a_new_step_is_recorded_and_read_back(db, clock):
    now = clock.freeze()
    eid = create(db)
    lease = take(db)
    said = {
        "name": "charge",
        "result": b"\x00\xff",
        "result_encoding": "bin",
        "attempt_index": 0,
        "recorded_at_ms": now,
    }
    assert record(db, lease, "charge", b"\x00\xff", "bin") == {"outcome": "recorded", **said}
    assert rows(db, "ff_read_steps", execution_id=eid) == [{**said, "cursor": "1"}]
    assert violations(db) == []


def test_recording_writes_no_event_and_leaves_the_execution_as_it_is(db):
    eid = create(db)
    lease = take(db)
    before = execution(db, eid), table(db, "select * from ff_event"), table(db, "select * from ff_attempt")
    record(db, lease, "a", b"1")
    assert before == (
        execution(db, eid),
        table(db, "select * from ff_event"),
        table(db, "select * from ff_attempt"),
    )


@pytest.mark.parametrize(
    ("result", "encoding"), [(b"1", None), (b"1", "x"), (None, None), (b"", ""), (None, "x")]
)
def test_the_same_call_again_answers_with_the_first_record(db, clock, result, encoding):
    clock.freeze()
    create(db)
    lease = take(db)
    first = record(db, lease, "a", result, encoding)
    clock.advance(1)
    assert record(db, lease, "a", result, encoding) == {**first, "outcome": "already_recorded"}


@pytest.mark.parametrize(
    ("result", "encoding"), [(b"2", "x"), (b"1", "y"), (b"1", None), (None, "x"), (None, None), (b"", "x")]
)
def test_the_same_lease_with_another_result_is_refused(db, clock, result, encoding):
    now = clock.freeze()
    eid = create(db)
    lease = take(db)
    record(db, lease, "a", b"1", "x")
    with refused("step_conflict") as refusal:
        record(db, lease, "a", result, encoding)
    assert refusal.error.sqlstate == "WF319"
    assert refusal.detail == {
        "kind": "step_conflict",
        "execution_id": eid,
        "name": "a",
        "attempt_index": 0,
        "recorded_at_ms": now,
    }
    assert steps(db, eid) == [("a", b"1")]


def test_names_are_told_apart_byte_by_byte(db):
    eid = create(db)
    lease = take(db)
    names = ["a", "A", "a ", "ä", "a\u0308", "\U0001f600" * 128, "x" * 512]
    for name in names:
        assert record(db, lease, name, name.encode())["outcome"] == "recorded"
    assert steps(db, eid) == [(name, name.encode()) for name in names]


def test_two_executions_have_steps_of_their_own(db):
    one_, other = create(db), create(db)
    leases = {lease["execution_id"]: lease for lease in (take(db), take(db))}
    record(db, leases[one_], "a", b"1")
    assert record(db, leases[other], "a", b"2")["outcome"] == "recorded"
    assert (steps(db, one_), steps(db, other)) == ([("a", b"1")], [("a", b"2")])


# --- who goes on finds it ---


def after_retry(db, clock, lease):
    one(db, "ff_fail", handle=lease["handle"], reason="x")
    clock.advance(3_600_000)


def after_crash(db, clock, lease):
    clock.advance(lease["lease_expires_at_ms"] - clock.now())


def after_delay(db, clock, lease):
    one(db, "ff_delay", handle=lease["handle"], delay_until_ms=clock.now() + 1000)
    clock.advance(1000)


def after_replay_of_a_failure(db, clock, lease):
    one(db, "ff_fail", handle=lease["handle"], classification="permanent")
    one(db, "ff_replay_execution", execution_id=lease["execution_id"])


def after_replay_of_a_success(db, clock, lease):
    one(db, "ff_complete", handle=lease["handle"])
    one(db, "ff_replay_execution", execution_id=lease["execution_id"])


def after_revocation(db, clock, lease):
    one(db, "ff_revoke_lease", execution_id=lease["execution_id"])


@pytest.mark.parametrize(
    ("pause", "kind", "attempt"),
    [
        (after_retry, "fresh", 1),
        (after_crash, "reclaimed", 1),
        (after_revocation, "reclaimed", 1),
        (after_delay, "resumed", 0),
        (after_replay_of_a_failure, "fresh", 1),
        (after_replay_of_a_success, "fresh", 1),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_who_carries_the_work_on_gets_what_was_recorded(db, clock, pause, kind, attempt):
    clock.freeze()
    eid = create(db, policy=RETRIES)
    lease = take(db)
    first = record(db, lease, "a", b"1", "x")
    pause(db, clock, lease)
    again = take(db, worker="v")
    assert (again["handle_kind"], again["attempt_index"]) == (kind, attempt)
    assert steps(db, eid) == [("a", b"1")]
    assert record(db, again, "a", b"2", "y") == {**first, "outcome": "already_recorded"}
    assert record(db, again, "b", b"3")["attempt_index"] == attempt
    assert steps(db, eid) == [("a", b"1"), ("b", b"3")]
    assert violations(db) == []


def test_a_suspended_execution_finds_its_steps_when_it_resumes(db):
    eid = create(db)
    lease = take(db)
    record(db, lease, "a", b"1")
    condition = {"kind": "operator_only"}
    one(
        db,
        "ff_suspend",
        handle=lease["handle"],
        reason_code="manual_pause",
        condition=condition,
        waitpoints=Jsonb([]),
    )
    with refused("execution_not_active"):
        record(db, lease, "b")
    one(db, "ff_resume_execution", execution_id=eid)
    again = take(db)
    assert again["handle_kind"] == "resumed"
    assert record(db, again, "a", b"2")["result"] == b"1"
    with refused("stale_lease"):
        record(db, lease, "a", b"1")


# --- the fence ---


def test_a_stale_worker_records_nothing(db, clock):
    clock.freeze()
    eid = create(db)
    stale = take(db)
    after_crash(db, clock, stale)
    with refused("lease_expired"):
        record(db, stale, "a", b"1")
    fresh = take(db, worker="v")
    with refused("stale_lease"):
        record(db, stale, "a", b"1")
    assert steps(db, eid) == []
    assert record(db, fresh, "a", b"2")["outcome"] == "recorded"
    with refused("stale_lease"):
        record(db, stale, "a", b"2")


def test_a_revoked_lease_and_an_ended_execution_record_nothing(db):
    eid = create(db)
    lease = take(db)
    one(db, "ff_revoke_lease", execution_id=eid)
    with refused("lease_revoked"):
        record(db, lease, "a")
    lease = take(db, worker="v")
    one(db, "ff_complete", handle=lease["handle"])
    with refused("execution_not_active"):
        record(db, lease, "a")
    assert steps(db, eid) == []


def test_an_unknown_execution_has_no_steps_and_gets_none(db):
    missing = uuid.UUID("018f3a2e-7b6c-7d1e-9f00-aabbccddee07")
    assert rows(db, "ff_read_steps", execution_id=f"{{fp:7}}:{missing}") == []
    with refused("execution_not_found"):
        one(db, "ff_record_step", handle=f"ff1.{missing}.{missing}.{missing}.7.0.1", name="a")


# --- shape and limits ---


@pytest.mark.parametrize("name", [None, "", "x" * 513, "ä" * 257, "a\nb", "\x7f", "\x01"])
def test_a_name_has_1_to_512_bytes_and_no_control_characters(db, name):
    create(db)
    lease = take(db)
    with refused("invalid_input") as refusal:
        record(db, lease, name)
    assert refusal.detail["arg"] == "p_name"


@pytest.mark.parametrize("encoding", ["x" * 65, "\n"])
def test_an_encoding_is_a_short_label(db, encoding):
    create(db)
    lease = take(db)
    with refused("invalid_input") as refusal:
        record(db, lease, "a", b"1", encoding)
    assert refusal.detail["arg"] == "p_result_encoding"


def test_the_shape_is_checked_before_the_handle_and_the_handle_before_the_fence(db):
    create(db)
    lease = take(db)
    one(db, "ff_complete", handle=lease["handle"])
    with refused("invalid_input") as refusal:
        one(db, "ff_record_step", handle="x", name="")
    assert refusal.detail["arg"] == "p_name"
    with refused("invalid_handle"):
        one(db, "ff_record_step", handle="x", name="a")
    with refused("invalid_input") as refusal:
        one(db, "ff_record_step", handle=None, name="a")
    assert refusal.detail["arg"] == "p_handle"


def test_a_result_may_have_a_mebibyte_and_no_more(db):
    eid = create(db)
    lease = take(db)
    limit = 1024 * 1024
    assert record(db, lease, "a", b"x" * limit)["outcome"] == "recorded"
    with refused("payload_too_large") as refusal:
        record(db, lease, "b", b"x" * (limit + 1))
    assert refusal.detail == {"kind": "payload_too_large", "size": limit + 1, "limit": limit}
    assert [name for name, _ in steps(db, eid)] == ["a"]
    one(db, "ff_set_setting", name="max_step_result_bytes", value="3")
    with refused("payload_too_large"):
        record(db, lease, "b", b"1234")
    assert record(db, lease, "b", b"123")["outcome"] == "recorded"


def test_an_execution_has_a_limited_number_of_steps_and_keeps_those_it_has(db):
    eid = create(db)
    lease = take(db)
    one(db, "ff_set_setting", name="max_steps_per_execution", value="2")
    record(db, lease, "a", b"1")
    record(db, lease, "b", b"2")
    with refused("step_limit_exceeded") as refusal:
        record(db, lease, "c")
    assert refusal.error.sqlstate == "WF604"
    assert refusal.detail == {"kind": "step_limit_exceeded", "execution_id": eid, "limit": 2}
    assert record(db, lease, "a", b"1")["outcome"] == "already_recorded"
    assert steps(db, eid) == [("a", b"1"), ("b", b"2")]


# --- reading ---


def test_steps_are_read_page_by_page_in_the_order_of_recording(db):
    eid = create(db)
    lease = take(db)
    names = [f"step {9 - n % 10} of {n}" for n in range(25)]
    for name in names:
        record(db, lease, name)
    seen, after = [], None
    while page := rows(db, "ff_read_steps", execution_id=eid, after=after, limit=10):
        assert len(page) == min(10, 25 - len(seen))
        seen += [step["name"] for step in page]
        after = page[-1]["cursor"]
    assert seen == names
    assert rows(db, "ff_read_steps", execution_id=eid, limit=0) == []


def test_an_execution_id_under_a_wrong_partition_has_no_steps(db):
    eid = create(db)
    record(db, take(db), "a")
    partition, _, bare = eid.partition(":")[2].partition("}:")
    assert rows(db, "ff_read_steps", execution_id=f"{{fp:{(int(partition) + 1) % 256}}}:{bare}") == []


@pytest.mark.parametrize("after", ["", "0", "01", "-1", "x", "1 ", "1\n", "٧", "9" * 10])
def test_a_malformed_cursor_is_refused(db, after):
    eid = create(db)
    with refused("invalid_cursor"):
        rows(db, "ff_read_steps", execution_id=eid, after=after)


def test_a_bad_limit_or_id_is_refused(db):
    eid = create(db)
    for limit in (-1, 1001, None):
        with refused("invalid_input"):
            rows(db, "ff_read_steps", execution_id=eid, limit=limit)
    with refused("invalid_execution_id"):
        rows(db, "ff_read_steps", execution_id="x")
    with refused("invalid_input"):
        rows(db, "ff_read_steps", execution_id=None)


# --- forgetting ---


def ended(db, *names):
    eid = create(db)
    lease = take(db)
    for name in names:
        record(db, lease, name)
    one(db, "ff_fail", handle=lease["handle"], classification="permanent")
    return eid


def test_an_operator_forgets_all_steps_and_a_replay_does_them_again(db):
    eid = ended(db, "a", "b")
    assert one(db, "ff_forget_steps", execution_id=eid) == {"forgotten": 2}
    assert one(db, "ff_forget_steps", execution_id=eid) == {"forgotten": 0}
    one(db, "ff_replay_execution", execution_id=eid)
    assert record(db, take(db), "a", b"new")["outcome"] == "recorded"
    assert steps(db, eid) == [("a", b"new")]
    assert violations(db) == []


def test_an_operator_forgets_a_step_and_those_after_it(db):
    eid = ended(db, "c", "b", "a")
    assert one(db, "ff_forget_steps", execution_id=eid, **{"from": "b"}) == {"forgotten": 2}
    assert steps(db, eid) == [("c", None)]
    one(db, "ff_replay_execution", execution_id=eid)
    record(db, take(db), "b", b"new")
    assert steps(db, eid) == [("c", None), ("b", b"new")]
    assert violations(db) == []


def test_only_steps_that_exist_of_executions_that_ended_are_forgotten(db):
    eid = ended(db, "a")
    with refused("invalid_input") as refusal:
        one(db, "ff_forget_steps", execution_id=eid, **{"from": "b"})
    assert refusal.detail["arg"] == "p_from"
    with refused("execution_not_terminal"):
        one(db, "ff_forget_steps", execution_id=create(db))
    with refused("execution_not_found"):
        one(db, "ff_forget_steps", execution_id="{fp:7}:018f3a2e-7b6c-7d1e-9f00-aabbccddee07")
    with refused("invalid_execution_id"):
        one(db, "ff_forget_steps", execution_id="x")
    assert steps(db, eid) == [("a", None)]


# --- retention and soundness ---


def test_steps_go_with_their_execution_and_no_others(db, clock):
    clock.freeze()
    for name in ("a", "b", "c"):
        ended(db, name, "x")
    one(db, "ff_create_flow", flow_id=(flow := uuid.uuid4()), flow_kind="f")
    member = create(db, flow_id=flow)
    lease = take(db)
    record(db, lease, "m")
    one(db, "ff_complete", handle=lease["handle"])
    kept = create(db)
    record(db, take(db), "k")
    clock.advance(30 * 86_400_000)
    assert one(db, "ff_trim_retention")["processed"] == 4
    assert steps(db, member) == []
    assert [row["name"] for row in table(db, "select name from ff_step")] == ["k"]
    assert steps(db, kept) == [("k", None)]
    assert violations(db) == []


@pytest.mark.parametrize(
    ("damage", "invariant"),
    [
        ("update ff_step set execution_id = '018f3a2e-7b6c-7d1e-9f00-aabbccddee07'", "step_orphan"),
        ("update ff_step set ordinal = 3 where ordinal = 2", "step_order"),
        ("delete from ff_step where name = 'a'", "step_order"),
        ("update ff_step set lease_epoch = lease_epoch + 1", "step_attempt"),
        ("update ff_step set attempt_index = 7", "step_attempt"),
        ("update ff_step set lease_epoch = 0 where name = 'b'", "step_lease"),
    ],
)
def test_a_broken_record_is_found(db, damage, invariant):
    create(db)
    lease = take(db)
    record(db, lease, "a")
    record(db, lease, "b")
    assert violations(db) == []
    db.execute(damage)
    assert {v["invariant"] for v in violations(db)} == {invariant}


def test_an_unclaimed_execution_stays_unclaimed_by_reading_its_steps(db):
    eid = create(db)
    assert rows(db, "ff_read_steps", execution_id=eid) == []
    assert claim(db)["execution_id"] == eid
