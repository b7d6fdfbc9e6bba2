"""Checks of methods that expect one outcome and raise on any other."""

from pyff._generated.errors import AlreadySatisfied
from pyff._generated.results import SuspendRow


def require_suspended(rows: list[SuspendRow]) -> list[SuspendRow]:
    """Returns the rows of a suspension. Raises AlreadySatisfied on any other outcome: the lease is kept."""
    if rows and rows[0].outcome != "suspended":
        raise AlreadySatisfied(
            detail={"outcome": rows[0].outcome, "suspension_id": str(rows[0].suspension_id)},
        )
    return rows
