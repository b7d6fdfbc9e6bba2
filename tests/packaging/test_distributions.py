"""The distributions work where they are installed, from any directory."""

import os
import re
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

import pyff

pytestmark = pytest.mark.slow("installs packages")

ROOT = Path(pyff.__file__).resolve().parent.parent


CLEAN = {name: text for name, text in os.environ.items() if not name.startswith(("PYTHON", "PYFF_", "PG"))}
"""The environment without settings that would lead to another pyff."""


def run(*command, cwd):
    return subprocess.run(command, check=True, cwd=cwd, capture_output=True, text=True, env=CLEAN).stdout


def build(kind, source, target):
    """Calls the build backend as a front end would, in the source directory, without isolation or network."""
    program = f"from hatchling.build import build_{kind}; print(build_{kind}({str(target)!r}))"
    return target / run(sys.executable, "-c", program, cwd=source).splitlines()[-1]


@pytest.fixture(scope="module")
def sdist(tmp_path_factory):
    return build("sdist", ROOT, tmp_path_factory.mktemp("sdist"))


@pytest.fixture(scope="module")
def wheel(sdist, tmp_path_factory):
    """Built from the sdist, as pip does where there is no wheel."""
    unpacked = tmp_path_factory.mktemp("unpacked")
    with tarfile.open(sdist) as archive:
        archive.extractall(unpacked)  # noqa: S202
    return build("wheel", next(unpacked.iterdir()), tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """A virtual environment with nothing but the wheel; it borrows the dependencies of the running one."""
    home = tmp_path_factory.mktemp("installed")
    venv.create(home, with_pip=False)
    python = home / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", python]
    run(*pip, "install", "--no-deps", "--no-index", "--no-cache-dir", wheel, cwd=home)
    site = run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=home).strip()
    borrowed = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    (Path(site) / "borrowed.pth").write_text("\n".join(sorted(borrowed)) + "\n")
    return home


def shipped(directory):
    return {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / directory).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def test_the_wheel_holds_the_package_and_its_sql_and_nothing_else(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
        metadata = {name.split(".dist-info/")[1] for name in archive.namelist() if ".dist-info/" in name}
    assert names == shipped("pyff") | {f"pyff/{name}" for name in shipped("db")}
    assert "pyff/py.typed" in names
    assert "pyff/db/migrations/0001.service.sql" in names
    assert "licenses/LICENSE" in metadata


def test_the_wheel_and_its_metadata_name_none_of_the_tools(wheel):
    tools = [path.name for path in (ROOT / "tools").iterdir() if (path / "__init__.py").exists()]
    assert {"codegen", "demo", "prove", "verify"} <= set(tools)
    with zipfile.ZipFile(wheel) as archive:
        assert not [
            name for name in archive.namelist() for part in Path(name).parts if part in {"tools", *tools}
        ]
        (metadata,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        text = archive.read(metadata).decode()
    assert not [
        name for name in tools if f"tools.{name}" in text or f"tools/{name}" in text or f"pyff.{name}" in text
    ]


@pytest.mark.parametrize("arguments", [("demo",), ("verify", "history.jsonl")], ids=" ".join)
def test_an_installed_command_that_needs_a_tool_says_where_it_runs(installed, arguments, tmp_path):
    command = [installed / "bin" / "pyff", *arguments]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, env=CLEAN)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        f"pyff: `pyff {arguments[0]}` needs the directory tools/{arguments[0]}, which an installed pyff does not have "
        f"(hint: in a clone of the repository, run ./demo once, then .venv/bin/pyff {arguments[0]})\n"
    )


def test_the_sdist_holds_what_is_needed_to_build_and_to_test(sdist):
    with tarfile.open(sdist) as archive:
        names = {name.split("/", 1)[1] for name in archive.getnames()}
    assert shipped("pyff") | shipped("db") | shipped("tools") | shipped("tests") <= names
    assert {"pyproject.toml", "LICENSE", "README.md"} <= names
    assert not [name for name in names if name.startswith((".venv", ".git/", "dist", "wheelhouse"))]


def test_the_version_is_the_same_everywhere(wheel, sdist):
    assert wheel.name == f"pyff_engine-{pyff.__version__}-py3-none-any.whl"
    assert sdist.name == f"pyff_engine-{pyff.__version__}.tar.gz"


def test_the_installed_command_migrates_from_any_directory(installed, db, dsn, tmp_path):
    db.execute("create schema installed")
    place = ["--dsn", dsn, "--schema", "installed", "--private-schema", "behind"]
    command = installed / "bin" / "pyff"
    program = "import pyff._paths as p; print(p.__file__); print(p.db_root())"
    for line in run(installed / "bin" / "python", "-c", program, cwd=tmp_path).splitlines():
        assert Path(line).is_relative_to(installed)
    assert "applied 0001.service" in run(command, "migrate", *place, cwd=tmp_path)
    assert "current" in run(command, "migrate", "--check", *place, cwd="/")
    assert run(command, "--version", cwd="/") == f"pyff {pyff.__version__}\n"


def test_the_sizes_that_the_readme_gives_are_those_of_the_wheel(wheel, installed):
    """Within a tenth: bytecode differs between versions of Python."""
    (site,) = installed.glob("lib/python*/site-packages")
    files = [path for own in site.glob("pyff*") for path in own.rglob("*") if path.is_file()]
    measured = {"installed": sum(path.stat().st_size for path in files), "wheel": wheel.stat().st_size}
    text = " ".join((ROOT / "README.md").read_text().split())
    stated = re.search(r"adds ([\d.]+) MB to site-packages .* the wheel has ([\d.]+) MB", text)
    for (name, size), megabytes in zip(measured.items(), stated.groups(), strict=True):
        assert size / 1e6 == pytest.approx(float(megabytes), rel=0.1), name
