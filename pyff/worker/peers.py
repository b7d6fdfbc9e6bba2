"""Notices that another worker has died, long before its leases run out.

A worker whose instance id begins with SESSION holds a lock (pg_advisory_lock) in the session in which it listens, and
did so before it registered. The server lets go of it when the session ends, and the session ends when the process does,
however it does. Others look, once a second, at the few workers that come next after them. One whose lock is free, stays
so and gives no other sign of life, is dead: its leases are revoked, and who comes first goes on with its work.
A mistake costs a task a second run, never a second result: the fence refuses whoever comes late.

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

SESSION = "session-"
GRACE_S = 2.0
"""So long a worker whose session ended may take to hold its lock again, or to send a heartbeat."""
RETURN_S = 8.0
"""And so long in addition, if the sessions of others may have ended with one's own: the server was away."""
PATIENCE_MS = 1_000
NEIGHBOURS = 20
PAGE = 1_000


class Suspicion(NamedTuple):
    """Since when its lock was found free without a heartbeat, and the last one before."""

    since: float
    heartbeat_ms: int


class Peers:
    def __init__(self, link: Link, identity: Mapping[str, object]) -> None:
        self._link = link
        self._identity = identity
        self._session = 0
        self._trust_from = 0.0
        self._place: str | None = None
        self._suspects: dict[str, Suspicion] = {}

    def look(self) -> None:
        self._place = self._place or self._own_place()
        if self._place is None:
            return
        asked = {**self._identity, "place": self._place, "limit": NEIGHBOURS, "those": SESSION + "%"}
        rows = self._link.call(LOOK, asked)
        moment = monotonic()
        if self._link.session != self._session:
            self._trust_from = moment + RETURN_S if self._session else moment
            self._session = self._link.session
        before, self._suspects = self._suspects, {}
        if moment < self._trust_from:
            return
        for instance, heartbeat_ms in rows:
            suspicion = before.get(instance)
            if suspicion is None or suspicion.heartbeat_ms != heartbeat_ms:
                suspicion = Suspicion(moment, heartbeat_ms)
            if moment < suspicion.since + GRACE_S:
                self._suspects[instance] = suspicion
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
