"""The directory of the SQL files: inside the installed package, or beside it in a checkout."""

from pathlib import Path

from pyff.failure import Failure

_PACKAGE = Path(__file__).resolve().parent


def db_root() -> Path:
    """The directory that holds `migrations/` and `functions/`."""
    candidates = (_PACKAGE / "db", _PACKAGE.parent / "db")
    for root in candidates:
        if any((root / "migrations").glob("*.sql")):
            return root
    raise Failure(
        "this installation of pyff has no SQL files (looked in " + " and ".join(map(str, candidates)) + ")",
        hint="install pyff again from its wheel, or run it from a complete checkout",
    )
