"""The times of schedules: cron expressions against a brute-force oracle, daylight saving, what is refused."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.schedules.oracle import MINUTE, crons, days, ms, ticks, utc, wall, walls
from tests.sql import one, refused, rows, table

HOUR = 60 * MINUTE
QUIET = settings(
    max_examples=25,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)

# Days around a change of the clock, from a whole hour before it: forward and back, by an hour and by half of one, over
# midnight, over the date line; and zones that never change, at odd offsets.
CHANGES = [
    ("UTC", utc(2026, 2, 27, 12)),
    ("Asia/Kathmandu", utc(2026, 5, 1, 12)),
    ("Europe/Berlin", utc(2026, 3, 28, 12)),
    ("Europe/Berlin", utc(2026, 10, 24, 12)),
    ("America/New_York", utc(2026, 3, 7, 18)),
    ("America/New_York", utc(2026, 10, 31, 18)),
    ("Australia/Lord_Howe", utc(2025, 10, 4, 3)),
    ("Australia/Lord_Howe", utc(2026, 4, 4, 3)),
    ("America/Asuncion", utc(2020, 3, 21, 12)),  # 00:00 becomes 23:00
    ("America/Asuncion", utc(2020, 10, 3, 12)),  # 00:00 becomes 01:00
    ("America/St_Johns", utc(2010, 11, 6, 12)),  # 00:01 becomes 23:01
    ("America/Havana", utc(2019, 11, 2, 12)),  # 01:00 becomes 00:00
    ("Pacific/Apia", utc(2011, 12, 29, 6)),  # 30 December does not exist
]


def preview(db, cron, zone="UTC", start=None, count=10, end=None):
    return [
        row["fire_at_ms"]
        for row in rows(
            db,
            "ff_preview_schedule",
            cron=cron,
            time_zone=zone,
            start_at_ms=start,
            end_at_ms=end,
            limit=count,
        )
    ]


@pytest.mark.parametrize(("zone", "start"), CHANGES, ids=lambda value: str(value).replace("/", "-"))
def test_ticks_are_those_of_an_oracle_that_looks_at_every_minute(db, zone, start):
    minutes = 40 * 60
    # A zone that is in use is not looked up again, which makes this quick.
    one(db, "ff_create_schedule", schedule_id="s", lane_id="default", cron="@daily", time_zone=zone)

    clock = walls(start, minutes, zone)
    change = next(
        (n for n in range(1, minutes) if clock[n] - clock[n - 1] != timedelta(minutes=1)), minutes // 2
    )
    # From anywhere around the change, on and back.
    moments = [start + (change + n) * MINUTE + n % 2 for n in range(-300, 300, 13)]

    @settings(QUIET, max_examples=10)
    @given(cron=crons(dated=False))
    def check(cron):
        wanted = ticks(cron, zone, start, minutes)
        assert preview(db, cron.text, zone, start, 100, start + minutes * MINUTE) == wanted[:100], cron.text
        for row in table(
            db,
            """select m.at, ff__next_cron_time(c, %s, m.at, 1) as later, ff__next_cron_time(c, %s, m.at, -1) as earlier
                 from unnest(%s::bigint[]) m(at), ff__parse_cron(%s) c""",
            zone,
            zone,
            moments,
            cron.text,
        ):
            later = [tick for tick in wanted if tick > row["at"]]
            assert not later or row["later"] == later[0], (cron.text, row)
            earlier = [tick for tick in wanted if tick <= row["at"]]
            assert not earlier or row["earlier"] == earlier[-1], (cron.text, row)

    check()


def test_days_are_those_of_an_oracle_that_looks_at_every_day(db):
    @QUIET
    @given(cron=crons(dated=True), start=st.dates(datetime(2024, 1, 1).date(), datetime(2104, 1, 1).date()))
    def check(cron, start):
        wanted = days(cron, start, 3, 41 * 366)
        at = ms(datetime(start.year, start.month, start.day, tzinfo=UTC))
        text = " ".join(["0 0", *cron.text.split()[2:]])
        if not wanted:
            with refused("invalid_schedule") as refusal:
                preview(db, text)
            assert refusal.detail["field"] == "day of month"
            return
        found = preview(db, text, "UTC", at, len(wanted))
        assert [wall(tick, "UTC").date() for tick in found] == wanted, text
        last = table(
            db,
            "select ff__next_cron_time(ff__parse_cron(%s), 'UTC', %s, -1) as tick",
            text,
            found[-1] + MINUTE,
        )
        assert last[0]["tick"] == found[-1]
        if len(found) > 1:
            before = table(
                db,
                "select ff__next_cron_time(ff__parse_cron(%s), 'UTC', %s, -1) as tick",
                text,
                found[-1] - 1,
            )
            assert before[0]["tick"] == found[-2]

    check()


# --- daylight saving, told one by one ---


@pytest.mark.parametrize(
    ("zone", "day", "cron", "wanted"),
    [
        # A time that does not exist that day: once, right after the gap.
        ("Europe/Berlin", (2026, 3, 28), "30 2 * * *", ["28 02:30", "29 03:00", "30 02:30"]),
        ("America/New_York", (2026, 3, 7), "30 2 * * *", ["07 02:30", "08 03:00", "09 02:30"]),
        ("Australia/Lord_Howe", (2025, 10, 4), "15 2 * * *", ["04 02:15", "05 02:30", "06 02:15"]),
        # Several such times, or one right at the end of the gap: still once.
        (
            "Europe/Berlin",
            (2026, 3, 29),
            "0,20,40 2,3 * * *",
            ["29 03:00", "29 03:20", "29 03:40", "30 02:00"],
        ),
        # A time that comes twice: once, the first time.
        ("Europe/Berlin", (2026, 10, 24), "30 2 * * *", ["24 02:30", "25 02:30", "26 02:30"]),
        ("America/New_York", (2026, 10, 31), "30 1 * * *", ["31 01:30", "01 01:30", "02 01:30"]),
        ("Australia/Lord_Howe", (2026, 4, 4), "45 1 * * *", ["04 01:45", "05 01:45", "06 01:45"]),
        # Midnight that is skipped.
        ("America/Asuncion", (2020, 10, 3), "@daily", ["03 00:00", "04 01:00", "05 00:00"]),
    ],
)
def test_a_fixed_time_fires_once_a_day(db, zone, day, cron, wanted):
    start = ms(datetime(*day, tzinfo=UTC)) - 14 * HOUR
    found = rows(
        db, "ff_preview_schedule", cron=cron, time_zone=zone, start_at_ms=start, limit=len(wanted) + 3
    )
    shown = [row["fire_at_local"][8:16] for row in found]
    first = shown.index(wanted[0])
    assert shown[first : first + len(wanted)] == wanted


@pytest.mark.parametrize(
    ("zone", "start"),
    [("Europe/Berlin", utc(2026, 3, 28, 23)), ("Europe/Berlin", utc(2026, 10, 24, 22)), ("UTC", 0)],
)
def test_what_runs_every_hour_runs_every_hour_on_any_day(db, zone, start):
    found = preview(db, "@hourly", zone, start, 12)
    assert found == [start + n * HOUR for n in range(12)]


def test_a_day_that_comes_back_for_an_hour_has_its_ticks_again(db):
    """In St. John's one minute of Sunday, then 23:01 of Saturday again."""
    start = utc(2010, 11, 7, 1)  # 22:30 by summer time
    cron = "30 * * * sat"
    wanted = [utc(2010, 11, 7, 1), utc(2010, 11, 7, 2), utc(2010, 11, 7, 3)]
    assert preview(db, cron, "America/St_Johns", start, 3) == wanted
    for at, way in ((utc(2010, 11, 7, 2, 30), 1), (utc(2010, 11, 7, 5), -1)):
        query = "select ff__next_cron_time(ff__parse_cron(%s), 'America/St_Johns', %s, %s) as tick"
        assert table(db, query, cron, at, way)[0]["tick"] == wanted[2]


