"""Whatever a caller passes, the answer is a registered engine error, or a result that leaves the database sound."""

import json
import uuid
from pathlib import Path

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from psycopg import sql
from psycopg.types.json import Jsonb

from tests.flows.graph import busy_flows
from tests.sql import create, one, rows, table, take

pytestmark = pytest.mark.once

FUNCTIONS = sorted(
    path.stem
    for path in (Path(__file__).parents[2] / "db" / "functions").glob("*/ff_*.sql")
    # A procedure that commits has no place in a transaction: see tests/maintenance.
    if not path.stem.startswith(("ff__", "ff_v_", "ff_run_maintenance"))
)

MEGABYTE = "x" * 1_000_000
SOME_ID = uuid.UUID("018f3a2e-7b6c-7d1e-9f00-aabbccddee07")
UNKNOWN = f"{{fp:7}}:{SOME_ID}"

# What no argument of that type may break on, whatever it means.
BAD = {
    "text": [
        None,
        "",
        " ",
        "no such word",
        "a\nb",
        "\x01",
        "\x7f",
        "\x85\u2028",
        "ünï-\U0001f600",
        "'; drop table ff_exec_core; --",
        "%s %(x)s \\ {} []",
        "null",
        "9" * 40,
        "-1",
        "x" * 65,
        "x" * 257,
        "x" * 513,
        "x" * 4097,
        "\U0001f600" * 250_000,
    ],
    "int4": [None, 0, -1, 1, 1001, 100_001, 2**31 - 1, -(2**31)],
    "int2": [None, 0, -1, 2**15 - 1, -(2**15)],
    "int8": [None, 0, -1, 1, 86_400_001, 2**53, 2**63 - 1, -(2**63)],
    "float8": [None, 0.0, -1.0, float("nan"), float("inf"), 1e308],
    "uuid": [None, uuid.UUID(int=0), uuid.UUID(int=2**128 - 1), SOME_ID],
    "bool": [None, True, False],
    "bytea": [None, b"", b"\x00\xff", MEGABYTE.encode()],
    "jsonb": [
        None,
        Jsonb(None),
        Jsonb(True),
        Jsonb(1),
        Jsonb(-1.5e300),
        Jsonb("text"),
        Jsonb([]),
        Jsonb([{}]),
        Jsonb({}),
        Jsonb({"": ""}),
        Jsonb({"no.such_key": 1}),
        Jsonb({"a.b": None}),
        Jsonb({"A": "b"}),
        Jsonb({"a\n.b": "c"}),
        Jsonb({f"a.b{n}": "c" for n in range(2000)}),
        Jsonb({"a.b": MEGABYTE}),
        Jsonb(MEGABYTE),
    ],
    "_text": [
        None,
        [],
        [None],
        [""],
        ["a", None],
        [" "],
        ["a,b"],
        ["a\nb"],
        ["\x7f"],
        ["ü"],
        ["a"] * 1001,
        [str(n) for n in range(100_000)],
        [MEGABYTE],
        [["a", "b"], ["c", "d"]],
    ],
    "_int4": [None, [], [None], [-1], [2**31 - 1] * 10_001],
    "_int8": [None, [], [None], [-1], [2**63 - 1] * 10_001],
    "_uuid": [None, [], [None], [SOME_ID], [SOME_ID] * 10_001],
    "_bytea": [None, [], [None], [b""], [b"x"] * 10_001],
    "_jsonb": [None, [], [None], [Jsonb(None)]],
}

