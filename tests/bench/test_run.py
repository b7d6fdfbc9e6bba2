"""Every command of bench/run and bench/instructions runs, with minimal work, and prints plausible figures."""

import importlib
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from bench import growth, hotpath, instructions

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "benchmarks" / "hot-path.md"
SHORT = ["--seconds", "1", "--rounds", "1", "--clients", "2"]
SMALL = {
    "admission": (["--seconds", "0.1", "--clients", "2", "--parked", "1000"], r"ratio (\d+\.\d+)\)", 2),
    "budgets": (SHORT, r"clients +([1-9]\d*) +\d", 3),
    "flows": (["--flows", "3", "--only", "chains", "--only", "races"], r"p50 (\d+\.\d) ms", 2),
    "soak": (["--executions", "10000", "--retain", "0.1", "--singles", "3"], r"^ +\d+000 +([1-9]\d*) ", 10),
    "streams": (SHORT, r"clients +([1-9]\d*) +\d", 4),
    "suspend": (SHORT, r"cl\. +([1-9]\d*) +\d", 3),
    "tick": (["--rows", "2000", "--backlog", "200"], r"^sweep_\w+ +2000? +([1-9]\d*)", 6),
    "worker": (["--tasks", "500", "--rounds", "1", "--only", "throughput"], r": +([1-9]\d*) tasks/s", 3),
}
"""By command: arguments, a pattern of its figures, how many there are."""


def positive(*figures):
    assert figures
    assert all(float(figure) > 0 for figure in figures), figures


def commands():
    """Those of the page: program, arguments."""
    return [
        (words[0], words[1:])
        for line in re.findall(r"^(bench/(?:run|instructions)\b[^#\n]*)", PAGE.read_text(), re.M)
        if (words := line.split())
    ]


def help_of(module, capsys):
    with pytest.raises(SystemExit) as ended:
        importlib.import_module(f"bench.{module}").main(["--help"])
    assert ended.value.code == 0
    return capsys.readouterr().out


@pytest.mark.slow("long run")
def test_the_hot_path_prints_both_sides_of_every_figure(capsys):
    assert hotpath.main(["--seconds", "0.6", "--rounds", "2", "--clients", "2"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("PostgreSQL ")
    assert "fsync on, synchronous_commit on, full_page_writes on" in said
    for shape in hotpath.SHAPES:
        (line,) = re.findall(rf"^{shape} +2 cl\.(.*)$", said, re.M)
        figures = re.findall(r"[\d.]+", line)
        assert len(figures) == 13, line  # ratio; then cycles/s, server us, WAL, rows, p50 and p99 of both
        positive(*figures)
        assert float(figures[8]) == 3, "the limit inserts one row and updates it twice"
        assert float(figures[9]) <= float(figures[11]), "p50 is above p99"
    positive(*re.findall(r"([\d.]+) us per row", said))
    positive(*re.findall(r"([\d.]+) us per task", said))


@pytest.mark.slow("long run")
def test_every_scenario_of_growth_runs(capsys):
    arguments = ["--rows", "1000", "--seconds", "3", "--clients", "2"]
    assert growth.main(arguments) == 0
    said = capsys.readouterr().out
    for name, cases in growth.scenarios(1000).items():
        for case in cases:
            (line,) = re.findall(rf"^{name} +{re.escape(case.name)} (.*)$", said, re.M)
            positive(*line.split())
    positive(*re.findall(r"held (\d+), not held (\d+) cycles/s, ratio ([\d.]+)", said)[0])
    assert int(re.findall(r"(\d+) claimed one by one", said)[0]) >= 10_000


def test_the_scenarios_of_growth_have_the_sizes_of_the_page():
    names = {
        name: " ".join(case.name for case in cases) for name, cases in growth.scenarios(1_000_000).items()
    }
    page = PAGE.read_text()
    for name in names:
        assert f"\n| {name} | " in page
    for name, size in {
        "ready": "1000000 ready",
        "unmatched": "1000000 rows ahead of 1000 other",
        "sets": "300 sets",
        "lanes": "10000 lanes",
        "namespace": "100000 rows",
        "retained": "1000000 ended",
    }.items():
        assert size in names[name]


def test_a_claim_that_finds_nothing_while_work_is_ready_ends_the_scenario(db, monkeypatch):
    growth.create(db, "bench", 3)
    monkeypatch.setattr(growth, "drain", lambda *_: 0)
    with pytest.raises(SystemExit, match="found nothing while"):
        growth._until_nothing(db)


@pytest.mark.slow("long run")
def test_growth_can_run_one_scenario(capsys):
    assert growth.main(["--only", "lanes", "--rows", "1000"]) == 0
    said = capsys.readouterr().out
    assert "lanes  " in said
    assert "ready  " not in said


@pytest.mark.slow("long run")
@pytest.mark.parametrize("command", SMALL)
def test_a_command_runs_and_its_figures_are_positive(command, capsys):
    arguments, pattern, count = SMALL[command]
    assert importlib.import_module(f"bench.{command}").main(arguments) == 0
    said = capsys.readouterr().out
    assert "fsync on" in said
    found = re.findall(pattern, said, re.M)
    assert len(found) == count, said
    positive(*found)


@pytest.mark.slow("long run")
def test_instructions_are_counted_or_it_is_said_that_valgrind_is_missing(capsys):
    arguments = ["--only", "single", "--turns", "5", "--top", "3"]
    if shutil.which("valgrind") is None:
        with pytest.raises(SystemExit, match="valgrind is not installed"):
            instructions.main(arguments)
        return
    assert instructions.main(arguments) == 0
    said = capsys.readouterr().out
    for name in ("limit", "create", "claim", "complete", "cycle"):
        positive(*re.findall(rf"^single {name} +([\d.]+)", said, re.M))
    assert len(re.findall(r"^ +([\d.]+)  in \S", said, re.M)) == 3 * 4
    positive(*re.findall(r"([\d.]+)  times the limit", said))


def test_without_valgrind_the_command_says_so(monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda _: None)
    with pytest.raises(SystemExit, match="valgrind is not installed"):
        instructions.main([])


def test_the_page_names_every_command(capsys):
    named = {
        "instructions" if program == "bench/instructions" else words[0]
        for program, words in commands()
        if program == "bench/instructions" or (words and words[0].isalpha())
    }
    assert named == {*SMALL, "growth", "instructions"}
    assert ("bench/run", []) in commands()
    for program, words in commands():
        module = "instructions" if program == "bench/instructions" else "hotpath"
        if words and words[0].isalpha():
            module = words[0]
        usage = help_of(module, capsys)
        for option in (word for word in words if word.startswith("--")):
            assert option in usage, (program, words)


@pytest.mark.slow("long run")
@pytest.mark.parametrize(
    "words", [["run"], *([["run", name] for name in ("growth", *SMALL)]), ["instructions"]]
)
def test_the_scripts_start_the_module_that_they_name(words):
    done = subprocess.run(
        [ROOT / "bench" / words[0], *words[1:], "--help"],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"usage: bench/{' '.join(words)} ")