def test_the_first_of_two_equal_times_is_the_tick(db):
    (tick,) = preview(db, "30 2 * * *", "Europe/Berlin", utc(2026, 10, 24, 12), 1)
    assert tick == utc(2026, 10, 25, 0, 30)  # summer time; 01:30 UTC is 02:30 again


def test_an_interval_knows_no_time_zone(db):
    start = utc(2026, 3, 28, 12)
    found = rows(
        db,
        "ff_preview_schedule",
        interval_ms=6 * HOUR,
        time_zone="Europe/Berlin",
        start_at_ms=start,
        limit=6,
    )
    assert [row["fire_at_ms"] for row in found] == [start + n * 6 * HOUR for n in range(6)]


# --- what an expression may say ---


@pytest.mark.parametrize(
    ("cron", "same"),
    [
        ("@yearly", "0 0 1 1 *"),
        ("@annually", "0 0 1 1 *"),
        ("@monthly", "0 0 1 * *"),
        ("@weekly", "0 0 * * 0"),
        ("@daily", "0 0 * * *"),
        ("@midnight", "0 0 * * *"),
        ("@hourly", "0 * * * *"),
        ("@Hourly", "0 * * * *"),
        ("0 0 * JAN Mon-FRI", "0 0 * 1 1-5"),
        ("  0\t0 *  * 7 ", "0 0 * * sun"),
        ("0 0 * * 5-7", "0 0 * * fri,sat,sun"),
        ("0 0 * * 0-7", "0 0 * * *"),
        ("*/1 */1 * * *", "* * * * *"),
        ("0 0 * * */1", "0 0 * * *"),
        ("59-59/100 0 * * *", "59 0 * * *"),
    ],
)
def test_two_ways_to_say_the_same(db, cron, same):
    assert preview(db, cron, start=0, count=30) == preview(db, same, start=0, count=30)