# What is close to right, by the name of the argument.
CLOSE = {
    "p_execution_id": [
        UNKNOWN,
        f"{{fp:8}}:{SOME_ID}",
        f"{{fp:256}}:{SOME_ID}",
        f"{{fp:07}}:{SOME_ID}",
        f"{{fp:-1}}:{SOME_ID}",
        f"{{fp:99999999999999999999}}:{SOME_ID}",
        f"{{fp:}}:{SOME_ID}",
        f"{{fp:7}}:{SOME_ID}\n",
        f" {{fp:7}}:{SOME_ID}",
        f"{{fp:7}}:{SOME_ID.hex}",
        f"{{fp:7}}:{str(SOME_ID)[:-1]}g",
        f"{{fp:٧}}:{SOME_ID}",
        str(SOME_ID),
    ],
    "p_handle": [
        f"ff1.{SOME_ID}.{SOME_ID}.{SOME_ID}.7.0.1",
        f"ff1.{SOME_ID}.{SOME_ID}.{SOME_ID}.7.0.9223372036854775808",
        f"ff1.{SOME_ID}.{SOME_ID}.{SOME_ID}.7.2147483648.1",
        f"ff1.{SOME_ID}.{SOME_ID}.{SOME_ID}.256.0.1",
        f"ff1.{SOME_ID}.{SOME_ID}.{SOME_ID}.7.0.1.1",
        f"ff1.{SOME_ID}.{SOME_ID}.{SOME_ID}.7.0",
        f"ff1.{SOME_ID}.{SOME_ID}.{str(SOME_ID)[:-1]}g.7.0.1",
        f"ff1.{SOME_ID}.{SOME_ID}.{SOME_ID}.7.-1.1",
        f"ff1.{SOME_ID}.{SOME_ID}.{SOME_ID}.7.0.1\n",
        f"ff1.{SOME_ID}.{SOME_ID}.{SOME_ID}.٧.0.1",
        f"ff2.{SOME_ID}.{SOME_ID}.{SOME_ID}.7.0.1",
    ],
    "p_after": [
        f"1-{SOME_ID}",
        f"-{SOME_ID}",
        f"--1-{SOME_ID}",
        f"9223372036854775808-{SOME_ID}",
        f"٧-{SOME_ID}",
        f"1-{str(SOME_ID)[:-1]}g",
        f"1-{str(SOME_ID).replace('-', 'a')}",
        f"1-{SOME_ID}\n",
        "7 default",
        "7 defaultx",
        "99999999999 x",
        "0 x",
        " ",
        "٧ defaultx",
        "1-2-3",
        "1.1.1",
        "1:1:1",
        "now",
        "0-0",
        "9223372036854775807-2147483647",
        "9223372036854775808-0",
        "1-2147483648",
        "e1.1.1.1",
        "e1.1.9223372036854775807.9223372036854775807",
        "e1.1.9223372036854775808.1",
        "e1.2147483648.1.1",
        "e1.2147483647.1.1",
        "e1.٧.1.1",
        "e1.1.1.1\n",
    ],
    "p_from": [
        "start",
        "end",
        "0",
        "1-1",
        "9223372036854775807",
        "9223372036854775808",
        "1-",
        "-1",
        "+1",
        "٧",
    ],
    "p_to": ["start", "end", "0", "1-1", "9223372036854775807-2147483647", "1-2147483648", "-", "+"],
    "p_frame_type": ["log", "a-z_0.9:", "A", "x" * 64, "a\n"],
    "p_mode": ["durable", "durable_summary", "best_effort_live", "DURABLE"],
    "p_payload": [b"{}", b'{"a": null}', b"[]", b'{"a": "\\u0000"}', b"\xff", b"[" * 65536, b'{"a":' * 13107],
    "p_ema_alpha": [1.0, 0.5, 5e-324, 1e-308, 1.0000001],
    "p_ttl_ms": [99, 100, 600_000, 600_001, 86_400_000],
    "p_maxlen": [1, 1_000_000, 1_000_001],
    "p_maxlen_floor": [1, 64, 16_384, 100_000],
    "p_maxlen_ceiling": [1, 63, 64, 100_000, 100_001],
    "p_block_ms": [0, 1, 30_001],
    "p_visibility": ["all", "exclude_best_effort", "ALL"],
    "p_family": ["completion", "lease", "suspension", "signal", "operator", "worker", "flow", "LEASE"],
    "p_event_types": [["acquired"], ["acquired", "success"], ["watermark"], ["*"]],
    "p_muted": [["*"], ["acquired"], ["success"], ["*", "*"]],
    "p_notify": ["commit", "tick", "off"],
    "p_at": ["now", "oldest"],
    "p_partition": [0, 255, 256],
    "p_max_scan": [1, 1_000_000, 1_000_001],
    "p_policy": [
        Jsonb(policy)
        for policy in (
            {"priority": 2**40},
            {"priority": 1.5},
            {"priority": "1"},
            {"delay_until_ms": -1},
            {"delay_until_ms": 1e300},
            {"delay_until_ms": 2**63},
            {"max_reclaim_count": 2**31},
            {"max_reclaim_count": -1},
            {"max_replay_count": 2**63},
            {"dedup_window_ms": 2**63 - 1},
            {"retention_ms": 2**63 - 1},
            {"retention_ms": 2**53},
            {"retry_policy": None},
            {"retry_policy": []},
            {"retry_policy": {"max_retries": 1001}},
            {"retry_policy": {"backoff": {"type": "x"}}},
            {"retry_policy": {"backoff": {"type": "fixed"}}},
            {"retry_policy": {"backoff": {"type": "fixed", "delay_ms": 2**63}}},
            {"retry_policy": {"backoff": {"type": "exponential", "multiplier": 1e308}}},
            {"retry_policy": {"backoff": {"type": "exponential", "multiplier": 0}}},
            {"retry_policy": {"retryable_categories": "x"}},
            {"timeout_policy": {"attempt_timeout_ms": 2**63 - 1}},
            {"timeout_policy": {"execution_deadline_ms": 2**63 - 1}},
            {"timeout_policy": {"execution_deadline_ms": 0}},
            {"budget_ids": [None]},
            {"budget_ids": ["x"] * 17},
            {"budget_ids": {}},
            {"quota_policy_id": 1},
            {"quota_policy_id": MEGABYTE},
            {"routing_requirements": {"required_capabilities": 1}},
            {"routing_requirements": {"required_capabilities": [1]}},
            {"routing_requirements": {"required_capabilities": ["a b"]}},
            {"routing_requirements": {"isolation_level": 1}},
            {"stream_policy": {"maxlen": -(2**63)}},
            {"max_signals_per_execution": 2**63},
            {"fallback_policy": 1},
            {"suspension_policy": MEGABYTE},
            {"\u0001": 1},
        )
    ],
    "p_condition": [
        Jsonb(condition)
        for condition in (
            {"kind": "single", "waitpoint_key": "a", "matcher": {"by_name": MEGABYTE}},
            {"kind": "single", "waitpoint_key": MEGABYTE, "matcher": "wildcard"},
            {"kind": "single", "waitpoint_key": None, "matcher": "wildcard"},
            {"kind": "single", "waitpoint_key": ["a"], "matcher": {"one_of": {"a": 1}}},
            {"kind": "count", "n": 2**70, "count_kind": "distinct_signals", "waitpoints": ["a"]},
            {"kind": "count", "n": 1e300, "count_kind": "distinct_sources", "waitpoints": ["a"]},
            {"kind": "count", "n": 1, "count_kind": None, "waitpoints": ["a", None, {}]},
            {
                "kind": "count",
                "n": 1,
                "count_kind": "distinct_signals",
                "waitpoints": [str(n) for n in range(5000)],
            },
            {"kind": "all_of", "members": [None]},
            {"kind": "all_of", "members": [{"kind": "all_of", "members": [[]]}]},
            {"kind": "all_of", "members": [{"kind": "operator_only"}] * 5000},
            {"kind": "operator_only"},
            {"kind": "timeout_only"},
            {"kind": {"kind": "single"}},
        )
    ],
    "p_waitpoints": [
        Jsonb(waitpoints)
        for waitpoints in (
            [None],
            [[]],
            [{"key": "a"}],
            [{"key": MEGABYTE}],
            [{"key": "a", "waitpoint_id": "not a uuid"}],
            [{"key": "a", "waitpoint_id": "{018f3a2e7b6c7d1e9f00aabbccddee07}"}],
            [{"key": "a", "waitpoint_id": str(SOME_ID)}],
            [{"use_pending": str(SOME_ID)}],
            [{"use_pending": {}}],
            [{"key": "a"}] * 5000,
        )
    ],
    "p_waitpoint_token": [
        f"k1:{'0' * 64}",
        f"k2:{'0' * 64}",
        f"k1:{'0' * 63}",
        ":",
        "k1:",
        f"k1:{'0' * 64}\n",
    ],
    "p_kid": ["k1", "k2", "a:b"],
    "p_new_kid": ["k1", "k2", "a:b"],
    "p_secret_hex": ["00" * 32, "g" * 64, "0"],
    "p_new_secret_hex": ["00" * 32, "g" * 64, "0"],
    "p_reason_code": ["manual_pause", "waiting_for_approval", "x"],
    "p_timeout_behavior": ["fail", "escalate", "x"],
    "p_trigger": ["operator", "policy", "signal"],
    "p_requested_by": ["worker", "operator"],
    "p_source_type": ["engine", "operator"],
    "p_limit": [0, 10, 1000, 1001, 10_000, 10_001, 100_000, 100_001],
    "p_fields": [["public_state"], ["public_state", "no_such_field"], ["public_state"] * 101],
    "p_state": ["active", "paused", "draining", "disabled", "ACTIVE"],
    "p_public_state": ["waiting", "WAITING"],
    "p_phase": ["attempt_timeout", "execution_deadline"],
    "p_source": ["operator_override", "lease_holder", "flow_cascade", "system_timeout"],
    "p_classification": ["transient", "permanent", "timeout", "cancelled", "infra_crash"],
    "p_percent": [0, 100, 101],
    "p_name": ["notify", "retention_ms", "max_payload_bytes", "sweep_delayed"],
    "p_only": [[], ["sweep_delayed", "trim_events"], ["sweep_delayed", None], ["ff_sweep_delayed"]],
    "p_key": ["a.b", "a.", ".b", "a", "A.b", "a..b", "a." + "b" * 127],
    "p_tag_key": ["a.b", "a.", ".b", "a", "A.b"],
    "p_after:uuid": [],
    "p_schedule_id": ["s", "p", "S"],
    "p_cron": [
        "* * * * *",
        "@daily",
        "0 0 29 2 */7",
        "0 0 31 2 *",
        "* * * *",
        "@x",
        "1-0 * * * *",
        "*/9999 * * * *",
    ],
    "p_interval_ms": [999, 1000, 315_576_000_000, 315_576_000_001],
    "p_time_zone": ["UTC", "Europe/Berlin", "Europe", "UTC+3", "Europe/Berlin\n"],
    "p_catch_up": ["skip", "latest", "all", "ALL"],
    "p_max_catch_up": [1, 1000, 1001],
    "p_grace_ms": [999, 1000, 86_400_000],
    "p_start_at_ms": [0, 253_402_300_799_999, 253_402_300_800_000],
    "p_end_at_ms": [0, 253_402_300_799_999, 253_402_300_800_000],
    "p_policy:text": ["cancel_all", "cancel_pending", "cancel_flow_only", "all_of", "any_of", "quorum"],
    "p_on_satisfied": ["cancel_remaining", "let_run"],
    "p_dependency_kind": ["success_only", "any_terminal"],
    "p_direction": ["incoming", "outgoing"],
    "p_budget_id": ["budget", "BUDGET", "x" * 200, "x" * 201],
    "p_dimension": ["tokens", "x" * 128, "x" * 129],
    "p_dimensions": [["tokens"], ["tokens", "tokens"], ["x" * 129]],
    "p_hard_limits": [[2**63 - 1], [0], [1, 2], [[1], [2]]],
    "p_soft_limits": [[2**63 - 1], [0], [1, 2], [[1], [2]]],
    "p_enforcement_mode": ["strict", "warn"],
    "p_on_hard_limit": ["fail", "block", "cancel_pending", "cancel_all"],
    "p_on_soft_limit": ["warn", "none"],
    "p_deltas": [
        Jsonb(deltas)
        for deltas in (
            {"tokens": 2**53},
            {"tokens": 2**53 + 1},
            {"tokens": -1},
            {"tokens": 0.5},
            {"tokens": 1e300},
            {"tokens": "1"},
            {"tokens": None},
            {"tokens": [1]},
            {"": 1},
            {"x" * 129: 1},
            {MEGABYTE: 1},
            {str(n): n for n in range(2000)},
        )
    ],
    "p_nodes": [
        Jsonb(nodes)
        for nodes in (
            [{"key": "a", "lane_id": "default"}],
            [{"key": "a", "lane_id": "default"}, {"key": "b", "lane_id": "b"}],
            [{"key": "a", "lane_id": "default", "priority": 1e300}],
            [{"key": "a", "lane_id": "default", "priority": -(2**70)}],
            [{"key": "a", "lane_id": "default", "delay_until_ms": 2**63 - 1}],
            [{"key": "a", "lane_id": "default", "policy": None, "tags": None, "payload": None}],
            [{"key": "a", "lane_id": "default", "payload_base64": "===="}],
            [{"key": "a", "lane_id": "default", "required_capabilities": [None]}],
            [{"key": "a", "lane_id": "default", "required_capabilities": [["a"]]}],
            [{"key": "a", "lane_id": "default", "execution_id": UNKNOWN}],
            [{"key": "a", "lane_id": "default", "idempotency_key": "k"}] * 2,
            [{"key": MEGABYTE, "lane_id": "default"}],
            [{"key": "a", "lane_id": MEGABYTE}],
            [{"key": "a", "lane_id": "default", MEGABYTE: 1}],
        )
    ],
    "p_edges": [
        Jsonb(edges)
        for edges in (
            [{"from": "a", "to": "b"}],
            [{"from": "a", "to": "a"}],
            [{"from": "a"}],
            [{"from": MEGABYTE, "to": "a"}],
            [{"from": "a", "to": "b", "dependency_kind": MEGABYTE}],
        )
    ],
    "p_groups": [
        Jsonb(groups)
        for groups in (
            [{"to": "a", "policy": "any_of"}],
            [{"to": "a", "policy": "quorum", "k": 1}],
            [{"to": "a", "policy": "quorum", "k": 1e300}],
            [{"to": "a", "policy": MEGABYTE}],
        )
    ],
}


