"""Commands whose programs are in the directory `tools` of a checkout, which is not part of the wheel."""

from pathlib import Path

import pyff
from pyff.failure import Failure

_ROOT = Path(pyff.__file__).resolve().parents[1]


def require_checkout(command: str) -> None:
    """Raises unless pyff runs from a checkout."""
    if not (_ROOT / "tools" / command).is_dir():
        raise Failure(
            f"`pyff {command}` needs the directory tools/{command}, which an installed pyff does not have",
            hint=f"in a clone of the repository, run ./demo once, then .venv/bin/pyff {command}",
        )
