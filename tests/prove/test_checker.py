"""The checker accepts a true history, and finds each falsification of the database or of a client by its rule."""

import copy

import pytest

from tests.sql import spread_events
from tools.verify import Call, Recorder, check, load

SINGLE = {"kind": "single", "waitpoint_key": "go", "matcher": "wildcard"}


class Story:
    """One client that goes through every family of operations, and the results of its calls."""

    def __init__(self, conn, directory):
        self.conn, self.path = conn, directory / "worker.jsonl"
        self.recorder = Recorder(self.path, "worker")
        self.tell()

    def call(self, function, **args):
        return self.recorder.call(self.conn, function, **args)

    def claim(self, lane="a"):
        me = {"worker_id": "w", "worker_instance_id": "w"}
        return self.call("ff_claim", lane_id=lane, **me, lease_ttl_ms=60_000)[0]["handle"]

    def tell(self):
        self.conn.execute("select ff_seed_waitpoint_hmac_secret(p_kid => 'k')")
        self.conn.execute("select ff_create_quota_policy('few', p_max_concurrent => 2)")
        self.conn.execute("select ff_create_quota_policy('doors', p_max_concurrent => 1)")
        self.conn.execute(
            "select ff_create_quota_policy('slow', p_window_seconds => 600, p_max_requests_per_window => 3)"
        )
        self.conn.execute("select ff_create_budget('b', '{tokens}', '{100}', '{0}')")
        self.conn.execute(
            "select ff_create_schedule('s', 'ticks', p_interval_ms => 1000, p_catch_up => 'all', p_start_at_ms => 1000,"
            " p_max_catch_up => 3)"
        )
        self.call("ff_create_execution", lane_id="unclaimed", payload=b"kept")
        for _ in range(2):
            self.call("ff_create_execution", lane_id="unclaimed", payload=b"once", idempotency_key="k")
        self.call("ff_create_execution", lane_id="a", payload=b"work")
        handle = self.claim()
        self.call("ff_renew", handle=handle, lease_ttl_ms=60_000)
        for text in (b"first", b"second"):
            self.call("ff_append_frame", handle=handle, payload=text)
        self.call("ff_append_frame", handle=handle, payload=b'{"seen": 1}', mode="durable_summary")
        id = self.id(handle)
        self.call("ff_read_stream", execution_id=id, attempt_index=0, visibility="exclude_best_effort")
        self.call("ff_record_step", handle=handle, name="charge", result=b"42")
        self.call("ff_report_usage", handle=handle, budget_id="b", deltas={"tokens": 30}, dedup_key="d")
        self.call("ff_report_usage", handle=handle, budget_id="b", deltas={"tokens": 30}, dedup_key="d")
        for _ in range(2):  # the second is answered from the record
            (point,) = self.call("ff_suspend", handle=handle, condition=SINGLE)
        self.call(
            "ff_deliver_signal",
            execution_id=id,
            waitpoint_id=point["waitpoint_id"],
            waitpoint_token=point["waitpoint_token"],
            signal_name="go",
            payload=b"now",
        )
        self.handle = self.claim()
        for _ in range(2):  # the second is answered from the record
            self.call("ff_complete", handle=self.handle, result=b"done")
        self.call("ff_get_execution_result", execution_id=id)
        self.call("ff_create_executions", lane_id="many", payloads=[b"1", b"2"])
        handles = [self.claim("many"), self.claim("many")]
        self.call("ff_complete_many", handles=handles, results=[b"one", b"two"])
        for policy in ("few", "few", "slow", "slow", "slow"):
            self.call("ff_create_execution", lane_id=policy, payload=b"", policy={"quota_policy_id": policy})
        self.limited = [self.claim("few"), self.claim("few"), *(self.claim("slow") for _ in range(3))]
        for key in (self.known(0), self.known(1)):
            self.call("ff_check_admission", quota_policy_id="doors", execution_id=key, hold_ms=60_000)
        self.call("ff_release_admission", quota_policy_id="doors", execution_id=self.known(0))
        self.call("ff_check_admission", quota_policy_id="doors", execution_id=self.known(0), hold_ms=60_000)
        nodes = [{"key": key, "lane_id": f"flow-{key}"} for key in "ab"]
        self.call("ff_submit_flow", nodes=nodes, edges=[{"from": "a", "to": "b"}])
        self.call("ff_complete", handle=self.claim("flow-a"), result=b"")
        self.claim("flow-b")
        self.gather()
        self.call("ff_fire_schedules")
        self.call("ff_fire_schedule", schedule_id="s")
        self.end()

    def end(self):
        """What is delayed, revoked, fails and runs again, is cancelled; alone and in a flow."""
        self.call("ff_create_execution", lane_id="again", payload=b"")
        self.call("ff_delay", handle=self.claim("again"), delay_ms=0)
        handle = self.claim("again")
        again = self.id(handle)
        self.call("ff_revoke_lease", execution_id=again)
        self.call("ff_fail", handle=self.claim("again"), classification="permanent")
        self.call("ff_replay_execution", execution_id=again)
        self.call("ff_cancel", handle=self.claim("again"))
        self.call("ff_replay_execution", execution_id=again)
        self.call("ff_cancel_execution", execution_id=again)
        rows = self.call("ff_submit_flow", nodes=[{"key": "a", "lane_id": "stopped"}])
        self.claim("stopped")
        self.call("ff_cancel_flow", flow_id=rows[0]["flow_id"])

    def gather(self):
        """A parent that waits for its child."""
        flow = self.call("ff_create_flow")[0]["flow_id"]
        parent = self.call("ff_create_execution", lane_id="parents", payload=b"", flow_id=flow)[0][
            "execution_id"
        ]
        handle = self.claim("parents")
        (child,) = self.call("ff_create_executions", lane_id="children", payloads=[b""], flow_id=flow)
        ends = {"upstream_execution_id": child["execution_id"], "downstream_execution_id": parent}
        self.call("ff_add_dependency", flow_id=flow, **ends)
        self.call("ff_wait_children", handle=handle)
        self.call("ff_complete", handle=self.claim("children"), result=b"")
        self.claim("parents")

    def id(self, handle):
        return self.conn.execute("select execution_id from ff_handle_decode(%s)", [handle]).fetchone()[0]

    def known(self, n):
        return [call for call in load([self.path]) if call.function == "ff_create_execution"][n].row[
            "execution_id"
        ]

    def calls(self):
        """All results of its calls; and it read every event, which a reader may have to wait for."""
        query = "select event_id, event_type from ff_event order by gen, ord, event_id"
        rows = [{"event_id": id, "event_type": kind} for id, kind in self.conn.execute(query)]
        return [*load([self.path]), Call("reader", 1, "ff_read_events", {}, 0, rows=rows, ended_ms=1)]

    def rules(self, calls):
        return {violation.rule for violation in check(self.conn, calls)}