def close(argument):
    """Nearly valid values of an argument: by name and type, else by name."""
    return CLOSE.get(f"{argument['name']}:{argument['type']}", CLOSE.get(argument["name"], []))


# Plausible where nothing in the scene is: by name, else by type.
PLAUSIBLE = {
    "p_lane_id": "default",
    "p_lanes": ["default"],
    "p_worker_id": "w",
    "p_worker_instance_id": "w-1",
    "p_namespace": "default",
    "p_state": "active",
    "p_key": "a.b",
    "p_fields": ["public_state"],
    "p_name": "notify",
    "p_only": ["sweep_delayed"],
    "p_phase": "attempt_timeout",
    "p_priority": 1,
    "p_attempt_index": 0,
    "p_family": "lease",
    "p_payload": b"{}",
    "p_condition": Jsonb({"kind": "single", "waitpoint_key": "a", "matcher": "wildcard"}),
    "p_waitpoints": Jsonb([{"key": "a"}]),
    "p_policy": Jsonb({}),
    "p_reason_code": "waiting_for_signal",
    "p_requested_by": "worker",
    "p_timeout_behavior": "expire",
    "p_kid": "k1",
    "p_new_kid": "k3",
    "p_secret_hex": "00" * 32,
    "p_new_secret_hex": "00" * 32,
    "p_trigger": "operator",
    "p_quota_policy_id": "q",
    "p_dependency_kind": "success_only",
    "p_on_satisfied": "let_run",
    "p_nodes": Jsonb([{"key": "a", "lane_id": "default"}, {"key": "b", "lane_id": "default"}]),
    "p_edges": Jsonb([{"from": "a", "to": "b"}]),
    "p_groups": Jsonb([{"to": "b", "policy": "any_of"}]),
    "p_schedule_id": "s",
    "p_time_zone": "UTC",
    "p_catch_up": "all",
    "p_interval_ms": 1000,
    "p_budget_id": "budget",
    "p_dimension": "tokens",
    "p_dimensions": ["tokens"],
    "p_hard_limits": [100],
    "p_soft_limits": [50],
    "p_deltas": Jsonb({"tokens": 60}),
}
PLAUSIBLE_OF_TYPE = {
    "text": "x",
    "int4": 1,
    "int8": 1000,
    "uuid": SOME_ID,
    "bool": False,
    "bytea": b"x",
    "float8": 0.5,
    "jsonb": Jsonb({"a.b": "c"}),
    "_text": ["a"],
}


