"""Rules about leases: one live fence per execution, and calls with an old one have no effect."""

from collections import defaultdict
from collections.abc import Iterator, Sequence

from tools.verify.facts import ENDS, STARTS, Facts, Fence, Row
from tools.verify.history import Call

Finding = tuple[str, str]

CLAIMS = (
    "ff_claim",
    "ff_claim_many",
    "ff_claim_execution",
    "ff_claim_resumed_execution",
    "ff_claim_from_grant",
    "ff_claim_from_resume_grant",
    "ff_reclaim_execution",
    "ff_issue_grant_and_claim",
)
# Calls that need a live lease; with a `replayed` column where a repetition returns the recorded result.
HOLDERS = (
    "ff_renew",
    "ff_progress",
    "ff_complete",
    "ff_fail",
    "ff_delay",
    "ff_cancel",
    "ff_suspend",
    "ff_append_frame",
    "ff_create_waitpoint",
    "ff_report_usage",
    "ff_record_step",
    "ff_wait_children",
)
NEVER = 1 << 62
RELEASES = ("ff_complete", "ff_fail", "ff_delay", "ff_cancel", "ff_suspend", "ff_wait_children")


def one_live_lease_at_a_time(calls: Sequence[Call], facts: Facts) -> Iterator[Finding]:
    """Lease events of an execution: each lease begins after the previous one has ended, and ends once."""
    for id, row in facts.executions.items():
        live: int | None = None
        last = 0
        for event in facts.leases(id):
            epoch, kind = event["lease_epoch"], event["event_type"]
            if kind in STARTS:
                if live is not None:
                    yield id, f"lease {epoch} began while lease {live} was live"
                if epoch <= last:
                    yield id, f"lease {epoch} began after lease {last}"
                live = last = epoch
            elif kind in ENDS:
                if live != epoch:
                    yield id, f"lease {epoch} ended by {kind}, while {live or 'none'} was live"
                live = None
            elif live != epoch:
                yield id, f"lease {epoch} was {kind}, while {live or 'none'} was live"
        holds = row["lease_epoch"] if row["ownership_state"] == "leased" else None
        if live != holds:
            yield id, f"by its events lease {live} is live, by its row {holds}"


def leases_do_not_overlap(calls: Sequence[Call], facts: Facts) -> Iterator[Finding]:
    """By the clock of the database, too, a lease begins after the previous one has ended."""
    for id in facts.executions:
        ended_ms = 0
        for event in facts.leases(id):
            early = ended_ms - event["occurred_at_ms"]
            if event["event_type"] in STARTS and early > 0:
                yield id, f"lease {event['lease_epoch']} began {early} ms before the last one ended"
            if event["event_type"] in ENDS:
                ended_ms = event["occurred_at_ms"]


def claims_are_recorded(calls: Sequence[Call], facts: Facts) -> Iterator[Finding]:
    """Every granted lease has one holder, and its start is recorded."""
    begun = {
        (id, event["lease_epoch"]): event["lease_id"]
        for id in facts.executions
        for event in facts.leases(id)
        if event["event_type"] in STARTS
    }
    holders: dict[tuple[str, int], Call] = {}
    for call in calls:
        if call.function not in CLAIMS:
            continue
        for row in call.rows or ():
            if row["handle"] is None:  # the grant was not redeemed
                continue
            key = (row["execution_id"], row["lease_epoch"])
            if begun.get(key) != row["lease_id"]:
                yield (
                    row["execution_id"],
                    f"{call.client} got lease {row['lease_epoch']}, which has no event",
                )
            other = holders.setdefault(key, call)
            if other is not call:
                yield (
                    row["execution_id"],
                    f"{other.client} and {call.client} got the same lease {row['lease_epoch']}",
                )


