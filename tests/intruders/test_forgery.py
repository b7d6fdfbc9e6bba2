"""Forged handles and tokens of others give no access."""

from itertools import product

import psycopg
import pytest

from tests.sql import create, execution, one, refused, rows, take
from tests.suspensions.support import suspended

VERBS = {
    "ff_renew": {},
    "ff_progress": {"percent": 1},
    "ff_complete": {},
    "ff_fail": {},
    "ff_delay": {"delay_ms": 1},
    "ff_cancel": {"reason": "r"},
    "ff_append_frame": {"payload": b"x"},
}


def forgeries(handle):
    """The handle with each of its letters changed once, cut short, made longer, in capitals."""
    for place, letter in enumerate(handle):
        other = "0" if letter != "0" else "1"
        yield handle[:place] + other + handle[place + 1 :]
    yield from (handle[:-1], handle + "0", handle.upper(), f" {handle}", handle + "\n", "")


@pytest.mark.parametrize("verb", VERBS)
def test_a_handle_with_any_letter_changed_is_refused(db, verb):
    create(db)
    handle = take(db)["handle"]
    for forged in forgeries(handle):
        if forged == handle:
            continue
        with pytest.raises(psycopg.Error) as refused:
            one(db, verb, handle=forged, **VERBS[verb])
        assert refused.value.sqlstate in {"WF001", "WF103", "WF401"}, forged
    assert one(db, "ff_complete", handle=handle)["outcome"] == "completed"


def test_a_handle_of_another_execution_moves_its_own(db):
    create(db)
    create(db)
    mine, other = take(db), take(db)
    one(db, "ff_complete", handle=mine["handle"])
    assert one(db, "ff_read_execution_state", execution_id=other["execution_id"])["public_state"] == "active"


@pytest.mark.parametrize("verb", VERBS)
def test_a_handle_put_together_from_two_opens_neither(db, verb):
    """Both were given to this worker: the execution of the one, the fence of the other, in every mixture."""
    for _ in range(2):
        create(db)
    held = [take(db), take(db)]
    before = [execution(db, claim["execution_id"]) for claim in held]
    parts = ("execution_id", "lease_id", "attempt_id")
    for mixture in product((0, 1), repeat=len(parts)):
        if len(set(mixture)) == 1:
            continue
        mixed = {part: held[n][part] for part, n in zip(parts, mixture, strict=True)}
        for epoch in (1, 2):
            forged = one(db, "ff_handle_encode", attempt_index=0, lease_epoch=epoch, **mixed)["handle"]
            with refused("stale_lease"):
                one(db, verb, handle=forged, **VERBS[verb])
    assert [execution(db, claim["execution_id"]) for claim in held] == before


def test_a_handle_of_an_earlier_lease_of_the_same_execution_is_refused(db):
    policy = {"retry_policy": {"max_retries": 3, "backoff": {"type": "fixed", "delay_ms": 0}}}
    create(db, policy=policy)
    earlier = take(db)
    one(db, "ff_fail", handle=earlier["handle"])
    now = take(db)
    assert now["execution_id"] == earlier["execution_id"]
    fence = {name: now[name] for name in ("execution_id", "attempt_index", "lease_id", "attempt_id")}
    for lease_epoch in (earlier["lease_epoch"], now["lease_epoch"] + 1, 0, 2**63 - 1):
        forged = one(db, "ff_handle_encode", lease_epoch=lease_epoch, **fence)["handle"]
        with refused("stale_lease"):
            one(db, "ff_complete", handle=forged)
    for verb in ("ff_renew", "ff_complete", "ff_delay"):
        with refused("stale_lease"):
            one(db, verb, handle=earlier["handle"], **VERBS[verb])
    for verb in ("ff_complete_many", "ff_renew_many"):
        assert [a["error_kind"] for a in rows(db, verb, handles=[earlier["handle"]])] == ["stale_lease"]
    assert one(db, "ff_complete", handle=now["handle"])["outcome"] == "completed"


def test_ids_and_grants_cannot_be_guessed_from_one_another(db):
    """What opens something has at least 62 random bits, though it begins with the time."""
    for _ in range(80):  # of so many, a random bit is the same in all once in 10**22 runs
        create(db)
    ids = [take(db) for _ in range(80)]
    for kind in ("lease_id", "attempt_id"):
        tails = [claim[kind].int >> 8 & 2**54 - 1 for claim in ids]  # its last byte is the partition
        assert len(set(tails)) == len(tails)
        for bit in range(54):
            ones = sum(tail >> bit & 1 for tail in tails)
            assert 0 < ones < len(tails), f"bit {bit} of {kind} is always the same"


def test_a_token_with_any_letter_changed_is_refused_in_the_same_words(db):
    claim, point = suspended(db)
    token, said = point["waitpoint_token"], set()
    kid, _, mac = token.partition(":")
    forged = [f"{kid}:{mac[:n]}{'0' if mac[n] != '0' else '1'}{mac[n + 1 :]}" for n in range(len(mac))]
    forged += [f"x{token}", f"{kid}x:{mac}", f"{kid}:{mac[:-1]}", f"{kid}:{mac.upper()}x", token + " "]
    for wrong in forged:
        with pytest.raises(psycopg.Error) as refused:
            one(
                db,
                "ff_deliver_signal",
                execution_id=claim["execution_id"],
                waitpoint_id=point["waitpoint_id"],
                waitpoint_token=wrong,
                signal_name="approve",
            )
        assert refused.value.sqlstate == "WF121", wrong
        assert wrong not in str(refused.value)
        said.add((refused.value.diag.message_primary, refused.value.diag.context))
    assert len(said) == 1


def test_a_token_opens_no_other_waitpoint_and_no_other_execution(db):
    first, one_point = suspended(db)
    second, other_point = suspended(db)
    for claim, point in [(first, other_point), (second, one_point)]:
        with pytest.raises(psycopg.Error) as refused:
            one(
                db,
                "ff_deliver_signal",
                execution_id=claim["execution_id"],
                waitpoint_id=point["waitpoint_id"],
                waitpoint_token=one_point["waitpoint_token"],
                signal_name="approve",
            )
        assert refused.value.sqlstate == "WF121"
