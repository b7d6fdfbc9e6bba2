"""An overview of a database. Every count has a cap, so that the queries stay cheap on large databases."""

import dataclasses
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg.rows import dict_row

ROWS = 20_000  # index entries read for all lanes together
MOST, LEAST = 10_000, 200  # of one lane
MAX_LANES = 500
MAX_WORKERS = 500
COMPLETIONS = 2_000  # the newest; the source of rates and failures
WINDOW_MS = 10_000
FAILURES = 10

# With a LIMIT the planner may expect enough rows at the start of the table, where all executions have ended.
_INDEXES_ONLY = "set local enable_seqscan = off"

_LANES = """\
select l.lane_id, l.state, r.ready, %(now)s - r.oldest_ms as oldest_ready_ms, d.running, d.lapsed, d.delayed,
       r.ready >= %(cap)s as ready_capped, d.running + d.delayed >= %(cap)s as held_capped
  from (select x.lane_id, x.state from ff_v_lane x order by x.lane_id limit %(lanes)s) l
 cross join lateral (
       select count(*) as ready, (extract(epoch from min(x.created_at)) * 1000)::bigint as oldest_ms
         from (select e.created_at from ff_v_execution e where e.ready_on = l.lane_id limit %(cap)s) x) r
 cross join lateral (
       select count(*) filter (where x.leased) as running,
              count(*) filter (where x.leased and x.lease_expires_at <= to_timestamp(%(now)s / 1000::float8)) as lapsed,
              count(*) filter (where not x.leased) as delayed
         from (select e.ownership_state = 'leased' as leased, e.lease_expires_at from ff_v_execution e
                where e.lane_id = l.lane_id and e.timed
                  and (e.ownership_state = 'leased' or e.eligibility_state = 'not_eligible_until_time')
                limit %(cap)s) x) d
 order by l.lane_id"""

_RECENT = """\
select x.lane_id, x.event_type, (extract(epoch from x.occurred_at) * 1000)::bigint as occurred_at_ms, x.reason,
       x.execution_id
  from ff_v_event x
 where x.family = 'completion'
 order by x.gen desc, x.ord desc, x.event_id desc limit %(completions)s"""

_WORKERS = """\
select w.worker_instance_id, w.worker_id, w.namespace, w.lanes, w.alive,
       %(now)s - (extract(epoch from w.last_heartbeat_at) * 1000)::bigint as silent_ms
  from ff_v_worker w order by w.namespace, w.worker_instance_id limit %(workers)s"""

_HOLDERS = """\
select x.worker_instance_id, count(*) as leases
  from (select e.worker_instance_id from ff_v_execution e
         where e.lane_id = any(%(lane_ids)s) and e.timed and e.ownership_state = 'leased' limit %(cap)s) x
 group by x.worker_instance_id order by count(*) desc limit %(workers)s"""


@dataclass(frozen=True)
class Lane:
    lane_id: str
    state: str
    ready: int
    oldest_ready_ms: int | None
    """Time since the creation of the oldest counted execution."""
    running: int
    lapsed: int
    """Running executions whose lease has expired and not been reclaimed."""
    delayed: int
    ready_capped: bool
    """The count of ready executions reached its cap."""
    held_capped: bool
    """The count of running or delayed executions reached its cap."""
    rate_per_s: float
    """Recent completions per second."""


@dataclass(frozen=True)
class Worker:
    worker_instance_id: str
    worker_id: str | None
    namespace: str | None
    lanes: list[str]
    silent_ms: int | None
    alive: bool | None
    """None: the worker holds leases, but has not registered."""
    leases: int


@dataclass(frozen=True)
class Failed:
    execution_id: str
    lane_id: str | None
    outcome: str
    occurred_at_ms: int
    reason: str | None


@dataclass(frozen=True)
class Overview:
    now_ms: int
    schema_version: int
    lanes: list[Lane]
    workers: list[Worker]
    failures: list[Failed]

    def as_dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self)


def look(conn: psycopg.Connection[Any]) -> Overview:
    """Reads the overview with a few indexed queries on the views. The role ff_reader is enough."""
    with conn.transaction():
        conn.execute(_INDEXES_ONLY)
        return _look(conn.cursor(row_factory=dict_row))


def _look(cursor: psycopg.Cursor[dict[str, Any]]) -> Overview:

    def ask(query: str, **values: object) -> list[dict[str, Any]]:
        return cursor.execute(query.encode(), values).fetchall()

    service = ask("select p.server_time_ms, p.schema_version from ff_ping() p")[0]
    known = ask("select count(*) as n from (select from ff_v_lane limit %(most)s) x", most=MAX_LANES)
    now = service["server_time_ms"]
    cap = max(LEAST, min(MOST, ROWS // max(1, known[0]["n"])))
    lanes = ask(_LANES, cap=cap, lanes=MAX_LANES, now=now)
    recent = ask(_RECENT, completions=COMPLETIONS)
    rates = _rates(recent, now)
    registered = ask(_WORKERS, now=now, workers=MAX_WORKERS)
    holders = ask(_HOLDERS, cap=MOST, lane_ids=[row["lane_id"] for row in lanes], workers=MAX_WORKERS)
    return Overview(
        now,
        service["schema_version"],
        [Lane(**row, rate_per_s=rates.get(row["lane_id"], 0.0)) for row in lanes],
        _workers(registered, {row["worker_instance_id"]: row["leases"] for row in holders}),
        [
            Failed(
                row["execution_id"], row["lane_id"], row["event_type"], row["occurred_at_ms"], row["reason"]
            )
            for row in recent
            if row["event_type"] in ("failed", "expired")
        ][:FAILURES],
    )


def _rates(recent: list[dict[str, Any]], now: int) -> dict[str, float]:
    """Rates per lane over the last seconds, or over the time that the newest completions cover if that is less."""
    fresh = [row for row in recent if row["occurred_at_ms"] > now - WINDOW_MS]
    capped = len(fresh) == len(recent) == COMPLETIONS
    covered = max(1, now - min(row["occurred_at_ms"] for row in fresh)) if capped else WINDOW_MS
    counts: dict[str, int] = {}
    for row in fresh:
        counts[row["lane_id"]] = counts.get(row["lane_id"], 0) + 1
    return {lane: round(n * 1000 / covered, 1) for lane, n in counts.items()}


def _workers(registered: list[dict[str, Any]], leases: dict[str, int]) -> list[Worker]:
    known = [Worker(**row, leases=leases.get(row["worker_instance_id"], 0)) for row in registered]
    names = {worker.worker_instance_id for worker in known}
    strangers = [
        Worker(name, None, None, [], None, None, n) for name, n in leases.items() if name not in names
    ]
    return sorted(known + strangers, key=lambda worker: (-worker.leases, worker.worker_instance_id))
