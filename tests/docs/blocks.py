"""The code blocks of the documents, and how each kind of them is run."""

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.md")])


@dataclass(frozen=True)
class Block:
    language: str
    text: str


def every_block(path: Path) -> list[Block]:
    """All of them, however they are fenced and indented."""
    found: list[Block] = []
    fence, language, lines = "", "", []
    for line in path.read_text().splitlines():
        bare = line.strip()
        if not fence and (opening := re.match(r"(`{3,}|~{3,})\s*(.*)", bare)):
            fence, language, lines = opening[1], opening[2], []
        elif fence and bare == fence:
            found.append(Block(language, "\n".join([*lines, ""])))
            fence = ""
        elif fence:
            lines.append(line)
    assert not fence, f"{path} ends inside a block"
    return found


def blocks(path: Path, language: str) -> list[str]:
    return [block.text for block in every_block(path) if block.language == language]


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def run_psql(script: str, dsn: str, bindir: Path) -> str:
    """What psql prints, unaligned. An error ends the script and fails the test."""
    psql = bindir / "psql"
    version = subprocess.run([psql, "--version"], capture_output=True, text=True, check=True)
    if int(re.search(r" (\d+)", version.stdout)[1]) < 16:
        script = _without_bind(script)
    return _run([psql, "-X", "-v", "ON_ERROR_STOP=1", "-A", "-t", dsn], stdin=script)


def run_python(program: str, dsn: str, cwd: Path) -> str:
    """Runs in a temporary directory."""
    environment = {"PYFF_DSN": dsn, "PYTHONPATH": str(ROOT)}
    return _run([sys.executable, "-c", program], cwd=cwd, environment=environment)


def run_shell(script: str, cwd: Path, environment: Mapping[str, str]) -> str:
    return _run(["bash", "-euo", "pipefail", "-c", script], cwd=cwd, environment=environment)


def _without_bind(script: str) -> str:
    r"""psql knows \bind since 16. Before, variables stand in the statement itself."""

    def inlined(match: re.Match[str]) -> str:
        statement, names = match[1], match[2].split()
        return (
            re.sub(r"\$(\d)", lambda place: f":'{names[int(place[1]) - 1].lstrip(':')}'", statement) + ";\n"
        )

    return re.sub(r"((?:[^;\\]|\n)*?)\n\\bind ([^\n]*)\n\\g\n", inlined, script)


def _run(
    command: list[str | Path],
    *,
    stdin: str = "",
    cwd: Path = ROOT,
    environment: Mapping[str, str] | None = None,
) -> str:
    done = subprocess.run(
        command,
        input=stdin,
        cwd=cwd,
        env={name: value for name, value in os.environ.items() if name != "PYFF_DSN"}
        | {**(environment or {})},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