def arguments(db, function):
    """The input arguments of a function: name, type, whether there is a default."""
    return table(
        db,
        """select a.name, t.typname as type, a.n > p.pronargs - p.pronargdefaults as optional
             from pg_proc p,
                  unnest(coalesce(p.proargnames, '{}')) with ordinality a(name, n),
                  pg_type t
            where p.proname = %s and a.n <= p.pronargs and t.oid = p.proargtypes[a.n - 1] order by a.n""",
        function,
    )


class Scene:
    """An execution in every state, and what a caller would know of them."""

    def __init__(self, db):
        self.db, self.rows_written = db, None
        self.registry = {
            row["sqlstate"]: row["kind"] for row in table(db, "select sqlstate, kind from ff_error_code")
        }
        self.arguments = {name: arguments(db, name) for name in FUNCTIONS}
        # ff_ping and ff_now_ms are volatile for their clock alone.
        query = "select proname from pg_proc where provolatile = 'v' and proname = any (%s)"
        self.writers = {row["proname"] for row in table(db, query, FUNCTIONS)} - {"ff_ping", "ff_now_ms"}
        self.queries = {}
        now = one(db, "ff_now_ms")["ff_now_ms"]
        create(db, tags={"a.b": "c"})
        held = take(db, lease_ttl_ms=86_400_000)
        for mode in ("durable", "durable_summary", "best_effort_live"):
            one(db, "ff_append_frame", handle=held["handle"], payload=b'{"a": 1}', mode=mode)
        one(db, "ff_record_step", handle=held["handle"], name="notify", result=b"r")
        create(db)
        lapsed = take(db)
        create(db)
        paused = take(db)
        one(db, "ff_delay", handle=paused["handle"], delay_ms=0)
        create(db, priority=9)
        done = take(db)
        for name in ("notify", "x"):
            one(db, "ff_record_step", handle=done["handle"], name=name, result=b"r")
        one(db, "ff_complete", handle=done["handle"], result=b"r")
        one(db, "ff_seed_waitpoint_hmac_secret", kid="k1")
        create(db, priority=9)
        waiting = take(db)
        one(db, "ff_create_waitpoint", handle=waiting["handle"], waitpoint_key="b")
        wildcard = Jsonb({"kind": "single", "waitpoint_key": "a", "matcher": "wildcard"})
        point = rows(
            db, "ff_suspend", handle=waiting["handle"], condition=wildcard, timeout_at_ms=now + 10**9
        )[0]
        open_one = one(db, "ff_create_waitpoint", handle=held["handle"], waitpoint_key="a")
        ready, delayed = create(db), create(db, delay_until_ms=now + 10**9)
        db.execute(
            "update ff_execution set lease_expires_at_ms = 1, due_at_ms = 1 where lease_id = %s",
            [lapsed["lease_id"]],
        )
        grants = [
            one(db, "ff_issue_claim_grant", execution_id=eid, worker_id="w", worker_instance_id="w-1")
            for eid in (ready, paused["execution_id"])
        ]
        one(db, "ff_register_worker", worker_id="w", worker_instance_id="w-1", lanes=["default"])
        for name, start in (("s", now - 3_600_000), ("p", None)):
            one(
                db,
                "ff_create_schedule",
                schedule_id=name,
                lane_id="default",
                cron="@hourly",
                start_at_ms=start,
            )
        one(db, "ff_pause_schedule", schedule_id="p")
        one(db, "ff_create_quota_policy", quota_policy_id="q", max_concurrent=1, max_requests_per_window=1,
            window_seconds=60)  # fmt: skip
        limited = create(db, lane="limited", policy={"quota_policy_id": "q"})
        running = take(db, lane="limited", lease_ttl_ms=86_400_000)
        parked = create(db, lane="limited", policy={"quota_policy_id": "q"})
        assert rows(db, "ff_claim", lane_id="limited", worker_id="w", worker_instance_id="w-1") == []
        flow, up, down, edge, ended = self.flow(db)
        self.budget(db, ready, held["execution_id"])
        held_by = {f"p_{name}": held[name] for name in ("lease_id", "lease_epoch", "attempt_id")}
        lapsed_by = {f"p_{name}": lapsed[name] for name in ("lease_id", "lease_epoch", "attempt_id")}
        # Each is a set of arguments that belong together: a function meets all of them.
        self.sets = [
            {
                "p_execution_id": held["execution_id"],
                "p_handle": held["handle"],
                "p_waitpoint_id": open_one["waitpoint_id"],
                "p_waitpoint_token": open_one["waitpoint_token"],
                "p_schedule_id": "new",
                "p_cron": "@daily",
                **held_by,
            },
            {
                "p_execution_id": lapsed["execution_id"],
                "p_handle": lapsed["handle"],
                "p_schedule_id": "s",
                "p_cron": "@daily",
                "p_replace": True,
                **lapsed_by,
            },
            {"p_execution_id": ready, "p_grant_id": grants[0]["grant_id"], "p_handle": done["handle"]},
            {"p_execution_id": paused["execution_id"], "p_grant_id": grants[1]["grant_id"]},
            {"p_execution_id": delayed},
            {"p_execution_id": limited, "p_handle": running["handle"], "p_lane_id": "limited"},
            {"p_execution_id": parked, "p_lane_id": "limited", "p_reason": "waiting_for_quota"},
            {"p_execution_id": done["execution_id"]},
            {
                "p_flow_id": flow,
                "p_execution_id": down,
                "p_upstream_execution_id": up,
                "p_downstream_execution_id": down,
                "p_edge_id": edge,
                "p_event_id": ended,
                "p_policy": "cancel_pending",
            },
            {
                "p_flow_id": flow,
                "p_execution_id": up,
                "p_upstream_execution_id": down,
                "p_downstream_execution_id": up,
                "p_edge_id": edge,
                "p_policy": "any_of",
            },
            {
                "p_execution_id": waiting["execution_id"],
                "p_handle": waiting["handle"],
                "p_waitpoint_id": point["waitpoint_id"],
                "p_waitpoint_token": point["waitpoint_token"],
            },
        ]

    @staticmethod
    def flow(db):
        """A flow in which one waits for another, and an end that was not passed on yet."""
        flow = one(db, "ff_create_flow")["flow_id"]
        up, down, gone = (create(db, "flows", flow_id=flow) for _ in range(3))
        ends = {"flow_id": flow, "upstream_execution_id": up, "downstream_execution_id": down}
        edge = one(db, "ff_add_dependency", **ends)["edge_id"]
        with busy_flows(db):
            one(db, "ff_cancel_execution", execution_id=gone)
        (ended,) = table(db, "select event_id from ff_flow_dispatch")
        return flow, up, down, edge, ended["event_id"]

    @staticmethod
    def budget(db, ready, running):
        """A budget that is breached and has cancelled nothing yet; one of the attached waits for it."""
        one(
            db,
            "ff_create_budget",
            budget_id="budget",
            dimensions=["tokens"],
            hard_limits=[100],
            soft_limits=[50],
            on_hard_limit="cancel_pending",
            release_on_terminal=True,
        )
        for eid in (ready, running):
            one(db, "ff_attach_budget", budget_id="budget", execution_id=eid)
            one(
                db,
                "ff_record_spend",
                budget_id="budget",
                execution_id=eid,
                deltas={"tokens": 10},
                idempotency_key=eid,
            )
        one(db, "ff_report_usage_admin", budget_id="budget", deltas={"tokens": 200})

    def wrote(self):
        """Whether a row was written since the last look. If not, the invariants hold as they did then."""
        (rows_written,) = self.db.execute(
            "select sum(n_tup_ins + n_tup_upd + n_tup_del) from pg_stat_xact_all_tables"
        ).fetchone()
        before, self.rows_written = self.rows_written, rows_written
        return rows_written != before

    def query(self, function, names):
        """A call with these arguments, each cast to its type."""
        if (function, names) not in self.queries:
            types = {a["name"]: a["type"] for a in self.arguments[function]}
            named = [
                sql.SQL("{} => {}::{}").format(
                    sql.Identifier(n), sql.Placeholder(n), sql.Identifier(types[n])
                )
                for n in names
            ]
            query = sql.SQL("select * from {}({})").format(
                sql.Identifier(function), sql.SQL(", ").join(named)
            )
            self.queries[function, names] = query.as_string()
        return self.queries[function, names]

    def plausible(self, argument, known):
        """A value from the test's rows; known ones first."""
        name = argument["name"]
        if name in known and (name != "p_policy" or argument["type"] == "text"):
            return known[name]
        if name == "p_handle":
            return self.sets[0]["p_handle"]
        if name in PLAUSIBLE:
            return PLAUSIBLE[name]
        return PLAUSIBLE_OF_TYPE.get(argument["type"])


