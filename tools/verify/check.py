"""Applies every rule to one history and one snapshot."""

from collections.abc import Iterator, Sequence
from typing import Any

import psycopg

from tools.verify import executions, flows, leases, limits, messages, steps
from tools.verify.batches import unfold
from tools.verify.facts import Facts
from tools.verify.history import Call
from tools.verify.violation import Violation

RULES = (
    executions.acknowledged_creates_are_stored,
    executions.duplicates_return_the_first,
    executions.acknowledged_results_are_stored,
    executions.every_end_is_recorded_once,
    executions.results_are_read_as_stored,
    executions.every_end_has_its_event,
    executions.replays_are_counted,
    flows.graphs_are_stored,
    flows.members_wait_for_dependencies,
    flows.parents_wait_for_children,
    leases.one_live_lease_at_a_time,
    leases.claims_are_recorded,
    leases.one_release_each,
    leases.lease_ends_are_recorded,
    leases.reclaims_are_counted,
    leases.suspended_work_is_not_claimed,
    messages.signals_are_stored,
    messages.signals_and_approvals_are_separate,
    messages.tokens_are_returned_to_their_fence,
    messages.tokens_are_checked,
    messages.frames_are_stored,
    messages.streams_are_read_in_order,
    messages.summaries_contain_every_patch,
    messages.events_are_read_once_in_order,
    limits.budget_usage_is_exact,
    limits.reports_count_once,
    limits.released_slots_are_free,
    steps.steps_are_stored,
    steps.schedules_fire_once,
)
CLOCK_RULES = (
    leases.leases_do_not_overlap,
    leases.leases_do_not_expire_early,
    leases.stale_calls_are_rejected,
    leases.calls_under_an_expired_lease_are_rejected,
    leases.delayed_work_is_not_claimed_early,
    flows.cancelled_flows_start_nothing,
    limits.concurrency_limits_hold,
    limits.window_limits_hold,
    limits.held_slots_respect_the_limit,
)


def check(
    conn: psycopg.Connection[Any], calls: Sequence[Call], *, clocks: bool = True
) -> Iterator[Violation]:
    """Contradictions between the client histories and the database, and broken invariants of the database.

    `conn` is the owner's, because tables are read. Check before anything is trimmed. Without `clocks` the rules that
    compare times are skipped: for clients on another machine, or a clock that was changed.
    """
    calls = list(unfold(calls))
    facts = Facts(conn, (handle for call in calls if isinstance(handle := call.args.get("handle"), str)))
    for row in facts.broken_invariants:
        yield Violation(f"invariant {row['invariant']}", row["subject"], row["detail"])
    for rule in (*RULES, *(CLOCK_RULES if clocks else ())):
        name = rule.__name__.replace("_", " ")
        for subject, detail in rule(calls, facts):
            yield Violation(name, subject, detail)
