"""pyff and its peers on one server, one after another, in one run."""

import argparse
import contextlib
import dataclasses
import json
import subprocess
import sys
import time
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import psycopg

from bench import process
from bench.compare_peers import tables
from bench.compare_peers.install import Installed, NotInstalledError, cache, install, plotter
from bench.compare_peers.metrics import SCENARIOS
from bench.compare_peers.peers import ALL, BY_NAME, PEERS, Peer
from bench.compare_peers.place import SETTINGS, Host
from bench.compare_peers.protocol import DriverError
from bench.compare_peers.scenarios import Sizes, measure
from pyff.postgres import temporary

RAW = "results.json"
DOCS = Path(__file__).parents[2] / "docs" / "benchmarks"
QUICK = Sizes(
    single=300, drain=10_000, latencies=20, latency_s=4, signals=10, resumes=50, chains=100, naps=400, kill_s=40,
    routed=4_000, retained=50_000, longest_s=15,
)  # fmt: skip
TINY = Sizes(
    single=20, drain=200, latencies=3, latency_s=1, signals=2, resumes=5, chains=5, naps=60, kill_s=20, routed=100,
    retained=500, longest_s=10,
)  # fmt: skip
ROUNDS = {"A": 3, "B": 3, "C": 3, "D": 3, "E": 1, "F": 3, "G": 3, "H": 1, "I": 1}


def main(argv: list[str] | None = None) -> int:
    args = _arguments(argv)
    results = json.loads((args.out / RAW).read_text()) if args.report else _measure(args)
    _write(args.out, results, plots=not args.no_plots)
    print(tables.render(results))
    print(f"written to {args.out}", file=sys.stderr)
    return 0 if results["measurements"].get("pyff") else 1


def _measure(args: argparse.Namespace) -> dict[str, Any]:
    chosen = [BY_NAME[name] for name in args.peers]
    results = _fresh(args)
    if args.add and (args.out / RAW).exists():
        results = _continued(json.loads((args.out / RAW).read_text()), results)
    installed = _install(chosen, results)
    log = args.out / "drivers.log" if args.keep_log else cache() / "drivers.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    log.unlink(missing_ok=True)
    began = time.monotonic()
    run = {
        "scenarios": args.scenarios,
        "peers": args.peers,
        "pyff": results["versions"].get("pyff", {}).get("pyff", ""),
        "load": process.load(),
        "seconds": 0,
    }
    results["runs"].append(run)  # at once: the results of an interrupted run are kept
    settings = SETTINGS | (
        {"fsync": "off"} if args.tiny else {}
    )  # which measures nothing, and has to be quick
    with temporary(**settings) as server:
        host = Host(server.dsn, log)
        results["server"] = host.settings()
        _prepare(host, chosen, installed, results)
        took: dict[str, float] = {}  # duration of a round
        for number in range(args.rounds):
            for scenario in args.scenarios:
                since = time.monotonic()
                if number >= ROUNDS[scenario]:
                    continue
                if number and since + took[scenario] - began > 60 * args.minutes:
                    _say(f"{scenario}{number + 1}: skipped, the run would exceed {args.minutes:g} minutes")
                    continue
                _round(host, scenario, installed, sizes=args.sizes, results=results)
                took[scenario] = time.monotonic() - since
                run["seconds"] = round(time.monotonic() - began)
                _keep(args.out, results)
    return results


def _fresh(args: argparse.Namespace) -> dict[str, Any]:
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "machine": process.machine(),
        "server": {},
        "sizes": dataclasses.asdict(args.sizes),
        "runs": [],
        "peers": list(args.peers),
        "durable": [peer.name for peer in PEERS if peer.durable],
        "settings": {name: BY_NAME[name].settings for name in args.peers},
        "scenarios": list(args.scenarios),
        "metrics": [dataclasses.asdict(scenario) for scenario in SCENARIOS],
        "not_installed": {},
        "versions": {},
        "reasons": {name: dict(BY_NAME[name].missing) for name in args.peers},
        "measurements": {},
    }


