"""Arrays as callers may build them: any lower bound, never two dimensions."""

import pytest

from tests.sql import create, refused, rows, table, take

SHIFTED = "select * from {}({})"


def shifted(db, function, **args):
    """Calls a function with each array argument starting at index 5."""
    named = ", ".join(f"p_{name} => {value}" for name, value in args.items())
    return table(db, SHIFTED.format(function, named))


def test_a_batch_of_results_may_start_at_any_index(db):
    for _ in range(2):
        create(db)
    handles = [take(db)["handle"] for _ in range(2)]
    array = ",".join(f'"{h}"' for h in handles)
    found = shifted(
        db, "ff_complete_many", handles=f"'[5:6]={{{array}}}'", results="'[7:8]={one,two}'::bytea[]"
    )
    assert [r["outcome"] for r in found] == ["completed", "completed"]
    stored = table(db, "select result from ff_attempt order by execution_id")
    assert sorted(bytes(r["result"]) for r in stored) == [b"one", b"two"]
    again = shifted(db, "ff_complete_many", handles=f"'[5:6]={{{array}}}'")
    assert [(r["ordinal"], r["replayed"]) for r in again] == [(1, True), (2, True)]


def test_a_batch_of_renewals_may_start_at_any_index(db):
    create(db)
    handle = take(db)["handle"]
    found = shifted(db, "ff_renew_many", handles=f"""'[5:6]={{"{handle}",nonsense}}'""")
    assert [(r["ordinal"], r["outcome"], r["error_kind"]) for r in found] == [
        (1, "renewed", None),
        (2, "refused", "invalid_handle"),
    ]


def test_a_batch_of_submissions_may_start_at_any_index(db):
    found = shifted(
        db,
        "ff_create_executions",
        lane_id="'default'",
        payloads="'[5:6]={one,two}'::bytea[]",
        priorities="'[0:1]={7,8}'::int[]",
        idempotency_keys="'[3:4]={a,b}'::text[]",
    )
    assert [(r["ordinal"], r["outcome"]) for r in found] == [(1, "created"), (2, "created")]
    kept = table(
        db,
        "select i.payload, c.priority, k.idempotency_key from ff_exec_input i"
        " join ff_exec_core c using (execution_id) join ff_idempotency k using (execution_id) order by priority",
    )
    assert [(bytes(r["payload"]), r["priority"], r["idempotency_key"]) for r in kept] == [
        (b"one", 7, "a"),
        (b"two", 8, "b"),
    ]


def test_capabilities_may_start_at_any_index(db):
    create(db, required_capabilities=["gpu"])
    args = {"lane_id": "'default'", "worker_id": "'w'", "worker_instance_id": "'w-1'"}
    assert len(shifted(db, "ff_claim", capabilities="'[5:5]={gpu}'::text[]", **args)) == 1


@pytest.mark.parametrize(
    ("function", "args"),
    [
        ("ff_complete_many", {"handles": [["a", "b"], ["c", "d"]]}),
        ("ff_complete_many", {"handles": ["a", "b"], "results": [[b"a"], [b"b"]]}),
        ("ff_renew_many", {"handles": [["a", "b"], ["c", "d"]]}),
        ("ff_create_executions", {"lane_id": "default", "payloads": [[b"a"], [b"b"]]}),
        ("ff_create_executions", {"lane_id": "default", "payloads": [b"a", b"b"], "priorities": [[1], [2]]}),
        (
            "ff_create_executions",
            {"lane_id": "default", "payloads": [b"a", b"b"], "idempotency_keys": [["a"], ["b"]]},
        ),
    ],
)
def test_an_array_of_two_dimensions_is_refused(db, function, args):
    with refused("invalid_input"):
        rows(db, function, **args)
