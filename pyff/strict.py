"""Methods that count on one outcome: any other is raised."""

from pyff._generated.errors import AlreadySatisfied
from pyff._generated.results import SuspendRow


def suspended(rows: list[SuspendRow]) -> list[SuspendRow]:
    """The rows of a suspension that is on. Otherwise the lease stays, and the work goes on: AlreadySatisfied."""
    if rows and rows[0].outcome != "suspended":
        raise AlreadySatisfied(
            detail={"outcome": rows[0].outcome, "suspension_id": str(rows[0].suspension_id)},
        )
    return rows