@pytest.fixture
def story(db, tmp_path):
    return Story(db, tmp_path)


def test_a_true_history_holds(story):
    assert list(check(story.conn, story.calls())) == []


HELD = "(select execution_id from ff_execution where lane_id = 'a')"
LIES = {
    "an execution is gone": (
        "acknowledged creates are stored",
        "delete from ff_execution where lane_id = 'unclaimed'",
    ),
    "a payload has changed": (
        "acknowledged creates are stored",
        "update ff_execution set payload = 'other' where payload = 'kept'",
    ),
    "a result has changed": (
        "acknowledged results are stored",
        "update ff_execution set result = 'other' where result = 'done'",
    ),
    "a result was read that is not there": (
        "results are read as stored",
        "update ff_execution set result = 'other' where result = 'done'",
    ),
    "results of a batch changed places": (
        "acknowledged results are stored",
        "update ff_execution set result = case result when 'one' then 'two' else 'one' end::bytea"
        " where result in ('one', 'two')",
    ),
    "an end is not recorded": (
        "every end is recorded once",
        f"delete from ff_event_log where family = 'completion' and execution_id = {HELD}",
    ),
    "an end is recorded with another outcome": (
        "every end is recorded once",
        f"update ff_event_log set event_type = 'failed' where family = 'completion' and execution_id = {HELD}",
    ),
    "an acknowledged end is not there": (
        "every end has its event",
        "delete from ff_event_log where family = 'completion' and event_type = 'failed' and lane_id = 'again'",
    ),
    "one of two cancellations is not there": (
        "every end has its event",
        "delete from ff_event_log where event_id = (select max(event_id) from ff_event_log"
        " where family = 'completion' and event_type = 'cancelled' and lane_id = 'again')",
    ),
    "a replay is not counted": (
        "replays are counted",
        "update ff_execution set replay_count = 1 where lane_id = 'again'",
    ),
    "a lease that was given up was taken away": (
        "lease ends are recorded",
        f"update ff_event_log set event_type = 'revoked' where event_type = 'released' and execution_id = {HELD}",
    ),
    "a lease that was taken away was not": (
        "lease ends are recorded",
        "update ff_event_log set event_type = 'released' where event_type = 'revoked' and lane_id = 'again'",
    ),
    "a reclaim is not counted": (
        "reclaims are counted",
        f"update ff_execution set lease_reclaim_count = 7 where execution_id = {HELD}",
    ),
    "a suspension was not waited out": (
        "suspended work is not claimed",
        f"delete from ff_event_log where event_type = 'resumed' and execution_id = {HELD}",
    ),
    "a member of a cancelled flow was claimed": (
        "cancelled flows start nothing",
        "update ff_event_log set occurred_at_ms = occurred_at_ms + 600000"
        " where event_type = 'acquired' and lane_id = 'stopped'",
    ),
    "the end of a lease is not recorded": (
        "one live lease at a time",
        f"delete from ff_event_log where event_type = 'released' and execution_id = {HELD}",
    ),
    "a lease begins before the one before has ended": (
        "leases do not overlap",
        f"update ff_event_log set occurred_at_ms = occurred_at_ms - 600000 where event_type = 'acquired'"
        f" and lease_epoch = 2 and execution_id = {HELD}",
    ),
    "a lease was taken away before its time": (
        "leases do not expire early",
        f"update ff_event_log set event_type = 'expired' where event_type = 'released' and execution_id = {HELD}",
    ),
    "the start of a lease is not recorded": (
        "claims are recorded",
        f"delete from ff_event_log where event_type = 'acquired' and execution_id = {HELD}",
    ),
    "a call came after the end of its lease": (
        "stale calls are rejected",
        f"update ff_event_log set occurred_at_ms = 1 where event_type = 'released' and execution_id = {HELD}",
    ),
    "a signal is gone": ("signals are stored", "delete from ff_signal"),
    "a signal has changed": ("signals are stored", "update ff_signal set payload = 'other'"),
    "a signal is an operator's": (
        "signals and approvals are separate",
        "update ff_signal set source_type = 'operator'",
    ),
    "a suspension was shown to another lease": (
        "tokens are returned to their fence",
        "update ff_suspension set lease_id = suspension_id",
    ),
    "signals are misnumbered": ("signals are stored", "update ff_signal set seq = 7"),
    "a frame is gone": ("frames are stored", "delete from ff_stream_frame where payload = 'first'"),
    "a frame has changed": ("frames are stored", "update ff_stream_frame set payload = 'x' where payload = 'first'"),
    "a reader passed over a frame": (
        "streams are read in order",
        "update ff_stream_frame set ts_ms = ts_ms + 600000 where payload = 'first'",
    ),
    "a patch is gone": ("summaries contain every patch", "update ff_stream_summary set document = '{}'"),
    "an event was read that is not there": (
        "events are read once in order",
        f"delete from ff_event_log where event_type = 'renewed' and execution_id = {HELD}",
    ),
    "a step is gone": ("steps are stored", "delete from ff_step"),
    "a step has changed": ("steps are stored", "update ff_step set result = 'other'"),
    "a tick is gone": (
        "schedules fire once",
        "delete from ff_execution"
        " where tags ->> 'schedule.fire_at_ms' = (select last_fire_at_ms::text from ff_schedule)",
    ),
    "a budget counts too little": ("budget usage is exact", "update ff_budget_usage set current_value = 29"),
    "a budget is passed": (
        "budget usage is exact",
        "update ff_budget_usage set current_value = 30, hard_limit = 29, lowered = true",
    ),
    "a cap is passed": (
        "concurrency limits hold",
        "update ff_quota_policy set max_concurrent = 1 where quota_policy_id = 'few'",
    ),
    "a window is passed": (
        "window limits hold",
        "update ff_quota_policy set max_requests_per_window = 2 where quota_policy_id = 'slow'",
    ),
    "an edge is gone": ("graphs are stored", "delete from ff_edge"),
    "a child did not wait": (
        "members wait for dependencies",
        "update ff_event_log set event_id = event_id + 1000000 where family = 'completion' and lane_id = 'flow-a'",
    ),
    "a parent did not wait": (
        "parents wait for children",
        "update ff_event_log set event_id = event_id + 1000000 where family = 'completion' and lane_id = 'children'",
    ),
}  # fmt: skip


