"""The documents are correct: their code runs, their links work, their lists are complete.

Every block of every document is run. sql is fed to psql, all blocks of a document as one script; python are programs,
each with PYFF_DSN; sh are commands. Blocks that need more are run by their own tests: in test_<page>_page.py, or
those that ELSEWHERE names. A block of any other kind fails, but for `text`, which is for reading.
"""

import argparse
import os
import re
import sys
from pathlib import Path

import pytest

from pyff.cli import parser
from tests.docs.blocks import DOCUMENTS, ROOT, blocks, every_block, name_of, run_psql, run_python, run_shell
from tests.sql import table

ELSEWHERE = {
    (
        "docs/benchmarks/README.md",
        "sh",
    ): "tests/bench/test_compare.py::test_all_scenarios_that_end_soon_run_with_pyff_and_more_can_be_added",
    ("docs/benchmarks/hot-path.md", "sh"): "tests/bench/test_run.py::test_the_page_names_every_command",
    (
        "docs/other-languages.md",
        "js",
    ): "tests/examples/test_polyglot.py::test_the_page_shows_the_worker_in_javascript",
    ("examples/polyglot/README.md", "sql"): "tests/examples/test_polyglot.py::database",
    (
        "examples/polyglot/README.md",
        "sh",
    ): "tests/examples/test_polyglot.py::test_the_readme_says_how_they_are_run",
}
"""By document and language: the test that runs these blocks."""

SHELL_ELSEWHERE = {
    "./demo": "tests/bootstrap/test_killed_runs.py::test_a_killed_demo_leaves_no_server_and_the_next_one_works",
    "./test": "tests/bootstrap/test_killed_runs.py::test_an_interrupted_test_run_stops_its_server",
    "pip install '.[binary]'": "tests/packaging/test_distributions.py::"
    "test_the_installed_command_migrates_from_any_directory",
}
"""Commands that cannot run inside a test, and the one that runs them in another way."""


def is_run_elsewhere(name: str, language: str) -> bool:
    """By the module of that page, if it speaks of the language, or by the test that ELSEWHERE names."""
    module = ROOT / "tests" / "docs" / f"test_{Path(name).stem.replace('-', '_')}_page.py"
    asked = module.exists() and re.search(rf"\b{language}\b", module.read_text())
    return bool(asked) or (name, language) in ELSEWHERE


def having(language: str) -> list[str]:
    names = [name_of(path) for path in DOCUMENTS if blocks(path, language)]
    return [name for name in names if not is_run_elsewhere(name, language)]


def extension_of(block: str) -> str | None:
    """The extension that a block of SQL begins with: a server has few, so a test of its own provides it."""
    found = re.search(r"create extension (?:if not exists )?(\w+)", block)
    return found and found[1]


@pytest.mark.parametrize("path", DOCUMENTS, ids=name_of)
def test_every_block_is_run_by_a_test_or_says_that_it_is_a_text(path):
    for block in every_block(path):
        known = block.language in ("sql", "python", "sh", "text")
        assert known or is_run_elsewhere(name_of(path), block.language), (
            f"nothing runs this block of {name_of(path)} ({block.language or 'no language'}):\n{block.text}"
        )


@pytest.mark.parametrize("test", [*ELSEWHERE.values(), *SHELL_ELSEWHERE.values()])
def test_the_tests_that_run_the_other_blocks_exist(test):
    module, _, function = test.partition("::")
    assert f"\ndef {function}(" in (ROOT / module).read_text()


@pytest.mark.parametrize("path", DOCUMENTS, ids=name_of)
def test_every_link_to_a_file_leads_somewhere(path):
    for target in re.findall(r"\]\(([^)#\s]+)", path.read_text()):
        if "://" not in target:
            assert (path.parent / target).exists(), target


@pytest.mark.parametrize("name", having("sql"))
def test_the_sql_of_a_document_runs_in_psql(name, dsn, server_bindir):
    script = "\n".join(block for block in blocks(ROOT / name, "sql") if not extension_of(block))
    if "create role" in script:  # roles belong to the server: what makes some is rolled back
        script = f"begin;\n{script}"
    said = run_psql(script, dsn, server_bindir)
    for line in PSQL_SAYS.get(name, []):
        assert re.search(rf"^{line}$", said, re.M), (line, said)


