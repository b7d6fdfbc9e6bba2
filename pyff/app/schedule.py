"""Schedules of recurring calls. An app declares them, `sync_schedules` writes them, and the database fires them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from psycopg import Connection

if TYPE_CHECKING:
    from pyff.app.registry import App
    from pyff.app.task import Task
    from pyff.engine import Engine

CatchUp = Literal["skip", "latest", "all"]
CREATOR = "pyff.App"


@dataclass(frozen=True, slots=True)
class Schedule:
    """One declared schedule: the call and its times."""

    id: str
    task: "Task[*tuple[Any, ...], Any]"
    args: Sequence[object]
    cron: str | None
    every_ms: int | None
    time_zone: str
    catch_up: CatchUp
    start_at_ms: int | None
    end_at_ms: int | None
    max_catch_up: int
    grace_ms: int

    def definition(self) -> dict[str, Any]:
        """The arguments of create_schedule."""
        call = self.task.child_options(self.args)
        for name in ("idempotency_key", "delay_ms", "delay_until_ms"):
            del call[name]
        return {
            **call,
            "schedule_id": self.id,
            "cron": self.cron,
            "interval_ms": self.every_ms,
            "time_zone": self.time_zone,
            "catch_up": self.catch_up,
            "start_at_ms": self.start_at_ms,
            "end_at_ms": self.end_at_ms,
            "max_catch_up": self.max_catch_up,
            "grace_ms": self.grace_ms,
            "creator": CREATOR,
        }


def sync(app: "App", engine: "Engine", conn: Connection[object] | None, *, prune: bool) -> dict[str, str]:
    outcomes: dict[str, str] = {}
    for schedule in app.schedules.values():
        result = engine.create_schedule(**schedule.definition(), replace=True, conn=conn)
        outcomes[schedule.id] = result.outcome
    if prune:
        for known in _declared(app, engine, conn):
            if known not in app.schedules:
                outcomes[known] = engine.delete_schedule(known, conn=conn).outcome
    return outcomes


def _declared(app: "App", engine: "Engine", conn: Connection[object] | None) -> list[str]:
    """The schedules of this namespace that apps have declared."""
    found: list[str] = []
    after = None
    while rows := engine.list_schedules(namespace=app.namespace, after=after, limit=1000, conn=conn):
        after = rows[-1].cursor
        for row in rows:
            more = engine.describe_schedule(row.schedule_id, conn=conn)
            if more is not None and more.creator == CREATOR:
                found.append(row.schedule_id)
    return found


__all__ = ["CatchUp", "Schedule"]
