"""Rules about flows: graphs are stored as submitted, and no member starts before its dependencies."""

from collections import defaultdict
from collections.abc import Iterator, Sequence

from tools.verify.facts import STARTS, Facts, Row
from tools.verify.history import Call

Finding = tuple[str, str]
NEVER = 1 << 62


def graphs_are_stored(calls: Sequence[Call], facts: Facts) -> Iterator[Finding]:
    """All members and edges of an acknowledged graph are stored."""
    edges = {(edge["upstream"], edge["downstream"]) for edge in facts.edges}
    for call in calls:
        if call.function == "ff_submit_flow" and call.acknowledged:
            ids = {row["node_key"]: row["execution_id"] for row in call.rows or ()}
            for row in call.rows or ():
                stored = facts.executions.get(row["execution_id"])
                if stored is None or stored["flow_id"] != row["flow_id"]:
                    yield row["execution_id"], f"is not in flow {row['flow_id']}, which {call.client} got"
            if len(ids) != len(call.args["nodes"]):
                yield call.client, f"submitted {len(call.args['nodes'])} nodes and got {len(ids)} ids"
            wanted = [(ids[edge["from"]], ids[edge["to"]]) for edge in call.args.get("edges", ())]
        elif call.function == "ff_add_dependency" and call.acknowledged:
            wanted = [(call.args["upstream_execution_id"], call.args["downstream_execution_id"])]
        else:
            continue
        for upstream, downstream in wanted:
            ends = tuple(facts.executions.get(id, {}).get("uuid") for id in (upstream, downstream))
            if ends not in edges:
                yield downstream, f"does not wait for {upstream}, as {call.client} submitted it"


def members_wait_for_dependencies(calls: Sequence[Call], facts: Facts) -> Iterator[Finding]:
    """An execution with dependencies is not claimed before they allow it."""
    ends = _Ends(facts)
    # Executions that got edges while running wait by ff_wait_children.
    grown = {call.args["downstream_execution_id"] for call in calls if call.function == "ff_add_dependency"}
    groups: dict[str, list[Row]] = defaultdict(list)
    for edge in facts.edges:
        groups[edge["downstream"]].append(edge)
    for child, edges in groups.items():
        id = facts.by_uuid.get(child, "")
        started = next(
            (event["event_id"] for event in facts.leases(id) if event["event_type"] in STARTS), None
        )
        if started is None or id in grown:
            continue
        before = sum(ends.of(edge["upstream"], edge["dependency_kind"]) < started for edge in edges)
        kind = edges[0]["policy_kind"]
        need = len(edges) if kind == "all_of" else 1 if kind == "any_of" else edges[0]["k"]
        if before < need:
            yield id, f"was claimed after {before} of the {need} it waits for had ended well"


def parents_wait_for_children(calls: Sequence[Call], facts: Facts) -> Iterator[Finding]:
    """A parent that paused for its children is not claimed again before they have ended."""
    ends = _Ends(facts)
    children: dict[tuple[str, str], list[tuple[str, str]]] = defaultdict(list)
    for call in calls:
        if call.function == "ff_add_dependency" and call.acknowledged:
            child = facts.executions.get(call.args["upstream_execution_id"])
            if child is not None:
                key = (call.client, call.args["downstream_execution_id"])
                children[key].append((child["uuid"], call.args.get("dependency_kind", "success_only")))
        if call.function != "ff_wait_children" or not call.acknowledged or call.row["outcome"] != "waiting":
            continue
        fence = facts.fences[call.args["handle"]]
        resumed = next(
            (
                event["event_id"]
                for event in facts.leases(fence.execution_id)
                if event["event_type"] in STARTS and event["lease_epoch"] > fence.lease_epoch
            ),
            NEVER,
        )
        early = sum(
            ends.of(child, kind) > resumed for child, kind in children[call.client, fence.execution_id]
        )
        if resumed < NEVER and early:
            yield fence.execution_id, f"continued while {early} of its children had not ended"


def cancelled_flows_start_nothing(calls: Sequence[Call], facts: Facts) -> Iterator[Finding]:
    """After a flow was cancelled with its members, no member is claimed."""
    members: dict[str, list[str]] = defaultdict(list)
    for id, row in facts.executions.items():
        if row["flow_id"] is not None:
            members[row["flow_id"]].append(id)
    for call in calls:
        if call.function not in ("ff_cancel_flow", "ff_cancel_flow_header") or call.ended_ms is None:
            continue
        if call.row.get("cancellation_policy") not in ("cancel_all", "cancel_pending"):
            continue
        for id in members[call.args["flow_id"]]:
            for event in facts.leases(id):
                late = event["occurred_at_ms"] - call.ended_ms
                if event["event_type"] in STARTS and late > 0:
                    yield id, f"was claimed {late} ms after the call of {call.client} that cancelled its flow"
                    break


class _Ends:
    """The number of the event by which an execution first ended, or first ended well."""

    def __init__(self, facts: Facts) -> None:
        self._ended: dict[str, int] = {}
        self._succeeded: dict[str, int] = {}
        for id, row in facts.executions.items():
            for event in facts.events.get(id, ()):
                if event["family"] == "completion":
                    self._ended.setdefault(row["uuid"], event["event_id"])
                    if event["outcome"] == "success":
                        self._succeeded.setdefault(row["uuid"], event["event_id"])

    def of(self, uuid: str, dependency_kind: str) -> int:
        return (self._ended if dependency_kind == "any_terminal" else self._succeeded).get(uuid, NEVER)
