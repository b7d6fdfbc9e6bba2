"""Detects that another worker has died, long before its leases expire.

A worker whose instance id begins with SESSION holds a lock (pg_advisory_lock_shared) in the session in which it renews
its leases, and takes it before it registers. The server releases the lock when the session ends, and the session ends
when the process does. Once a second, each worker checks the workers that follow it in the list. A worker whose lock
stays free is dead, or cannot renew: its leases are revoked, and another worker takes over its work. A mistake costs a
task a second run, never a second result: the fence rejects the stale worker.

An optimization only: without a lock, or without peers, the leases expire as usual.
"""

import logging
from collections.abc import Mapping
from time import monotonic

import psycopg

from pyff.worker.link import Link
from pyff.worker.statements import LIST_WORKERS, MARK_DEAD, SUSPECTS

log = logging.getLogger("pyff.worker")

SESSION = "session-"
GRACE_S = 2.0
"""How long a worker whose session ended may take to open another one."""
RETURN_S = 8.0
"""Additional time if all sessions may have ended at once, because the server was down."""
LOCK_TIMEOUT_MS = 1_000
NEIGHBOURS = 100
PAGE = 1_000


class Peers:
    def __init__(self, link: Link, identity: Mapping[str, object]) -> None:
        self._link = link
        self._identity = identity
        self._sessions = 0
        self._trust_from = 0.0
        self._cursor: str | None = None
        self._suspects: dict[str, float] = {}

    def check(self) -> None:
        self._cursor = self._cursor or self._own_cursor()
        if self._cursor is None:
            return
        asked = {
            "cursor": self._cursor,
            "limit": NEIGHBOURS,
            "prefix": SESSION,
            "settled_s": GRACE_S + RETURN_S,
        }
        rows = self._link.call(SUSPECTS, {**self._identity, **asked})
        moment = monotonic()
        if self._link.sessions != self._sessions:
            self._trust_from = moment + RETURN_S if self._sessions else moment
            self._sessions = self._link.sessions
        before, self._suspects = self._suspects, {}
        if moment < self._trust_from:
            return
        for (instance,) in rows:
            since = before.get(instance, moment)
            if moment < since + GRACE_S or not self._mark_dead(instance):
                self._suspects[instance] = since

    def _mark_dead(self, instance: str) -> bool:
        try:
            rows = self._link.call(
                MARK_DEAD, {**self._identity, "peer": instance, "lock_timeout_ms": LOCK_TIMEOUT_MS}
            )
        except psycopg.OperationalError as error:
            if not self._link.connected:
                raise
            log.warning(
                "worker %s is dead, but its leases cannot be revoked: %s", instance, str(error).strip()
            )
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

    def _own_cursor(self) -> str | None:
        """The cursor of this worker in the list of all workers."""
        after = None
        while rows := self._link.call(LIST_WORKERS, {**self._identity, "after": after, "limit": PAGE}):
            for cursor, instance in rows:
                if instance == self._identity["instance_id"]:
                    return str(cursor)
            after = rows[-1][0]
        return None
