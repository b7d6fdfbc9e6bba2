"""Draws a flow: as a tree in the terminal, for Graphviz, for Mermaid."""

from dataclasses import dataclass
from uuid import UUID

from psycopg import Connection

from pyff._generated.results import DescribeFlowResult, EdgeRow, ListEdgeGroupsRow, ListFlowMembersRow
from pyff.engine import Engine

SIGNS = {
    "completed": "✓",
    "failed": "✗",
    "expired": "⌛",
    "cancelled": "⊘",
    "skipped": "⤼",
    "active": "▶",
    "suspended": "⏸",
    "waiting": "○",
    "resumable": "○",
    "delayed": "◔",
    "rate_limited": "◔",
    "waiting_children": "…",
}
COLOURS = {
    "completed": "32",
    "failed": "31",
    "expired": "31",
    "active": "36",
    "cancelled": "33",
    "skipped": "33",
}
FILLS = {
    "completed": "#d8f3dc",
    "failed": "#ffccd5",
    "expired": "#ffccd5",
    "active": "#caf0f8",
    "cancelled": "#ffe8b3",
    "skipped": "#ffe8b3",
}
PAGE = 1000


@dataclass(frozen=True)
class Picture:
    """A flow, its members by id, and the dependencies between them."""

    flow: DescribeFlowResult
    members: dict[str, ListFlowMembersRow]
    edges: list[EdgeRow]
    groups: dict[str, ListEdgeGroupsRow]

    def parents(self, member: str) -> list[EdgeRow]:
        return [edge for edge in self.edges if edge.downstream_execution_id == member]


def load(source: str | Connection[object], flow_id: UUID) -> Picture | None:
    """Reads a flow through the public functions; None if there is none. source: a DSN or a connection."""
    with Engine(source, max_size=1) as engine:
        flow = engine.describe_flow(flow_id)
        if flow is None:
            return None
        members: list[ListFlowMembersRow] = []
        while page := engine.list_flow_members(
            flow_id, after=members[-1].execution_id if members else None, limit=PAGE
        ):
            members += page
        edges: list[EdgeRow] = []
        while found := engine.list_edges(flow_id, after=edges[-1].edge_id if edges else None, limit=PAGE):
            edges += found
        groups: list[ListEdgeGroupsRow] = []
        while some := engine.list_edge_groups(
            flow_id, after=groups[-1].downstream_execution_id if groups else None, limit=PAGE
        ):
            groups += some
    known = {member.execution_id: member for member in members}
    # A flow may grow while it is read: edges to members added later are left out.
    ends = [
        edge for edge in edges if {edge.upstream_execution_id, edge.downstream_execution_id} <= known.keys()
    ]
    return Picture(flow, known, ends, {group.downstream_execution_id: group for group in groups})


def draw(picture: Picture, *, colour: bool = False) -> str:
    """A tree: every member stands under the last of those it waits for; the others are named beside it."""
    order = _order(picture)
    numbers = {member: n for n, member in enumerate(order, 1)}
    parents = {m: sorted(numbers[e.upstream_execution_id] for e in picture.parents(m)) for m in order}
    children: dict[int, list[int]] = {n: [] for n in range(len(order) + 1)}
    for member, above in parents.items():
        children[above[-1] if above else 0].append(numbers[member])

    lines = [_headline(picture.flow)]

    # A stack, not recursion: a chain may have thousands of members.
    open_ones = [(root, "", "", "") for root in reversed(children[0])]
    while open_ones:
        n, lead, turn, below = open_ones.pop()
        member = order[n - 1]
        lines.append(f"{lead}{turn}{n} {_member(picture, member, parents[member][:-1], colour)}")
        for child in reversed(children[n]):
            last = child == children[n][-1]
            open_ones.append((child, lead + below, "└─ " if last else "├─ ", "   " if last else "│  "))
    return "\n".join(lines)


def dot(picture: Picture) -> str:
    """For Graphviz."""
    names = {member: f"n{n}" for n, member in enumerate(_order(picture), 1)}
    lines = [
        "digraph flow {",
        f"  label={_quoted(_headline(picture.flow))}; rankdir=LR; node [shape=box, style=filled, fillcolor=white];",
    ]
    for member, name in names.items():
        row = picture.members[member]
        fill = FILLS.get(row.public_state, "white")
        label = _quoted(f"{_label(row)}\n{row.public_state}{_policy(picture, member)}")
        lines.append(f"  {name} [label={label}, fillcolor={_quoted(fill)}];")
    for edge in picture.edges:
        dashed = edge.dependency_kind == "any_terminal"
        look = f" [label={_quoted(edge.edge_state)}{', style=dashed' if dashed else ''}]"
        lines.append(f"  {names[edge.upstream_execution_id]} -> {names[edge.downstream_execution_id]}{look};")
    return "\n".join([*lines, "}"])


def mermaid(picture: Picture) -> str:
    """For Mermaid."""
    names = {member: f"n{n}" for n, member in enumerate(_order(picture), 1)}
    lines = ["flowchart LR"]
    for member, name in names.items():
        row = picture.members[member]
        text = f"{_label(row)}<br/>{row.public_state}{_policy(picture, member)}".replace('"', "#quot;")
        lines.append(f'  {name}["{text}"]:::{row.public_state}')
    for edge in picture.edges:
        arrow = "-.->" if edge.dependency_kind == "any_terminal" else "-->"
        ends = names[edge.upstream_execution_id], names[edge.downstream_execution_id]
        lines.append(f"  {ends[0]} {arrow}|{edge.edge_state}| {ends[1]}")
    lines += [f"  classDef {state} fill:{fill};" for state, fill in FILLS.items()]
    return "\n".join(lines)


def _order(picture: Picture) -> list[str]:
    """The members in topological order, ties in order of creation."""
    waits = dict.fromkeys(picture.members, 0)
    after: dict[str, list[str]] = {member: [] for member in picture.members}
    for edge in picture.edges:
        waits[edge.downstream_execution_id] += 1
        after[edge.upstream_execution_id].append(edge.downstream_execution_id)
    ready = [member for member, count in waits.items() if not count]
    order: list[str] = []
    while ready:
        order.append(member := ready.pop(0))
        for child in sorted(after[member], key=_uuid):
            waits[child] -= 1
            if not waits[child]:
                ready.append(child)
    return order


def _headline(flow: DescribeFlowResult) -> str:
    state: str = flow.public_flow_state
    if flow.derived_state != state:
        state += f" ({flow.derived_state})"
    if flow.cancellation_policy:
        state += f", {flow.cancellation_policy}: {flow.cancel_reason}"
    return f"flow {flow.flow_id} {flow.flow_kind} in {flow.namespace}: {state}, {flow.node_count} members"


def _member(picture: Picture, member: str, others: list[int], colour: bool) -> str:
    row = picture.members[member]
    state = f"{SIGNS[row.public_state]} {row.public_state}"
    if colour and row.public_state in COLOURS:
        state = f"\x1b[{COLOURS[row.public_state]}m{state}\x1b[0m"
    also = f" (after {', '.join(map(str, others))} too)" if others else ""
    return f"{_label(row)} {state}{_policy(picture, member)}{also}"


def _policy(picture: Picture, member: str) -> str:
    group = picture.groups.get(member)
    if group is None or group.policy == "all_of":
        return ""
    return f" [{group.policy if group.k is None else f'{group.k} of {group.n_edges}'}]"


def _label(row: ListFlowMembersRow) -> str:
    short = row.execution_id[-8:]
    return f"{row.execution_kind}-{short}" if row.execution_kind else short


def _uuid(execution_id: str) -> str:
    return execution_id[-36:]


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
