"""ff_create_execution: its arguments and their effects."""

import uuid

import pytest

from tests.sql import claim, create, execution, one, refused, table, take, violations

DAY = 86_400_000


def submit(db, **args):
    return one(db, "ff_create_execution", **{"lane_id": "default", **args})


def count(db):
    return table(db, "select count(*) as n from ff_exec_core")[0]["n"]


def test_a_plain_execution_waits_for_a_worker(db, clock):
    now = clock.freeze()
    answer = submit(db, execution_kind="mail", payload=b"\x00\xff", tags={"app.user": "7"}, creator="me")
    assert (answer["outcome"], answer["public_state"], answer["created_at_ms"]) == ("created", "waiting", now)
    row = execution(db, answer["execution_id"])
    assert row["lifecycle_phase"] == "runnable"
    assert row["ownership_state"] == "unowned"
    assert row["eligibility_state"] == "eligible_now"
    assert row["blocking_reason"] == "waiting_for_worker"
    assert row["terminal_outcome"] == "none"
    assert row["attempt_state"] == "pending_first_attempt"
    assert row["lease_epoch"] == row["total_attempt_count"] == 0
    assert row["current_attempt_index"] is None
    (stored,) = table(db, "select * from ff_exec_input")
    assert (stored["payload"], stored["execution_kind"], stored["creator"]) == (b"\x00\xff", "mail", "me")
    assert stored["tags"] == {"app.user": "7"}
    assert table(db, "select * from ff_event") == []
    assert violations(db) == []


def test_an_unknown_lane_is_registered_as_active(db):
    create(db, "mail")
    (lane,) = table(db, "select * from ff_lane_registry")
    assert (lane["lane_id"], lane["state"], lane["registered_by"]) == ("mail", "active", "create_execution")


@pytest.mark.parametrize("lane", ["", "x" * 65, "tab\tbed", "naïve", "\x7f"])
def test_a_bad_lane_id_is_refused(db, lane):
    with refused("invalid_lane_id"):
        submit(db, lane_id=lane)
    assert table(db, "select * from ff_lane_registry") == []


@pytest.mark.parametrize("lane", ["x", "x" * 64, "a b~!/:"])
def test_any_printable_ascii_makes_a_lane_id(db, lane):
    assert submit(db, lane_id=lane)["outcome"] == "created"


@pytest.mark.parametrize(
    "args",
    [
        {"lane_id": None},
        {"namespace": None},
        {"namespace": ""},
        {"namespace": "x" * 65},
        {"namespace": "a\nb"},
        {"execution_kind": None},
        {"execution_kind": "x" * 129},
        {"execution_kind": "a\x01b"},
        {"creator": None},
        {"creator": "x" * 257},
        {"payload_encoding": "x" * 65},
        {"idempotency_key": "x" * 513},
        {"policy": None},
        {"tags": None},
        {"tags": {"a.b": 1}},
        {"tags": {"a.b": None}},
        {"tags": {"a.b": "x" * 4097}},
        {"tags": {f"a.k{n}": "" for n in range(65)}},
        {"required_capabilities": None},
        {"delay_until_ms": 1, "delay_ms": 1},
        {"delay_ms": -1},
        {"delay_ms": 2**63 - 1},
        {"deadline_at_ms": 0},
        {"deadline_at_ms": -(2**63)},
    ],
)
def test_input_out_of_range_is_invalid_input_and_stores_nothing(db, args):
    with refused("invalid_input") as refusal:
        submit(db, **args)
    assert refusal.detail["arg"] in {f"p_{name}" for name in args}
    assert count(db) == 0


@pytest.mark.parametrize("tags", ["[]", '"x"', "1", "null"])
def test_tags_that_are_no_object_are_invalid_input(db, tags):
    with refused("invalid_input"):
        table(db, "select * from ff_create_execution('default', p_tags => %s::jsonb)", tags)


@pytest.mark.parametrize(
    "key", ["", "x", ".x", "a.", "A.b", "a.B", "1a.b", "a b.c", "a." + "x" * 127, "a.b\n"]
)
def test_a_bad_tag_key_is_refused(db, key):
    with refused("invalid_tag_key"):
        submit(db, tags={key: "v"})


@pytest.mark.parametrize("key", ["a.b", "a_1.b.c", "a.1", "a._", "a." + "x" * 126])
def test_a_tag_key_names_area_and_tag(db, key):
    assert submit(db, tags={key: "v"})["outcome"] == "created"


