"""Handles: one opaque text for execution, attempt and fence."""

import uuid

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.sql import one, refused

EID = "{fp:7}:018f3a2e-7b6c-7d1e-9f00-aabbccddee07"
LEASE = uuid.UUID("018f3a2e-7b6c-7d1e-9f00-000000000007")
ATTEMPT = uuid.UUID("018f3a2e-7b6c-7d1e-9f00-111111111107")


def encode(db, **changes):
    args = {
        "execution_id": EID,
        "attempt_index": 0,
        "lease_id": LEASE,
        "lease_epoch": 1,
        "attempt_id": ATTEMPT,
        **changes,
    }
    return one(db, "ff_handle_encode", **args)["handle"]


same_database = settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    deadline=None,
    derandomize=True,
    database=None,
    max_examples=60,
)


@same_database
@given(
    execution=st.uuids(),
    partition=st.integers(0, 255),
    index=st.integers(0, 2**31 - 1),
    lease=st.uuids(),
    epoch=st.integers(0, 2**63 - 1),
    attempt=st.uuids(),
)
def test_decode_returns_what_encode_was_given(db, execution, partition, index, lease, epoch, attempt):
    given_values = {
        "execution_id": f"{{fp:{partition}}}:{execution}",
        "attempt_index": index,
        "lease_id": lease,
        "lease_epoch": epoch,
        "attempt_id": attempt,
    }
    assert one(db, "ff_handle_decode", handle=encode(db, **given_values)) == given_values


@same_database
@given(position=st.integers(0, 200), replacement=st.characters(blacklist_characters="\0", codec="utf-8"))
def test_a_changed_handle_is_refused_or_means_something_else(db, position, replacement):
    handle = encode(db)
    changed = handle[:position] + replacement + handle[position + 1 :]
    try:
        decoded = one(db, "ff_handle_decode", handle=changed)
    except Exception as error:
        assert error.sqlstate == "WF103"
    else:
        assert one(db, "ff_handle_encode", **decoded)["handle"] == changed


@pytest.mark.parametrize(
    "bad",
    [
        "",
        "ff1",
        "ff2." + "x" * 150,
        "x" * 1_000_000,
        f"ff1.{uuid.uuid4()}.{LEASE}.{ATTEMPT}.256.0.1",
        f"ff1.{uuid.uuid4()}.{LEASE}.{ATTEMPT}.7.0",
        f"ff1.{uuid.uuid4()}.{LEASE}.{ATTEMPT}.7.0.1.",
        f"ff1.{uuid.uuid4()}.{LEASE}.{ATTEMPT}.7.0.1.2",
        f"ff1.{uuid.uuid4()}.{LEASE}.{ATTEMPT}.07.0.1",
        f"ff1.{uuid.uuid4()}.{LEASE}.{ATTEMPT}.7.2147483648.1",
        f"ff1.{uuid.uuid4()}.{LEASE}.{ATTEMPT}.7.0.9223372036854775808",
        f"ff1.{uuid.uuid4()}.{LEASE}.{ATTEMPT}.7.0.99999999999999999999",
        f"ff1.{uuid.uuid4()}.{LEASE}.{ATTEMPT}.7.-1.1",
        f"ff1.{str(uuid.uuid4()).upper()}.{LEASE}.{ATTEMPT}.7.0.1".replace("0", "A"),
    ],
)
def test_anything_that_encode_does_not_make_is_an_invalid_handle(db, bad):
    with refused("invalid_handle"):
        one(db, "ff_handle_decode", handle=bad)


def test_a_missing_handle_is_invalid_input(db):
    with refused("invalid_input") as refusal:
        one(db, "ff_handle_decode", handle=None)
    assert refusal.detail["arg"] == "p_handle"


@pytest.mark.parametrize("arg", ["attempt_index", "lease_id", "lease_epoch", "attempt_id", "execution_id"])
def test_encode_needs_all_five_values(db, arg):
    with refused("invalid_input") as refusal:
        encode(db, **{arg: None})
    assert refusal.detail["arg"] == f"p_{arg}"


@pytest.mark.parametrize("arg", ["attempt_index", "lease_epoch"])
def test_encode_refuses_negative_numbers(db, arg):
    with refused("invalid_input"):
        encode(db, **{arg: -1})


def test_encode_refuses_a_malformed_execution_id(db):
    with refused("invalid_execution_id"):
        encode(db, execution_id="nonsense")
