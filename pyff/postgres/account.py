"""Runs PostgreSQL's programs: as the current user or, since they refuse root, as an unprivileged account.

Only the programs change the account, not Python: that account may not be able to read Python's files.
"""

import errno
import os
import pwd
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pyff.postgres.errors import OWN_SERVER, PgError

CANDIDATES = ("postgres", "nobody")


@dataclass(frozen=True)
class Account:
    name: str
    uid: int
    gid: int
    dropped: bool  # True: the process is root and must switch to it

    def give(self, path: Path) -> None:
        """Changes the owner of a file or directory to the account of the server."""
        if self.dropped:
            os.chown(path, self.uid, self.gid)

    def run(
        self, command: Sequence[str | Path], env: Mapping[str, str], timeout: float = 120
    ) -> subprocess.CompletedProcess[str]:
        """Runs one of PostgreSQL's programs in a clean environment; returns its output as one text."""
        become = self.dropped
        try:
            return subprocess.run(
                [str(part) for part in command],
                env={**_environment(), **env},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                timeout=timeout,
                check=False,
                cwd="/",  # the current directory may be unreadable for the account
                umask=0o077,
                user=self.uid if become else None,
                group=self.gid if become else None,
                extra_groups=[] if become else None,
            )
        except subprocess.TimeoutExpired as error:
            raise PgError(f"{command[0]} did not finish in {timeout:.0f} s") from error
        except OSError as error:
            if self.dropped and error.errno in (errno.EPERM, errno.EINVAL):
                raise PgError(
                    f"root cannot switch to the account {self.name!r} here (no CAP_SETUID and CAP_SETGID), "
                    "and PostgreSQL refuses to run as root",
                    hint=f"run as an ordinary user, {OWN_SERVER}",
                ) from error
            raise


def current() -> Account:
    """The account of PostgreSQL's programs."""
    if os.geteuid() != 0:
        try:
            name = pwd.getpwuid(os.geteuid()).pw_name
        except KeyError:
            raise PgError(
                f"user id {os.geteuid()} has no entry in the password database, and PostgreSQL refuses "
                "to run without one",
                hint=f"run as a named user, {OWN_SERVER}",
            ) from None
        return Account(name, os.geteuid(), os.getegid(), dropped=False)
    wanted = os.environ.get("PYFF_PG_USER")
    for name in (wanted,) if wanted else CANDIDATES:
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        if entry.pw_uid == 0:
            raise PgError(f"PYFF_PG_USER={name} is root, which PostgreSQL refuses to run as")
        account = Account(name, entry.pw_uid, entry.pw_gid, dropped=True)
        account.run(["/bin/sh", "-c", ":"], {})  # raises if the switch is not permitted
        return account
    if wanted:
        raise PgError(f"PYFF_PG_USER={wanted}: no such account")
    raise PgError(
        "PostgreSQL refuses to run as root, and there is no account 'postgres' or 'nobody' to run it as",
        hint=f"set PYFF_PG_USER to an ordinary account, {OWN_SERVER}",
    )


def _environment() -> dict[str, str]:
    """The environment without PG*, LC_* and PYTHON*, which must not affect the server; library paths are kept."""
    kept = {k: v for k, v in os.environ.items() if k in ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")}
    return {**kept, "PATH": "/usr/local/bin:/usr/bin:/bin", "LC_ALL": "C", "TZ": "UTC"}