@pytest.mark.parametrize(
    ("tokens", "reason"),
    [
        ([""], "empty_token"),
        ([None], "null_token"),
        (["a,b"], "comma"),
        (["a b"], "space_or_control_character"),
        (["a\x7f"], "space_or_control_character"),
        ([f"t{n}" for n in range(257)], "too_many_tokens"),
        ([f"{n:01000d}" for n in range(5)], "too_long"),
    ],
)
def test_bad_capabilities_are_refused(db, tokens, reason):
    with refused("invalid_capabilities") as refusal:
        submit(db, required_capabilities=tokens)
    assert refusal.detail["reason"] == reason


def test_capabilities_of_argument_and_policy_are_united_sorted_and_distinct(db):
    submit(
        db,
        required_capabilities=["gpu", "eu", "gpu"],
        policy={"routing_requirements": {"required_capabilities": ["é", "eu", "GPU"]}},
    )
    (stored,) = table(db, "select * from ff_exec_input")
    assert stored["required_capabilities"] == ["GPU", "eu", "gpu", "é"]
    assert table(db, "select caps_key from ff_exec_core")[0]["caps_key"] == "GPU,eu,gpu,é"


def test_a_long_set_of_capabilities_is_keyed_by_its_hash(db):
    eid = create(db, required_capabilities=[f"token-{n:03}" for n in range(40)])
    key = execution(db, eid)["caps_key"]
    assert key.startswith(" ")
    assert len(key) == 65
    assert violations(db) == []


@pytest.mark.parametrize("tokens", ["x", [1], {"a": 1}, [None]])
def test_bad_capabilities_inside_the_policy_are_invalid_capabilities(db, tokens):
    with refused("invalid_capabilities"):
        submit(db, policy={"routing_requirements": {"required_capabilities": tokens}})


@pytest.mark.parametrize(
    ("policy", "path"),
    [
        ({"nonsense": 1}, "nonsense"),
        ({"priority": "high"}, "priority"),
        ({"priority": 1.5}, "priority"),
        ({"priority": 2**31}, "priority"),
        ({"retry_policy": []}, "retry_policy"),
        ({"retry_policy": {"max_retries": -1}}, "retry_policy.max_retries"),
        ({"retry_policy": {"max_retries": 1001}}, "retry_policy.max_retries"),
        ({"retry_policy": {"tries": 1}}, "retry_policy.tries"),
        ({"retry_policy": {"backoff": 5}}, "retry_policy.backoff"),
        ({"retry_policy": {"backoff": {"type": "linear"}}}, "retry_policy.backoff.type"),
        ({"retry_policy": {"backoff": {"type": "fixed"}}}, "retry_policy.backoff.delay_ms"),
        ({"retry_policy": {"backoff": {"type": "fixed", "delay_ms": -1}}}, "retry_policy.backoff.delay_ms"),
        (
            {"retry_policy": {"backoff": {"type": "fixed", "delay_ms": 1, "jitter": True}}},
            "retry_policy.backoff.jitter",
        ),
        ({"retry_policy": {"backoff": {"multiplier": 0.5}}}, "retry_policy.backoff.multiplier"),
        ({"retry_policy": {"backoff": {"jitter": "yes"}}}, "retry_policy.backoff.jitter"),
        ({"retry_policy": {"retryable_categories": "all"}}, "retry_policy.retryable_categories"),
        ({"retry_policy": {"retryable_categories": [1]}}, "retry_policy.retryable_categories"),
        ({"timeout_policy": {"attempt_timeout_ms": 0}}, "timeout_policy.attempt_timeout_ms"),
        ({"timeout_policy": {"execution_deadline_ms": 0}}, "timeout_policy.execution_deadline_ms"),
        ({"timeout_policy": {"x": 1}}, "timeout_policy.x"),
        ({"max_reclaim_count": -1}, "max_reclaim_count"),
        ({"dedup_window_ms": 10**30}, "dedup_window_ms"),
        ({"retention_ms": -5}, "retention_ms"),
        ({"budget_ids": "b"}, "budget_ids"),
        ({"budget_ids": [f"b{n}" for n in range(17)]}, "budget_ids"),
        ({"quota_policy_id": 7}, "quota_policy_id"),
        ({"routing_requirements": {"region": "eu"}}, "routing_requirements.region"),
        ({"suspension_policy": 5}, "suspension_policy"),
        ({"stream_policy": {"maxlen": 0}}, "stream_policy.maxlen"),
        ({"max_signals_per_execution": True}, "max_signals_per_execution"),
    ],
)
def test_a_policy_is_checked_at_every_level(db, policy, path):
    with refused("invalid_policy") as refusal:
        submit(db, policy=policy)
    assert refusal.detail["path"] == path
    assert count(db) == 0


