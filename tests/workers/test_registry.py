"""The worker registry: who said it is here, until when, and the list of them."""

import pytest

from tests.sql import one, refused, rows, table, violations


def register(db, worker="w", instance="w-1", **args):
    return one(
        db,
        "ff_register_worker",
        **{"worker_id": worker, "worker_instance_id": instance, "lanes": ["default"], **args},
    )


def heartbeat(db, instance="w-1", **args):
    return one(db, "ff_heartbeat_worker", worker_instance_id=instance, **args)


def mark_dead(db, instance="w-1", **args):
    return one(db, "ff_mark_worker_dead", worker_instance_id=instance, **args)


def worker_events(db):
    return [
        (e["event_type"], e["namespace"], e["worker_id"], e["worker_instance_id"], e["reason"])
        for e in table(db, "select * from ff_event where family = 'worker' order by event_id")
    ]


# Registration


def test_a_worker_registers_with_sorted_distinct_lanes_and_capabilities(db, clock):
    now = clock.freeze()
    assert register(
        db,
        lanes=["b", "a", "B", "a"],
        capabilities=["z", "y", "z"],
        liveness_ttl_ms=1000,
        namespace="ns",
    ) == {"outcome": "registered", "next_expiry_ms": now + 1000}
    (row,) = rows(db, "ff_list_workers")
    assert isinstance(row.pop("cursor"), str)
    assert row == {
        "namespace": "ns",
        "worker_instance_id": "w-1",
        "worker_id": "w",
        "lanes": ["B", "a", "b"],
        "capabilities": ["y", "z"],
        "last_heartbeat_ms": now,
        "liveness_ttl_ms": 1000,
        "expires_at_ms": now + 1000,
        "registered_at_ms": now,
        "alive": True,
    }
    assert worker_events(db) == [("registered", "ns", "w", "w-1", None)]


def test_the_defaults_of_a_registration(db, clock):
    now = clock.freeze()
    assert register(db)["next_expiry_ms"] == now + 30_000
    (row,) = rows(db, "ff_list_workers")
    assert (row["namespace"], row["capabilities"]) == ("default", [])


def test_registering_again_while_alive_overwrites_all_but_the_beginning(db, clock):
    start = clock.freeze()
    register(db, liveness_ttl_ms=100)
    clock.advance(99)
    got = register(db, lanes=["other"], capabilities=["c"], liveness_ttl_ms=7)
    assert got == {"outcome": "refreshed", "next_expiry_ms": start + 106}
    (row,) = rows(db, "ff_list_workers")
    assert (row["lanes"], row["capabilities"], row["liveness_ttl_ms"]) == (["other"], ["c"], 7)
    assert (row["registered_at_ms"], row["last_heartbeat_ms"]) == (start, start + 99)
    assert len(worker_events(db)) == 1


def test_a_lapsed_registration_starts_anew(db, clock):
    start = clock.freeze()
    register(db, liveness_ttl_ms=100)
    clock.advance(100)
    assert register(db)["outcome"] == "registered"
    assert rows(db, "ff_list_workers")[0]["registered_at_ms"] == start + 100
    assert [e[0] for e in worker_events(db)] == ["registered", "registered"]


def test_the_instance_of_another_worker_is_taken_only_once_it_lapsed(db, clock):
    clock.freeze()
    register(db, liveness_ttl_ms=100)
    clock.advance(99)
    with refused("worker_instance_conflict") as refusal:
        register(db, "thief")
    assert refusal.detail["worker_instance_id"] == "w-1"
    assert rows(db, "ff_list_workers")[0]["worker_id"] == "w"
    clock.advance(1)
    assert register(db, "thief")["outcome"] == "registered"
    assert rows(db, "ff_list_workers")[0]["worker_id"] == "thief"
    assert worker_events(db)[-1] == ("registered", "default", "thief", "w-1", None)


def test_one_instance_id_in_two_namespaces_is_two_workers(db):
    assert register(db, "a", namespace="x")["outcome"] == "registered"
    assert register(db, "b", namespace="y")["outcome"] == "registered"
    assert heartbeat(db, namespace="x")["outcome"] == "refreshed"
    assert heartbeat(db)["outcome"] == "not_registered"
    assert mark_dead(db, namespace="y")["outcome"] == "marked"
    assert [row["namespace"] for row in rows(db, "ff_list_workers")] == ["x"]