def call(db, scene, function, args):
    """One call, undone. Only a registered engine error, or a result after which the invariants hold, is right."""
    query = scene.query(function, tuple(args))
    shown = {name: repr(value)[:80] for name, value in args.items()}
    db.execute("savepoint fuzz")
    try:
        db.execute(query, args)
        if function in scene.writers and scene.wrote():
            found = db.execute("select invariant, subject, detail from ff_check_invariants()").fetchall()
            assert found == [], f"{function}({shown}): {found}"
    except psycopg.Error as error:
        assert (error.sqlstate or "").startswith("WF"), f"{function}({shown}): {error.sqlstate} {error}"
        detail = json.loads(error.diag.message_detail or "null")
        assert scene.registry.get(error.sqlstate) == detail["kind"], f"{function}({shown}): {detail}"
        assert error.diag.message_primary, f"{function}({shown})"
        assert error.diag.message_hint, f"{function}({shown})"
        assert len(str(error)) < 20_000, f"{function}({shown}): an error of {len(str(error))} characters"
    finally:
        db.execute("rollback to fuzz")


def bad(argument):
    """What to try on an argument: by its type, and by its name as far as that type can carry it."""
    near = [v for v in close(argument) if isinstance(v, str) == (argument["type"] == "text")]
    return [*BAD[argument["type"]], *near]


