"""Draws the raw results: python plots.py RESULTS.json DIRECTORY. Needs matplotlib, but not pyff."""

import json
import statistics
import sys
from pathlib import Path

import matplotlib as mpl

mpl.use("svg")
from matplotlib import pyplot as plt

OWN, OWN_SQL, OTHER, TEXT, FAINT = "#1f6feb", "#79aef7", "#9aa4b1", "#24292f", "#6e7781"


def main(source, target):
    results = json.loads(Path(source).read_text())
    out = Path(target)
    out.mkdir(parents=True, exist_ok=True)
    plt.rcParams.update(
        {
            "font.family": "DejaVu Sans",
            "font.size": 9,
            "svg.hashsalt": "pyff",
            "text.color": TEXT,
            "axes.labelcolor": TEXT,
        }
    )
    for scenario in results["metrics"]:
        if scenario["key"] in results["scenarios"]:
            draw(results, scenario, out)


def draw(results, scenario, out):
    metrics = [
        m
        for m in scenario["metrics"]
        if any(values(results, p, scenario["key"], m["key"]) for p in results["peers"])
    ]
    if not metrics:
        return
    peers = [
        p for p in results["peers"] if any(values(results, p, scenario["key"], m["key"]) for m in metrics)
    ]
    columns = min(2, len(metrics))
    rows = -(-len(metrics) // columns)
    height = 0.95 + 0.27 * len(peers)
    figure, axes = plt.subplots(
        rows, columns, figsize=(5.2 * columns + 0.4, height * rows + 0.5), squeeze=False
    )
    for axis in axes.flat[len(metrics) :]:
        axis.set_visible(False)
    for axis, metric in zip(axes.flat, metrics, strict=False):
        bars(axis, results, scenario["key"], metric, peers)
    figure.suptitle(
        f"{scenario['key']}. {scenario['title']}", x=0.012, ha="left", fontsize=12, fontweight="bold"
    )
    figure.tight_layout(rect=(0, 0, 1, 0.995), w_pad=3)
    name = scenario["key"].lower()
    figure.savefig(out / f"{name}.svg", metadata={"Date": None})
    figure.savefig(out / f"{name}.png", dpi=110)
    plt.close(figure)


def bars(axis, results, scenario, metric, peers):
    better = metric["more_is_better"]
    found = {p: values(results, p, scenario, metric["key"]) for p in peers}
    middle = {p: statistics.median(v) for p, v in found.items() if v}
    known = sorted(middle, key=middle.get, reverse=better)
    order = known + [p for p in peers if p not in middle]
    numbers = list(middle.values())
    log = metric["log"] and min(numbers) > 0 and max(numbers) / min(numbers) > 8
    low = 10 ** exponent(min(numbers) / 1.6) if log else 0
    right = max(max(v) for v in found.values() if v) * (4 if log else 1.22) or 1
    for place, peer in enumerate(order):
        color = OWN if peer == "pyff" else OWN_SQL if peer.startswith("pyff") else OTHER
        if peer not in middle:
            axis.text(0.01, place, "–", va="center", color=FAINT, transform=axis.get_yaxis_transform())
            continue
        value, runs = middle[peer], found[peer]
        if log:  # a length means nothing there, a place does
            axis.plot([low, value], [place, place], color=color, linewidth=1.2, alpha=0.55)
            axis.plot(value, place, "o", markersize=7.5, color=color)
        else:
            axis.barh(place, value, height=0.66, color=color)
        if len(runs) > 1:
            axis.plot(
                [min(runs), max(runs)], [place, place], color=TEXT, linewidth=1.4, solid_capstyle="butt"
            )
        axis.annotate(
            number(value),
            (max(*runs, value), place),
            xytext=(8 if log else 4, 0),
            textcoords="offset points",
            va="center",
            fontsize=8,
        )
    if log:
        axis.set_xscale("log")
    else:
        axis.locator_params(axis="x", nbins=5)
    axis.set_xlim(low, right)
    axis.set_yticks(range(len(order)), order)
    for label in axis.get_yticklabels():
        label.set_fontweight("bold" if label.get_text().startswith("pyff") else "normal")
    axis.set_ylim(len(order) - 0.4, -0.6)
    axis.xaxis.set_major_formatter(lambda value, _: number(value))
    axis.tick_params(which="both", length=0, colors=FAINT)
    axis.tick_params(axis="y", colors=TEXT)
    axis.grid(axis="x", color="#e4e7eb", linewidth=0.7)
    axis.set_axisbelow(True)
    for side in axis.spines.values():
        side.set_visible(False)
    scale = ", log scale" if log else ""
    unit = f"{metric['unit']}, " if metric["unit"] else ""
    way = "more" if better else "less"
    axis.set_title(metric["title"], loc="left", fontsize=9.5, pad=14)
    axis.text(
        0,
        1.015,
        f"{unit}{way} is better{scale}",
        transform=axis.transAxes,
        fontsize=7.5,
        color=FAINT,
        va="bottom",
    )


def values(results, peer, scenario, metric):
    rounds = results["measurements"].get(peer, {}).get(scenario, [])
    return [r[metric] for r in rounds if isinstance(r.get(metric), int | float)]


def exponent(value):
    import math

    return math.floor(math.log10(value))


def number(value):
    if value >= 1000:
        return f"{float(f'{value:.3g}'):,.0f}".replace(",", " ")
    return f"{value:.0f}" if value == int(value) else f"{value:.3g}"


if __name__ == "__main__":
    main(*sys.argv[1:])