PSQL_SAYS = {
    "README.md": [
        r"completed\|completed\|\d+\|f\ncompleted\|completed\|\d+\|t",
        r"lease\|acquired\|\|1\|me\nlease\|renewed\|\|1\|me\nlease\|released\|complete\|1\|me\ncompletion\|success\|\|\|",
    ],
    "docs/streams.md": [r'\{"tests": \{"failed": 1, "passed": 12\}\}\|2', r".*\|attempt_success"],
    "docs/steps.md": [r"charge\|receipt 17\|0\|1\nsend mail\|\|0\|2"],
    "docs/schedules.md": [
        r"created\|nightly report\|.*",
        r"poll\|active\|\|15000\|.*",
        r"resumed\n0\|0\|f\ndeleted",
    ],
    "docs/recipes.md": [
        r"approve\|anna\|known customer",
        r"accepted\nduplicate\n(RESET\n)?already_satisfied\npaid\|EUR 100",
        r"book_flight\|completed\nbook_hotel\|terminal_failed\nflight\|success\|seat 14A\nhotel\|failed\|",
        r"completed\|2\|1",
        r"hard_breach\|f\|6000\|10000\nterminal_failed\n2\ncancelled\|2\nfailed\|1\nsuccess\|1\nanswer\|completed",
        r"0\nactive\|2\nrate_limited\|3\ncompleted\ncompleted\n0\n1\|3",
    ],
    "docs/flows.md": [
        r"(\S+\|\w+\|\S+\n){3}\S+\|\w+\|\S+",
        r"\S+\|waiting\|f\ncancelled\ncancelled\|parent_ended",
    ],
}
"""Lines that the output must contain."""


@pytest.mark.parametrize("path", DOCUMENTS, ids=name_of)
def test_a_block_that_needs_an_extension_has_a_test_that_provides_it(path):
    for extension in filter(None, map(extension_of, blocks(path, "sql"))):
        modules = [module.read_text() for module in (ROOT / "tests").rglob("test_*.py")]
        assert any(path.name in text and f"-- {extension}" in text for text in modules), extension


@pytest.mark.parametrize("name", having("python"))
def test_the_python_of_a_document_runs(name, dsn, tmp_path):
    said = "".join(run_python(program, dsn, tmp_path) for program in blocks(ROOT / name, "python"))
    assert re.search(PYTHON_SAYS.get(name, ""), said), said


PYTHON_SAYS = {
    "README.md": f"^{re.escape(blocks(ROOT / 'README.md', 'text')[0])}$",  # the page shows it
    "docs/streams.md": r"^\S+ b'one'\n\S+ b'two'\n$",
    "docs/engine.md": r"^no policy, no retry\nExecutionNotActive WF400 False failed\n10 \{'completed'\}\n$",
    "docs/recipes.md": r"^order 7 refunded\naccepted\nduplicate\n100 euros paid\n"
    r"giving seat 14A back\nno trip for ann: seat 14A given back\n"
    r"a report of 2 parts, 2 are missing\n7 forecasts\n\[0, 1, 4, 9, 16\] reported once each\n$",
    "docs/steps.md": r"^\{'charge': b'receipt 17'\}\nalready_recorded b'receipt 17' 0\n$",
    "docs/schedules.md": r"^created\nreplaced\nday of month\ncleanup\n$",
    "docs/suspension.md": r"^approved already: \['approve'\]\n$",
}
"""What the programs of a document must print, all together."""


@pytest.mark.parametrize("name", having("sh"))
def test_the_commands_of_a_document_run(name, dsn, server_bindir, tmp_path):
    """Runs in the environment of these tests, in a temporary directory."""
    if not (Path(sys.prefix) / "pyff-venv").exists():
        pytest.skip("these tests do not run in an environment made by requirements/venv.sh (use ./test)")
    lines = "".join(blocks(ROOT / name, "sh")).splitlines()
    script = "\n".join(line for line in lines if line.partition(" #")[0].strip() not in SHELL_ELSEWHERE)
    binaries = Path(sys.prefix) / "bin"
    path = f"{binaries}:{server_bindir}:{os.environ['PATH']}"
    script = script.replace("postgresql://localhost/app", dsn)
    run_shell(script, tmp_path, {"PATH": path, "PYFF_DSN": dsn, "PYFF_VENV": sys.prefix})


