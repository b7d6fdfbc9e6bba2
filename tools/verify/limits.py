"""Rules about quotas and budgets: never exceeded, and every unit accounted for."""

from collections import defaultdict
from collections.abc import Iterator, Sequence

from tools.verify.facts import ENDS, STARTS, Facts
from tools.verify.history import Call
from tools.verify.leases import NEVER, promised_until

Finding = tuple[str, str]

SPENDS = ("ff_report_usage", "ff_report_usage_admin", "ff_record_spend")


def concurrency_limits_hold(calls: Sequence[Call], facts: Facts) -> Iterator[Finding]:
    """Never more live leases under a policy than its cap.

    An expired lease frees its slot at once, and is recorded as expired later: it counts as live only until the time
    that its holder was given.
    """
    promised = promised_until(calls, facts)
    steps: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for id, row in facts.executions.items():
        policy = row["quota_policy_id"]
        began: int | None = None
        for event in facts.leases(id) if policy else ():
            at = event["occurred_at_ms"]
            if event["event_type"] in STARTS:
                began = at
            elif event["event_type"] in ENDS and began is not None:
                if event["event_type"] == "expired":
                    at = min(at, promised.get((id, event["lease_epoch"]), began))
                if at > began:
                    steps[policy] += [(began, 1), (at, -1)]
                began = None
        if began is not None:
            until = promised.get((id, facts.executions[id]["lease_epoch"]), began)
            steps[policy] += [(began, 1), (max(began, until), -1)]
    for policy in facts.policies:
        cap = policy["max_concurrent"]
        live = 0
        # Within one millisecond, ends count before starts: their order is unknown.
        for at, step in sorted(steps[policy["quota_policy_id"]]):
            live += step
            if cap and live > cap:
                yield policy["quota_policy_id"], f"{live} leases were live at {at}, its cap is {cap}"
                break


def held_slots_respect_the_limit(calls: Sequence[Call], facts: Facts) -> Iterator[Finding]:
    """Never more holds of ff_check_admission under a policy than its cap: counted from the result to the release."""
    released: dict[tuple[str, str], list[Call]] = defaultdict(list)
    for call in calls:
        if call.function == "ff_release_admission":
            released[call.args["quota_policy_id"], call.args["execution_id"]].append(call)
    held: dict[tuple[str, str], list[tuple[int, int]]] = defaultdict(list)
    for call in calls:
        if (
            call.function != "ff_check_admission"
            or call.row.get("outcome") != "admitted"
            or not call.ended_ms
        ):
            continue
        key = (call.args["quota_policy_id"], call.args["execution_id"])
        if any(event["family"] == "completion" for event in facts.events.get(key[1], ())):
            continue  # its end may have released the slot
        until = min(
            (x.began_ms for x in released[key] if x.ended_ms is None or x.ended_ms >= call.began_ms),
            default=NEVER,
        )
        held[key].append((call.ended_ms, min(until, call.began_ms + call.args["hold_ms"])))
    caps = {policy["quota_policy_id"]: policy["max_concurrent"] for policy in facts.policies}
    steps: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for (policy, _), intervals in held.items():
        after = 0
        for starts_at, until in sorted(intervals):
            began = max(starts_at, after)
            if until > began:
                steps[policy] += [(began, 1), (until, -1)]
                after = until
    for policy, changes in steps.items():
        live = 0
        for at, step in sorted(changes):
            live += step
            if caps.get(policy) and live > caps[policy]:
                yield policy, f"{live} slots were held at {at}, its cap is {caps[policy]}"
                break


def window_limits_hold(calls: Sequence[Call], facts: Facts) -> Iterator[Finding]:
    """Never more admissions in any window than its policy allows."""
    admitted: dict[str, list[int]] = defaultdict(list)
    for row in facts.window:
        admitted[row["quota_policy_id"]].append(row["admitted_at_ms"])
    for policy in facts.policies:
        most, length = policy["max_requests_per_window"], policy["window_seconds"] * 1000
        times = admitted[policy["quota_policy_id"]]
        for first, after in zip(times, times[most:], strict=False) if most else ():
            if after - first < length:
                yield policy["quota_policy_id"], f"{most + 1} admissions within {after - first} ms"
                break


def budget_usage_is_exact(calls: Sequence[Call], facts: Facts) -> Iterator[Finding]:
    """The usage of a budget is the acknowledged one, plus or minus calls whose results were lost."""
    known: dict[tuple[str, str], int] = defaultdict(int)
    possible: dict[tuple[str, str], int] = defaultdict(int)
    for call in calls:
        if call.function not in SPENDS:
            continue
        applied = (
            call.acknowledged and call.row.get("applied") and call.row.get("outcome") != "already_applied"
        )
        for dimension, delta in call.args["deltas"].items():
            key = (call.args["budget_id"], dimension)
            if applied:
                known[key] += delta
            elif call.unknown:
                possible[key] += delta
    for key, row in facts.budgets.items():
        value = row["current_value"]
        if not row["reset_count"] and not known[key] <= value <= known[key] + possible[key]:
            yield (
                f"{key[0]} {key[1]}",
                f"shows {value}; {known[key]} were acknowledged, {possible[key]} are unknown",
            )
        if row["hard_limit"] and row["enforcement_mode"] == "strict" and value > row["hard_limit"]:
            yield f"{key[0]} {key[1]}", f"shows {value}, its hard limit is {row['hard_limit']}"


def reports_count_once(calls: Sequence[Call], facts: Facts) -> Iterator[Finding]:
    """A usage report repeated under its key is added once; and it was added if it was acknowledged as applied."""
    applied: dict[tuple[str, str], int] = defaultdict(int)
    possible: set[tuple[str, str]] = set()
    repeated: dict[tuple[str, str], Call] = {}
    for call in calls:
        key = call.args.get("dedup_key") or call.args.get("idempotency_key")
        if call.function not in SPENDS or not key:
            continue
        report = (call.args["budget_id"], key)
        if call.unknown:
            possible.add(report)
        elif call.row.get("outcome") == "already_applied":
            repeated[report] = call
        elif call.row.get("applied"):
            applied[report] += 1
    for (budget, key), times in applied.items():
        if times > 1:
            yield budget, f"the report under key {key} was added {times} times"
    for (budget, key), call in repeated.items():
        if (budget, key) not in applied.keys() | possible:
            yield (
                budget,
                f"{call.client} got the result applied for the report under key {key}, and it is not added",
            )


def released_slots_are_free(calls: Sequence[Call], facts: Facts) -> Iterator[Finding]:
    """A slot of ff_check_admission that its only user has released is not held until that user takes it again."""
    used: dict[tuple[str, str], list[Call]] = defaultdict(list)
    for call in calls:
        if call.function in ("ff_check_admission", "ff_release_admission") and call.error is None:
            used[call.args["quota_policy_id"], call.args["execution_id"]].append(call)
    for (policy, key), uses in used.items():
        if len({call.client for call in uses}) > 1 or any(call.unknown for call in uses):
            continue  # the last call is unknown
        free = False
        for call in uses:
            if free and call.row.get("outcome") == "already_admitted":
                yield policy, f"{call.client} released the slot of {key}, and it is held"
            free = call.function == "ff_release_admission" and call.acknowledged
