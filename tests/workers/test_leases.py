"""The leases of workers that are gone: revoked on demand, or listed when they have run out."""

import uuid

import pytest

from tests.sql import create, events, execution, one, refused, rows, take, violations


def mark_dead(db, instance="w-1", **args):
    return one(db, "ff_mark_worker_dead", worker_instance_id=instance, revoke_leases=True, **args)


def hold(db, lane="default", worker="w", ttl=30_000, **args):
    """An execution that this worker holds."""
    eid = create(db, lane, **args)
    row = take(db, lane, worker, lease_ttl_ms=ttl)
    assert row["execution_id"] == eid
    return row


# ff_mark_worker_dead with p_revoke_leases


def test_every_live_lease_of_a_dead_worker_is_revoked_at_once(db):
    mine = [hold(db) for _ in range(3)]
    other = hold(db, worker="x")
    assert mark_dead(db) == {"outcome": "not_registered", "leases_revoked": 3}
    for row in mine:
        stored = execution(db, row["execution_id"])
        assert (stored["ownership_state"], stored["lease_revoke_reason"]) == ("lease_revoked", "worker_dead")
        assert (stored["lease_id"], stored["lease_epoch"]) == (row["lease_id"], 1)
        assert "lease/revoked:worker_dead" in events(db, row["execution_id"])
        with refused("lease_revoked") as refusal:
            one(db, "ff_complete", handle=row["handle"])
        assert refusal.detail["reason"] == "worker_dead"
    assert execution(db, other["execution_id"])["ownership_state"] == "leased"
    assert {take(db, worker="y")["execution_id"] for _ in mine} == {row["execution_id"] for row in mine}
    assert mark_dead(db)["leases_revoked"] == 0
    assert violations(db) == []


def test_without_the_flag_leases_are_left_to_expire(db):
    row = hold(db)
    one(db, "ff_mark_worker_dead", worker_instance_id="w-1")
    assert one(db, "ff_renew", handle=row["handle"])["lease_epoch"] == 1


def test_only_leases_in_the_namespace_of_the_worker_are_revoked(db):
    here, there = hold(db, namespace="here"), hold(db, namespace="there")
    assert mark_dead(db, namespace="here")["leases_revoked"] == 1
    assert execution(db, here["execution_id"])["ownership_state"] == "lease_revoked"
    assert execution(db, there["execution_id"])["ownership_state"] == "leased"


def test_a_lease_that_has_run_out_or_was_given_up_is_not_revoked(db, clock):
    clock.freeze()
    lapsed = hold(db, "a", ttl=10)
    ended = hold(db, "b")
    one(db, "ff_complete", handle=ended["handle"])
    paused = hold(db, "c")
    one(db, "ff_delay", handle=paused["handle"], delay_ms=0)
    clock.advance(10)
    assert mark_dead(db)["leases_revoked"] == 0
    assert execution(db, lapsed["execution_id"])["ownership_state"] == "leased"
    assert violations(db) == []


# ff_list_expired_leases


def expired(db, **args):
    return [row["execution_id"] for row in rows(db, "ff_list_expired_leases", **args)]


def by_expiry(held):
    return [
        row["execution_id"]
        for row in sorted(held, key=lambda r: (r["lease_expires_at_ms"], r["execution_id"].split(":")[-1]))
    ]


def test_a_lease_is_listed_from_the_millisecond_it_ends(db, clock):
    now = clock.freeze()
    row = hold(db, namespace="ns", ttl=10)
    eid = row["execution_id"]
    clock.advance(9)
    assert expired(db) == []
    clock.advance(1)
    (got,) = rows(db, "ff_list_expired_leases")
    assert isinstance(got.pop("cursor"), str)
    assert got == {
        "execution_id": eid,
        "namespace": "ns",
        "lane_id": "default",
        "lease_epoch": 1,
        "attempt_index": 0,
        "worker_id": "w",
        "worker_instance_id": "w-1",
        "expires_at_ms": now + 10,
        "ownership_state": "leased",
    }
    one(db, "ff_mark_lease_expired_if_due", execution_id=eid)
    (got,) = rows(db, "ff_list_expired_leases")
    assert (got["ownership_state"], got["expires_at_ms"]) == ("lease_expired_reclaimable", now + 10)