def stale_calls_are_rejected(calls: Sequence[Call], facts: Facts) -> Iterator[Finding]:
    """No call that was sent after its lease had ended is accepted."""
    over: dict[tuple[str, int], tuple[int, str]] = {
        (id, event["lease_epoch"]): (event["occurred_at_ms"], event["event_type"])
        for id in facts.executions
        for event in facts.leases(id)
        if event["event_type"] in ENDS
    }
    for call in calls:
        if call.function not in HOLDERS or not call.acknowledged or call.row.get("replayed"):
            continue
        fence = facts.fences[call.args["handle"]]
        at, how = over.get((fence.execution_id, fence.lease_epoch), (NEVER, ""))
        if call.began_ms > at:
            yield (
                fence.execution_id,
                f"{call.function} of {call.client} was accepted {call.began_ms - at} ms after lease "
                f"{fence.lease_epoch} was {how}",
            )


def calls_under_an_expired_lease_are_rejected(calls: Sequence[Call], facts: Facts) -> Iterator[Finding]:
    """No call that was sent after its lease expired is accepted, even before the expiry is recorded."""
    promised: dict[str, list[tuple[Call, int]]] = defaultdict(list)
    for call in calls:
        if call.function in CLAIMS:
            for row in call.rows or ():
                promised[row["handle"]].append((call, row["lease_expires_at_ms"] or 0))
        elif call.function == "ff_renew" and call.acknowledged:
            promised[call.args["handle"]].append((call, call.row["lease_expires_at_ms"] or 0))
        elif call.function == "ff_renew" and call.unknown:
            promised[call.args["handle"]].append((call, NEVER))
    for call in calls:
        handle = call.args.get("handle", "")
        if call.function not in HOLDERS or not call.acknowledged or call.row.get("replayed"):
            continue
        known = [
            until
            for other, until in promised[handle]
            if other is not call and other.began_ms <= (call.ended_ms or other.began_ms)
        ]
        late = call.began_ms - max(known, default=NEVER)
        if late > 0:
            yield (
                facts.fences[handle].execution_id,
                f"{call.function} of {call.client} was accepted {late} ms after its lease expired",
            )


def one_release_each(calls: Sequence[Call], facts: Facts) -> Iterator[Finding]:
    """A lease is released once: exactly one of the acknowledged releases is not a recorded result."""
    given_up: dict[str, Call] = {}
    for call in calls:
        if call.function not in RELEASES or not _gave_up(call):
            continue
        other = given_up.setdefault(call.args["handle"], call)
        if other is not call:
            fence = facts.fences[call.args["handle"]]
            yield (
                fence.execution_id,
                f"lease {fence.lease_epoch} was released by {other.function} and by {call.function}",
            )


def lease_ends_are_recorded(calls: Sequence[Call], facts: Facts) -> Iterator[Finding]:
    """Every acknowledged release or revocation of a lease is recorded as such."""
    ends = {
        (id, event["lease_epoch"]): event["event_type"]
        for id in facts.executions
        for event in facts.leases(id)
        if event["event_type"] in ENDS
    }
    for call in calls:
        if call.function in RELEASES and _gave_up(call):
            fence = facts.fences[call.args["handle"]]
            key, how = (fence.execution_id, fence.lease_epoch), "released"
        elif call.function == "ff_revoke_lease" and call.row.get("outcome") == "revoked":
            key, how = (call.args["execution_id"], call.row["lease_epoch"]), "revoked"
        else:
            continue
        if ends.get(key) != how:
            said = f"{call.function} of {call.client} reported that lease {key[1]} is {how}"
            yield key[0], f"{said}; its events say {ends.get(key, 'nothing')}"


def reclaims_are_counted(calls: Sequence[Call], facts: Facts) -> Iterator[Finding]:
    """Reclaims are counted, since the count limits them; a replay counts from zero."""
    for id, row in facts.executions.items():
        taken = sum(event["event_type"] == "reclaimed" for event in facts.leases(id))
        if not row["replay_count"] and taken != row["lease_reclaim_count"]:
            yield id, f"was reclaimed {taken} times, and {row['lease_reclaim_count']} are counted"