def huge(value):
    """Slow to send: one execution is enough to try it on."""
    return len(value if hasattr(value, "__len__") else str(value)) > 1000


@pytest.fixture
def scene(db):
    db.execute("set local statement_timeout = '10s'")
    return Scene(db)


def test_the_functions_of_this_test_are_all_there_are(db):
    found = table(
        db,
        """select proname from pg_proc
            where proname like 'ff\\_%%' and proname not like 'ff\\_\\_%%' and prokind = 'f' order by 1""",
    )
    assert [row["proname"] for row in found] == FUNCTIONS


@pytest.mark.parametrize("function", FUNCTIONS)
def test_one_bad_argument_is_a_result_or_a_registered_error(db, scene, function):
    found = scene.arguments[function]
    for known in scene.sets:
        call(
            db,
            scene,
            function,
            {a["name"]: scene.plausible(a, known) for a in found if not a["optional"] or a["name"] in known},
        )
    for a in found:
        flow = any(b["name"] in ("p_flow_id", "p_edge_id", "p_event_id") for b in found)
        for known in [scene.sets[6]] if flow else scene.sets[:2]:
            args = {
                b["name"]: scene.plausible(b, known)
                for b in found
                if not b["optional"] or b["name"] in known or b is a
            }
            for value in bad(a):
                if known is not scene.sets[1] or not huge(value):
                    call(db, scene, function, {**args, a["name"]: value})
            if not known.keys() & {b["name"] for b in found}:
                break


