"""Schedules that an app declares."""

import pytest

from pyff import App, Ctx, InvalidSchedule
from pyff.testing import advance, drain


def test_declared_schedules_become_those_of_the_database(app, engine, db):
    ran = []

    @app.schedule(cron="30 2 * * *", time_zone="Europe/Berlin", catch_up="all")
    @app.task(lane="nightly", needs={"db"}, priority=4)
    def report(ctx: Ctx) -> None:
        ran.append(ctx.scheduled_for_ms)

    @app.task()
    def mail(to: str) -> str:
        ran.append(to)
        return to

    mail.schedule("mail ann", "ann", every_ms=60_000)
    assert app.sync_schedules() == {"report": "created", "mail ann": "created"}
    assert app.sync_schedules() == {"report": "already_satisfied", "mail ann": "already_satisfied"}
    row = engine.describe_schedule("report")
    assert (row.lane_id, row.cron, row.time_zone, row.catch_up) == (
        "nightly",
        "30 2 * * *",
        "Europe/Berlin",
        "all",
    )
    drain(app, db)
    assert ran == []
    advance(db, 60_001)
    engine.fire_schedules()
    drain(app, db)
    assert ran == ["ann"]
    advance(db, 86_400_000)
    engine.fire_schedules()
    drain(app, db, reraise=True)
    assert sorted(map(str, ran[1:]))[-1] == "ann"
    assert len([tick for tick in ran if isinstance(tick, int)]) == 1


def test_a_declaration_says_how_much_is_caught_up(app, engine, db):
    @app.schedule(every_ms=60_000, catch_up="all", max_catch_up=3)
    @app.task()
    def count() -> None: ...

    count.schedule("late", every_ms=60_000, catch_up="skip", grace_ms=3_600_000)
    app.sync_schedules()
    assert app.sync_schedules() == {"count": "already_satisfied", "late": "already_satisfied"}
    advance(db, 3_650_000)
    assert drain(app, db).runs == 3 + 1
    assert engine.describe_schedule("late").grace_ms == 3_600_000


def test_a_changed_declaration_replaces_and_a_missing_one_can_be_pruned(app, engine):
    def declare(app, **options):
        @app.task()
        def report() -> None: ...

        report.schedule("r", **options)
        return report

    first = declare(app, every_ms=60_000)
    first.schedule("old", every_ms=60_000)
    app.sync_schedules()
    engine.create_schedule("by hand", "default", interval_ms=60_000)
    later = App().bind(engine)
    declare(later, every_ms=30_000)
    assert later.sync_schedules() == {"r": "replaced"}
    assert later.sync_schedules(prune=True) == {"r": "already_satisfied", "old": "deleted"}
    assert [row.schedule_id for row in engine.list_schedules()] == ["by hand", "r"]


def test_a_schedule_is_declared_in_the_callers_transaction(app, engine, connect):
    @app.schedule(every_ms=60_000)
    @app.task()
    def report() -> None: ...

    mine = connect(autocommit=False)
    app.sync_schedules(mine)
    mine.rollback()
    assert engine.list_schedules() == []


def test_mistakes_are_told_when_they_are_made(app):
    @app.task()
    def mail(to: str) -> None: ...

    with pytest.raises(ValueError, match="either cron or every_ms"):
        mail.schedule("a", "ann")
    with pytest.raises(TypeError, match="takes one argument"):
        app.schedule(every_ms=1000)(mail)
    mail.schedule("a", "ann", cron="61 * * * *")
    with pytest.raises(ValueError, match="schedule 'a' is already declared"):
        mail.schedule("a", "bob", every_ms=1000)
    with pytest.raises(InvalidSchedule):
        app.sync_schedules()


def test_a_lane_that_only_a_schedule_uses_is_one_of_the_app(app, engine, db):
    ran = []

    @app.task()
    def mail(to: str) -> None:
        ran.append(to)

    mail.using(lane="night").schedule("mail ann", "ann", every_ms=60_000)
    assert "night" in app.lanes()
    app.sync_schedules()
    advance(db, 60_000)
    drain(app, db)
    assert ran == ["ann"]