def suspended_work_is_not_claimed(calls: Sequence[Call], facts: Facts) -> Iterator[Finding]:
    """A suspended execution is not claimed before it is resumed."""
    for call in calls:
        if call.function == "ff_suspend" and _gave_up(call):
            fence = facts.fences[call.args["handle"]]
            start, between = _next_start(fence, facts)
            if start and not any(
                e["event_type"] == "resumed" or e["family"] == "completion" for e in between
            ):
                yield (
                    fence.execution_id,
                    f"was suspended by {call.client}, and continued without being resumed",
                )


def delayed_work_is_not_claimed_early(calls: Sequence[Call], facts: Facts) -> Iterator[Finding]:
    """A delayed execution, or one with a scheduled retry, is not claimed before its time."""
    for call in calls:
        until = call.row.get("delay_until_ms") if call.function in ("ff_delay", "ff_fail") else None
        if until is None or not _gave_up(call):
            continue
        fence = facts.fences[call.args["handle"]]
        start, between = _next_start(fence, facts)
        if (
            start
            and start["occurred_at_ms"] < until
            and not any(
                e["family"] in ("completion", "operator")
                for e in between  # these make it claimable at once
            )
        ):
            early = until - start["occurred_at_ms"]
            yield fence.execution_id, f"was claimed {early} ms before the time that {call.client} got"


def _gave_up(call: Call) -> bool:
    """Whether this call, one of RELEASES, released its lease; false if there was nothing to wait for."""
    return (
        call.acknowledged
        and not call.row.get("replayed")
        and call.row.get("outcome") not in ("ready", "already_satisfied")
    )


def _next_start(fence: Fence, facts: Facts) -> tuple[Row | None, list[Row]]:
    """The event that began the next lease, if any, and the events since this lease ended."""
    between: list[Row] = []
    for event in facts.events[fence.execution_id]:
        if event["family"] != "lease":
            between.append(event)
        elif event["event_type"] in STARTS and event["lease_epoch"] > fence.lease_epoch:
            return event, between
        elif event["event_type"] in ENDS:
            between.clear()
    return None, between


def leases_do_not_expire_early(calls: Sequence[Call], facts: Facts) -> Iterator[Finding]:
    """No lease is recorded as expired before the time that its holder was given."""
    promised = promised_until(calls, facts)
    for id in facts.executions:
        for event in facts.leases(id):
            early = promised.get((id, event["lease_epoch"]), 0) - event["occurred_at_ms"]
            if event["event_type"] == "expired" and early > 0:
                yield id, f"lease {event['lease_epoch']} was recorded as expired {early} ms before its time"


def promised_until(calls: Sequence[Call], facts: Facts) -> dict[tuple[str, int], int]:
    """The minimum life of each lease, unless it was ended.

    A renewal may also shorten it, and one without a result may or may not have taken effect. If the last of several
    renewals is unknown, the shortest counts.
    """
    acknowledged: dict[tuple[str, int], list[tuple[int, int, int]]] = defaultdict(list)
    unknown: dict[tuple[str, int], list[int]] = defaultdict(list)
    for call in calls:
        if call.function == "ff_renew" and call.error is None and call.args["handle"] in facts.fences:
            fence = facts.fences[call.args["handle"]]
            key = (fence.execution_id, fence.lease_epoch)
            if call.ended_ms is None:
                unknown[key].append(call.began_ms)
            else:
                acknowledged[key].append((call.began_ms, call.ended_ms, call.row["lease_expires_at_ms"] or 0))
        elif call.function in CLAIMS and call.ended_ms is not None:
            for row in call.rows or ():
                if row["handle"] is not None:
                    key = (row["execution_id"], row["lease_epoch"])
                    acknowledged[key].append((call.began_ms, call.ended_ms, row["lease_expires_at_ms"] or 0))
    promised = {}
    for key, known in acknowledged.items():
        last = max(began for began, _, _ in known)
        promised[key] = min([expiry for _, ended, expiry in known if ended >= last] + unknown[key])
    return promised
