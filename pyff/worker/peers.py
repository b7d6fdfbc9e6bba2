"""Notices that another worker has died, long before its leases run out.

A worker whose instance id begins with SESSION holds a lock (pg_advisory_lock_shared) in the session in which it renews
its leases, and did so before it registered. The server lets go of it when the session ends, and the session ends when
the process does, however it does. Others look, once a second, at the workers that come next after them. One whose lock
is free and stays so is dead, or can renew nothing: its leases are revoked, and who comes first goes on with its work.
A mistake costs a task a second run, never a second result: the fence refuses whoever comes late.

Nothing depends on it: without a lock, or with nobody to look, the leases run out as ever.
"""

import logging
from collections.abc import Mapping
from time import monotonic

import psycopg

from pyff.worker.link import Link
from pyff.worker.statements import BURY, LOOK, PLACE

log = logging.getLogger("pyff.worker")

SESSION = "session-"
GRACE_S = 2.0
"""So long a worker whose session ended may take to begin another one."""
RETURN_S = 8.0
"""And so long in addition, if the sessions of others may have ended with one's own: the server was away."""
PATIENCE_MS = 1_000
NEIGHBOURS = 100
PAGE = 1_000


class Peers:
    def __init__(self, link: Link, identity: Mapping[str, object]) -> None:
        self._link = link
        self._identity = identity
        self._sessions = 0
        self._trust_from = 0.0
        self._place: str | None = None
        self._suspects: dict[str, float] = {}

    def look(self) -> None:
        self._place = self._place or self._own_place()
        if self._place is None:
            return
        asked = {
            "place": self._place,
            "limit": NEIGHBOURS,
            "prefix": SESSION,
            "settled_s": GRACE_S + RETURN_S,
        }
        rows = self._link.call(LOOK, {**self._identity, **asked})
        moment = monotonic()
        if self._link.sessions != self._sessions:
            self._trust_from = moment + RETURN_S if self._sessions else moment
            self._sessions = self._link.sessions
        before, self._suspects = self._suspects, {}
        if moment < self._trust_from:
            return
        for (instance,) in rows:
            since = before.get(instance, moment)
            if moment < since + GRACE_S or not self._bury(instance):
                self._suspects[instance] = since

    def _bury(self, instance: str) -> bool:
        try:
            rows = self._link.call(BURY, {**self._identity, "peer": instance, "patience_ms": PATIENCE_MS})
        except psycopg.OperationalError as error:
            if not self._link.connected:
                raise
            log.warning("worker %s is dead, but its work cannot be had: %s", instance, str(error).strip())
            return False
        for outcome, revoked in rows:
            if outcome == "marked" or revoked:
                log.warning(
                    "worker %s is dead: %s leases revoked",
                    instance,
                    revoked,
                    extra={"instance_id": instance, "leases": revoked},
                )
        return True

    def _own_place(self) -> str | None:
        """The cursor of this worker in the list of all."""
        after = None
        while rows := self._link.call(PLACE, {**self._identity, "after": after, "limit": PAGE}):
            for cursor, instance in rows:
                if instance == self._identity["instance_id"]:
                    return str(cursor)
            after = rows[-1][0]
        return None
