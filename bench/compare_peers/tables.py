"""Results as Markdown: a table per scenario, and the reasons for empty cells."""

from collections.abc import Mapping, Sequence
from typing import Any

from bench.compare_peers.metrics import SCENARIOS, Metric, Scenario
from bench.compare_peers.stats import Summary, ratio, summarize

REFERENCE = "pyff"
Results = Mapping[str, Any]
TIE = 1.05


def cell(results: Results, peer: str, scenario: str, metric: str) -> Summary | str:
    """The figure, or the reason for its absence."""
    rounds = results["measurements"].get(peer, {}).get(scenario, [])
    values = [found[metric] for found in rounds if metric in found]
    numbers = [float(value) for value in values if not isinstance(value, str)]
    if numbers:
        return summarize(numbers)
    if values:
        return str(values[0])
    reason = results["reasons"].get(peer, {}).get(scenario)
    return str(reason or results["not_installed"].get(peer) or "not run")


def render(results: Results) -> str:
    """All tables, in the order of the scenarios."""
    parts = [_section(results, scenario) for scenario in SCENARIOS if scenario.key in results["scenarios"]]
    return "\n\n".join([_setting(results), _summary(results), *parts]) + "\n"


def number(value: float) -> str:
    """Three significant digits."""
    if value == int(value) and value < 1000:
        return f"{value:.0f}"
    if value >= 1000:
        return f"{float(f'{value:.3g}'):,.0f}".replace(",", " ")
    return f"{value:.3g}"


def _section(results: Results, scenario: Scenario) -> str:
    notes: list[str] = []
    head = ["", *(_title(metric) for metric in scenario.metrics)]
    rows = [_row(results, scenario, peer, notes) for peer in results["peers"]]
    lines = [f"## {scenario.key}. {scenario.title}", "", scenario.text, "", _table([head, *rows])]
    if notes:
        lines += ["", *notes]
    lines += ["", f"![{scenario.title}]({scenario.key.lower()}.svg)"]
    if scenario.costs:
        head = ["what a task costs", *(_title(metric) for metric in scenario.costs)]
        rows = [
            [
                f"**{peer}**" if peer == REFERENCE else peer,
                *(_cost(results, scenario, peer, m) for m in scenario.costs),
            ]
            for peer in results["peers"]
            if results["measurements"].get(peer, {}).get(scenario.key)
        ]
        lines += ["", _table([head, *rows])]
    return "\n".join(lines)


def _cost(results: Results, scenario: Scenario, peer: str, metric: Metric) -> str:
    found = cell(results, peer, scenario.key, metric.key)
    return "–" if isinstance(found, str) else number(found.median)


def _title(metric: Metric) -> str:
    return f"{metric.title} ({metric.unit})" if metric.unit else metric.title


def _row(results: Results, scenario: Scenario, peer: str, notes: list[str]) -> list[str]:
    row = [f"**{peer}**" if peer == REFERENCE else peer]
    for metric in scenario.metrics:
        found = cell(results, peer, scenario.key, metric.key)
        if isinstance(found, str):
            note = f"- {peer}: {found}."
            if note not in notes:
                notes.append(note)
            row.append("–")
        else:
            row.append(_figure(results, scenario, metric, peer, found))
    return row


def _figure(results: Results, scenario: Scenario, metric: Metric, peer: str, found: Summary) -> str:
    text = number(found.median)
    if found.rounds > 1 and found.spread >= 0.005:
        text += f" ±{100 * found.spread:.0f} %"
    own = cell(results, REFERENCE, scenario.key, metric.key)
    if peer != REFERENCE and isinstance(own, Summary):
        times = ratio(found.median, own.median, more_is_better=metric.more_is_better)
        if times is not None:
            text += f" ({times:.2g}×)"
    return text


def _table(rows: Sequence[Sequence[str]]) -> str:
    head, *body = rows
    lines = ["| " + " | ".join(head) + " |", "|---" + "|---:" * (len(head) - 1) + "|"]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in body])


def _summary(results: Results) -> str:
    """pyff's rank: every metric with the best of all peers and the best durable one."""
    rows = [["", "pyff", "best peer", "", "pyff against it", "best durable peer", "", "pyff against it"]]
    for scenario in SCENARIOS:
        for metric in scenario.metrics:
            own = cell(results, REFERENCE, scenario.key, metric.key)
            if scenario.key not in results["scenarios"] or not isinstance(own, Summary):
                continue
            others = {
                peer: found.median
                for peer in results["peers"]
                if not peer.startswith(REFERENCE)
                and isinstance(found := cell(results, peer, scenario.key, metric.key), Summary)
            }
            if not others:
                continue
            durable = {peer: value for peer, value in others.items() if peer in results["durable"]}
            title = f"{scenario.key}: {metric.title}" + (f", {metric.unit}" if metric.unit else "")
            rows.append(
                [title, number(own.median), *_best(own, others, metric), *_best(own, durable, metric)]
            )
    return "## Where pyff stands\n\n" + _table(rows)


def _best(own: Summary, others: Mapping[str, float], metric: Metric) -> list[str]:
    if not others:
        return ["–", "", ""]
    best = (max if metric.more_is_better else min)(others, key=lambda peer: others[peer])
    times = ratio(own.median, others[best], more_is_better=metric.more_is_better)
    return [best, number(others[best]), _rating(own.median, others[best], times)]


def _rating(own: float, other: float, times: float | None) -> str:
    if times is None:
        return "equal" if own == other else ("ahead" if own < other else "**behind**")
    if times >= TIE:
        return f"ahead {times:.2g}×"
    return f"about equal ({times:.2f}×)" if times > 1 / TIE else f"**behind** ({times:.2g}×)"


def _setting(results: Results) -> str:
    machine, server = results["machine"], results["server"]
    lines = [
        "## What was measured",
        "",
        f"{results['date']}, {machine['processor']}, {machine['cores']} cores, {machine['memory']},"
        f" {machine['system']},"
        f" Python {machine['python']}. Server and workers share the machine. Peers take turns in each round;"
        f" the load is that of the minute before. {_runs(results)}",
        "",
        f"PostgreSQL {server['server_version']}: "
        + ", ".join(f"{name} = {value}" for name, value in server.items() if name != "server_version")
        + ".",
        "",
    ]
    rows = [["peer", "version", "as run here"]]
    for peer in results["peers"]:
        if peer in results["not_installed"]:
            rows.append([peer, "–", f"not installed: {results['not_installed'][peer]}"])
        else:
            versions = ", ".join(f"{name} {version}" for name, version in results["versions"][peer].items())
            rows.append([peer, versions, results["settings"][peer]])
    return "\n".join(lines) + "\n" + _table(rows)


def _runs(results: Results) -> str:
    """When each scenario was measured, how often, and how busy the machine was before."""
    said = []
    for key in results["scenarios"]:
        runs = [run for run in results["runs"] if key in run["scenarios"]]
        rounds = max((len(by.get(key, ())) for by in results["measurements"].values()), default=0)
        loads = ", ".join(f"{run['load']:.1f}" for run in runs)
        versions = ", ".join(sorted({run["pyff"] for run in runs if run.get("pyff")}))
        said.append(
            f"{key}: {rounds} round{'s' if rounds != 1 else ''}, load {loads}"
            + (f", pyff {versions}" if versions else "")
        )
    return "; ".join(said) + "."