@pytest.mark.parametrize("policy", ["[]", '"x"', "1", "null"])
def test_a_policy_that_is_no_object_is_refused(db, policy):
    with refused("invalid_policy"):
        table(db, "select * from ff_create_execution('default', p_policy => %s::jsonb)", policy)


def test_a_policy_is_stored_with_its_defaults_and_without_its_nulls(db):
    submit(
        db,
        policy={
            "retry_policy": {"backoff": None},
            "timeout_policy": {"attempt_timeout_ms": 5, "max_reclaim_count": 3},
            "retention_ms": None,
        },
    )
    (stored,) = table(db, "select policy from ff_exec_input")
    assert stored["policy"] == {
        "retry_policy": {
            "max_retries": 3,
            "backoff": {
                "type": "exponential",
                "initial_delay_ms": 1000,
                "max_delay_ms": 60000,
                "multiplier": 2,
                "jitter": False,
            },
            "retryable_categories": [],
        },
        "timeout_policy": {"attempt_timeout_ms": 5},
        "max_reclaim_count": 3,
        "max_replay_count": 10,
        "dedup_window_ms": 7 * DAY,
        "max_signals_per_execution": 10000,
    }


def test_the_empty_policy_is_stored_with_its_defaults(db):
    create(db)
    (stored,) = table(db, "select policy from ff_exec_input")
    assert stored["policy"]["max_reclaim_count"] == 100
    assert "retry_policy" not in stored["policy"]


def test_the_top_level_reclaim_cap_wins(db):
    submit(db, policy={"max_reclaim_count": 7, "timeout_policy": {"max_reclaim_count": 3}})
    assert table(db, "select policy from ff_exec_input")[0]["policy"]["max_reclaim_count"] == 7


def test_unknown_quota_policies_and_budgets_are_not_found(db):
    with refused("quota_policy_not_found"):
        submit(db, policy={"quota_policy_id": "q"})
    with refused("budget_not_found"):
        submit(db, policy={"budget_ids": ["b"]})
    assert count(db) == 0


def test_an_unknown_flow_is_not_found(db):
    with refused("flow_not_found"):
        submit(db, flow_id=uuid.uuid4())


@pytest.mark.parametrize(
    ("argument", "policy", "stored"),
    [
        (None, None, 0),
        (5, None, 5),
        (None, 7, 7),
        (5, 7, 5),
        (-3, None, 0),
        (10**9, None, 9000),
        (None, 10**9, 9000),
    ],
)
def test_priority_comes_from_the_argument_then_the_policy_and_is_clamped(db, argument, policy, stored):
    eid = create(db, priority=argument, policy={} if policy is None else {"priority": policy})
    assert execution(db, eid)["priority"] == stored


def test_a_delay_keeps_the_execution_from_workers_until_it_is_due(db, clock):
    now = clock.freeze()
    answer = submit(db, delay_ms=1000)
    assert answer["public_state"] == "delayed"
    row = execution(db, answer["execution_id"])
    assert (row["eligibility_state"], row["blocking_reason"]) == (
        "not_eligible_until_time",
        "waiting_for_delay",
    )
    assert row["delay_until_ms"] == now + 1000
    clock.advance(999)
    assert claim(db) is None
    clock.advance(1)
    assert take(db)["execution_id"] == answer["execution_id"]
    assert violations(db) == []


def test_a_delay_that_is_over_is_no_delay(db, clock):
    now = clock.freeze()
    for args in ({"delay_until_ms": now}, {"delay_until_ms": -5}, {"delay_ms": 0}):
        answer = submit(db, **args)
        assert answer["public_state"] == "waiting"
        assert execution(db, answer["execution_id"])["delay_until_ms"] is None


def test_the_policy_can_delay_and_the_argument_wins(db, clock):
    now = clock.freeze()
    assert submit(db, policy={"delay_until_ms": now + 5})["public_state"] == "delayed"
    assert submit(db, policy={"delay_until_ms": now + 5}, delay_ms=0)["public_state"] == "waiting"


def test_a_deadline_comes_from_the_argument_or_as_a_duration_from_the_policy(db, clock):
    now = clock.freeze()
    policy = {"timeout_policy": {"execution_deadline_ms": 500}}
    assert execution(db, create(db, deadline_at_ms=now + 9))["deadline_at_ms"] == now + 9
    assert execution(db, create(db, policy=policy))["deadline_at_ms"] == now + 500
    assert execution(db, create(db, policy=policy, deadline_at_ms=now + 9))["deadline_at_ms"] == now + 9
    with refused("invalid_input"):
        submit(db, deadline_at_ms=now)
    with refused("invalid_input"):
        submit(db, deadline_at_ms=now + 5, delay_ms=5)