@pytest.mark.parametrize("lie", LIES)
def test_a_database_that_lies_is_found(story, lie):
    rule, statement = LIES[lie]
    calls = story.calls()
    spread_events(story.conn)
    assert story.conn.execute(statement).rowcount > 0
    assert rule in story.rules(calls)


def of(calls, function, n=0):
    return [call for call in calls if call.function == function][n]


def test_two_keys_for_one_execution_are_found(story):
    calls = story.calls()
    of(calls, "ff_create_execution", 2).row["execution_id"] = story.known(0)
    assert "duplicates return the first" in story.rules(calls)


def test_a_lease_that_two_were_given_is_found(story):
    calls = story.calls()
    calls.append(copy.deepcopy(of(calls, "ff_claim")))
    assert "claims are recorded" in story.rules(calls)


def test_a_lease_that_was_given_up_twice_is_found(story):
    calls = story.calls()
    of(calls, "ff_complete", 1).row["replayed"] = False
    assert "one release each" in story.rules(calls)


def test_a_call_under_a_lease_that_had_run_out_is_found(story):
    calls = story.calls()
    for call in calls:
        if call.function in ("ff_claim", "ff_renew"):
            call.row["lease_expires_at_ms"] = 1
    assert "calls under an expired lease are rejected" in story.rules(calls)


