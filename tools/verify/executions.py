"""Rules about executions: nothing acknowledged is lost, nothing ends twice."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from tools.verify.facts import Facts
from tools.verify.history import Call

Finding = tuple[str, str]

# Results of calls by a lease holder that end the execution, and its outcome.
HOLDERS_ENDS = {
    ("ff_complete", "completed"): "success",
    ("ff_fail", "terminal_failed"): "failed",
    ("ff_cancel", "cancelled"): "cancelled",
}


def acknowledged_creates_are_stored(calls: Sequence[Call], facts: Facts) -> Iterator[Finding]:
    for call in calls:
        if call.function != "ff_create_execution" or call.row.get("outcome") != "created":
            continue
        id = call.row["execution_id"]
        row = facts.executions.get(id)
        if row is None:
            yield id, f"{call.client} got its id, and it is not stored"
        elif row["payload"] != call.args.get("payload"):
            yield id, "its payload differs from the submitted one"


def duplicates_return_the_first(calls: Sequence[Call], facts: Facts) -> Iterator[Finding]:
    """One idempotency key has one execution, for all clients."""
    acknowledged: dict[str, set[str]] = defaultdict(set)
    for call in calls:
        key = call.args.get("idempotency_key")
        if call.function in ("ff_create_execution", "ff_fire_schedule") and call.acknowledged and key:
            acknowledged[key].add(call.row["execution_id"])
    for key, ids in acknowledged.items():
        if len(ids) > 1:
            yield key, f"stands for {len(ids)} executions: {', '.join(sorted(ids))}"


def acknowledged_results_are_stored(calls: Sequence[Call], facts: Facts) -> Iterator[Finding]:
    """An acknowledged completion is stored, with the bytes that its client sent."""
    sent: dict[tuple[str, int], set[str | None]] = defaultdict(set)
    winners: dict[str, Call] = {}
    for call in calls:
        if call.function != "ff_complete" or call.args["handle"] not in facts.fences:
            continue
        fence = facts.fences[call.args["handle"]]
        if call.acknowledged or call.unknown:
            sent[fence.execution_id, fence.lease_epoch].add(call.args.get("result"))
        if not call.acknowledged or call.row["replayed"]:
            continue
        attempt = facts.attempts.get((fence.execution_id, fence.attempt_index))
        if attempt is None:
            yield fence.execution_id, f"attempt {fence.attempt_index} was completed and is not stored"
        elif (attempt["release_op"], attempt["release_lease_id"], attempt["release_lease_epoch"]) != (
            "complete",
            fence.lease_id,
            fence.lease_epoch,
        ):
            yield (
                fence.execution_id,
                f"the completion of lease {fence.lease_epoch} was acknowledged; recorded is {attempt['release_op']} "
                f"of lease {attempt['release_lease_epoch']}",
            )
        elif attempt["result"] != call.args.get("result"):
            yield (
                fence.execution_id,
                f"attempt {fence.attempt_index} does not hold the result that was accepted",
            )
        first = winners.setdefault(call.args["handle"], call)
        if first is not call:
            yield (
                fence.execution_id,
                f"{first.client} and {call.client} both completed lease {fence.lease_epoch}",
            )
    for (id, index), attempt in facts.attempts.items():
        if attempt["release_op"] == "complete":
            known = sent.get((id, attempt["release_lease_epoch"]))
            if known is not None and attempt["result"] not in known:
                yield id, f"attempt {index} holds a result that its worker did not send"


def every_end_is_recorded_once(calls: Sequence[Call], facts: Facts) -> Iterator[Finding]:
    """One completion event per end: one for each replay, and one if it has ended now."""
    for id, row in facts.executions.items():
        ends = [event for event in facts.events[id] if event["family"] == "completion"]
        wanted = row["replay_count"] + (row["lifecycle_phase"] == "terminal")
        if len(ends) != wanted:
            yield id, f"ended {wanted} times, and {len(ends)} completion events say so"
        elif row["lifecycle_phase"] == "terminal" and ends[-1]["outcome"] != row["terminal_outcome"]:
            yield id, f"is {row['terminal_outcome']}, its last completion event says {ends[-1]['outcome']}"


def every_end_has_its_event(calls: Sequence[Call], facts: Facts) -> Iterator[Finding]:
    """Each acknowledged end of an execution has its own completion event."""
    acknowledged: Counter[tuple[str, str]] = Counter()
    for call in calls:
        if not call.acknowledged or call.row.get("replayed"):
            continue
        verb = (call.function, call.row.get("outcome"))
        if verb in HOLDERS_ENDS and call.args["handle"] in facts.fences:
            acknowledged[facts.fences[call.args["handle"]].execution_id, HOLDERS_ENDS[verb]] += 1
        elif verb == ("ff_cancel_execution", "cancelled") and call.args.get("source") != "lease_holder":
            acknowledged[call.args["execution_id"], "cancelled"] += 1
    for (id, outcome), times in acknowledged.items():
        events = sum(
            e["family"] == "completion" and e["outcome"] == outcome for e in facts.events.get(id, ())
        )
        if events < times:
            yield id, f"{times} calls reported the outcome {outcome}, and {events} events record it"


def replays_are_counted(calls: Sequence[Call], facts: Facts) -> Iterator[Finding]:
    """Every acknowledged replay is counted once."""
    numbers: dict[tuple[str, int], Call] = {}
    for call in calls:
        if call.function != "ff_replay_execution" or not call.acknowledged:
            continue
        id, number = call.args["execution_id"], call.row["replay_count"]
        if number > facts.executions.get(id, {"replay_count": 0})["replay_count"]:
            yield id, f"{call.client} got replay {number}, which is not counted"
        other = numbers.setdefault((id, number), call)
        if other is not call:
            yield id, f"{other.client} and {call.client} both got replay {number}"


def results_are_read_as_stored(calls: Sequence[Call], facts: Facts) -> Iterator[Finding]:
    """Every read of a result returns the stored result of the attempt: a result never changes."""
    for call in calls:
        if call.function != "ff_get_execution_result":
            continue
        for row in call.rows or ():
            id, index = call.args["execution_id"], row["attempt_index"]
            attempt = facts.attempts.get((id, index), {"result": None})
            if row["result"] is not None and row["result"] != attempt["result"]:
                yield id, f"{call.client} read a result of attempt {index} that it does not hold"