def _continued(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """The existing results, to which rounds, scenarios or peers are added."""
    for same in ("machine", "sizes"):
        if old[same] != new[same]:
            raise SystemExit(f"the existing results have another {same}; nothing can be added to them")
    for key in ("settings", "reasons"):
        old[key] |= {name: new[key][name] for name in new[key]}
    known = {*old["peers"], *new["peers"]}
    old["peers"] = [name for name in BY_NAME if name in known]
    old["scenarios"] = [key for key in ALL if key in {*old["scenarios"], *new["scenarios"]}]
    return old | {key: new[key] for key in ("date", "durable", "metrics")}


def _arguments(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench/compare", description=__doc__)
    parser.add_argument(
        "--quick", action="store_true", help="pyff and one peer, small sizes, under five minutes"
    )
    parser.add_argument(
        "--tiny", action="store_true", help="pyff alone with minimal sizes: checks that everything runs"
    )
    parser.add_argument(
        "--peers", help=f"comma-separated, of: {', '.join(p.name for p in PEERS)} (default: all)"
    )
    parser.add_argument("--scenarios", help=f"letters of {ALL} (default: all)")
    parser.add_argument("--rounds", type=int, help="repetitions of the short scenarios (default 3; quick 1)")
    parser.add_argument(
        "--minutes",
        type=float,
        default=29,
        help="no second or third round that would not end by then (default 29)",
    )
    parser.add_argument(
        "--out", type=Path, help="where the report goes (default docs/benchmarks; quick and tiny: cache)"
    )
    parser.add_argument(
        "--add", action="store_true", help="add rounds, scenarios or peers to the results in --out"
    )
    parser.add_argument(
        "--report",
        action="store_true",
        help="measure nothing; write tables and plots of the results in --out",
    )
    parser.add_argument("--no-plots", action="store_true", help="tables and raw data only")
    parser.add_argument(
        "--keep-log", action="store_true", help="keep what drivers wrote to stderr beside the report"
    )
    args = parser.parse_args(argv)
    small = args.quick or args.tiny
    args.sizes = TINY if args.tiny else QUICK if args.quick else Sizes()
    args.rounds = args.rounds or (1 if small else 3)
    args.out = args.out or (cache() / "report" if small else DOCS)
    names = ["pyff"] if args.tiny else ["pyff", "Procrastinate"] if args.quick else list(BY_NAME)
    args.peers = args.peers.split(",") if args.peers else names
    if unknown := set(args.peers) - set(BY_NAME):
        parser.error(f"unknown peers: {', '.join(sorted(unknown))}")
    args.scenarios = [letter for letter in ALL if letter in (args.scenarios or ALL).upper()]
    return args


def _install(chosen: list[Peer], results: dict[str, Any]) -> dict[str, Installed]:
    found: dict[str, Installed] = {}
    for peer in chosen:
        _say(f"installing {peer.name}")
        try:
            found[peer.name] = install(peer)
            results["versions"][peer.name] = dict(found[peer.name].versions)
        except NotInstalledError as error:
            results["not_installed"][peer.name] = str(error)
            _say(f"  not installed: {error}")
    return found


def _prepare(
    host: Host, chosen: list[Peer], installed: dict[str, Installed], results: dict[str, Any]
) -> None:
    for peer in chosen:
        if peer.name in installed:
            try:
                host.prepare(peer, installed[peer.name])
            except DriverError as error:
                results["not_installed"][peer.name] = f"its setup failed: {error}"
                del installed[peer.name]
                _say(f"{peer.name}: its setup failed: {error}")


def _round(
    host: Host,
    scenario: str,
    installed: dict[str, Installed],
    *,
    sizes: Sizes,
    results: dict[str, Any],
) -> None:
    """Every peer once; each round begins with another one, so that no peer is always first."""
    names = list(installed)
    number = max((len(by.get(scenario, ())) for by in results["measurements"].values()), default=0)
    shift = number % len(names) if names else 0
    for name in names[shift:] + names[:shift]:
        peer = BY_NAME[name]
        if peer.without(scenario):
            continue
        began = time.monotonic()
        place = partial(host.place, peer, installed[name])
        try:
            found = measure(scenario, place, sizes)
        except (DriverError, psycopg.Error) as error:
            results["reasons"][name][scenario] = f"failed: {str(error).strip().splitlines()[0]}"
            _say(f"{scenario}{number + 1} {name}: {results['reasons'][name][scenario]}")
            continue
        results["measurements"].setdefault(name, {}).setdefault(scenario, []).append(found)
        figures = ", ".join(f"{k} {v if isinstance(v, str) else tables.number(v)}" for k, v in found.items())
        _say(f"{scenario}{number + 1} {name}: {figures}  [{time.monotonic() - began:.1f} s]")


def _keep(out: Path, results: dict[str, Any]) -> Path:
    out.mkdir(parents=True, exist_ok=True)
    raw = out / RAW
    raw.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n")
    return raw


def _write(out: Path, results: dict[str, Any], *, plots: bool) -> None:
    raw = _keep(out, results)
    for scenario in SCENARIOS:  # a plot of an earlier run would be taken for one of this run
        for kind in ("svg", "png"):
            (out / f"{scenario.key.lower()}.{kind}").unlink(missing_ok=True)
    (out / "results.md").write_text("# Results\n\n" + tables.render(results))
    if not plots:
        return
    with contextlib.suppress(NotInstalledError):
        drawing = subprocess.run(
            [plotter(), Path(__file__).with_name("plots.py"), raw, out],
            capture_output=True,
            text=True,
            check=False,
        )
        if drawing.returncode != 0:
            _say(f"no plots: {drawing.stderr.strip().splitlines()[-1]}")


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
