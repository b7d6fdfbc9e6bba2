"""ff_create_executions, ff_claim_many, ff_complete_many, ff_renew_many: same results as single calls."""

import random

import pytest

from tests.sql import claim, create, events, execution, one, refused, rows, table, take, violations

WORKER = {"lane_id": "default", "worker_id": "w", "worker_instance_id": "w-1"}


def submit(db, payloads, **args):
    return rows(db, "ff_create_executions", **{"lane_id": "default", "payloads": payloads, **args})


def take_many(db, limit=10, **args):
    return rows(db, "ff_claim_many", **{**WORKER, "limit": limit, **args})


def test_a_batch_is_submitted_in_its_order(db, clock):
    clock.freeze()
    answer = submit(
        db, [b"a", b"b", None], priorities=[5, None, 10**6], tags={"a.b": "c"}, execution_kind="k"
    )
    assert [row["ordinal"] for row in answer] == [1, 2, 3]
    assert {row["outcome"] for row in answer} == {"created"}
    assert {row["public_state"] for row in answer} == {"waiting"}
    assert [execution(db, row["execution_id"])["priority"] for row in answer] == [5, 0, 9000]
    stored = {str(row["execution_id"]): row for row in table(db, "select * from ff_exec_input")}
    for row, payload in zip(answer, [b"a", b"b", None], strict=True):
        found = stored[row["execution_id"].split("}:")[1]]
        assert (found["payload"], found["tags"], found["execution_kind"]) == (payload, {"a.b": "c"}, "k")
    assert violations(db) == []


def test_a_batch_is_handed_out_in_its_order(db, clock):
    clock.freeze()
    payloads = [str(n).encode() for n in range(50)]
    submit(db, payloads)
    assert [row["payload"] for row in take_many(db, 50)] == payloads


def test_a_batch_stores_what_single_calls_would(db, clock):
    now = clock.freeze()
    options = {
        "policy": {"priority": 3, "retention_ms": 5, "timeout_policy": {"execution_deadline_ms": 100}},
        "required_capabilities": ["x"],
        "delay_ms": 10,
        "namespace": "n",
        "creator": "me",
        "payload_encoding": "e",
    }
    (many,) = submit(db, [b"p"], **options)
    single = create(db, payload=b"p", **options)
    ids = {"execution_id", "partition_key", "current_attempt_id", "rank"}
    first, second = execution(db, many["execution_id"]), execution(db, single)
    assert {k: v for k, v in first.items() if k not in ids} == {
        k: v for k, v in second.items() if k not in ids
    }
    inputs = table(db, "select * from ff_exec_input")
    assert {k: v for k, v in inputs[0].items() if k != "execution_id"} == {
        k: v for k, v in inputs[1].items() if k != "execution_id"
    }
    assert many["public_state"] == "delayed"
    assert first["deadline_at_ms"] == now + 100


def test_keys_of_a_batch_are_honoured_inside_it_and_against_what_exists(db):
    existing = create(db, idempotency_key="old", payload=b"1")
    answer = submit(db, [b"1", b"2", b"2", b"3", b"3"], idempotency_keys=["old", "new", "new", None, ""])
    assert [row["outcome"] for row in answer] == ["duplicate", "created", "duplicate", "created", "created"]
    assert answer[0]["execution_id"] == existing
    assert answer[1]["execution_id"] == answer[2]["execution_id"]
    assert len({row["execution_id"] for row in answer}) == 4
    assert violations(db) == []


@pytest.mark.parametrize(("payloads", "keys"), [([b"1", b"2"], ["k", "k"]), ([b"x"], ["old"])])
def test_a_key_of_a_different_request_refuses_the_whole_batch(db, payloads, keys):
    create(db, idempotency_key="old", payload=b"1")
    with refused("idempotency_conflict"):
        submit(db, [b"0", *payloads], idempotency_keys=["fresh", *keys])
    assert len(table(db, "select * from ff_exec_core")) == 1
    assert len(table(db, "select * from ff_idempotency")) == 1


def test_a_lapsed_key_is_taken_over_by_a_batch(db, clock):
    clock.freeze()
    create(db, idempotency_key="k", payload=b"old", policy={"dedup_window_ms": 10})
    clock.advance(10)
    (row,) = submit(db, [b"new"], idempotency_keys=["k"])
    assert row["outcome"] == "created"
    assert violations(db) == []


@pytest.mark.parametrize(
    "args",
    [
        {"payloads": None},
        {"payloads": [b""] * 10_001},
        {"payloads": [b"", b""], "idempotency_keys": ["k"]},
        {"payloads": [b"", b""], "priorities": [1, 2, 3]},
        {"payloads": [b""], "idempotency_keys": ["x" * 513]},
        {"payloads": [b""], "namespace": ""},
        {"payloads": [b""], "delay_ms": -1},
    ],
)
def test_a_bad_batch_is_refused_whole(db, args):
    with refused("invalid_input"):
        submit(db, **args)
    assert table(db, "select * from ff_exec_core") == []


