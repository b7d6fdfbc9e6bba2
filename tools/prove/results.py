"""What runs found, kept in results.json, and the tables of docs/reliability.md that are made of it."""

import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

from pyff.postgres import find
from tools.prove.campaign import Report
from tools.prove.mutants import CARELESS, MUTANTS, SOUND, Catch
from tools.prove.scenarios import SCENARIOS

KEPT = Path(__file__).with_name("results.json")
PAGE = Path(__file__).parents[2] / "docs" / "reliability.md"

Row = dict[str, Any]


def keep(section: str, rows: dict[str, Row]) -> None:
    """Adds rows to a section, in place of those of the same name, and writes the tables anew."""
    kept = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    kept.setdefault(section, {}).update(rows)
    KEPT.write_text(json.dumps(kept, indent=1, sort_keys=True) + "\n")
    PAGE.write_text(render(PAGE.read_text(), kept))


def of_report(report: Report) -> Row:
    return {
        "seconds": round(report.seconds),
        "operations": report.operations,
        "functions": len(report.calls),
        "refused": report.refused,
        "unknown": report.unknown,
        "faults": dict(report.faults),
        "interrupted": len(report.interrupted),
        "violations": len(report.violations) + len(report.died),
        "deadlocks": report.deadlocks,
        "p99_ms": report.p99,
        "bloat": report.bloat,
        "on": _machine(),
    }


def of_catch(catch: Catch) -> Row:
    mutant = catch.mutant
    return {
        "function": mutant.function if mutant else "",
        "rule": catch.rule,
        "evidence": catch.evidence[:300],
        "seconds": round(catch.seconds),
    }


def render(page: str, kept: dict[str, dict[str, Row]]) -> str:
    """The page, with the tables between its markers."""
    for section, make in (("faults", _faults), ("mutants", _mutants), ("soak", _soak)):
        begin, end = f"<!-- {section}:begin -->", f"<!-- {section}:end -->"
        head, rest = page.split(begin)
        _, tail = rest.split(end)
        page = f"{head}{begin}\n{make(kept.get(section, {}))}\n{end}{tail}"
    return page


def _faults(rows: dict[str, Row]) -> str:
    table = ["| fault | operations | injected | violations | p99 |", "|---|---:|---:|---:|---:|"]
    for name, scenario in SCENARIOS.items():
        if row := rows.get(name):
            injected = " + ".join(str(n) for n in row["faults"].values()) or "0"
            if name == "timeouts":
                injected = (
                    f"{sum(row['faults'].values())} in {row['interrupted']} of {row['functions']} functions"
                )
            table.append(
                f"| {scenario.__doc__} | {row['operations']} | {injected} | {row['violations']} | {row['p99_ms']} ms |"
            )
    lengths = sorted({row["seconds"] for row in rows.values()})
    where = ", ".join(sorted({row["on"] for row in rows.values()}))
    length = f"{lengths[0]} to {lengths[-1]} s" if lengths else ""
    return "\n".join([*table, "", f"Each under {length} of load, on {where}."])


def _mutants(rows: dict[str, Row]) -> str:
    table = ["| planted bug | in | found by | after |", "|---|---|---|---:|"]
    found = 0
    known = [mutant.name for mutant in (*MUTANTS, CARELESS) if mutant.name in rows]
    for name in known:
        row = rows[name]
        found += bool(row["rule"])
        rule = row["rule"] or "**nothing**"
        table.append(f"| {name} | `{row['function']}` | {rule} | {row['seconds']} s |")
    told = f"{found} of {len(known)} were found."
    if sound := rows.get(SOUND):
        told += f" Of the engine as it is, under the same load for {sound['seconds']} s: {sound['rule'] or 'nothing'}."
    return "\n".join([*table, "", told])


def _soak(rows: dict[str, Row]) -> str:
    if not rows:
        return ""

    def total(name: str) -> int:
        return sum(row[name] for row in rows.values())

    last = rows[max(rows)]
    injected = sum((Counter(row["faults"]) for row in rows.values()), Counter[str]())
    faults = ", ".join(f"{name.replace('_', ' ')} {n}" for name, n in sorted(injected.items()))
    runs = f" in {len(rows)} runs" if len(rows) > 1 else ""
    lines = [
        ("load", f"{total('seconds') / 60:.0f} minutes{runs}, on {last['on']}"),
        (
            "operations",
            f"{total('operations')} of {max(row['functions'] for row in rows.values())} functions",
        ),
        ("refused, without an answer", f"{total('refused')}, {total('unknown')}"),
        ("faults injected", f"{injected.total()}: {faults}"),
        ("violations", total("violations")),
        ("deadlocks", total("deadlocks")),
        (
            "p99",
            f"{max(row['p99_ms'] for row in rows.values())} ms" + (" in the slowest run" if runs else ""),
        ),
        ("largest tables at the end", "; ".join(f"`{name}` {text}" for name, text in last["bloat"].items())),
    ]
    return "\n".join(["| | |", "|---|---|", *(f"| {name} | {value} |" for name, value in lines)])


def _machine() -> str:
    return f"PostgreSQL {find().version} with {os.cpu_count()} cores"
