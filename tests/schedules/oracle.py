"""Cron by brute force: every minute is looked at. Shares nothing with the engine but the rules in docs/schedules.md."""

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import cache
from zoneinfo import ZoneInfo

from hypothesis import strategies as st

MINUTE = 60_000
MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
WEEKDAYS = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"]


@dataclass(frozen=True)
class Cron:
    text: str
    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    either: bool

    def on(self, day: date) -> bool:
        in_month = day.day in self.days
        in_week = day.isoweekday() % 7 in self.weekdays
        fits = (in_month or in_week) if self.either else (in_month and in_week)
        return day.month in self.months and fits

    def at(self, local: datetime) -> bool:
        return local.minute in self.minutes and local.hour in self.hours and self.on(local.date())


def ms(moment: datetime) -> int:
    return round(moment.timestamp() * 1000)


def wall(at: int, zone: str) -> datetime:
    """What the clock on the wall shows."""
    return datetime.fromtimestamp(at / 1000, ZoneInfo(zone)).replace(tzinfo=None)


@cache
def walls(start: int, minutes: int, zone: str) -> list[datetime]:
    return [wall(start + n * MINUTE, zone) for n in range(minutes)]


def ticks(cron: Cron, zone: str, start: int, minutes: int) -> list[int]:
    """All ticks of so many minutes from a start, which is a whole minute and not close to a change of the clock."""
    found = []
    highest = wall(start, zone) - timedelta(minutes=1)
    for n, local in enumerate(walls(start, minutes, zone)):
        if len(cron.hours) == 24:
            due = cron.at(local)
        else:
            # The first time that the clock shows a minute, or a later one.
            due = False
            while highest < local:
                highest += timedelta(minutes=1)
                due = due or cron.at(highest)
        if due:
            found.append(start + n * MINUTE)
    return found


def days(cron: Cron, start: date, count: int, limit: int) -> list[date]:
    found = []
    for n in range(limit):
        if cron.on(start + timedelta(days=n)):
            found.append(start + timedelta(days=n))
            if len(found) == count:
                break
    return found


def items(low: int, high: int, names: list[str]) -> st.SearchStrategy[tuple[str, frozenset[int]]]:
    """One item of a list in a field: its text, and what it allows."""

    def spell(value: int, by_name: bool) -> str:
        return names[value - low] if by_name and value - low < len(names) else str(value)

    @st.composite
    def item(draw: st.DrawFn) -> tuple[str, frozenset[int]]:
        kind = draw(st.sampled_from(["value", "range", "range/step", "*/step"]))
        step = draw(st.integers(1, high))
        first = draw(st.integers(low, high))
        last = draw(st.integers(first, high))
        named = draw(st.booleans())
        if kind == "value":
            return spell(first, named), frozenset({first})
        if kind == "range":
            return f"{spell(first, named)}-{spell(last, named)}", frozenset(range(first, last + 1))
        if kind == "range/step":
            return f"{spell(first, named)}-{last}/{step}", frozenset(range(first, last + 1, step))
        return f"*/{step}", frozenset(range(low, high + 1, step))

    return item()


def fields(
    low: int, high: int, names: list[str] | None = None
) -> st.SearchStrategy[tuple[str, frozenset[int]]]:
    everything = st.just(("*", frozenset(range(low, high + 1))))
    lists = st.lists(items(low, high, names or []), min_size=1, max_size=3).map(
        lambda found: (
            ",".join(text for text, _ in found),
            frozenset().union(*(allowed for _, allowed in found)),
        )
    )
    return everything | lists


@st.composite
def crons(draw: st.DrawFn, *, dated: bool) -> Cron:
    """An expression; one that is not dated runs on most days."""
    minute, minutes = draw(fields(0, 59))
    hour, hours = draw(fields(0, 23))
    day, days_ = draw(fields(1, 31)) if dated else ("*", frozenset(range(1, 32)))
    month, months = draw(fields(1, 12, MONTHS)) if dated else ("*", frozenset(range(1, 13)))
    weekday, weekdays = draw(fields(0, 7, WEEKDAYS))
    return Cron(
        text=f"{minute} {hour} {day} {month} {weekday}",
        minutes=minutes,
        hours=hours,
        days=days_,
        months=months,
        weekdays=frozenset(n % 7 for n in weekdays),
        either=not day.startswith("*") and not weekday.startswith("*"),
    )


def utc(*parts: int) -> int:
    return ms(datetime(*parts, tzinfo=UTC))  # type: ignore[arg-type, misc]
