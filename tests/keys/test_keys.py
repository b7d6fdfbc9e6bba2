"""The keys that sign waitpoint tokens: one active, the retired ones for their grace, never two, never shown."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.sql import one, refused, rows, table, violations
from tests.suspensions.support import deliver, everything, run, stored, suspend, suspended, waitpoint

SECRET = "00112233445566778899aabbccddeeff" * 2
OTHER = "ff" * 32


@pytest.fixture(autouse=True)
def _no_keys(db):
    """Without the key that the installation made."""
    db.execute("delete from ff_waitpoint_hmac")


def seed(db, kid="k1", secret=None):
    return one(db, "ff_seed_waitpoint_hmac_secret", kid=kid, secret_hex=secret)


def rotate(db, kid, secret=None, grace=1000):
    return one(db, "ff_rotate_waitpoint_hmac_secret", new_kid=kid, new_secret_hex=secret, grace_ms=grace)


def key(db, kid):
    return stored(db, "ff_waitpoint_hmac", kid=kid)


def test_the_server_makes_a_secret_of_its_own(db):
    assert seed(db) == {"outcome": "seeded", "kid": "k1", "same_secret": None, "active": True}
    assert len(key(db, "k1")["secret"]) == 32
    assert seed(db) == {"outcome": "already_seeded", "kid": "k1", "same_secret": None, "active": True}
    assert [e["details"] for e in table(db, "select * from ff_event where event_type = 'hmac_seeded'")] == [
        {"kid": "k1"}
    ]


def test_a_given_secret_is_kept_and_compared(db):
    assert seed(db, secret=SECRET.upper())["outcome"] == "seeded"
    assert bytes(key(db, "k1")["secret"]) == bytes.fromhex(SECRET)
    before = everything(db)
    assert seed(db, secret=SECRET)["same_secret"] is True
    assert seed(db, secret=OTHER)["same_secret"] is False
    assert everything(db) == before


def test_a_second_key_is_not_seeded(db):
    seed(db, secret=SECRET)
    before = everything(db)
    with refused("hmac_already_seeded") as refusal:
        seed(db, "k2", OTHER)
    assert refusal.detail["active_kid"] == "k1"
    assert everything(db) == before


@pytest.mark.parametrize(("secret", "same"), [(SECRET, True), (SECRET.upper(), True), (None, None)])
def test_the_key_that_is_active_answers_for_its_secret_under_every_id(db, secret, same):
    seed(db, secret=SECRET)
    before = everything(db)
    assert seed(db, "k2", secret) == {
        "outcome": "already_seeded",
        "kid": "k1",
        "same_secret": same,
        "active": True,
    }
    assert everything(db) == before


def test_the_secret_of_a_retired_key_is_not_seeded_again_under_another_id(db):
    seed(db, secret=SECRET)
    rotate(db, "k2", OTHER)
    with refused("hmac_already_seeded"):
        seed(db, "k3", SECRET)


@pytest.mark.parametrize("kid", ["", "a:b", "ä", "x" * 65, "a b", "a\n"])
def test_a_key_id_has_a_form(db, kid):
    with refused("invalid_kid"):
        seed(db, kid)
    with refused("invalid_kid"):
        rotate(db, kid)


@pytest.mark.parametrize("secret", ["", "00" * 31, "00" * 33, "g" * 64, SECRET + "\n"])
def test_a_secret_is_64_hexadecimal_digits_and_not_repeated_in_the_error(db, secret):
    for call in (seed, rotate):
        with refused("invalid_secret") as refusal:
            call(db, "k1", secret)
        assert secret == "" or secret not in str(refusal.error) + str(refusal.error.diag.message_detail)


def test_null_is_refused(db):
    with refused("invalid_input"):
        seed(db, None)
    with refused("invalid_input"):
        rotate(db, None)
    with refused("invalid_input"):
        rotate(db, "k", grace=None)


@pytest.mark.parametrize("grace", [-1, 2**53])
def test_the_grace_has_bounds(db, grace):
    with refused("invalid_grace_ms"):
        rotate(db, "k1", grace=grace)


def test_a_rotation_can_be_the_first_installation(db):
    assert rotate(db, "k1") == {
        "outcome": "rotated",
        "previous_kid": None,
        "new_kid": "k1",
        "previous_expires_at_ms": None,
        "gc_count": 0,
    }
    assert key(db, "k1")["active"]


def test_each_retired_key_lives_to_its_own_expiry_and_its_secret_is_wiped_then(db, clock):
    now = clock.freeze()
    rotate(db, "a")
    assert rotate(db, "b", grace=5000)["previous_expires_at_ms"] == now + 5000
    assert rotate(db, "c", grace=1000)["previous_kid"] == "b"

    def verifying():
        found = rows(db, "ff_list_waitpoint_hmac_kids")
        assert all("secret" not in row for row in found)
        return {row["kid"] for row in found if row["verifying"]}

    assert verifying() == {"a", "b", "c"}
    clock.advance(999)
    assert verifying() == {"a", "b", "c"}
    clock.advance(1)
    assert verifying() == {"a", "c"}
    assert rotate(db, "d")["gc_count"] == 1
    assert key(db, "b")["secret"] is None
    assert key(db, "b")["gc_at_ms"] == now + 1000
    assert key(db, "a")["secret"] is not None
    assert [row["kid"] for row in rows(db, "ff_list_waitpoint_hmac_kids")] == ["a", "b", "c", "d"]
    assert violations(db) == []


def test_repeating_a_rotation_changes_nothing(db):
    rotate(db, "a")
    rotate(db, "b", SECRET)
    before = everything(db)
    assert rotate(db, "b", SECRET)["outcome"] == "noop"
    assert rotate(db, "b")["outcome"] == "noop"
    assert everything(db) == before


def test_a_key_that_is_known_otherwise_is_a_conflict(db, clock):
    clock.freeze()
    rotate(db, "a", SECRET)
    with refused("rotation_conflict"):
        rotate(db, "a", OTHER)
    rotate(db, "b", grace=0)
    with refused("rotation_conflict"):
        rotate(db, "a", SECRET)
    rotate(db, "c")
    assert key(db, "a")["secret"] is None
    with refused("rotation_conflict"):
        rotate(db, "a")
    assert seed(db, "a", SECRET) == {
        "outcome": "already_seeded",
        "kid": "a",
        "same_secret": False,
        "active": False,
    }


def test_a_rotation_tells_of_the_waitpoints_that_carry_the_old_key(db):
    claim = run(db)
    waitpoint(db, claim["handle"])
    waitpoint(db, claim["handle"])
    notices = []
    db.add_notice_handler(lambda diagnostic: notices.append(diagnostic.message_primary))
    rotate(db, "k2", grace=7000)
    assert len(notices) == 1
    assert "2 open waitpoints" in notices[0]
    assert {r["kid"]: r["open_waitpoints"] for r in rows(db, "ff_list_waitpoint_hmac_kids")} == {
        "k1": 2,
        "k2": 0,
    }
    (event,) = table(db, "select * from ff_event where event_type = 'hmac_rotated'")
    assert event["details"] == {"previous_kid": "k1", "new_kid": "k2"}


def test_a_token_is_good_until_the_very_end_of_the_grace(db, clock):
    clock.freeze()
    claim, point = suspended(db)
    rotate(db, "k2", grace=1000)
    clock.advance(999)
    assert deliver(db, claim, point, "other")["outcome"] == "accepted"
    clock.advance(1)
    with refused("token_expired"):
        deliver(db, claim, point)


def test_a_grace_of_nothing_ends_the_old_tokens_at_once(db):
    claim, point = suspended(db)
    rotate(db, "k2", grace=0)
    with refused("token_expired"):
        deliver(db, claim, point)


def test_a_token_of_a_dead_key_is_signed_anew_for_an_operator(db, clock):
    clock.freeze()
    claim, point = suspended(db)
    args = {"execution_id": claim["execution_id"], "waitpoint_id": point["waitpoint_id"]}
    before = everything(db)
    assert one(db, "ff_read_waitpoint_token", **args) == {
        "waitpoint_token": point["waitpoint_token"],
        "token_kid": "k1",
        "state": "active",
    }
    assert everything(db) == before
    rotate(db, "k2", grace=0)
    again = one(db, "ff_read_waitpoint_token", **args)
    assert again["token_kid"] == "k2"
    assert stored(db, "ff_waitpoint")["token_kid"] == "k2"
    (event,) = table(db, "select * from ff_event where event_type = 'waitpoint_reminted'")
    assert (event["family"], event["details"]) == ("operator", {"previous_kid": "k1", "kid": "k2"})
    with refused("token_expired"):
        deliver(db, claim, point)
    assert deliver(db, claim, again | point | again)["resumed"]
    assert rows(db, "ff_read_waitpoint_token", **args) == []
    assert violations(db) == []


def test_a_token_that_was_signed_anew_stays_replaced_even_if_the_clock_steps_back(db, clock):
    now = clock.freeze()
    claim, point = suspended(db)
    rotate(db, "k2", grace=10)
    clock.advance(10)
    args = {"execution_id": claim["execution_id"], "waitpoint_id": point["waitpoint_id"]}
    again = one(db, "ff_read_waitpoint_token", **args)
    clock.set(now)
    with refused("invalid_token"):
        deliver(db, claim, point)
    assert deliver(db, claim, {**point, **again})["resumed"]


def test_a_repeated_suspension_shows_the_same_token_or_a_living_one(db, clock):
    clock.freeze()
    claim, point = suspended(db)
    assert suspend(db, claim["handle"])[0]["waitpoint_token"] == point["waitpoint_token"]
    rotate(db, "k2", grace=10)
    assert suspend(db, claim["handle"])[0]["waitpoint_token"] == point["waitpoint_token"]
    clock.advance(10)
    (again,) = suspend(db, claim["handle"])
    assert again["waitpoint_token"].startswith("k2:")
    assert deliver(db, claim, again)["resumed"]
    # Closed by now: the token is still shown, but no longer valid.
    assert suspend(db, claim["handle"])[0]["waitpoint_token"] == again["waitpoint_token"]
    rotate(db, "k3", grace=0)
    rotate(db, "k4", grace=0)
    assert suspend(db, claim["handle"])[0]["waitpoint_token"] is None  # its secret was wiped
    assert violations(db) == []


def test_a_pending_waitpoint_keeps_its_key_when_it_is_bound(db):
    claim = run(db)
    point = waitpoint(db, claim["handle"])
    rotate(db, "k2", grace=60_000)
    (bound,) = suspend(db, claim["handle"], waitpoints=[{"use_pending": str(point["waitpoint_id"])}])
    assert bound["waitpoint_token"] == point["waitpoint_token"]
    assert stored(db, "ff_waitpoint")["token_kid"] == "k1"
    assert deliver(db, claim, point)["resumed"]


def test_seeding_everywhere_at_once_installs_one_key(db, connect):
    conns = [connect() for _ in range(6)]
    with ThreadPoolExecutor(6) as pool:
        got = list(pool.map(seed, conns))
    assert Counter(row["outcome"] for row in got) == {"seeded": 1, "already_seeded": 5}
    assert violations(db) == []


@pytest.mark.parametrize(
    ("kids", "outcomes"), [("abcdef", {"rotated": 6}), ("aaaaaa", {"rotated": 1, "noop": 5})]
)
def test_rotating_everywhere_at_once_leaves_one_active_key(db, connect, kids, outcomes):
    seed(db)
    conns = [connect() for _ in kids]
    with ThreadPoolExecutor(6) as pool:
        got = list(pool.map(rotate, conns, kids))
    assert Counter(row["outcome"] for row in got) == outcomes
    assert len(table(db, "select 1 from ff_waitpoint_hmac where active")) == 1
    assert violations(db) == []


def test_a_repeated_suspension_has_no_token_for_a_closed_waitpoint_whose_key_was_wiped(db, clock):
    clock.freeze()
    claim, point = suspended(db)
    one(db, "ff_cancel_execution", execution_id=claim["execution_id"])
    for kid in ("k2", "k3"):
        one(db, "ff_rotate_waitpoint_hmac_secret", new_kid=kid, grace_ms=0)
        clock.advance(1)
    before = everything(db)
    (again,) = suspend(db, claim["handle"])
    assert again == {**point, "replayed": True, "waitpoint_token": None}
    assert everything(db) == before
