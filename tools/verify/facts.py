"""The contents of the database, read in one snapshot."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import IsolationLevel
from psycopg.rows import dict_row

from pyff.migrate.place import show_private

Row = dict[str, Any]

STARTS = ("acquired", "reclaimed")
ENDS = ("released", "expired", "revoked")


@dataclass(frozen=True, slots=True)
class Fence:
    execution_id: str
    attempt_index: int
    lease_id: str
    lease_epoch: int


class Facts:
    """Rows grouped by their owner. Execution ids are the public ones; bytes are \\x.. strings."""

    def __init__(self, conn: psycopg.Connection[Any], handles: Iterable[str]) -> None:
        if conn.info.transaction_status is psycopg.pq.TransactionStatus.IDLE and conn.isolation_level is None:
            conn.isolation_level = IsolationLevel.REPEATABLE_READ
        self._conn = conn
        with conn.transaction():
            show_private(conn, local=True)
            self._read(sorted(set(handles)))

    def _read(self, handles: list[str]) -> None:
        self.executions: dict[str, Row] = {
            row["id"]: row
            for row in self._rows(
                """
                select ff__wire_id(c.partition_key, c.execution_id) as id, c.execution_id::text as uuid,
                       c.lifecycle_phase, c.public_state, c.terminal_outcome, c.ownership_state, c.lease_epoch,
                       c.replay_count, c.lease_reclaim_count, c.total_attempt_count, c.quota_policy_id, c.flow_id::text,
                       i.payload::text as payload
                  from ff_exec_core c join ff_exec_input i on i.execution_id = c.execution_id
                """
            )
        }
        self.by_uuid = {row["uuid"]: id for id, row in self.executions.items()}
        self.attempts: dict[tuple[str, int], Row] = {
            (self.by_uuid[row["uuid"]], row["attempt_index"]): row
            for row in self._rows(
                """
                select a.execution_id::text as uuid, a.attempt_index, a.state, a.outcome, a.result::text as result,
                       a.release_op, a.release_lease_id::text, a.release_lease_epoch
                  from ff_attempt a
                """
            )
            if row["uuid"] in self.by_uuid
        }
        self.events: dict[str, list[Row]] = defaultdict(list)
        self.event_order: list[int] = []
        for row in self._rows(
            """
            select v.event_id, v.execution_id::text as uuid, v.family, v.event_type, v.occurred_at_ms, v.attempt_index,
                   v.lease_id::text, v.lease_epoch, v.outcome, v.reason
              from ff_event v order by v.gen, v.ord, v.event_id
            """
        ):
            self.event_order.append(row["event_id"])
            if row["uuid"] in self.by_uuid:
                self.events[self.by_uuid[row["uuid"]]].append(row)
        for events in self.events.values():
            events.sort(key=lambda row: row["event_id"])
        self.signals: dict[tuple[str, str], Row] = {
            (self.by_uuid[row["uuid"]], row["signal_id"]): row
            for row in self._rows(
                """
                select s.execution_id::text as uuid, s.signal_id::text, s.seq, s.signal_name,
                       s.payload::text as payload, s.waitpoint_id::text, s.idempotency_key, s.source_type
                  from ff_signal s order by s.execution_id, s.seq
                """
            )
            if row["uuid"] in self.by_uuid
        }
        self.suspensions: dict[str, Row] = {
            row["suspension_id"]: row
            for row in self._rows(
                "select s.suspension_id::text, s.lease_id::text, s.lease_epoch from ff_suspension s"
            )
        }
        self.frames: dict[tuple[str, int, str], Row] = {
            (self.by_uuid[row["uuid"]], row["attempt_index"], row["frame_id"]): row
            for row in self._rows(
                """
                select f.execution_id::text as uuid, f.attempt_index, f.ts_ms::text || '-' || f.seq as frame_id, f.mode,
                       f.payload::text as payload
                  from ff_stream_frame f order by f.execution_id, f.attempt_index, f.ts_ms, f.seq
                """
            )
            if row["uuid"] in self.by_uuid
        }
        self.fences: dict[str, Fence] = {
            row["handle"]: Fence(
                row["execution_id"], row["attempt_index"], row["lease_id"], row["lease_epoch"]
            )
            for row in self._rows(
                """
                select h.handle, d.execution_id, d.attempt_index, d.lease_id::text, d.lease_epoch
                  from unnest(array(select x.handle from unnest(%s::text[]) x(handle)
                                     where (ff__parse_handle(x.handle)).lease_id is not null)) h(handle)
                 cross join lateral ff_handle_decode(h.handle) d
                """,
                handles,
            )
        }
        self.policies = self._rows("select q.* from ff_quota_policy q")
        self.window = self._rows(
            """
            select w.quota_policy_id, w.admitted_at_ms from ff_quota_window w
             order by w.quota_policy_id, w.admitted_at_ms
            """
        )
        self.budgets: dict[tuple[str, str], Row] = {
            (row["budget_id"], row["dimension"]): row
            for row in self._rows(
                """
                select u.budget_id, u.dimension, u.hard_limit, u.current_value, b.enforcement_mode, b.reset_count
                  from ff_budget_usage u join ff_budget b on b.budget_id = u.budget_id
                """
            )
        }
        self.edges = self._rows(
            """
            select e.upstream_eid::text as upstream, e.downstream_eid::text as downstream, e.dependency_kind,
                   g.policy_kind, g.k
              from ff_edge e join ff_edge_group g on g.flow_id = e.flow_id and g.downstream_eid = e.downstream_eid
            """
        )
        self.steps: dict[tuple[str, str], Row] = {
            (self.by_uuid[row["uuid"]], row["name"]): row
            for row in self._rows(
                "select s.execution_id::text as uuid, s.name, s.result::text from ff_step s"
            )
            if row["uuid"] in self.by_uuid
        }
        self.summaries: dict[tuple[str, int], Row] = {
            (self.by_uuid[row["uuid"]], row["attempt_index"]): row
            for row in self._rows(
                """
                select s.execution_id::text as uuid, s.attempt_index, s.version, s.document from ff_stream_summary s
                """
            )
            if row["uuid"] in self.by_uuid
        }
        self.schedules = self._rows(
            """
            select s.schedule_id, s.fire_count, s.catch_up, s.interval_ms, s.last_fire_at_ms from ff_schedule s
            """
        )
        self.ticks = self._rows(
            """
            select x.schedule_id, x.fire_at_ms
              from (select i.execution_id, i.tags ->> 'schedule.id' as schedule_id,
                           (i.tags ->> 'schedule.fire_at_ms')::bigint as fire_at_ms
                      from ff_execution i where i.tags ? 'schedule.id') x
             where x.execution_id = ff__fire_id(x.schedule_id, x.fire_at_ms)
            """
        )
        self.broken_invariants = self._rows("select v.* from ff_check_invariants(1000) v")

    def _rows(self, query: str, *args: object) -> list[Row]:
        return self._conn.cursor(row_factory=dict_row).execute(query, args or None).fetchall()

    def leases(self, execution_id: str) -> list[Row]:
        return [row for row in self.events[execution_id] if row["family"] == "lease"]
