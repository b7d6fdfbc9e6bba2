"""The App: a registry of tasks."""

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from psycopg import Connection

from pyff.app.retry import Retry
from pyff.app.schedule import CatchUp, Schedule, sync
from pyff.app.task import Options, Register, Task, connected
from pyff.types import EMPTY_OBJECT, JsonValue

if TYPE_CHECKING:
    from pyff.async_engine import AsyncEngine
    from pyff.engine import Engine


T = TypeVar("T", bound=Task[*tuple[Any, ...], Any])


class App:
    """A registry of tasks. It holds no connection and may be imported anywhere.

    `bind` sets the engines that `enqueue` uses without `conn=`. `max_put_offs`: how often an attempt that this app
    cannot run (no such task, a payload that does not decode, an ImportError) is put off before it fails: for 1 second,
    then twice as long each time, at most 5 minutes; 2000 times take a week.
    """

    def __init__(
        self, *, lane: str = "default", namespace: str = "default", max_put_offs: int = 2_000
    ) -> None:
        self.lane = lane
        self.namespace = namespace
        self.max_put_offs = max_put_offs
        self.tasks: dict[str, Task[*tuple[Any, ...], Any]] = {}
        self.schedules: dict[str, Schedule] = {}
        self.engine: Engine | None = None
        self.async_engine: AsyncEngine | None = None

    def bind(self, engine: "Engine | None" = None, async_engine: "AsyncEngine | None" = None) -> Self:
        """Sets the engines for calls without `conn=`. The caller closes them."""
        self.engine = engine
        self.async_engine = async_engine
        return self

    def task(
        self,
        name: str | None = None,
        *,
        lane: str | None = None,
        retry: Retry | None = None,
        timeout_ms: int | None = None,
        deadline_ms: int | None = None,
        needs: Iterable[str] = (),
        priority: int | None = None,
        tags: Mapping[str, str] = EMPTY_OBJECT,
        policy: Mapping[str, JsonValue] = EMPTY_OBJECT,
    ) -> Register:
        """Registers a function as a task, by default under its own name.

        `timeout_ms` bounds one attempt, `deadline_ms` the whole execution from its creation. `needs`: only workers with
        these capabilities get it. `policy`: further keys of the execution's policy, see docs/functions.md.
        """
        if callable(name):
            raise TypeError("write @app.task(), with parentheses")
        options = Options(
            lane or self.lane,
            retry,
            timeout_ms,
            deadline_ms,
            frozenset((needs,) if isinstance(needs, str) else needs),
            priority,
            dict(tags),
            dict(policy),
        )

        def register(fn: Callable[..., Any]) -> Task[*tuple[Any, ...], Any]:
            task: Task[*tuple[Any, ...], Any] = Task(self, name or fn.__name__, fn, options)
            if task.name in self.tasks:
                raise ValueError(f"task {task.name!r} is already registered")
            self.tasks[task.name] = task
            return task

        return cast("Register", register)

    def schedule(
        self,
        id: str | None = None,
        *,
        cron: str | None = None,
        every_ms: int | None = None,
        time_zone: str = "UTC",
        catch_up: CatchUp = "latest",
        start_at_ms: int | None = None,
        end_at_ms: int | None = None,
        max_catch_up: int = 100,
        grace_ms: int = 60_000,
    ) -> Callable[[T], T]:
        """Schedules a task without arguments: put it above @app.task(). The schedule id defaults to the name of the
        task. Use `Task.schedule` for a call with arguments."""

        def declare(task: T) -> T:
            task.schedule(
                id or task.name,
                cron=cron,
                every_ms=every_ms,
                time_zone=time_zone,
                catch_up=catch_up,
                start_at_ms=start_at_ms,
                end_at_ms=end_at_ms,
                max_catch_up=max_catch_up,
                grace_ms=grace_ms,
            )
            return task

        return declare

    def sync_schedules(
        self, conn: "Connection[Any] | Engine | None" = None, *, prune: bool = False
    ) -> dict[str, str]:
        """Writes the declared schedules to the database, and returns the outcome of each: created, replaced,
        already_satisfied. Safe to repeat, and to run in several processes. `prune` deletes schedules of this namespace
        that an app declared before and this app does not declare.

        Raises: InvalidSchedule, and the errors of `create_schedule`.
        """
        engine, joined = connected(self, conn)
        return sync(self, engine, joined, prune=prune)

    def lanes(self) -> list[str]:
        """The lanes of all tasks and declared schedules: the default lanes of a worker."""
        called = [*self.tasks.values(), *(schedule.task for schedule in self.schedules.values())]
        return sorted({task.options.lane for task in called}) or [self.lane]


__all__ = ["App"]
