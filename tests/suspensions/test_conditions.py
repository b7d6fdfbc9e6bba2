"""Conditions, bindings and policies: what is refused and where, what a condition accepts, when it is satisfied."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from psycopg.types.json import Jsonb

from tests.sql import one, refused, rows, table, violations
from tests.suspensions.support import (
    OPERATOR_ONLY,
    TIMEOUT_ONLY,
    UNKNOWN,
    all_of,
    count,
    deliver,
    everything,
    run,
    single,
    stored,
    suspend,
    suspended,
    waitpoint,
)


def deep(levels, leaf):
    return all_of(deep(levels - 1, leaf)) if levels else leaf


FAULTS = [
    ("not_an_object", "", []),
    ("not_an_object", "", None),
    ("not_an_object", "members[1]", all_of(single(), "x")),
    ("missing_key", "", {}),
    ("wrong_type", "", {"kind": 1}),
    ("wrong_type", "", {"kind": None}),
    ("unknown_kind", "", {"kind": "any_of"}),
    ("unknown_kind", "members[0].members[1]", all_of(all_of(single(), {"kind": "x"}))),
    ("unknown_key", "", {**single(), "x": 1}),
    ("unknown_key", "", {"kind": "operator_only", "matcher": "wildcard"}),
    ("unknown_key", "", single(matcher={"by_name": "a", "one_of": ["b"]})),
    ("unknown_key", "", single(matcher={"regex": "a"})),
    ("missing_key", "", {"kind": "single", "waitpoint_key": "a"}),
    ("missing_key", "", {"kind": "single", "matcher": "wildcard"}),
    ("missing_key", "", {"kind": "all_of"}),
    ("missing_key", "", {"kind": "count", "n": 1, "count_kind": "distinct_signals"}),
    ("missing_key", "", single(matcher={})),
    ("wrong_type", "", {**single(), "waitpoint_key": 1}),
    ("wrong_type", "", single("")),
    ("wrong_type", "", single("a\nb")),
    ("wrong_type", "", single("x" * 257)),
    ("wrong_type", "", single(matcher=None)),
    ("wrong_type", "", single(matcher=["a"])),
    ("wrong_type", "", {**single(), "matcher": "anything"}),
    ("wrong_type", "", single(matcher={"by_name": 1})),
    ("wrong_type", "", single(matcher={"by_name": "a\x01"})),
    ("wrong_type", "", single(matcher={"by_name": "x" * 257})),
    ("wrong_type", "", single(matcher={"one_of": "a"})),
    ("wrong_type", "", single(matcher={"one_of": []})),
    ("wrong_type", "", single(matcher={"one_of": ["a", "a"]})),
    ("wrong_type", "", single(matcher={"one_of": [str(n) for n in range(33)]})),
    ("wrong_type", "", {"kind": "all_of", "members": {}}),
    ("empty_signal_name", "", single(matcher={"by_name": ""})),
    ("empty_signal_name", "members[0]", all_of(single(matcher={"one_of": ["a", ""]}))),
    ("reserved_signal_name", "", single(matcher={"by_name": "__x"})),
    ("allof_empty_members", "", all_of()),
    ("count_n_zero", "", count(0, "signals", ["a"])),
    ("count_n_zero", "", count(-1, "signals", ["a"])),
    ("count_n_zero", "", count(1.5, "signals", ["a"])),
    ("count_n_zero", "", count("1", "signals", ["a"])),
    ("count_n_zero", "", count(None, "signals", ["a"])),
    ("wrong_type", "", count(1, "moons", ["a"])),
    ("wrong_type", "", count(1, "signals", "a")),
    ("wrong_type", "", count(1, "signals", [1])),
    ("wrong_type", "", count(1, "signals", [""])),
    ("wrong_type", "", {**count(1, "signals", ["a"]), "matcher": None}),
    ("count_waitpoints_empty", "", count(1, "signals", [])),
    ("count_waitpoints_duplicate", "", count(1, "signals", ["a", "a"])),
    ("count_exceeds_waitpoint_set", "", count(3, "waitpoints", ["a", "b"])),
    ("count_exceeds_signal_cap", "", count(10_001, "signals", ["a"])),
    ("count_exceeds_signal_cap", "", count(10**30, "sources", ["a"])),
    ("depth_exceeded", "members[0].members[0].members[0].members[0]", deep(5, single())),
    ("depth_exceeded", "members[0].members[0].members[0].members[0]", deep(4, count(1, "signals", ["a"]))),
    ("too_many_nodes", "members[63]", all_of(*[single()] * 64)),
    ("unsatisfiable_member", "members[0]", all_of(OPERATOR_ONLY)),
    ("unsatisfiable_member", "members[1]", all_of(single(), TIMEOUT_ONLY)),
    ("timeout_only_without_deadline", "", TIMEOUT_ONLY),
]


def test_whatever_is_wrong_with_a_condition_is_named_with_its_place(db):
    handle = run(db)["handle"]
    before = everything(db)
    for reason, path, condition in FAULTS:
        with refused("invalid_resume_condition") as refusal:
            rows(db, "ff_suspend", handle=handle, condition=Jsonb(condition))
        assert (refusal.detail["reason"], refusal.detail["path"]) == (reason, path), condition
    assert everything(db) == before
    with refused("invalid_input") as refusal:
        rows(db, "ff_suspend", handle=handle, condition=None)
    assert refusal.detail["arg"] == "p_condition"


GOOD = [
    single(),
    single(matcher={"one_of": [str(n) for n in range(32)]}),
    single("x" * 256),
    deep(4, single()),
    deep(3, count(1, "signals", ["a"])),
    all_of(*[single()] * 63),
    count(10_000, "signals", ["a"]),
    count(1.0, "sources", ["a"], "wildcard"),
    count(2, "waitpoints", ["a", "b"], {"by_name": "go"}),
    OPERATOR_ONLY,
]


def test_what_is_right_suspends(db):
    for condition in GOOD:
        suspended(db, condition)
    suspended(db, TIMEOUT_ONLY, timeout_ms=5)
    assert violations(db) == []


def test_the_signal_cap_of_a_count_is_the_executions_own(db):
    handle = run(db, policy={"max_signals_per_execution": 2})["handle"]
    with refused("invalid_resume_condition") as refusal:
        suspend(db, handle, count(3, "signals", ["a"]))
    assert refusal.detail["reason"] == "count_exceeds_signal_cap"
    assert suspend(db, handle, count(2, "signals", ["a"]))[0]["outcome"] == "suspended"


BINDINGS = [
    ("wrong_type", {"key": "a"}),
    ("wrong_type", ["a"]),
    ("wrong_type", [{}]),
    ("wrong_type", [{"key": 1}]),
    ("wrong_type", [{"key": ""}]),
    ("wrong_type", [{"key": "a", "waitpoint_id": "x"}]),
    ("wrong_type", [{"key": "a", "waitpoint_id": 1}]),
    ("wrong_type", [{"use_pending": None}]),
    ("wrong_type", [{"use_pending": str(UNKNOWN) + "0"}]),
    ("unknown_key", [{"key": "a", "name": "b"}]),
    ("unknown_key", [{"key": "a", "use_pending": str(UNKNOWN)}]),
    ("waitpoint_key_not_bound", [{"key": "a"}]),
    ("binding_not_referenced", [{"key": "a"}, {"key": "c"}, {"key": "b"}]),
    ("duplicate_waitpoint_key", [{"key": "a"}, {"key": "b"}, {"key": "a"}]),
    ("too_many", [{"key": str(n)} for n in range(65)]),
]


def test_waitpoints_must_fit_the_condition(db):
    handle = run(db)["handle"]
    for reason, waitpoints in BINDINGS:
        with refused("invalid_waitpoint_binding") as refusal:
            suspend(db, handle, all_of(single("a"), single("b")), waitpoints=waitpoints)
        assert refusal.detail["reason"] == reason, waitpoints
    with refused("invalid_waitpoint_binding") as refusal:
        suspend(db, handle, count(1, "signals", [str(n) for n in range(65)]))
    assert refusal.detail["reason"] == "too_many"


def test_two_pending_waitpoints_of_one_key_cannot_be_bound_together(db):
    handle = run(db)["handle"]
    points = [{"use_pending": str(waitpoint(db, handle, "a")["waitpoint_id"])} for _ in range(2)]
    with refused("invalid_waitpoint_binding") as refusal:
        suspend(db, handle, single("a"), waitpoints=points)
    assert refusal.detail["reason"] == "duplicate_waitpoint_key"


def test_without_waitpoints_each_key_gets_a_fresh_one_in_the_order_of_first_mention(db):
    claim = run(db)
    condition = all_of(single("c"), count(1, "signals", ["a", "c", "b"]))
    for waitpoints in (None, []):
        found = suspend(db, claim["handle"], condition, waitpoints=waitpoints)
        assert [(r["ordinal"], r["waitpoint_key"]) for r in found] == [(0, "c"), (1, "a"), (2, "b")]


@pytest.mark.parametrize("condition", [OPERATOR_ONLY, TIMEOUT_ONLY])
def test_a_condition_without_keys_gets_one_waitpoint_or_those_that_are_given(db, condition):
    _, point = suspended(db, condition, timeout_ms=1000)
    assert point["waitpoint_key"] == f"wpk:{point['waitpoint_id']}"
    names = stored(db, "ff_waitpoint", waitpoint_id=point["waitpoint_id"])["required_signal_names"]
    assert names == [f"__{condition['kind']}__"]
    handle = run(db)["handle"]
    found = suspend(db, handle, condition, waitpoints=[{"key": "x"}, {"key": "y"}], timeout_ms=1000)
    assert [r["waitpoint_key"] for r in found] == ["x", "y"]


def test_a_mixture_of_waitpoints_keeps_its_order_and_the_first_is_the_primary(db):
    claim = run(db)
    pending = waitpoint(db, claim["handle"], "b")
    found = suspend(
        db,
        claim["handle"],
        all_of(single("a"), single("b"), single("c")),
        waitpoints=[
            {"use_pending": str(pending["waitpoint_id"]).upper()},
            {"key": "c", "waitpoint_id": str(UNKNOWN)},
            {"key": "a"},
        ],
    )
    assert [r["waitpoint_key"] for r in found] == ["b", "c", "a"]
    assert [r["ordinal"] for r in found] == [0, 1, 2]
    assert found[0]["waitpoint_id"] == pending["waitpoint_id"]
    assert found[1]["waitpoint_id"] == UNKNOWN
    assert stored(db, "ff_exec_core")["current_waitpoint_id"] == pending["waitpoint_id"]
    assert stored(db, "ff_exec_core")["open_waitpoints"] == 3


def test_a_waitpoint_says_which_names_it_wants(db):
    claim = run(db)
    condition = all_of(
        single("a", "x"),
        single("b", {"one_of": ["z", "y"]}),
        count(1, "signals", ["a", "b", "c"], {"one_of": ["y", "x", "w"]}),
        single("c"),
    )
    suspend(db, claim["handle"], condition)
    found = rows(db, "ff_list_pending_waitpoints", execution_id=claim["execution_id"])
    assert {r["waitpoint_key"]: r["required_signal_names"] for r in found} == {
        "a": ["x", "y", "w"],
        "b": ["z", "y", "x", "w"],
        "c": [],
    }


POLICY_FAULTS = [
    ("", []),
    ("", None),
    ("x", {"x": 1}),
    ("resume_target", {"resume_target": "active"}),
    ("resume_target", {"resume_target": None}),
    ("resume_delay_ms", {"resume_delay_ms": -1}),
    ("resume_delay_ms", {"resume_delay_ms": 604_800_001}),
    ("resume_delay_ms", {"resume_delay_ms": 0.5}),
    ("resume_delay_ms", {"resume_delay_ms": "1"}),
    ("close_waitpoint_on_resume", {"close_waitpoint_on_resume": 1}),
    ("consume_matched_signals", {"consume_matched_signals": "true"}),
    ("retain_signal_buffer_until_closed", {"retain_signal_buffer_until_closed": None}),
]


def test_a_policy_has_known_keys_and_types(db):
    handle = run(db)["handle"]
    for path, policy in POLICY_FAULTS:
        with refused("invalid_resume_policy") as refusal:
            suspend(db, handle, policy=Jsonb(policy))
        assert refusal.detail["path"] == path, policy
    with refused("invalid_input"):
        suspend(db, handle, policy=None)


KEYS, NAMES, SOURCES = ["a", "b", "c"], ["x", "y", "X"], ["", "s", "t"]

matchers = st.sampled_from(["wildcard", {"by_name": "x"}, {"by_name": "y"}, {"one_of": ["x", "y"]}])
keysets = st.lists(st.sampled_from(KEYS), min_size=1, max_size=3, unique=True)
leaves = st.builds(
    lambda key, m: {"kind": "single", "waitpoint_key": key, "matcher": m}, st.sampled_from(KEYS), matchers
)
counts = st.builds(
    count, st.integers(1, 3), st.sampled_from(["signals", "sources"]), keysets, st.none() | matchers
)
quorums = keysets.flatmap(
    lambda keys: st.builds(count, st.integers(1, len(keys)), st.just("waitpoints"), st.just(keys), matchers)
)
conditions = st.recursive(
    leaves | counts | quorums,
    lambda inner: st.lists(inner, min_size=1, max_size=3).map(lambda m: all_of(*m)),
    max_leaves=5,
)
arrivals = st.lists(
    st.tuples(
        st.sampled_from(KEYS), st.sampled_from(NAMES), st.sampled_from(SOURCES), st.sampled_from(["u", "v"])
    ),
    max_size=6,
)


def accepts(node, key, name):
    """What the contract says, in Python."""
    if node["kind"] == "all_of":
        return any(accepts(member, key, name) for member in node["members"])
    matcher = node.get("matcher", "wildcard")
    wanted = matcher == "wildcard" or name in matcher.get("one_of", [matcher.get("by_name")])
    return wanted and key in node.get("waitpoints", [node.get("waitpoint_key")])


def satisfied(node, seen):
    if node["kind"] == "all_of":
        return all(satisfied(member, seen) for member in node["members"])
    mine = [(n, signal) for n, signal in enumerate(seen) if accepts(node, signal[0], signal[1])]
    if node["kind"] == "single":
        return bool(mine)
    distinct = {
        "distinct_waitpoints": {signal[0] for _, signal in mine},
        "distinct_signals": {n for n, _ in mine},
        "distinct_sources": {(signal[3], signal[2]) for _, signal in mine if signal[2]},
    }
    return len(distinct[node["count_kind"]]) >= node["n"]


@settings(
    max_examples=60, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
)
@given(condition=conditions, arriving=arrivals, before=st.integers(0, 3))
def test_an_execution_resumes_with_the_signal_that_satisfies_its_condition(db, condition, arriving, before):
    """Signals before the suspension on pending waitpoints, the rest after it: the same as in the model."""
    with db.transaction(force_rollback=True):
        claim = run(db)
        keys = [
            pair[0]
            for pair in table(
                db, "select (ff__check_condition(%s, null, 64, 256)).targets as t", Jsonb(condition)
            )[0]["t"]
        ]
        points = {key: waitpoint(db, claim["handle"], key) for key in dict.fromkeys(keys)}
        arriving = [signal for signal in arriving if signal[0] in points]

        def send(signal):
            key, name, identity, kind = signal
            return deliver(db, claim, points[key], name, source_identity=identity, source_type=kind)

        early, late = arriving[:before], arriving[before:]
        for signal in early:
            assert send(signal)["effect"] == "buffered_for_pending_waitpoint"
        bound = suspend(
            db,
            claim["handle"],
            condition,
            waitpoints=[{"use_pending": str(p["waitpoint_id"])} for p in points.values()],
        )
        if satisfied(condition, early):
            assert bound[0]["outcome"] == "already_satisfied"
            assert violations(db) == []
            return
        assert bound[0]["outcome"] == "suspended"
        seen = list(early)
        for signal in late:
            seen.append(signal)
            answer = send(signal)
            assert answer["matched"] is accepts(condition, signal[0], signal[1])
            assert answer["resumed"] is satisfied(condition, seen)
            if answer["resumed"]:
                break
        assert violations(db) == []


def test_names_are_compared_exactly(db):
    claim, point = suspended(db, single("a", "Go"))
    assert deliver(db, claim, point, "go")["matched"] is False
    assert deliver(db, claim, point, "Go ")["matched"] is False
    assert deliver(db, claim, point, "Go")["resumed"] is True


def test_an_empty_source_is_not_counted(db):
    claim, point = suspended(db, count(2, "sources", ["a"]))
    for identity in ("", "", "u", "u"):
        assert deliver(db, claim, point, "x", source_identity=identity)["resumed"] is False
    assert deliver(db, claim, point, "x", source_type="other", source_identity="u")["resumed"] is True


def test_a_quorum_of_waitpoints_is_not_met_by_one_of_them(db):
    claim = run(db)
    found = suspend(db, claim["handle"], count(2, "waitpoints", ["a", "b", "c"]))
    for _ in range(3):
        assert deliver(db, claim, found[0], "x")["resumed"] is False
    assert deliver(db, claim, found[2], "x")["resumed"] is True
    assert (
        one(db, "ff_read_execution_state", execution_id=claim["execution_id"])["public_state"] == "resumable"
    )