@pytest.mark.parametrize(("cron", "same"), [("@DAILY", "@daily"), ("0 0 * * FRI", "0 0 * * fri")])
def test_names_are_read_the_same_way_in_any_language(db, cron, same):
    """In Turkish the small letter of I has no dot."""
    if not table(db, "select 1 as found from pg_collation where collname = 'tr-x-icu'"):
        pytest.skip("this server knows no languages (ICU)")
    query = (
        """select fire_at_ms from ff_preview_schedule(p_cron => %s collate "tr-x-icu", p_start_at_ms => 0)"""
    )
    assert [row["fire_at_ms"] for row in table(db, query, cron)] == preview(db, same, start=0)


def test_a_day_needs_one_of_two_restricted_fields_or_both_when_one_starts_with_a_star(db):
    def found(cron):
        start = utc(2026, 11, 1)
        return [
            wall(tick, "UTC").day for tick in preview(db, cron, start=start, end=utc(2026, 12, 1), count=31)
        ]

    assert found("0 0 13 * 5") == [6, 13, 20, 27]
    assert found("0 0 14 * 5") == [6, 13, 14, 20, 27]
    assert found("0 0 */2 * 5") == [13, 27]
    assert found("0 0 14 * */6") == [14]
    assert found("0 0 13 * *") == [13]
    assert found("0 0 * * 5") == [6, 13, 20, 27]


def test_the_rarest_day_is_found_without_looking_at_every_minute(db):
    db.execute("set local statement_timeout = '30s'")
    found = preview(db, "0 0 29 2 */7", start=utc(2089, 1, 1), count=2)
    assert [wall(tick, "UTC").year for tick in found] == [2128, 2156]


@pytest.mark.parametrize(
    ("cron", "field"),
    [
        ("", "cron"),
        ("* * * *", "cron"),
        ("* * * * * *", "cron"),
        ("@reboot", "cron"),
        ("@", "cron"),
        ("x" * 1001, "cron"),
        ("60 * * * *", "minute"),
        ("-1 * * * *", "minute"),
        ("*-5 * * * *", "minute"),
        ("*/0 * * * *", "minute"),
        ("5/15 * * * *", "minute"),
        ("1,,2 * * * *", "minute"),
        (",1 * * * *", "minute"),
        ("1-2-3 * * * *", "minute"),
        ("1.5 * * * *", "minute"),
        ("99999999999 * * * *", "minute"),
        ("٧ * * * *", "minute"),
        ("* 24 * * *", "hour"),
        ("* 5-3 * * *", "hour"),
        ("* mon * * *", "hour"),
        ("* * 0 * *", "day of month"),
        ("* * 32 * *", "day of month"),
        ("* * L * *", "day of month"),
        ("* * 15W * *", "day of month"),
        ("* * ? * *", "day of month"),
        ("* * 30 2 *", "day of month"),
        ("* * 31 2,4,jun,9,11 *", "day of month"),
        ("* * * 0 *", "month"),
        ("* * * 13 *", "month"),
        ("* * * january *", "month"),
        ("* * * * 8", "day of week"),
        ("* * * * fri-mon", "day of week"),
        ("* * * * 5#2", "day of week"),
        ("* * * * 5L", "day of week"),
        ("* * * * jan", "day of week"),
    ],
)
def test_what_is_not_understood_is_refused_by_the_name_of_its_field(db, cron, field):
    with refused("invalid_schedule") as refusal:
        preview(db, cron)
    assert refusal.detail["field"] == field
    assert refusal.detail["reason"]
    with refused("invalid_schedule"):
        one(db, "ff_create_schedule", schedule_id="s", lane_id="default", cron=cron)