@pytest.mark.slow("long run")
@settings(
    max_examples=250,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)
@given(data=st.data())
def test_any_mixture_of_arguments_is_a_result_or_a_registered_error(db, scene, data):
    function = data.draw(st.sampled_from(FUNCTIONS))
    found = scene.arguments[function]
    known = data.draw(st.sampled_from(scene.sets))
    args = {}
    for a in found:
        choice = data.draw(st.sampled_from(["plausible", "default", "bad", "random"]))
        if choice == "default" and a["optional"]:
            continue
        if choice == "bad":
            args[a["name"]] = data.draw(st.sampled_from(bad(a)))
        elif choice == "random" and a["type"] in RANDOM:
            args[a["name"]] = data.draw(RANDOM[a["type"]])
        else:
            args[a["name"]] = scene.plausible(a, known)
    call(db, scene, function, args)


def characters():
    return st.characters(exclude_categories=["Cs"], exclude_characters="\x00")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.text(characters(), max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "priority",
                    "retry_policy",
                    "backoff",
                    "type",
                    "delay_until_ms",
                    "a.b",
                    "kind",
                    "members",
                    "n",
                ]
            )
            | st.text(characters(), max_size=8),
            inner,
            max_size=3,
        )
    ),
    max_leaves=6,
)
RANDOM = {
    "text": st.text(characters(), max_size=80),
    "int4": st.integers(-(2**31), 2**31 - 1),
    "int8": st.integers(-(2**63), 2**63 - 1),
    "uuid": st.uuids(),
    "bytea": st.binary(max_size=80),
    "jsonb": JSON.map(Jsonb),
    "_text": st.lists(st.none() | st.text(characters(), max_size=20), max_size=5),
}


