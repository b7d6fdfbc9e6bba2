"""Names that cannot be derived: result classes shared by several functions, and the types of json columns."""

import keyword
from collections.abc import Mapping

SHARED_RESULTS: Mapping[str, tuple[str, ...]] = {
    "ClaimRow": (
        "ff_claim",
        "ff_claim_many",
        "ff_claim_execution",
        "ff_claim_resumed_execution",
        "ff_claim_from_resume_grant",
        "ff_issue_grant_and_claim",
    ),
    "ReclaimRow": ("ff_claim_from_grant", "ff_reclaim_execution"),
    "RenewResult": ("ff_renew", "ff_renew_lease"),
    "ProgressResult": ("ff_progress", "ff_update_progress"),
    "CompleteResult": ("ff_complete", "ff_complete_execution"),
    "FailResult": ("ff_fail", "ff_fail_execution"),
    "DelayResult": ("ff_delay", "ff_delay_execution"),
    "WaitChildrenResult": ("ff_wait_children", "ff_wait_children_execution"),
    "SuspendRow": ("ff_suspend", "ff_suspend_execution"),
    "SignalResult": ("ff_deliver_signal", "ff_deliver_approval_signal"),
    "FrameRow": ("ff_read_stream", "ff_tail_stream"),
    "EdgeRow": ("ff_list_edges", "ff_describe_edge"),
    "UsageResult": ("ff_report_usage", "ff_report_usage_admin", "ff_record_spend"),
    "SweepResult": (
        "ff_dispatch_completions",
        "ff_drain_cancel_backlog",
        "ff_drain_sibling_cancels",
        "ff_project_flows",
        "ff_sweep_admissions",
        "ff_sweep_attempt_timeouts",
        "ff_sweep_budget_breaches",
        "ff_sweep_budget_resets",
        "ff_sweep_claim_grants",
        "ff_sweep_deadlines",
        "ff_sweep_delayed",
        "ff_sweep_expired",
        "ff_sweep_expired_leases",
        "ff_sweep_suspensions",
        "ff_sweep_terminal_spend",
        "ff_sweep_waitpoints",
        "ff_sweep_workers",
        "ff_trim_events",
        "ff_trim_retention",
        "ff_trim_streams",
    ),
}
"""Functions that share a result class. Their columns must be equal, comments included."""

JSON_OBJECTS: Mapping[str, str] = {
    "tags": "Mapping[str, str]",
    "policy": "Mapping[str, JsonValue]",
    "details": "Mapping[str, JsonValue]",
    "deltas": "Mapping[str, int]",
    "condition": "Mapping[str, JsonValue]",
}
"""The type of a jsonb argument or column by its name; any other is a JsonValue."""


EXPECTED_OUTCOME: Mapping[str, str] = {"ff_suspend": "suspended"}
"""Functions with two methods: try_<name> returns every outcome; <name> passes its rows to require_<outcome> of
pyff.expected_outcome, which raises on any other outcome."""


def identifier(name: str) -> str:
    """The name of an argument (without p_) or column in Python: `from` is `from_`."""
    name = name.removeprefix("p_")
    return f"{name}_" if keyword.iskeyword(name) else name


def camel_case(name: str) -> str:
    return "".join(word.capitalize() for word in name.split("_"))
