"""Suspending, signalling and looking at it, as the tests of this directory do it."""

from typing import Any
from uuid import UUID

from psycopg.types.json import Jsonb

from tests.sql import Row, create, one, rows, table, take

UNKNOWN = UUID("018f3a2e-7b6c-7d1e-9f00-aabbccddee07")
APPROVAL = {"kind": "single", "waitpoint_key": "approval", "matcher": {"by_name": "approve"}}
OPERATOR_ONLY = {"kind": "operator_only"}
TIMEOUT_ONLY = {"kind": "timeout_only"}


def single(key: str = "a", matcher: Any = "wildcard") -> Row:
    return {
        "kind": "single",
        "waitpoint_key": key,
        "matcher": {"by_name": matcher} if matcher != "wildcard" and isinstance(matcher, str) else matcher,
    }


def all_of(*members: Row) -> Row:
    return {"kind": "all_of", "members": list(members)}


def count(n: int, kind: str, keys: list[str], matcher: Any = None) -> Row:
    node: Row = {"kind": "count", "n": n, "count_kind": f"distinct_{kind}", "waitpoints": keys}
    return {**node, "matcher": matcher} if matcher is not None else node


def seed(db, kid="k1", secret=None):
    """A signing key in place of the one that the installation made, unless there is another one."""
    db.execute("delete from ff_waitpoint_hmac where kid = 'migrate'")
    if not table(db, "select 1 from ff_waitpoint_hmac where active"):
        one(db, "ff_seed_waitpoint_hmac_secret", kid=kid, secret_hex=secret)


def run(db, **args):
    """The claim of an execution."""
    seed(db)
    create(db, **args)
    return take(db)


def suspend(db, handle, condition=APPROVAL, *, waitpoints=None, **args):
    """The rows of a suspension."""
    given = {} if waitpoints is None else {"waitpoints": Jsonb(waitpoints)}
    return rows(db, "ff_suspend", handle=handle, condition=Jsonb(condition), **given, **args)


def suspended(db, condition=APPROVAL, *, waitpoints=None, create=None, **args):
    """A suspended execution: its claim, and its only or first waitpoint."""
    claim = run(db, **(create or {}))
    found = suspend(db, claim["handle"], condition, waitpoints=waitpoints, **args)
    assert found[0]["outcome"] == "suspended"
    return claim, found[0]


def waitpoint(db, handle, key="approval", **args):
    """A pending waitpoint."""
    return one(db, "ff_create_waitpoint", handle=handle, waitpoint_key=key, **args)


def deliver(db, claim, point, name="approve", **args):
    return one(
        db,
        "ff_deliver_signal",
        execution_id=claim["execution_id"],
        waitpoint_id=point["waitpoint_id"],
        waitpoint_token=point["waitpoint_token"],
        signal_name=name,
        **args,
    )


def expire(db, claim):
    return one(db, "ff_expire_suspension", execution_id=claim["execution_id"])


def stored(db, name, **where):
    """The only row of a table that fits."""
    condition = " and ".join(f"{column} = %s" for column in where) or "true"
    found = table(db, f"select * from {name} where {condition}", *where.values())
    assert len(found) == 1, found
    return found[0]


def signals(db, claim):
    return rows(db, "ff_list_signals", execution_id=claim["execution_id"])


def everything(db):
    """All that is stored of suspensions. Two of them are equal when nothing was written in between."""
    names = ["ff_execution", "ff_attempt_past", "ff_event_log", "ff_suspension", "ff_waitpoint", "ff_signal"]
    names.append("ff_waitpoint_hmac")
    return [table(db, f"select t.*, t.xmin::text, t.ctid::text from {n} t order by t::text") for n in names]