def test_a_report_that_was_added_twice_is_found(story):
    calls = story.calls()
    of(calls, "ff_report_usage", 1).row["outcome"] = "ok"
    assert "reports count once" in story.rules(calls)


def test_a_report_that_was_refused_and_counts_as_applied_is_found(story):
    calls = story.calls()
    of(calls, "ff_report_usage").row.update(applied=False, outcome="hard_breach")
    assert "reports count once" in story.rules(calls)


def test_a_signal_with_the_token_of_another_waitpoint_is_found(story):
    calls = story.calls()
    of(calls, "ff_deliver_signal").args["waitpoint_token"] = f"k:{'0' * 64}"
    assert "tokens are checked" in story.rules(calls)


def test_a_claim_before_the_end_of_a_delay_is_found(story):
    calls = story.calls()
    of(calls, "ff_delay").row["delay_until_ms"] = 1 << 60
    assert "delayed work is not claimed early" in story.rules(calls)


def test_a_slot_that_was_given_back_and_is_held_is_found(story):
    calls = story.calls()
    assert of(calls, "ff_check_admission", 2).row["outcome"] == "admitted"
    of(calls, "ff_check_admission", 2).row["outcome"] = "already_admitted"
    assert "released slots are free" in story.rules(calls)


def test_a_slot_that_two_held_is_found(story):
    calls = story.calls()
    assert of(calls, "ff_check_admission", 1).row["outcome"] == "concurrency_exceeded"
    of(calls, "ff_check_admission", 1).row["outcome"] = "admitted"
    # Calls of one millisecond have no order that the rule could go by: the slot is given back a second later.
    release = of(calls, "ff_release_admission")
    release.began_ms, release.ended_ms = release.began_ms + 1000, release.ended_ms + 1000
    assert "held slots respect the limit" in story.rules(calls)


def test_an_event_that_was_read_twice_is_found(story):
    calls = story.calls()
    calls.append(copy.deepcopy(of(calls, "ff_read_events")))
    assert "events are read once in order" in story.rules(calls)


@pytest.mark.parametrize("happened", [True, False])
def test_a_call_without_an_answer_may_have_happened_or_not(story, happened):
    calls = story.calls()
    if happened:
        of(calls, "ff_report_usage").rows = None
        of(calls, "ff_report_usage", 1).rows = None
        of(calls, "ff_complete").rows = None
    else:
        for function, args in (
            ("ff_report_usage", {"handle": story.handle, "budget_id": "b", "deltas": {"tokens": 5}}),
            ("ff_complete", {"handle": story.handle, "result": "\\x00"}),
            ("ff_append_frame", {"handle": story.handle, "payload": "\\x00"}),
        ):
            call = copy.deepcopy(of(calls, function))
            call.args, call.rows, call.ended_ms = args, None, None
            calls.append(call)
    assert story.rules(calls) == set()


def test_a_renewal_without_an_answer_after_the_end_of_a_lease_promises_nothing(story):
    spread_events(story.conn)
    story.conn.execute(
        f"update ff_event_log set event_type = 'expired', occurred_at_ms = occurred_at_ms + 120000"
        f" where event_type = 'released' and lease_epoch = 2 and execution_id = {HELD}"
    )
    calls = story.calls()
    late = copy.deepcopy(of(calls, "ff_renew"))
    late.args, late.rows, late.ended_ms = {"handle": story.handle}, None, None
    late.began_ms += 10_000_000
    assert "leases do not expire early" not in story.rules([*calls, late])


def test_a_client_that_starts_again_goes_on_with_its_history(db, tmp_path):
    path = tmp_path / "worker.jsonl"
    for payload in (b"1", b"2"):
        recorder = Recorder(path, "worker")
        recorder.call(db, "ff_create_execution", lane_id="a", payload=payload)
        recorder.close()
    calls = load([path])
    assert [call.args["payload"] for call in calls] == ["\\x31", "\\x32"]
    assert all(call.acknowledged for call in calls)


def test_every_rule_has_a_lie_that_it_finds():
    from tools.verify.check import CLOCK_RULES, RULES

    by_hand = {
        "duplicates return the first",
        "one release each",
        "calls under an expired lease are rejected",
        "reports count once",
        "held slots respect the limit",
        "tokens are checked",
        "delayed work is not claimed early",
        "released slots are free",
    }
    known = {rule.__name__.replace("_", " ") for rule in (*RULES, *CLOCK_RULES)}
    assert {rule for rule, _ in LIES.values()} | by_hand == known
