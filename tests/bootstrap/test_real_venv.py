"""The same with the real Python and pip: one small package, pinned by hash, from a wheelhouse."""

import base64
import hashlib
import shutil
import zipfile
from pathlib import Path

import pytest

from tests.bootstrap.conftest import REAL, REPOSITORY, Checkout


def make_wheel(directory: Path, answer: int) -> str:
    """A package `tiny`; returns the wheel's sha256."""
    files = {
        "tiny.py": f"answer = {answer}\n",
        "tiny-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n",
        "tiny-1.0.dist-info/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "tiny-1.0.dist-info/RECORD,,\n"
    path = directory / "tiny-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        for name, text in files.items():
            digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
            record += f"{name},sha256={digest},{len(text)}\n"
            wheel.writestr(name, text)
        wheel.writestr("tiny-1.0.dist-info/RECORD", record)
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.mark.slow("builds environments")
def test_install_run_refuse_what_was_altered_and_miss_the_network(tmp_path):
    checkout = Checkout(tmp_path / "a checkout", Path(REAL))
    wheelhouse = checkout.path / "wheelhouse"
    wheelhouse.mkdir()
    lock = checkout.path / "requirements" / "run.txt"
    lock.write_text(f"tiny==1.0 --hash=sha256:{make_wheel(wheelhouse, 42)}\n")
    (checkout.path / "pyff").mkdir()
    (checkout.path / "pyff" / "__main__.py").write_text(
        "import sys, tiny; print(tiny.answer, sys.argv[1:], sys.prefix)\n"
    )
    # The current directory has a pyff, too: the checkout's must be the one that runs.
    assert checkout.run("demo", "x") == f"42 ['demo', 'x'] {checkout.path}/.venv\n"

    pip = next((checkout.path / ".venv").glob("lib/python*/site-packages/pip"))
    pip.rename(pip.with_name("hidden"))
    assert checkout.run("demo").startswith("42"), "a warm run needs no pip"
    pip.with_name("hidden").rename(pip)

    make_wheel(wheelhouse, 43)
    lock.write_text(lock.read_text() + "# changed\n")
    assert "pins by hash" in checkout.fail(PIP_FORCE_REINSTALL="1")

    shutil.rmtree(wheelhouse)
    said = checkout.fail(PIP_INDEX_URL="http://127.0.0.1:9/simple", PIP_FORCE_REINSTALL="1", no_proxy="*")
    assert "cannot reach the package index" in said
    assert f"copy wheelhouse/ into {checkout.path}" in said


@pytest.mark.parametrize("profile", ["run", "test", "docs"])
def test_the_locks_pin_everything_by_hash_and_name_no_host(profile):
    text = (REPOSITORY / "requirements" / f"{profile}.txt").read_text()
    assert "://" not in text
    assert "--find-links" not in "".join(line for line in text.splitlines() if not line.startswith("#"))
    for requirement in text.replace("\\\n", " ").splitlines():
        if requirement and not requirement.lstrip().startswith("#"):
            assert "==" in requirement
            assert "--hash=sha256:" in requirement


def test_the_tests_use_the_versions_of_the_demo():
    def pins(profile: str) -> set[str]:
        lines = (REPOSITORY / "requirements" / f"{profile}.txt").read_text().splitlines()
        return {line.split()[0] for line in lines if "==" in line and not line.lstrip().startswith("#")}

    assert pins("run") < pins("test")
