"""What the documents say is so: their code runs, their links lead somewhere, their lists are complete."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.sql import table

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


def blocks(path: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", path.read_text(), re.M | re.S)


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda p: str(p.relative_to(ROOT)))
def test_every_link_to_a_file_leads_somewhere(path):
    for target in re.findall(r"\]\(([^)#\s]+)", path.read_text()):
        if "://" not in target:
            assert (path.parent / target).exists(), target


def test_the_psql_tour_runs_in_psql(dsn, server_bindir):
    (tour,) = blocks(ROOT / "README.md", "sql")
    run = subprocess.run(
        [server_bindir / "psql", "-X", "-v", "ON_ERROR_STOP=1", "-A", "-t", dsn],
        input=tour,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert [line.split("|")[-1] for line in run.stdout.splitlines() if line.startswith("completed")] == [
        "f",
        "t",
    ]
    assert [line for line in run.stdout.splitlines() if line.startswith(("lease", "completion"))] == [
        "lease|acquired||1|me",
        "lease|renewed||1|me",
        "lease|released|complete|1|me",
        "completion|success|||",
    ]


@pytest.mark.parametrize("name", ["streams", "events"])
def test_the_sql_of_a_guide_runs_in_psql(dsn, server_bindir, name):
    found = blocks(ROOT / "docs" / f"{name}.md", "sql")
    assert found
    run = subprocess.run(
        [server_bindir / "psql", "-X", "-v", "ON_ERROR_STOP=1", "-A", "-t", dsn],
        input="\n".join(found),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    if name == "streams":
        assert '{"tests": {"failed": 1, "passed": 12}}|2' in run.stdout
        assert "attempt_success" in run.stdout


@pytest.mark.parametrize("name", ["streams", "events"])
def test_the_python_of_a_guide_runs(dsn, name):
    (program,) = blocks(ROOT / "docs" / f"{name}.md", "python")
    run = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYFF_DSN": dsn},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    if name == "streams":
        assert [line.split()[1] for line in run.stdout.splitlines()] == ["b'one'", "b'two'"]


def test_the_families_of_the_guide_are_those_of_the_database(db):
    said = re.findall(
        r"^\| (\w+) \| ([a-z_, ]+) \| (tick|commit) \|$", (ROOT / "docs" / "events.md").read_text(), re.M
    )
    query = "select family, ff__event_types(family) as types, notify from ff_event_family"
    assert sorted((name, sorted(types.split(", ")), rings) for name, types, rings in said) == sorted(
        (row["family"], sorted(row["types"]), row["notify"]) for row in table(db, query)
    )


def test_the_closing_reasons_of_the_guide_are_those_of_the_engine(db):
    (comment,) = table(db, "select obj_description('ff_stream_info(text, int)'::regprocedure) as text")
    listed = re.search(r"closed_reason = (.*)", comment["text"])[1].split(" | ")
    text = (ROOT / "docs" / "streams.md").read_text()
    assert re.findall(r"^\| (\w+) \| [a-z]", text.partition("closed_reason |")[2], re.M) == listed


def test_the_python_tour_runs(dsn):
    (tour,) = blocks(ROOT / "README.md", "python")
    run = subprocess.run(
        [sys.executable, "-c", tour],
        env={**os.environ, "PYFF_DSN": dsn},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout.startswith("execution_not_active completed ")


def test_the_sql_of_the_installation_guide_runs(db):
    for statement in blocks(ROOT / "docs" / "install.md", "sql"):
        db.execute(statement)


def test_the_sql_of_the_guide_to_flows_runs(db):
    for statement in blocks(ROOT / "docs" / "flows.md", "sql"):
        assert len(db.execute(statement).fetchall()) == 4


def test_the_roles_of_the_installation_guide_are_those_that_exist(db):
    said = re.findall(r"^\| (ff_\w+) \|", (ROOT / "docs" / "install.md").read_text(), re.M)
    query = "select rolname from pg_roles where rolname like 'ff\\_%%' and not rolcanlogin"
    assert sorted(said) == sorted(row["rolname"] for row in table(db, query))


def test_the_states_in_the_documents_are_those_the_database_accepts(db):
    """Each row of the table in docs/states.md, spelled out, passes the CHECK; the counts agree."""
    attempts = [
        "pending_first_attempt",
        "pending_retry_attempt",
        "pending_replay_attempt",
        "attempt_interrupted",
    ]
    legal = table(
        db,
        """
        select p.phase, o.own, g.elig, b.reason, t.outcome, a.attempt, n.n,
               ff__public_state(p.phase, o.own, g.elig, b.reason, t.outcome, a.attempt, n.n) as public_state
          from unnest('{submitted,runnable,active,suspended,terminal}'::text[]) p(phase)
         cross join unnest('{unowned,leased,lease_expired_reclaimable,lease_revoked}'::text[]) o(own)
         cross join unnest('{eligible_now,not_eligible_until_time,blocked_by_dependencies,blocked_by_budget,
                             blocked_by_quota,blocked_by_route,blocked_by_lane_state,blocked_by_operator,
                             not_applicable}'::text[]) g(elig)
         cross join unnest('{none,waiting_for_worker,waiting_for_delay,waiting_for_retry_backoff,
                             waiting_for_resume_delay,waiting_for_children,waiting_for_budget,waiting_for_quota,
                             paused_by_operator,paused_by_policy,waiting_for_signal,waiting_for_approval,
                             waiting_for_callback,waiting_for_tool_result,waiting_for_capable_worker,
                             waiting_for_locality_match,paused_by_flow_cancel}'::text[]) b(reason)
         cross join unnest('{none,success,failed,cancelled,expired,skipped}'::text[]) t(outcome)
         cross join unnest('{none,pending_first_attempt,running_attempt,attempt_interrupted,pending_retry_attempt,
                             pending_replay_attempt,attempt_terminal}'::text[]) a(attempt)
         cross join unnest('{0,1}'::int[]) n(n)
         where ff__public_state(p.phase, o.own, g.elig, b.reason, t.outcome, a.attempt, n.n) is not null
        """,
    )
    # R1 3, R2 1, R3 3 reasons x 4, R4 4, R5 2 x 4, R6 4; A1, A2, A3; S1 7 reasons: each with any count. T: 5 outcomes.
    assert len(legal) == 2 * (3 + 1 + 12 + 4 + 8 + 4 + 3 + 7) + 2 * 5
    rows = {
        (r["phase"], r["own"], r["elig"], r["public_state"], r["attempt"] in attempts)
        for r in legal
        if r["n"] == 1
    }
    text = (ROOT / "docs" / "states.md").read_text()
    for phase, own, elig, state, _ in rows:
        assert any(
            phase in line and own in line and elig in line and state in line
            for line in text.splitlines()
            if line.startswith("| ")
        ), (phase, own, elig, state)