def test_an_empty_batch_is_fine(db):
    assert submit(db, []) == []
    assert rows(db, "ff_complete_many", handles=[]) == []
    assert rows(db, "ff_renew_many", handles=[]) == []


def test_a_closed_lane_takes_no_batch_but_answers_its_duplicates(db):
    submit(db, [b"1"], idempotency_keys=["k"])
    db.execute("update ff_lane_registry set state = 'draining'")
    with refused("lane_not_accepting"):
        submit(db, [b"1", b"2"], idempotency_keys=["k", "l"])
    assert [row["outcome"] for row in submit(db, [b"1"], idempotency_keys=["k"])] == ["duplicate"]


def test_many_are_claimed_in_the_order_of_single_claims(db, clock):
    clock.freeze()
    wanted = []
    for n in range(8):
        wanted.append((-(n % 3), n, create(db, priority=n % 3, required_capabilities=[["x"], []][n % 2])))
        clock.advance(1)
    got = take_many(db, 5, capabilities=["x"]) + take_many(db, 5, capabilities=["x"])
    assert [row["execution_id"] for row in got] == [eid for _, _, eid in sorted(wanted)]
    assert violations(db) == []


@pytest.mark.parametrize("sets", [1, 5, 15, 16, 20])
@pytest.mark.parametrize("single", [False, True])
def test_one_order_holds_over_any_number_of_sets(db, clock, sets, single):
    clock.freeze()
    draw = random.Random(sets)
    wanted = []
    for n in range(60):
        needs = [f"set{draw.randrange(sets)}"] if draw.random() < 0.9 else []
        priority = draw.choice([0, 0, 0, 5, 9000])
        eid = create(db, priority=priority, required_capabilities=needs)
        wanted.append((-priority, n, eid))
        clock.advance(int(n % 3 == 2))
    able = {"capabilities": [f"set{n}" for n in range(sets)]}
    got = []
    while more := [take(db, **able)] if single and len(got) < 60 else take_many(db, 7, **able):
        got += more
    assert [row["execution_id"] for row in got] == [eid for *_, eid in sorted(wanted)]
    assert violations(db) == []


@pytest.mark.parametrize("sets", [2, 20])
def test_what_others_hold_is_stepped_over_in_every_set(db, connect, sets):
    able = {"capabilities": [f"set{n}" for n in range(sets)]}
    waiting = [create(db, required_capabilities=[f"set{n % sets}"]) for n in range(60)]
    other = connect(autocommit=False)
    held = {row["execution_id"] for row in take_many(other, 45, **able)}
    db.execute("set statement_timeout = '10s'")
    got = [row["execution_id"] for row in take_many(db, 60, **able)]
    assert len(held) == 45
    assert sorted([*held, *got]) == sorted(waiting)
    other.rollback()


def test_a_row_of_a_batch_claim_is_that_of_a_single_claim(db, clock):
    clock.freeze()
    for _ in range(2):
        create(
            db,
            payload=b"p",
            tags={"a.b": "c"},
            policy={"timeout_policy": {"attempt_timeout_ms": 50}},
            priority=2,
        )
    single = take(db)
    (many,) = take_many(db, 1)
    own = {"handle", "execution_id", "attempt_id", "lease_id"}
    assert {k: v for k, v in many.items() if k not in own} == {
        k: v for k, v in single.items() if k not in own
    }
    assert one(db, "ff_handle_decode", handle=many["handle"])["lease_id"] == many["lease_id"]
    first, second = (execution(db, row["execution_id"]) for row in (single, many))
    own = {"execution_id", "partition_key", "current_attempt_id", "lease_id", "rank"}
    assert {k: v for k, v in first.items() if k not in own} == {
        k: v for k, v in second.items() if k not in own
    }
    assert events(db, many["execution_id"]) == ["lease/acquired"]


def test_a_batch_claim_resumes_reclaims_and_applies_overdue_transitions(db, clock):
    now = clock.freeze()
    crashed = create(db, priority=9)
    take(db, lease_ttl_ms=10)
    paused = create(db, priority=8)
    one(db, "ff_delay", handle=take(db)["handle"], delay_ms=5)
    late = create(db, priority=7, deadline_at_ms=now + 10)
    fresh = create(db, priority=6)
    clock.advance(10)
    got = take_many(db, 10)
    assert [(row["execution_id"], row["handle_kind"]) for row in got] == [
        (crashed, "reclaimed"),
        (paused, "resumed"),
        (fresh, "fresh"),
    ]
    assert execution(db, late)["public_state"] == "expired"
    assert violations(db) == []