# Accepted here, so everything later must live with it.
EXTREMES = [
    {"delay_ms": 2**63 - 1},
    {"delay_ms": 10**14},
    {"delay_until_ms": 2**63 - 1},
    {"delay_until_ms": -(2**63)},
    {"deadline_at_ms": 2**63 - 1},
    {"priority": 2**31 - 1},
    {"priority": -(2**31)},
    {"required_capabilities": [f"{n:03}" for n in range(256)]},
    {"tags": {f"a.b{n}": "x" * 4096 for n in range(64)}},
    *(
        {"policy": policy}
        for number in (2**31 - 1, 2**31, 10**14, 2**53, 2**63 - 1)
        for policy in (
            {"priority": number},
            {"delay_until_ms": number},
            {"delay_until_ms": -number},
            {"max_reclaim_count": number},
            {"max_replay_count": number},
            {"dedup_window_ms": number},
            {"retention_ms": number},
            {"timeout_policy": {"attempt_timeout_ms": number}},
            {"timeout_policy": {"execution_deadline_ms": number}},
            {"timeout_policy": {"max_reclaim_count": number}},
            {"retry_policy": {"backoff": {"type": "fixed", "delay_ms": number}}},
            {"retry_policy": {"backoff": {"initial_delay_ms": number, "type": "exponential"}}},
            {"retry_policy": {"backoff": {"max_delay_ms": number, "type": "exponential"}}},
            {
                "retry_policy": {
                    "max_retries": 1000,
                    "backoff": {
                        "type": "exponential",
                        "initial_delay_ms": number,
                        "max_delay_ms": number,
                        "multiplier": number,
                        "jitter": True,
                    },
                }
            },
            {"stream_policy": {"maxlen": number}},
            {"max_signals_per_execution": number},
        )
    ),
]


@pytest.mark.slow("long run")
def test_whatever_a_submission_may_say_can_be_lived_with(db, scene, clock):
    clock.freeze()
    accepted = 0
    capabilities = [f"{n:03}" for n in range(256)]
    for n, extreme in enumerate(EXTREMES):
        db.execute("savepoint life")
        try:
            eid = create(db, "lives", idempotency_key="k", **extreme)
        except psycopg.Error as error:
            assert (error.sqlstate or "").startswith("WF1"), f"{n} {extreme}: {error}"
            db.execute("rollback to life")
            continue
        accepted += 1
        worker = {"worker_id": "w", "worker_instance_id": "w-1"}
        claimed = db.execute(
            "select handle from ff_claim('lives', 'w', 'w-1', %s, 86400000)", [capabilities]
        ).fetchone()
        handle = claimed[0] if claimed else scene.sets[0]["p_handle"]
        for function, args in [
            ("ff_describe_execution", {"execution_id": eid}),
            ("ff_issue_grant_and_claim", {"execution_id": eid}),
            ("ff_renew", {"handle": handle, "lease_ttl_ms": 86_400_000}),
            ("ff_delay", {"handle": handle, "delay_ms": 10**14}),
            ("ff_fail", {"handle": handle, "reason": "x"}),
            ("ff_list_executions", {"lane_id": "lives"}),
        ]:
            call(db, scene, function, {f"p_{name}": value for name, value in args.items()})
        if claimed:
            one(db, "ff_fail", handle=handle)
        clock.advance(86_400_001)
        for function in ("ff_promote_delayed", "ff_mark_lease_expired_if_due"):
            one(db, function, execution_id=eid)
        call(db, scene, "ff_claim", {f"p_{k}": v for k, v in {"lane_id": "lives", **worker}.items()})
        one(db, "ff_expire_execution", execution_id=eid, phase="execution_deadline")
        state = one(db, "ff_read_execution_state", execution_id=eid)["public_state"]
        if state in ("waiting", "delayed", "active"):
            one(db, "ff_cancel_execution", execution_id=eid)
        call(db, scene, "ff_replay_execution", {"p_execution_id": eid})
        db.execute("rollback to life")
    assert accepted > 30