@pytest.mark.parametrize(
    ("args", "kind"),
    [
        ({"worker_id": None}, "invalid_input"),
        ({"worker_id": ""}, "invalid_input"),
        ({"worker_id": "x" * 257}, "invalid_input"),
        ({"worker_instance_id": None}, "invalid_input"),
        ({"worker_instance_id": "a\tb"}, "invalid_input"),
        ({"lanes": None}, "invalid_input"),
        ({"lanes": []}, "invalid_input"),
        ({"lanes": ["a", None]}, "invalid_input"),
        ({"lanes": [""]}, "invalid_lane_id"),
        ({"lanes": ["a", "x" * 65]}, "invalid_lane_id"),
        ({"capabilities": None}, "invalid_input"),
        ({"capabilities": [""]}, "invalid_capabilities"),
        ({"capabilities": ["a b"]}, "invalid_capabilities"),
        ({"capabilities": ["a,b"]}, "invalid_capabilities"),
        ({"capabilities": [None]}, "invalid_capabilities"),
        ({"capabilities": [str(n) for n in range(257)]}, "invalid_capabilities"),
        ({"capabilities": ["x" * 4097]}, "invalid_capabilities"),
        ({"liveness_ttl_ms": None}, "invalid_input"),
        ({"liveness_ttl_ms": 0}, "invalid_input"),
        ({"liveness_ttl_ms": -1}, "invalid_input"),
        ({"liveness_ttl_ms": 86_400_001}, "invalid_input"),
        ({"namespace": None}, "invalid_input"),
        ({"namespace": ""}, "invalid_input"),
        ({"namespace": "x" * 65}, "invalid_input"),
    ],
)
def test_bad_input_registers_no_worker(db, args, kind):
    with refused(kind) as refusal:
        register(db, **{"worker": "w", "instance": "w-1", **args})
    if kind == "invalid_input":
        assert refusal.detail["arg"] == f"p_{next(iter(args))}"
    if kind == "invalid_capabilities":
        assert refusal.detail["reason"]
    assert rows(db, "ff_list_workers") == []
    assert worker_events(db) == []


def test_the_longest_names_and_times_are_accepted(db, clock):
    now = clock.freeze()
    got = register(
        db,
        "ä" * 128,
        "x" * 256,
        namespace="n" * 64,
        liveness_ttl_ms=86_400_000,
        capabilities=[f"{n:03}" for n in range(256)],
        lanes=["~" * 64],
    )
    assert got["next_expiry_ms"] == now + 86_400_000
    assert register(db, liveness_ttl_ms=1)["outcome"] == "registered"


# Heartbeat


def test_a_heartbeat_prolongs_by_the_time_that_was_registered_and_writes_no_event(db, clock):
    start = clock.freeze()
    register(db, liveness_ttl_ms=100)
    clock.advance(99)
    assert heartbeat(db) == {"outcome": "refreshed", "next_expiry_ms": start + 199}
    (row,) = rows(db, "ff_list_workers")
    assert (row["last_heartbeat_ms"], row["registered_at_ms"]) == (start + 99, start)
    assert len(worker_events(db)) == 1


def test_a_heartbeat_revives_no_dead_worker(db, clock):
    clock.freeze()
    unknown = {"outcome": "not_registered", "next_expiry_ms": None}
    assert heartbeat(db) == unknown
    register(db, liveness_ttl_ms=100)
    clock.advance(100)
    before = rows(db, "ff_list_workers")
    assert heartbeat(db) == unknown
    assert rows(db, "ff_list_workers") == before
    assert before[0]["alive"] is False


@pytest.mark.parametrize(
    "args",
    [
        {"worker_instance_id": None},
        {"worker_instance_id": ""},
        {"worker_instance_id": "\n"},
        {"namespace": None},
        {"namespace": ""},
    ],
)
def test_bad_input_is_no_heartbeat(db, args):
    with refused("invalid_input") as refusal:
        one(db, "ff_heartbeat_worker", **{"worker_instance_id": "w-1", **args})
    assert refusal.detail["arg"] == f"p_{next(iter(args))}"


# The list


def listed(db, **args):
    return [(row["namespace"], row["worker_instance_id"]) for row in rows(db, "ff_list_workers", **args)]


