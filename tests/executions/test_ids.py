"""Execution ids on the wire, and how they are minted."""

import uuid

import pytest

from tests.sql import create, one, refused, rows, table

EID = "{fp:7}:018f3a2e-7b6c-7d1e-9f00-aabbccddee07"


def test_a_fresh_id_names_the_last_byte_of_its_uuid_as_partition(db):
    for _ in range(20):
        partition, _, text = create(db).partition("}:")
        assert int(partition.removeprefix("{fp:")) == uuid.UUID(text).bytes[15]


def test_fresh_ids_are_version_seven_and_ordered_by_time(db, clock):
    clock.set(1_700_000_000_000)
    first = uuid.UUID(create(db).split("}:")[1])
    clock.advance(1)
    second = uuid.UUID(create(db).split("}:")[1])
    assert (first.version, first.variant) == (7, uuid.RFC_4122)
    assert first < second
    assert first.int >> 80 == 1_700_000_000_000


def test_minted_ids_do_not_repeat(db):
    (found,) = table(db, "select count(distinct ff__mint_id(5, 9)) as n from generate_series(1, 10000)")
    assert found["n"] == 10_000


def test_lease_and_attempt_ids_end_in_the_partition_byte_of_their_execution(db):
    create(db)
    row = rows(db, "ff_claim", lane_id="default", worker_id="w", worker_instance_id="w1")[0]
    last = uuid.UUID(row["execution_id"].split("}:")[1]).bytes[15]
    assert row["lease_id"].bytes[15] == row["attempt_id"].bytes[15] == last


@pytest.mark.parametrize(
    "bad",
    [
        "",
        "x",
        "018f3a2e-7b6c-7d1e-9f00-aabbccddee07",
        "{fp:}:018f3a2e-7b6c-7d1e-9f00-aabbccddee07",
        "{fp:256}:018f3a2e-7b6c-7d1e-9f00-aabbccddee07",
        "{fp:-1}:018f3a2e-7b6c-7d1e-9f00-aabbccddee07",
        "{fp:07}:018f3a2e-7b6c-7d1e-9f00-aabbccddee07",
        "{fp:1000}:018f3a2e-7b6c-7d1e-9f00-aabbccddee07",
        "{fp:99999999999999999999}:018f3a2e-7b6c-7d1e-9f00-aabbccddee07",
        "{fp:7}:018f3a2e-7b6c-7d1e-9f00-aabbccddee0",
        "{fp:7}:018f3a2e-7b6c-7d1e-9f00-aabbccddee077",
        "{fp:7}:018f3a2e07b6c07d1e09f000aabbccddee07",
        "{fp:7}:018f3a2e-7b6c-7d1e-9f00-aabbccddee0g",
        "{fp:7}:018f3a2e-7b6c-7d1e-9f0-0aabbccddee07",
        "{fp:7}:--------------------------------018f",
        "{fp:7}:0-8f3a2e-7b6c-7d1e-9f00-aabbccddee07",
        " {fp:7}:018f3a2e-7b6c-7d1e-9f00-aabbccddee07",
        "{fp:7}:018f3a2e-7b6c-7d1e-9f00-aabbccddee07\n",
        "{fp:7}:018f3a2e-7b6c-7d1e-9f00-aabbccddee0é",
        "{fp:٧}:018f3a2e-7b6c-7d1e-9f00-aabbccddee07",
        "x" * 1_000_000,
    ],
)
def test_a_malformed_execution_id_is_refused_before_anything_is_read(db, bad):
    with refused("invalid_execution_id"):
        one(
            db,
            "ff_renew_lease",
            execution_id=bad,
            lease_id=uuid.uuid4(),
            lease_epoch=1,
            attempt_id=uuid.uuid4(),
        )


def test_a_missing_execution_id_is_invalid_input(db):
    with refused("invalid_input") as refusal:
        one(db, "ff_renew_lease", execution_id=None)
    assert refusal.detail["arg"] == "p_execution_id"


def test_a_right_uuid_under_a_wrong_partition_is_an_unknown_execution(db):
    eid = create(db)
    wrong = f"{{fp:{(uuid.UUID(eid.split('}:')[1]).bytes[15] + 1) % 256}}}:{eid.split('}:')[1]}"
    with refused("execution_not_found") as refusal:
        one(
            db,
            "ff_renew_lease",
            execution_id=wrong,
            lease_id=uuid.uuid4(),
            lease_epoch=1,
            attempt_id=uuid.uuid4(),
        )
    assert refusal.detail["execution_id"] == wrong