def test_a_repeated_key_answers_duplicate_with_the_execution_and_its_state(db):
    first = submit(db, idempotency_key="k", payload=b"1")
    take(db)
    again = submit(db, idempotency_key="k", payload=b"1")
    assert again == {**first, "outcome": "duplicate", "public_state": "active"}
    assert count(db) == 1


@pytest.mark.parametrize(
    "change", [{"payload": b"2"}, {"execution_kind": "x"}, {"payload_encoding": "json"}, {"payload": None}]
)
def test_a_key_of_a_different_request_is_a_conflict(db, change):
    first = submit(db, idempotency_key="k", payload=b"1")
    with refused("idempotency_conflict") as refusal:
        submit(db, **{"idempotency_key": "k", "payload": b"1", **change})
    assert refusal.detail["execution_id"] == first["execution_id"]
    assert count(db) == 1


def test_the_request_hash_does_not_run_its_fields_together(db):
    submit(db, idempotency_key="k", execution_kind="ab", payload=b"c")
    with refused("idempotency_conflict"):
        submit(db, idempotency_key="k", execution_kind="a", payload=b"bc")


def test_keys_of_different_namespaces_do_not_meet(db):
    assert submit(db, idempotency_key="k", namespace="a")["outcome"] == "created"
    assert submit(db, idempotency_key="k", namespace="b", payload=b"x")["outcome"] == "created"


def test_an_empty_key_or_a_zero_window_means_no_deduplication(db):
    for _ in range(2):
        assert submit(db, idempotency_key="")["outcome"] == "created"
        assert submit(db, idempotency_key="k", policy={"dedup_window_ms": 0})["outcome"] == "created"
    assert table(db, "select * from ff_idempotency") == []


def test_a_key_is_taken_over_when_its_window_has_passed(db, clock):
    clock.freeze()
    first = submit(db, idempotency_key="k")
    clock.advance(7 * DAY - 1)
    assert submit(db, idempotency_key="k")["outcome"] == "duplicate"
    clock.advance(1)
    later = submit(db, idempotency_key="k", payload=b"other")
    assert later["outcome"] == "created"
    assert later["execution_id"] != first["execution_id"]
    assert submit(db, idempotency_key="k", payload=b"other")["execution_id"] == later["execution_id"]
    assert violations(db) == []


def test_a_key_whose_execution_is_gone_still_answers_duplicate(db):
    first = submit(db, idempotency_key="k")
    db.execute("delete from ff_execution")
    again = submit(db, idempotency_key="k")
    assert again["execution_id"] == first["execution_id"]
    assert (again["outcome"], again["public_state"], again["created_at_ms"]) == ("duplicate", None, None)


def test_a_given_execution_id_is_used_and_repeats_answer_duplicate(db):
    eid = "{fp:7}:018f3a2e-7b6c-7d1e-9f00-aabbccddee07"
    assert submit(db, execution_id=eid)["execution_id"] == eid
    assert submit(db, execution_id=eid)["outcome"] == "duplicate"
    with refused("execution_id_conflict") as refusal:
        submit(db, execution_id=eid, payload=b"x")
    assert refusal.detail["execution_id"] == eid
    assert count(db) == 1


@pytest.mark.parametrize("eid", ["x", "{fp:8}:018f3a2e-7b6c-7d1e-9f00-aabbccddee07"])
def test_a_given_execution_id_must_name_its_own_partition(db, eid):
    with refused("invalid_execution_id"):
        submit(db, execution_id=eid)


@pytest.mark.parametrize("state", ["draining", "disabled"])
def test_a_closed_lane_takes_no_new_work_but_still_answers_duplicates(db, state):
    first = submit(db, idempotency_key="k")
    db.execute("update ff_lane_registry set state = %s", [state])
    with refused("lane_not_accepting") as refusal:
        submit(db)
    assert refusal.detail["state"] == state
    assert submit(db, idempotency_key="k")["execution_id"] == first["execution_id"]


def test_a_paused_lane_takes_work(db):
    create(db)
    db.execute("update ff_lane_registry set state = 'paused'")
    assert submit(db)["outcome"] == "created"


def test_a_refused_submission_keeps_no_key(db):
    create(db)
    db.execute("update ff_lane_registry set state = 'disabled'")
    with refused("lane_not_accepting"):
        submit(db, idempotency_key="k")
    assert table(db, "select * from ff_idempotency") == []


def test_a_submission_is_part_of_the_callers_transaction(db, connect):
    conn = connect(autocommit=False)
    create(conn, idempotency_key="k")
    assert count(db) == 0
    conn.rollback()
    assert submit(db, idempotency_key="k")["outcome"] == "created"
    assert count(db) == 1