@pytest.mark.parametrize("path", DOCUMENTS, ids=name_of)
def test_the_commands_in_the_text_exist_with_their_options(path):
    """`pyff <command> --option` between backquotes, which no test runs."""
    prose = re.sub(r"^```.*?^```$", "", path.read_text(), flags=re.M | re.S)
    for said in re.findall(r"`pyff ([^`]+)`", prose):
        words, current = said.split(), parser()
        while words and (found := subcommands(current).get(words[0])):
            words, current = words[1:], found
        if words and not words[0].startswith(("-", "<", '"')):
            assert not subcommands(current), f"there is no `pyff {said}`"
        known = {option for action in current._actions for option in action.option_strings}
        assert {word.partition("=")[0] for word in words if word.startswith("-")} <= known, f"`pyff {said}`"


def subcommands(of: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    return {
        name: found
        for action in of._actions
        if isinstance(action, argparse._SubParsersAction)
        for name, found in action.choices.items()
    }


@pytest.mark.parametrize("path", DOCUMENTS, ids=name_of)
def test_the_names_in_the_text_exist(path, db):
    """`ff_something` between backquotes is a function, a table, a view, an index or a role."""
    said = {*re.findall(r"`(ff_[a-z0-9_]+)(?=[`(. ])", path.read_text())} - {"ff_name", "ff__name"}
    query = """
        select p.proname from pg_proc p union select c.relname from pg_class c union select r.rolname from pg_roles r
    """
    assert said <= {row["proname"] for row in table(db, query)}


def test_the_families_of_the_guide_are_those_of_the_database(db):
    said = re.findall(
        r"^\| (\w+) \| ([a-z_, ]+) \| (tick|commit) \|$", (ROOT / "docs" / "events.md").read_text(), re.M
    )
    query = "select family, ff__event_types(family) as types, notify from ff_event_family"
    assert sorted((name, sorted(types.split(", ")), notify) for name, types, notify in said) == sorted(
        (row["family"], sorted(row["types"]), row["notify"]) for row in table(db, query)
    )


def test_the_kinds_of_the_troubleshooting_page_are_those_of_the_view(db):
    (comment,) = table(db, "select obj_description('ff_v_stuck'::regclass) as text")
    kinds = ", ".join(re.findall(r"^([a-z_, ]+): ", comment["text"], re.M)).split(", ")
    text = (ROOT / "docs" / "troubleshooting.md").read_text().partition("| kind | cause |")[2]
    rows = re.findall(r"^\| ([a-z_, ]+) \| ", text.partition("\n\n")[0], re.M)
    assert sorted(", ".join(rows).split(", ")) == sorted(kinds)


def test_the_views_of_the_symptoms_are_queried_on_the_troubleshooting_page():
    page = ROOT / "docs" / "troubleshooting.md"
    table_of_symptoms = page.read_text().partition("| symptom | view or function |")[2].partition("\n\n")[0]
    queries = "\n".join(blocks(page, "sql"))
    named = re.findall(r"`(ff_\w+)`", table_of_symptoms)
    assert len(named) > 8
    assert [name for name in named if not re.search(rf"from {name}\b", queries)] == []


def test_the_closing_reasons_of_the_guide_are_those_of_the_engine(db):
    (comment,) = table(db, "select obj_description('ff_stream_info(text, int)'::regprocedure) as text")
    listed = " | ".join(re.findall(r"closed_reason = (.*)", comment["text"])).split(" | ")
    text = (ROOT / "docs" / "streams.md").read_text()
    assert re.findall(r"^\| (\w+) \| [a-z]", text.partition("closed_reason |")[2], re.M) == listed


def test_the_roles_of_the_installation_guide_are_those_that_exist(db):
    said = re.findall(r"^\| (ff_\w+) \|", (ROOT / "docs" / "install.md").read_text(), re.M)
    query = "select rolname from pg_roles where rolname like 'ff\\_%%' and not rolcanlogin"
    assert sorted(said) == sorted(row["rolname"] for row in table(db, query))


def test_the_states_in_the_documents_are_those_the_database_accepts(db):
    """Each state is a row of the table in docs/states.md; the counts agree."""
    rows = table(db, "select * from ff_state_word")
    # R1 3, R2 1, R3 3 delays, a backoff and a resume, R4 4, R5 2 x 4, R6 4; A1, A2, A3; S1 7 reasons; T 5 outcomes.
    assert len(rows) == 3 + 1 + 5 + 4 + 8 + 4 + 3 + 7 + 5
    text = (ROOT / "docs" / "states.md").read_text()
    columns = ("lifecycle_phase", "ownership_state", "eligibility_state", "public_state")
    for row in rows:
        assert any(
            all(row[column] in line for column in columns)
            for line in text.splitlines()
            if line.startswith("| ")
        ), row
