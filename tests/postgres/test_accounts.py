"""The account of the server: the current user or, since PostgreSQL refuses root, an unprivileged one."""

import importlib.util
import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import typing_extensions

from pyff.postgres import PgError, find, start, temporary
from tests.postgres.helpers import mentions, one

root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root to switch to another account")
linux_root = pytest.mark.skipif(
    os.geteuid() != 0 or not shutil.which("setpriv") or not shutil.which("unshare"),
    reason="needs root, setpriv and unshare",
)


def owner(pid: int | None) -> str:
    return pwd.getpwuid(Path(f"/proc/{pid}").stat().st_uid).pw_name


@root
def test_as_root_the_server_runs_as_a_lesser_account(home):
    server = start()
    assert owner(server.status.pid) == find().account.name in ("postgres", "nobody")
    assert one(server.dsn, "select 1") == 1


@root
def test_pyff_pg_user_chooses_the_account(empty_home, monkeypatch):
    monkeypatch.setenv("PYFF_PG_USER", "nobody")
    server = start()
    assert owner(server.status.pid) == "nobody"


@root
def test_data_of_another_account_is_refused(home, monkeypatch):
    monkeypatch.setenv("PYFF_PG_USER", "nobody" if find().account.name != "nobody" else "daemon")
    with pytest.raises(PgError, match="PYFF_PG_USER"):
        start()


@root
@pytest.mark.parametrize(("name", "words"), [("nosuchaccount", "no such account"), ("root", "is root")])
def test_an_account_that_does_not_serve_is_refused(empty_home, monkeypatch, name, words):
    monkeypatch.setenv("PYFF_PG_USER", name)
    with pytest.raises(PgError, match=words):
        find()


@root
def test_a_home_that_the_account_cannot_enter_is_explained(empty_home, monkeypatch):
    empty_home.chmod(0o700)
    with pytest.raises(PgError, match=r"(?s)(Permission denied|cannot enter).*PYFF_HOME"):
        start()


# --- other processes: what they print is looked at -------------------------------------------------

SESSION = """
import psycopg
from pyff.postgres import find, start, status, stop, temporary
with temporary() as server, psycopg.connect(server.dsn) as connection:
    connection.execute("create extension pgcrypto")
server = start()
assert psycopg.connect(server.dsn).execute("select 1").fetchone() == (1,)
assert stop() and not status().running
print("served by", find().source, "as", find().account.name)
"""
REFUSED = """
from pyff.postgres import PgError, temporary
try: temporary()
except PgError as error: print(error)
"""


@pytest.fixture(scope="session")
def elsewhere() -> Iterator[Path]:
    """What pyff.postgres needs, where every account can read it: the checkout may lie in a closed home."""
    directory = Path(tempfile.mkdtemp(prefix="pyff-test-site-", dir="/tmp"))
    directory.chmod(0o755)
    for package in ("pyff", "psycopg", "psycopg_binary", "pg0"):
        spec = importlib.util.find_spec(package)
        assert spec, f"{package} is not installed"
        source = Path(str(spec.origin)).parent
        shutil.copytree(source, directory / package, ignore=shutil.ignore_patterns("__pycache__"))
        for companion in (
            *source.parent.glob(f"{package}.libs"),
            *source.parent.glob(f"{package}_*.dist-info"),
        ):
            shutil.copytree(companion, directory / companion.name)
    shutil.copy(typing_extensions.__file__, directory)
    yield directory
    shutil.rmtree(directory)


def public_python() -> str:
    """A Python of our version that every account can run."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    for candidate in (
        getattr(sys, "_base_executable", sys.executable),
        f"/usr/bin/{version}",
        f"/usr/local/bin/{version}",
    ):
        reachable = subprocess.run(["test", "-x", candidate], user="nobody", check=False).returncode == 0
        if reachable:
            return candidate
    pytest.skip(f"every {version} of this machine lies in a directory that is closed to other accounts")


def run(elsewhere: Path, home: Path, program: str, *wrapper: str, **options: object) -> str:
    environment = {
        "PATH": "/usr/bin:/bin",
        "PYTHONPATH": str(elsewhere),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYFF_HOME": str(home),
        **{name: os.environ[name] for name in ("PYFF_PG_BIN",) if name in os.environ},
    }
    result = subprocess.run(
        [*wrapper, public_python(), "-c", program],
        env=environment,
        cwd="/",
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        **options,  # type: ignore[call-overload]
    )
    return str(result.stdout)


@pytest.mark.slow("builds environments")
@root
def test_an_ordinary_user_has_a_server_of_his_own(elsewhere, empty_home):
    own = empty_home / "own"
    own.mkdir()
    account = pwd.getpwnam("nobody")
    os.chown(own, account.pw_uid, account.pw_gid)
    said = run(elsewhere, own, SESSION, user=account.pw_uid, group=account.pw_gid, extra_groups=[])
    assert said.startswith("served by "), said
    assert said.endswith(f" as {account.pw_name}\n")
    assert {path.stat().st_uid for path in own.rglob("*") if not path.is_symlink()} == {account.pw_uid}
    assert not mentions(own)


@pytest.mark.slow("builds environments")
@root
def test_a_user_id_without_a_name_is_explained(elsewhere, empty_home):
    said = run(elsewhere, empty_home, REFUSED, user=54321, group=54321, extra_groups=[])
    assert "no entry in the password database" in said
    assert "PYFF_DSN" in said


@pytest.mark.slow("builds environments")
@linux_root
def test_root_that_may_not_change_its_account_is_explained(elsewhere, empty_home):
    drop = "--bounding-set=-setuid,-setgid"
    said = run(elsewhere, empty_home, REFUSED, "setpriv", drop, "--inh-caps=-setuid,-setgid")
    assert "CAP_SETUID" in said
    assert "PYFF_DSN" in said


@pytest.mark.slow("builds environments")
@linux_root
def test_a_full_disk_is_explained(elsewhere, empty_home):
    small = empty_home / "small"
    small.mkdir()
    mount = f'mount -t tmpfs -o size=20m,mode=755 none "{small}" && exec "$0" "$@"'
    program = "from pyff.postgres import PgError, start\ntry: start()\nexcept PgError as error: print(error)"
    said = run(elsewhere, small, program, "unshare", "--mount", "sh", "-c", mount)
    if "unshare" in said or "mount:" in said:
        pytest.skip(f"no right to mount here: {said.strip()}")
    assert "disk is full" in said or "No space left on device" in said
    assert "PYFF_HOME" in said
    assert "Traceback" not in said


def test_the_directory_of_a_temporary_server_is_private():
    with temporary() as server:
        assert server.directory.stat().st_mode & 0o777 == 0o700