@pytest.mark.parametrize("size", [1, 2, 3, 5, 1000])
def test_workers_are_listed_by_namespace_and_instance_page_by_page(db, size):
    # Names that a cursor could confuse: one runs into the other, digits, spaces, quotes, wide characters.
    names = sorted(
        [
            ("a", "bc"),
            ("ab", "c"),
            ("a", "b"),
            ("1 a", "1"),
            ("1", " a"),
            ("B", "x"),
            ("ü", "'\"\\,"),
            ("ü" * 32, "ü"),
        ],
        key=lambda pair: (pair[0].encode(), pair[1].encode()),
    )
    for namespace, instance in reversed(names):
        register(db, instance=instance, namespace=namespace)
    found, after = [], None
    while page := rows(db, "ff_list_workers", limit=size, after=after):
        found += [(row["namespace"], row["worker_instance_id"]) for row in page]
        after = page[-1]["cursor"]
    assert found == names


def test_a_cursor_stays_good_when_its_worker_is_gone(db):
    for n in range(4):
        register(db, instance=f"i{n}")
    after = rows(db, "ff_list_workers", limit=2)[-1]["cursor"]
    mark_dead(db, "i1")
    assert listed(db, after=after) == [("default", "i2"), ("default", "i3")]


def test_one_namespace_or_all(db):
    for namespace in "ab":
        register(db, namespace=namespace)
    assert listed(db) == [("a", "w-1"), ("b", "w-1")]
    assert listed(db, namespace="b") == [("b", "w-1")]
    assert listed(db, namespace="c") == []


def test_the_dead_are_shown_as_dead_from_the_millisecond_they_lapse(db, clock):
    clock.freeze()
    register(db, liveness_ttl_ms=10)
    clock.advance(9)
    assert [row["alive"] for row in rows(db, "ff_list_workers")] == [True]
    clock.advance(1)
    assert [row["alive"] for row in rows(db, "ff_list_workers")] == [False]


@pytest.mark.parametrize("limit", [None, -1, 1001])
def test_a_page_size_out_of_range_is_refused(db, limit):
    with refused("invalid_input") as refusal:
        listed(db, limit=limit)
    assert refusal.detail["arg"] == "p_limit"


def test_a_page_of_none(db):
    register(db)
    assert listed(db, limit=0) == []


@pytest.mark.parametrize(
    "cursor",
    [
        "",
        " ",
        "x",
        "default",
        "7",
        "7 ",
        "7 default",
        "0 x",
        "-1 x",
        "07 defaultx",
        "100 x",
        "٧ defaultx",
        "65 " + "x" * 99,
    ],
)
def test_a_malformed_cursor_is_refused(db, cursor):
    with refused("invalid_cursor"):
        listed(db, after=cursor)


# The end


def test_a_dead_worker_is_removed_with_an_event_and_only_once(db):
    register(db)
    assert mark_dead(db, reason="oom") == {"outcome": "marked", "leases_revoked": 0}
    assert mark_dead(db, reason="oom") == {"outcome": "not_registered", "leases_revoked": 0}
    assert rows(db, "ff_list_workers") == []
    assert worker_events(db)[1:] == [("marked_dead", "default", "w", "w-1", "oom")]
    assert heartbeat(db)["outcome"] == "not_registered"
    assert register(db, "another")["outcome"] == "registered"
    assert violations(db) == []


def test_a_lapsed_worker_can_be_marked_dead(db, clock):
    clock.freeze()
    register(db, liveness_ttl_ms=1)
    clock.advance(5)
    assert mark_dead(db)["outcome"] == "marked"
    assert rows(db, "ff_list_workers") == []


@pytest.mark.parametrize(
    "args",
    [
        {"worker_instance_id": None},
        {"worker_instance_id": ""},
        {"reason": None},
        {"reason": "x" * 257},
        {"reason": "a\nb"},
        {"reason": "\x7f"},
        {"namespace": None},
        {"namespace": "x" * 65},
        {"revoke_leases": None},
    ],
)
def test_bad_input_marks_no_worker(db, args):
    register(db)
    with refused("invalid_input") as refusal:
        one(db, "ff_mark_worker_dead", **{"worker_instance_id": "w-1", **args})
    assert refusal.detail["arg"] == f"p_{next(iter(args))}"
    assert len(rows(db, "ff_list_workers")) == 1


def test_the_longest_reason_has_256_bytes(db):
    register(db)
    assert mark_dead(db, reason="x" * 256)["outcome"] == "marked"