def test_revoked_paused_and_ended_leases_are_not_listed(db, clock):
    clock.freeze()
    revoked, paused, ended = hold(db, "a", ttl=10), hold(db, "b", ttl=10), hold(db, "c", ttl=10)
    one(db, "ff_revoke_lease", execution_id=revoked["execution_id"])
    one(db, "ff_delay", handle=paused["handle"], delay_ms=0)
    one(db, "ff_complete", handle=ended["handle"])
    clock.advance(1000)
    assert expired(db) == []


def test_a_reclaimed_lease_is_not_listed(db, clock):
    clock.freeze()
    hold(db, ttl=10)
    clock.advance(10)
    assert len(expired(db)) == 1
    take(db)
    assert expired(db) == []


def test_an_expired_lease_in_a_flow_that_has_not_started_is_listed(db, clock):
    clock.freeze()
    flow_id = one(db, "ff_create_flow", hold=True)["flow_id"]
    member = uuid.UUID(bytes=uuid.uuid4().bytes[:15] + flow_id.bytes[15:])
    eid = create(db, execution_id=f"{{fp:{flow_id.bytes[15]}}}:{member}")
    take(db, lease_ttl_ms=100)
    one(db, "ff_add_execution_to_flow", flow_id=flow_id, execution_id=eid)
    clock.advance(100)
    for _ in range(2):
        assert [row["execution_id"] for row in rows(db, "ff_list_expired_leases")] == [eid]
        one(db, "ff_mark_lease_expired_if_due", execution_id=eid)
    one(db, "ff_start_flow", flow_id=flow_id)
    assert [row["execution_id"] for row in rows(db, "ff_list_expired_leases")] == [eid]
    assert violations(db) == []


def test_the_grace_keeps_fresh_ones_out(db, clock):
    clock.freeze()
    eid = hold(db, ttl=10)["execution_id"]
    clock.advance(10 + 99)
    assert expired(db, grace_ms=100) == []
    clock.advance(1)
    assert expired(db, grace_ms=100) == [eid]
    assert expired(db, grace_ms=101) == []
    assert expired(db, grace_ms=10**14) == []


def test_one_namespace_or_all(db, clock):
    clock.freeze()
    a, b = hold(db, "a", namespace="a", ttl=10), hold(db, "b", namespace="b", ttl=10)
    clock.advance(10)
    assert set(expired(db)) == {a["execution_id"], b["execution_id"]}
    assert expired(db, namespace="b") == [b["execution_id"]]
    assert expired(db, namespace="c") == []


@pytest.mark.parametrize("size", [1, 2, 3, 5, 12, 13])
def test_pages_neither_skip_nor_repeat_leases_that_end_together(db, clock, size):
    clock.freeze()
    held = [hold(db, ttl=50 + n % 3) for n in range(12)]
    clock.advance(60)
    for row in held[::2]:
        one(db, "ff_mark_lease_expired_if_due", execution_id=row["execution_id"])
    found, after = [], None
    while page := rows(db, "ff_list_expired_leases", limit=size, after=after):
        found += [row["execution_id"] for row in page]
        after = page[-1]["cursor"]
    assert found == by_expiry(held)


def test_a_row_that_is_gone_does_not_lose_the_place(db, clock):
    clock.freeze()
    held = by_expiry([hold(db, ttl=50) for _ in range(5)])
    clock.advance(50)
    after = rows(db, "ff_list_expired_leases", limit=2)[-1]["cursor"]
    one(db, "ff_cancel_execution", execution_id=held[1])
    one(db, "ff_cancel_execution", execution_id=held[2])
    assert expired(db, after=after) == held[3:]


def test_the_page_has_the_size_asked_for(db, clock):
    clock.freeze()
    for _ in range(3):
        hold(db, ttl=10)
    clock.advance(10)
    assert expired(db, limit=0) == []
    assert len(expired(db, limit=2)) == 2
    assert len(expired(db, limit=10_000)) == 3


@pytest.mark.parametrize(
    ("args", "kind"),
    [
        ({"limit": None}, "invalid_input"),
        ({"limit": -1}, "invalid_input"),
        ({"limit": 10_001}, "invalid_input"),
        ({"grace_ms": None}, "invalid_input"),
        ({"grace_ms": -1}, "invalid_input"),
        ({"after": ""}, "invalid_cursor"),
        ({"after": f"1:{uuid.UUID(int=0)}"}, "invalid_cursor"),
    ],
)
def test_bad_input_is_refused(db, args, kind):
    with refused(kind) as refusal:
        expired(db, **args)
    if kind == "invalid_input":
        assert refusal.detail["arg"] == f"p_{next(iter(args))}"
