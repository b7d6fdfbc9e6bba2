"""Applies every rule to one history and one snapshot."""

from collections.abc import Iterator, Sequence
from typing import Any

import psycopg

from pyff.verify import executions, flows, leases, limits, messages, steps
from pyff.verify.batches import unfold
from pyff.verify.facts import Facts
from pyff.verify.history import Call
from pyff.verify.violation import Violation

RULES = (
    executions.creates_are_kept,
    executions.duplicates_name_the_first,
    executions.results_are_the_winners,
    executions.every_end_is_recorded_once,
    executions.results_are_read_as_stored,
    executions.ends_are_kept,
    executions.replays_are_kept,
    flows.graphs_are_kept,
    flows.children_wait,
    flows.parents_wait,
    leases.one_fence_at_a_time,
    leases.claims_are_recorded,
    leases.one_release_each,
    leases.ends_are_as_acknowledged,
    leases.reclaims_are_counted,
    leases.pauses_are_kept,
    messages.signals_are_kept,
    messages.signals_and_approvals_are_kept_apart,
    messages.tokens_are_shown_to_their_fence,
    messages.tokens_open_their_own,
    messages.frames_are_kept,
    messages.streams_are_read_in_order,
    messages.summaries_hold_every_patch,
    messages.events_are_read_once_in_order,
    limits.budgets_add_up,
    limits.reports_count_once,
    limits.slots_are_given_back,
    steps.steps_are_kept,
    steps.schedules_fire_once,
)
CLOCK_RULES = (
    leases.leases_follow_each_other,
    leases.leases_last_as_promised,
    leases.stale_calls_are_refused,
    leases.expired_calls_are_refused,
    leases.delays_are_kept,
    flows.cancelled_flows_start_nothing,
    limits.caps_hold,
    limits.windows_hold,
    limits.holds_hold,
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
