"""The quickstart: its sh and python blocks unchanged, on its own server, with a worker in the background."""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.docs.blocks import ROOT, blocks

PAGE = ROOT / "docs" / "quickstart.md"
TEXT = PAGE.read_text()
WORKER = "pyff worker refunds:app\n"
# What a person waits for between two commands: the worker has begun, the approval is asked for.
PATIENCE = """
until_said() { for _ in $(seq 600); do ! "$@" | grep -q "$WANTED" || return 0; sleep 0.1; done; return 1; }
"""


@pytest.fixture
def home():
    with tempfile.TemporaryDirectory(prefix="pyff-test-", dir="/tmp") as home:  # a short path, for the socket
        Path(home).chmod(0o755)
        yield home


@pytest.mark.slow("waits for real time")
def test_the_quickstart_leads_to_an_approved_and_retried_result(home, tmp_path, server_bindir):
    for name, program in zip(re.findall(r"`(\w+\.py)`", TEXT), blocks(PAGE, "python"), strict=True):
        (tmp_path / name).write_text(program)
    steps = blocks(PAGE, "sh")
    assert steps.pop(1) == WORKER
    script = [
        "worker=",
        "trap 'code=$?; set +e; kill $worker 2>/dev/null; wait; pyff server stop >/dev/null 2>&1; exit $code' EXIT",
        PATIENCE,
    ]
    steps[-1] = f"kill $worker; wait; worker=; {steps[-1]}"  # the page says: ctrl-c
    for step in steps:
        script += ["echo NEXT", step.replace("./demo ", ": ")]
        if re.search(r"^pyff server start", step, re.MULTILINE):  # not where a comment names it
            script.append(f"{WORKER.strip()} >worker.log 2>&1 & worker=$!")
        if "ask.py\n" in step:
            script.append("WANTED=waiting_for_approval until_said pyff approve")
    said = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", "\n".join(script)],
        cwd=tmp_path,
        env={name: value for name, value in os.environ.items() if name not in ("PYFF_DSN", "PYFF_HOME")}
        | {"PYFF_HOME": home, "PATH": f"{Path(sys.prefix) / 'bin'}:{server_bindir}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=1200,
        check=False,
    )
    log = (tmp_path / "worker.log").read_text()
    assert said.returncode == 0, said.stdout + said.stderr + log
    start, ask, decide, wait, look, stop = said.stdout.split("NEXT\n")[1:]
    assert "key-1 signs now" in start
    execution_id = re.match(r"created (\S+)\n", ask)[1]
    assert "is suspended: waiting_for_approval" in decide
    assert decide.endswith("accepted: resume condition satisfied; the execution is resumable\n")
    assert wait == f"duplicate {execution_id}\npayment 7-1, mail sent\n"
    assert re.sub(r"\{fp:.*", execution_id, blocks(PAGE, "text")[0]) == wait
    assert f"{execution_id} is completed\n" in look
    assert re.search(r"0 +initial +failure +ConnectionError: the mail.*\n +1 +retry +success", look)
    assert re.search(r"signal +\S+ .*anna", look)
    assert re.search(r"^ok: ", look, re.M)
    assert "stopped" in stop
    assert log.count("paying 1200.0 euros for order 7") == 1