def test_rows_with_overdue_transitions_do_not_use_up_the_limit(db, clock):
    now = clock.freeze()
    for _ in range(5):
        create(db, priority=9, deadline_at_ms=now + 10)
    wanted = {create(db) for _ in range(3)}
    clock.advance(10)
    assert {row["execution_id"] for row in take_many(db, 3)} == wanted


@pytest.mark.parametrize("limit", [-1, 1001, None])
def test_a_limit_out_of_range_is_refused(db, limit):
    create(db)
    with refused("invalid_input"):
        take_many(db, limit)


def test_a_limit_of_zero_claims_nothing(db):
    create(db)
    assert take_many(db, 0) == []


def test_an_empty_batch_claim_arms_the_lane(db):
    create(db)
    take(db)
    assert take_many(db, 3) == []
    assert table(db, "select wake_armed from ff_lane_registry") == [{"wake_armed": True}]


def test_a_batch_completes_each_handle_on_its_own(db, clock):
    clock.freeze()
    for _ in range(4):
        create(db)
    leases = take_many(db, 4)
    one(db, "ff_complete", handle=leases[1]["handle"], result=b"first")
    one(db, "ff_cancel_execution", execution_id=leases[2]["execution_id"])
    handles = [
        leases[0]["handle"],
        leases[1]["handle"],
        leases[2]["handle"],
        "junk",
        None,
        leases[3]["handle"],
    ]
    clock.advance(5)
    answer = rows(db, "ff_complete_many", handles=handles, results=[b"0", b"1", b"2", b"3", b"4", b"5"])
    assert [row["ordinal"] for row in answer] == [1, 2, 3, 4, 5, 6]
    assert [(row["outcome"], row["replayed"], row["error_kind"]) for row in answer] == [
        ("completed", False, None),
        ("completed", True, None),
        ("refused", False, "execution_not_active"),
        ("refused", False, "invalid_handle"),
        ("refused", False, "invalid_input"),
        ("completed", False, None),
    ]
    assert answer[0]["terminal_at_ms"] == clock.now()
    assert answer[1]["terminal_at_ms"] == clock.now() - 5
    results = [
        one(db, "ff_get_execution_result", execution_id=lease["execution_id"])["result"] for lease in leases
    ]
    assert results == [b"0", b"first", None, b"5"]
    assert events(db, leases[0]["execution_id"]) == [
        "lease/acquired",
        "lease/released:complete",
        "completion/success",
    ]
    assert violations(db) == []


def test_a_batch_completion_stores_what_a_single_one_does(db, clock):
    clock.freeze()
    create(db)
    create(db)
    first, second = take_many(db, 2)
    one(db, "ff_complete", handle=first["handle"], result=b"r", result_encoding="e")
    rows(db, "ff_complete_many", handles=[second["handle"]], results=[b"r"], result_encoding="e")
    own = {"execution_id", "partition_key", "rank"}
    one_, many = (execution(db, row["execution_id"]) for row in (first, second))
    assert {k: v for k, v in one_.items() if k not in own} == {k: v for k, v in many.items() if k not in own}
    own |= {"attempt_id", "lease_id", "release_lease_id"}
    attempts = table(db, "select * from ff_attempt")
    assert {k: v for k, v in attempts[0].items() if k not in own} == {
        k: v for k, v in attempts[1].items() if k not in own
    }


def test_a_handle_given_twice_completes_once_and_is_a_replay_then(db):
    create(db)
    handle = take(db)["handle"]
    answer = rows(db, "ff_complete_many", handles=[handle, handle], results=[b"1", b"2"])
    assert [row["replayed"] for row in answer] == [False, True]
    assert table(db, "select result from ff_attempt") == [{"result": b"1"}]
    assert violations(db) == []


@pytest.mark.parametrize("order", [1, -1])
def test_an_earlier_lease_is_refused_beside_the_one_that_completes(db, clock, order):
    """A worker that was frozen beyond its lease claims its own work again, and completes both at once."""
    clock.freeze()
    create(db)
    earlier = take(db, lease_ttl_ms=1000)
    clock.advance(1001)
    (later,) = take_many(db)
    assert later["execution_id"] == earlier["execution_id"]
    handles = [earlier["handle"], later["handle"]][::order]
    answer = rows(db, "ff_complete_many", handles=handles, results=[b"a", b"b"][::order])
    assert [(row["outcome"], row["error_kind"]) for row in answer][::order] == [
        ("refused", "execution_not_active"),
        ("completed", None),
    ]
    assert one(db, "ff_get_execution_result", execution_id=later["execution_id"])["result"] == b"b"
    assert violations(db) == []