@pytest.mark.parametrize(
    "zone", ["Nowhere/Land", "utc+3", "FOO-5", "CEST", "europe/berlin", " UTC", "x" * 64]
)
def test_a_time_zone_is_one_of_the_servers_names(db, zone):
    with refused("invalid_schedule") as refusal:
        preview(db, "@daily", zone)
    assert refusal.detail["field"] == "time_zone"


@pytest.mark.parametrize("zone", ["CET", "EET", "MET", "WET", "EST", "HST", "MST"])
def test_a_name_that_the_server_takes_for_an_abbreviation_is_refused(db, zone):
    """`at time zone 'CET'` is one hour ahead of UTC in summer too, whatever the zone of that name does."""
    with refused("invalid_schedule") as refusal:
        preview(db, "@daily", zone)
    assert refusal.detail["field"] == "time_zone"
    assert "abbreviation" in refusal.detail["reason"]


def test_every_zone_that_is_taken_has_the_clock_of_its_name(db):
    """As the server shows times to a session of that zone: the other way to ask it."""
    at = [utc(2026, 1, 15, 12), utc(2026, 7, 15, 12)]
    for zone in ["GMT", "Etc/GMT+5", "EST5EDT", "GB", "Japan", "US/Eastern", "Asia/Calcutta", "Europe/Kiev"]:
        db.execute("select set_config('timezone', %s, true)", [zone])
        for moment in at:
            (shown,) = preview(db, "* * * * *", zone, moment, 1)
            told = table(
                db,
                "select ff__local_time(%s, %s) as wall, to_timestamp(%s / 1000.0)::timestamp as shown",
                shown,
                zone,
                shown,
            )[0]
            assert told["wall"] == told["shown"], zone


@pytest.mark.parametrize("zone", [None, "", "a\nb", "x" * 65])
def test_a_time_zone_is_a_short_text(db, zone):
    with refused("invalid_input") as refusal:
        preview(db, "@daily", zone)
    assert refusal.detail["arg"] == "p_time_zone"


@pytest.mark.parametrize(
    ("args", "arg"),
    [
        ({}, "p_cron"),
        ({"cron": "@daily", "interval_ms": 1000}, "p_cron"),
        ({"interval_ms": 999}, "p_interval_ms"),
        ({"interval_ms": 315_576_000_001}, "p_interval_ms"),
        ({"interval_ms": 1000, "start_at_ms": -1}, "p_start_at_ms"),
        ({"interval_ms": 1000, "start_at_ms": 2**53}, "p_start_at_ms"),
        ({"interval_ms": 1000, "end_at_ms": 2**53}, "p_end_at_ms"),
        ({"interval_ms": 1000, "limit": -1}, "p_limit"),
        ({"interval_ms": 1000, "limit": 1001}, "p_limit"),
        ({"interval_ms": 1000, "limit": None}, "p_limit"),
    ],
)
def test_bad_times_are_refused(db, args, arg):
    with refused("invalid_input") as refusal:
        rows(db, "ff_preview_schedule", **args)
    assert refusal.detail["arg"] == arg


def test_a_preview_starts_after_now_and_ends_before_the_end(db, clock):
    clock.set(now := utc(2026, 11, 16, 12))
    assert preview(db, "0 12 * * *", count=1) == [now + 24 * HOUR]
    assert preview(db, "0 12 * * *", start=now, count=1) == [now]
    assert preview(db, "@hourly", end=now + 2 * HOUR) == [now + HOUR]
    assert preview(db, "@hourly", end=now) == []
    found = rows(db, "ff_preview_schedule", interval_ms=5000, limit=2)
    assert [row["fire_at_ms"] - now for row in found] == [5000, 10_000]
    assert rows(db, "ff_preview_schedule", interval_ms=5000, limit=0) == []


def test_the_walls_of_the_oracle_are_those_of_the_server(db):
    """Else the tests above would compare two versions of the time zone database."""
    for zone, start in CHANGES:
        for hours in range(41):
            at = start + hours * HOUR
            shown = table(db, "select ff__local_time(%s, %s) as wall", at, zone)[0]["wall"]
            assert shown == wall(at, zone)
