"""ff_renew and ff_renew_lease: extending a lease."""

import uuid

import pytest

from tests.sql import claim, create, events, execution, one, refused, take, violations


def test_a_renewal_moves_the_end_of_the_lease_by_the_length_of_the_claim(db, clock):
    now = clock.freeze()
    eid = create(db)
    row = take(db, lease_ttl_ms=1000)
    clock.advance(700)
    answer = one(db, "ff_renew", handle=row["handle"])
    assert answer == {"lease_epoch": 1, "lease_expires_at_ms": now + 1700}
    stored = execution(db, eid)
    assert stored["lease_renewed_at_ms"] == now + 700
    assert stored["lease_id"] == row["lease_id"]
    assert stored["lease_check_at_ms"] == now + 1000
    assert events(db, eid) == ["lease/acquired", "lease/renewed"]
    clock.advance(900)
    assert claim(db) is None
    assert violations(db) == []


def test_a_renewed_lease_is_still_found_when_it_lapses(db, clock):
    clock.freeze()
    eid = create(db)
    row = take(db, lease_ttl_ms=1000)
    clock.advance(900)
    one(db, "ff_renew", handle=row["handle"])
    clock.advance(200)
    assert claim(db) is None
    one(db, "ff_sweep_expired_leases")
    assert execution(db, eid)["lease_check_at_ms"] == execution(db, eid)["lease_expires_at_ms"]
    clock.advance(800)
    assert take(db)["execution_id"] == eid


def test_a_renewal_may_shorten_the_lease(db, clock):
    now = clock.freeze()
    eid = create(db)
    row = take(db, lease_ttl_ms=10_000)
    assert one(db, "ff_renew", handle=row["handle"], lease_ttl_ms=50)["lease_expires_at_ms"] == now + 50
    assert execution(db, eid)["lease_check_at_ms"] == now + 50
    clock.advance(50)
    assert take(db)["execution_id"] == eid
    assert violations(db) == []


def test_a_renewal_ends_with_the_deadline_and_the_attempt_timeout(db, clock):
    now = clock.freeze()
    create(db, deadline_at_ms=now + 100)
    assert one(db, "ff_renew", handle=take(db)["handle"])["lease_expires_at_ms"] == now + 100
    create(db, policy={"timeout_policy": {"attempt_timeout_ms": 70}})
    assert one(db, "ff_renew", handle=take(db)["handle"])["lease_expires_at_ms"] == now + 70


def test_a_lease_is_valid_until_the_millisecond_before_its_end(db, clock):
    clock.freeze()
    create(db)
    row = take(db, lease_ttl_ms=100)
    clock.advance(99)
    one(db, "ff_renew", handle=row["handle"])
    clock.advance(100)
    with refused("lease_expired") as refusal:
        one(db, "ff_renew", handle=row["handle"])
    assert refusal.detail["reason"] == "ttl"


@pytest.mark.parametrize("ttl", [0, -1, 86_400_001])
def test_a_length_out_of_range_is_refused(db, ttl):
    create(db)
    with refused("invalid_input") as refusal:
        one(db, "ff_renew", handle=take(db)["handle"], lease_ttl_ms=ttl)
    assert refusal.detail["arg"] == "p_lease_ttl_ms"


def test_the_typed_form_takes_the_fence(db):
    create(db)
    row = take(db)
    fence = {
        key: row[key] for key in ("execution_id", "attempt_index", "lease_id", "lease_epoch", "attempt_id")
    }
    assert one(db, "ff_renew_lease", **fence)["lease_epoch"] == 1
    assert one(db, "ff_renew_lease", **{**fence, "attempt_index": None})["lease_epoch"] == 1


def test_the_typed_form_needs_the_whole_fence(db):
    create(db)
    row = take(db)
    with refused("fence_required"):
        one(db, "ff_renew_lease", execution_id=row["execution_id"], attempt_index=0)
    for missing in ("lease_id", "lease_epoch", "attempt_id"):
        fence = {
            key: row[key]
            for key in ("execution_id", "lease_id", "lease_epoch", "attempt_id")
            if key != missing
        }
        with refused("partial_fence"):
            one(db, "ff_renew_lease", **fence)


@pytest.mark.parametrize(
    "change",
    [
        {"lease_id": uuid.uuid4()},
        {"lease_epoch": 2},
        {"lease_epoch": 0},
        {"attempt_id": uuid.uuid4()},
        {"attempt_index": 1},
    ],
)
def test_every_part_of_the_fence_is_compared(db, change):
    create(db)
    row = take(db)
    fence = {
        key: row[key] for key in ("execution_id", "attempt_index", "lease_id", "lease_epoch", "attempt_id")
    }
    with refused("stale_lease") as refusal:
        one(db, "ff_renew_lease", **{**fence, **change})
    assert (refusal.detail["lease_epoch"], refusal.detail["attempt_index"]) == (1, 0)
    assert str(row["lease_id"]) not in str(refusal.error)


def test_a_revoked_lease_cannot_be_renewed(db):
    create(db)
    row = take(db)
    one(db, "ff_revoke_lease", execution_id=row["execution_id"], reason="maintenance")
    with refused("lease_revoked") as refusal:
        one(db, "ff_renew", handle=row["handle"])
    assert refusal.detail["reason"] == "maintenance"


def test_an_unknown_execution_is_not_found(db):
    create(db)
    handle = take(db)["handle"]
    db.execute("delete from ff_execution")
    with refused("execution_not_found"):
        one(db, "ff_renew", handle=handle)


@pytest.mark.own_session("counts what its server process did")
def test_a_renewal_is_a_hot_update(db, connect):
    create(db)
    row = take(db)
    for _ in range(20):
        one(db, "ff_renew", handle=row["handle"])
    db.execute("select pg_stat_force_next_flush()")
    query = "select n_tup_upd, n_tup_hot_upd from pg_stat_user_tables where relname = 'ff_execution'"
    updates, hot = db.execute(query).fetchone()
    assert updates == 21
    assert hot >= 20 - 2  # a full page may force one or two elsewhere
