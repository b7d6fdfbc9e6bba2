"""The comparison with peers: its statistics, its tables, its protocol, and one run with minimal work."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from bench.compare_peers import tables
from bench.compare_peers.__main__ import _arguments, main
from bench.compare_peers.metrics import SCENARIOS
from bench.compare_peers.peers import ALL, PEERS
from bench.compare_peers.protocol import Client, DriverError, until, working
from bench.compare_peers.stats import percentile, ratio, summarize
from bench.process import machine, processor_seconds

WIRE = str(Path(tables.__file__).parent / "drivers")
ECHO = f"""
import sys; sys.path.insert(0, {WIRE!r})
import time, wire
class Asked:
    def __init__(self, dsn): self.dsn = dsn
    def twice(self, number): return {{"number": 2 * number, "dsn": self.dsn}}
    async def later(self): return {{"async": True}}
    def wrong(self): raise ValueError("no")
    def leave(self): sys.exit(3)
def worker(dsn, options):
    wire.ready()
    for n in range(options["count"]): wire.count()
    wire.mark(7); wire.say(waiting=8, token="t"); wire.say(ran=9)
    time.sleep(60)
wire.main(Asked, worker)
"""


@pytest.fixture
def echo(tmp_path):
    file = tmp_path / "echo_driver.py"
    file.write_text(ECHO)
    return [sys.executable, str(file)]


def results(**measured):
    return {
        "date": "2026-01-01",
        "machine": {"processor": "p", "cores": "2", "memory": "1 GB", "system": "s", "python": "3"},
        "runs": [{"scenarios": list(measured), "load": 0.5}],
        "durable": ["other"],
        "server": {"server_version": "18", "fsync": "on"},
        "peers": ["pyff", "other", "absent"],
        "settings": {"pyff": "x", "other": "y", "absent": "z"},
        "versions": {"pyff": {"pyff": "1"}, "other": {"other": "2"}},
        "scenarios": list(measured),
        "not_installed": {"absent": "cargo is not on this machine"},
        "reasons": {"other": {"C": "a task cannot wait for a signal"}},
        "measurements": {
            peer: {s: by[peer] for s, by in measured.items() if peer in by} for peer in ("pyff", "other")
        },
    }


def test_the_median_and_the_spread_of_rounds():
    found = summarize([10.0, 30.0, 20.0])
    assert (found.median, found.low, found.high, found.rounds) == (20, 10, 30, 3)
    assert found.spread == 0.5


def test_percentiles_are_values_that_occurred():
    values = [float(n) for n in range(1, 101)]
    assert percentile(values, 50) == 50
    assert percentile(values, 95) == 95
    assert percentile([3.0], 50) == 3


@pytest.mark.parametrize(
    ("value", "reference", "more", "expected"),
    [
        (200, 100, True, 2),
        (50, 100, True, 0.5),
        (50, 100, False, 2),
        (200, 100, False, 0.5),
        (0, 100, True, None),
    ],
)
def test_a_ratio_above_one_is_better_whichever_way_the_metric_points(value, reference, more, expected):
    assert ratio(value, reference, more_is_better=more) == expected


def test_a_loss_is_shown_as_a_loss():
    text = tables.render(
        results(G={"pyff": [{"cancel_100": 20.0}], "other": [{"cancel_100": 5.0, "cancel_1000": 9.0}]})
    )
    assert (
        "| G: 100 tasks, ms | 20 | other | 5 | **behind** (0.25×) | other | 5 | **behind** (0.25×) |" in text
    )
    assert "| other | 5 (4×) | 9 |" in text


def test_a_win_shows_median_spread_and_ratio():
    rounds = [{"chains": value} for value in (90.0, 100.0, 110.0)]
    text = tables.render(results(D={"pyff": rounds, "other": [{"chains": 50.0}]}))
    assert "| **pyff** | 100 ±10 % |" in text
    assert "| other | 50 (0.5×) |" in text
    assert "ahead 2×" in text


def test_an_empty_cell_has_its_reason():
    text = tables.render(results(C={"pyff": [{"resume_p50": 4.0, "resume_p95": "too few"}]}))
    assert "- other: a task cannot wait for a signal." in text
    assert "- pyff: too few." in text
    assert "- absent: cargo is not on this machine." in text
    assert "| absent | – | not installed: cargo is not on this machine |" in text


def test_every_peer_names_known_scenarios_and_a_reason_for_each_that_it_lacks():
    assert [scenario.key for scenario in SCENARIOS] == list(ALL)
    for peer in PEERS:
        assert set(peer.missing) <= set(ALL)
        assert all(peer.missing.values())
        assert peer.shortest_lease_s or peer.no_short_lease
        assert peer.settings


def test_a_client_answers_in_plain_and_async_methods(echo):
    with Client([*echo, "client", "db"]) as client:
        assert client.next(20) == {"ready": True}
        assert client.ask("twice", number=4) == {"number": 8, "dsn": "db"}
        assert client.ask("later") == {"async": True}


def test_an_error_of_a_driver_is_raised_and_the_driver_goes_on(echo):
    with Client([*echo, "client", "db"]) as client:
        client.next(20)
        with pytest.raises(DriverError, match="ValueError: no"):
            client.ask("wrong")
        assert client.ask("twice", number=1)["number"] == 2


def test_a_driver_that_ends_is_noticed(echo):
    with Client([*echo, "client", "db"]) as client:
        client.next(20)
        with pytest.raises(DriverError, match="ended with status 3"):
            client.ask("leave")


def test_workers_tell_what_their_tasks_do(echo):
    commands = [[*echo, "worker", "db", json.dumps({"count": n})] for n in (3, 4)]
    with working(commands) as workers:
        assert until(workers, lambda: sum(w.done for w in workers) == 7 and all(w.ran for w in workers), 20)
        first = workers[0]
        assert first.first is not None
        assert first.first[1] == 1
        assert set(first.marks) == {7}
        assert first.waiting == {8: "t"}
        assert first.ran == [9]


@pytest.mark.slow("long run")
def test_all_scenarios_that_end_soon_run_with_pyff_and_more_can_be_added(tmp_path, capsys):
    out = ["--no-plots", "--out", str(tmp_path)]
    assert main(["--tiny", "--scenarios", "ABCDFG", *out]) == 0
    found = json.loads((tmp_path / "results.json").read_text())
    measured = found["measurements"]["pyff"]
    assert {scenario: len(rounds) for scenario, rounds in measured.items()} == dict.fromkeys("ABCDFG", 1)
    for scenario in SCENARIOS:
        for values in measured.get(scenario.key, ()):
            assert all(values[metric.key] > 0 for metric in scenario.metrics)
    assert "## A. Enqueue and drain" in capsys.readouterr().out

    assert main(["--tiny", "--scenarios", "G", "--add", *out]) == 0
    added = json.loads((tmp_path / "results.json").read_text())
    assert added["scenarios"] == list("ABCDFG")
    assert len(added["measurements"]["pyff"]["G"]) == 2
    assert added["measurements"]["pyff"]["A"] == measured["A"]

    (tmp_path / "results.md").unlink()
    assert main(["--report", *out]) == 0
    assert "G: 2 rounds" in (tmp_path / "results.md").read_text()


def test_the_commands_of_the_page_are_understood():
    page = Path(__file__).parents[2] / "docs" / "benchmarks" / "README.md"
    commands = re.findall(r"^bench/compare(.*?)(?:#.*)?$", page.read_text(), re.MULTILINE)
    assert len(commands) >= 5
    for words in commands:
        _arguments(words.split())


def test_results_of_another_size_are_not_added_to(tmp_path):
    (tmp_path / "results.json").write_text(json.dumps({"machine": machine(), "sizes": {"single": 1}}))
    with pytest.raises(SystemExit, match="another sizes"):
        main(["--tiny", "--scenarios", "G", "--add", "--out", str(tmp_path)])


def test_processor_time_counts_children_that_have_ended():
    before = processor_seconds(os.getpid())
    subprocess.run([sys.executable, "-c", "sum(range(10_000_000))"], check=True)
    assert processor_seconds(os.getpid()) > before
