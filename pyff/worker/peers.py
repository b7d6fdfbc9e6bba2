"""Notices that another worker has died, long before its leases run out.

A worker holds a lock (pg_advisory_lock) in the session in which it listens. The server lets go of it when the session
ends, and the session ends when the process does, however it does. Others look, once a second, at the few workers that
come next after them. One whose lock was held, is free now, stays so and gives no other sign of life, is dead: its
leases are revoked, and who comes first goes on with its work. A mistake costs a task a second run, never a second
result: the fence refuses whoever comes late.

Nothing depends on it: without a lock, or with nobody to look, the leases run out as ever.
"""

import logging
from collections.abc import Mapping
from time import monotonic
from typing import NamedTuple

from psycopg.errors import LockNotAvailable

from pyff.worker.link import Link
from pyff.worker.statements import BURY, LOOK, PLACE

log = logging.getLogger("pyff.worker")

GRACE_S = 2.0
"""So long a worker whose session ended may take to come back, or to send a heartbeat."""
PATIENCE_MS = 1_000
NEIGHBOURS = 20
PAGE = 1_000


class Suspicion(NamedTuple):
    """When its lock was first found free, and the last heartbeat that was known then."""

    since: float
    heartbeat_ms: int


class Peers:
    def __init__(self, link: Link, identity: Mapping[str, object]) -> None:
        self._link = link
        self._identity = identity
        self._session = 0
        self._place: str | None = None
        self._seen: dict[str, Suspicion | None] = {}
        """Those whose lock was held when it was looked at before, in this session."""

    def look(self) -> None:
        self._place = self._place or self._own_place()
        if self._place is None:
            return
        rows = self._link.call(LOOK, {**self._identity, "place": self._place, "limit": NEIGHBOURS})
        if self._link.session != self._session:
            # The server may have ended all sessions, and the others are on their way back.
            self._session = self._link.session
            self._seen.clear()
        moment = monotonic()
        before, self._seen = self._seen, {}
        for instance, heartbeat_ms, free in rows:
            if not free:
                self._seen[instance] = None
            elif instance in before:
                suspicion = before[instance] or Suspicion(moment, heartbeat_ms)
                if suspicion.heartbeat_ms != heartbeat_ms:
                    continue  # it lives without the lock
                if moment < suspicion.since + GRACE_S:
                    self._seen[instance] = suspicion
                else:
                    self._bury(instance)

    def _bury(self, instance: str) -> None:
        try:
            rows = self._link.call(BURY, {**self._identity, "peer": instance, "patience_ms": PATIENCE_MS})
        except LockNotAvailable:
            log.warning("worker %s is dead, but somebody holds its work", instance)
            return
        for _, revoked in rows:
            log.warning(
                "worker %s is dead: %s leases revoked",
                instance,
                revoked,
                extra={"instance_id": instance, "leases": revoked},
            )

    def _own_place(self) -> str | None:
        """The cursor of this worker in the list of all."""
        after = None
        while rows := self._link.call(PLACE, {**self._identity, "after": after, "limit": PAGE}):
            for cursor, instance in rows:
                if instance == self._identity["instance_id"]:
                    return str(cursor)
            after = rows[-1][0]
        return None
