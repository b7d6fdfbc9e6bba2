"""Running PostgreSQL's programs: as ourselves, or, because they refuse root, as a lesser account.

Only the programs change the account, never Python: its own files may lie where that account cannot look.
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
    dropped: bool  # True: we are root and have to become it

    def give(self, path: Path) -> None:
        """Hands a file or directory that we made to the account that the server runs as."""
        if self.dropped:
            os.chown(path, self.uid, self.gid)

    def run(
        self, command: Sequence[str | Path], env: Mapping[str, str], timeout: float = 120
    ) -> subprocess.CompletedProcess[str]:
        """Runs one of PostgreSQL's programs in a clean environment; its output comes back as one text."""
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
                cwd="/",  # ours may be unreadable for the account
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
                    f"root may not become the account {self.name!r} here (no CAP_SETUID and CAP_SETGID), "
                    "and PostgreSQL refuses to run as root",
                    hint=f"run as an ordinary user, {OWN_SERVER}",
                ) from error
            raise


def current() -> Account:
    """The account that PostgreSQL's programs run as."""
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
        account.run(["/bin/sh", "-c", ":"], {})  # says so if we may not become it
        return account
    if wanted:
        raise PgError(f"PYFF_PG_USER={wanted}: no such account")
    raise PgError(
        "PostgreSQL refuses to run as root, and there is no account 'postgres' or 'nobody' to run it as",
        hint=f"set PYFF_PG_USER to an ordinary account, {OWN_SERVER}",
    )


def _environment() -> dict[str, str]:
    """No PG*, LC_* or PYTHON* of ours may reach the server; where libraries are found, may."""
    kept = {k: v for k, v in os.environ.items() if k in ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")}
    return {**kept, "PATH": "/usr/local/bin:/usr/bin:/bin", "LC_ALL": "C", "TZ": "UTC"}