def test_of_two_leases_on_one_execution_the_one_that_is_over_is_refused(db, clock):
    clock.freeze()
    create(db)
    create(db)
    old, other = take_many(db, 2, lease_ttl_ms=10)
    one(db, "ff_renew", handle=other["handle"], lease_ttl_ms=1000)
    clock.advance(10)
    new = claim(db)
    assert new["execution_id"] == old["execution_id"]
    handles = [old["handle"], new["handle"], other["handle"]]
    renewed = rows(db, "ff_renew_many", handles=handles)
    completed = rows(db, "ff_complete_many", handles=handles, results=[b"old", b"new", b"other"])
    assert [row["error_kind"] for row in renewed] == ["stale_lease", None, None]
    assert [row["error_kind"] for row in completed] == ["execution_not_active", None, None]
    assert {row["result"] for row in table(db, "select result from ff_attempt")} == {None, b"new", b"other"}
    assert violations(db) == []


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize(
    "change", [{"lease_epoch": 2}, {"attempt_id": "018f3a2e-7b6c-7d1e-9f00-aabbccddee07"}]
)
def test_a_fence_that_names_only_the_lease_is_refused_beside_the_one_that_holds(db, change, order):
    create(db)
    handle = take(db)["handle"]
    fence = one(db, "ff_handle_decode", handle=handle)
    other = one(db, "ff_handle_encode", **{**fence, **change})["handle"]
    answer = rows(db, "ff_complete_many", handles=[handle, other][::order])
    assert [(row["outcome"], row["error_kind"]) for row in answer][::order] == [
        ("completed", None),
        ("refused", "execution_not_active"),
    ]
    assert violations(db) == []


def test_of_a_handle_given_twice_the_result_that_fits_completes(db):
    one(db, "ff_set_setting", name="max_execution_bytes", value="1024")
    create(db)
    handle = take(db)["handle"]
    answer = rows(db, "ff_complete_many", handles=[handle, handle], results=[b"1" * 1025, b"2"])
    assert [(row["outcome"], row["error_kind"], row["replayed"]) for row in answer] == [
        ("refused", "payload_too_large", False),
        ("completed", None, False),
    ]
    assert table(db, "select result from ff_attempt") == [{"result": b"2"}]


def test_lapsed_stale_and_revoked_leases_are_refused_in_a_batch(db, clock):
    clock.freeze()
    for _ in range(3):
        create(db)
    lapsed, stale, revoked = take_many(db, 3, lease_ttl_ms=10)
    one(db, "ff_renew", handle=revoked["handle"], lease_ttl_ms=1000)
    one(db, "ff_revoke_lease", execution_id=revoked["execution_id"])
    one(db, "ff_renew", handle=lapsed["handle"], lease_ttl_ms=20)
    clock.advance(10)
    while (row := claim(db)) and row["execution_id"] != stale["execution_id"]:
        pass
    clock.advance(10)
    handles = [lapsed["handle"], stale["handle"]]
    for function in ("ff_complete_many", "ff_renew_many"):
        answer = rows(db, function, handles=handles)
        assert [r["error_kind"] for r in answer] == ["lease_expired", "stale_lease"]
    assert {r["outcome"] for r in rows(db, "ff_renew_many", handles=[revoked["handle"]])} == {"refused"}
    assert violations(db) == []


def test_all_leases_of_a_worker_are_renewed_by_one_call(db, clock):
    now = clock.freeze()
    create(db, priority=1)
    create(db, deadline_at_ms=now + 700)
    leases = take_many(db, 2, lease_ttl_ms=1000)
    clock.advance(500)
    handles = [leases[0]["handle"], "junk", leases[1]["handle"], leases[0]["handle"]]
    answer = rows(db, "ff_renew_many", handles=handles)
    assert [(r["ordinal"], r["outcome"], r["lease_expires_at_ms"], r["error_kind"]) for r in answer] == [
        (1, "renewed", now + 1500, None),
        (2, "refused", None, "invalid_handle"),
        (3, "renewed", now + 700, None),
        (4, "renewed", now + 1500, None),
    ]
    assert events(db, leases[0]["execution_id"]) == ["lease/acquired", "lease/renewed"]
    assert violations(db) == []


@pytest.mark.parametrize("function", ["ff_complete_many", "ff_renew_many"])
@pytest.mark.parametrize("handles", [None, ["x"] * 1001])
def test_a_list_of_handles_out_of_range_is_refused(db, function, handles):
    with refused("invalid_input"):
        rows(db, function, handles=handles)


def test_results_must_match_handles(db):
    with refused("invalid_input"):
        rows(db, "ff_complete_many", handles=["x"], results=[b"1", b"2"])
    with refused("invalid_input"):
        rows(db, "ff_renew_many", handles=["x"], lease_ttl_ms=0)
