"""Tags: set, merged, deleted, read and searched."""

import uuid

import psycopg
import pytest
from psycopg.types.json import Jsonb

from tests.sql import create, events, execution, one, refused, rows, table, take, violations

UNKNOWN = "{fp:7}:018f3a2e-7b6c-7d1e-9f00-aabbccddee07"
BAD_KEYS = [
    "",
    "a",
    "a.",
    ".a",
    "A.b",
    "a.B",
    "1a.b",
    "a-b.c",
    "a b.c",
    "a.b\n",
    "a.b c",
    "ä.b",
    "a." + "b" * 127,
]
GOOD_KEYS = ["a.b", "a.b.c", "a1_.0", "a._", "a.b..", "abc_9.x_y.z", "a." + "b" * 126]


def stored(db, eid):
    return one(db, "ff_read_execution_context", execution_id=eid)["tags"]


def set_tags(db, eid, tags):
    return one(db, "ff_set_execution_tags", execution_id=eid, tags=tags)["tags"]


def set_tag(db, eid, key, value):
    return one(db, "ff_set_execution_tag", execution_id=eid, key=key, value=value)["changed"]


def get_tag(db, eid, key):
    return [row["value"] for row in rows(db, "ff_get_execution_tag", execution_id=eid, key=key)]


def test_tags_are_merged_and_a_json_null_deletes(db, clock):
    clock.freeze()
    eid = create(db, tags={"a.keep": "1", "a.change": "1", "a.drop": "1"})
    clock.advance(7)
    want = {"a.keep": "1", "a.change": "2", "a.new": ""}
    assert set_tags(db, eid, {"a.change": "2", "a.drop": None, "a.new": "", "a.absent": None}) == want
    assert stored(db, eid) == want
    row = execution(db, eid)
    assert row["last_mutation_at_ms"] == clock.now()
    assert row["last_transition_at_ms"] == clock.now() - 7
    assert events(db, eid) == []


def test_an_execution_without_tags_gets_its_first(db):
    eid = create(db)
    assert set_tags(db, eid, {}) == {}
    assert set_tags(db, eid, {"a.b": "c"}) == {"a.b": "c"}
    assert set_tags(db, eid, {"a.b": None}) == {}


def test_one_tag_is_set_changed_and_deleted(db, clock):
    clock.freeze()
    eid = create(db)
    for value, changed, after in [
        ("x", True, ["x"]),
        ("x", False, ["x"]),
        ("", True, [""]),
        ("null", True, ["null"]),
        (None, True, []),
        (None, False, []),
    ]:
        clock.advance(1)
        before = execution(db, eid)["last_mutation_at_ms"]
        assert set_tag(db, eid, "a.b", value) is changed
        assert get_tag(db, eid, "a.b") == after
        assert execution(db, eid)["last_mutation_at_ms"] == (clock.now() if changed else before)


def test_tags_may_be_set_in_every_state(db, clock):
    clock.freeze()
    done, held = create(db, priority=9), create(db, priority=8)
    one(db, "ff_complete", handle=take(db)["handle"])
    take(db)
    waiting, delayed = create(db), create(db, delay_ms=1000)
    for eid in (done, held, waiting, delayed):
        before = execution(db, eid)["public_state"]
        assert set_tags(db, eid, {"a.b": "c"}) == {"a.b": "c"}
        assert set_tag(db, eid, "a.b", None)
        assert execution(db, eid)["public_state"] == before
    assert violations(db) == []


def test_later_events_and_claims_carry_the_new_tags(db):
    eid = create(db, tags={"a.b": "old"})
    set_tags(db, eid, {"a.b": "new"})
    assert take(db)["tags"] == {"a.b": "new"}
    assert table(db, "select tags from ff_event")[0]["tags"] == {"a.b": "new"}
    described = one(db, "ff_describe_execution", execution_id=eid)
    assert described["tags"] == {"a.b": "new"}


@pytest.mark.parametrize("key", GOOD_KEYS)
def test_keys_that_are_accepted(db, key):
    eid = create(db, tags={key: "v"})
    assert get_tag(db, eid, key) == ["v"]
    assert set_tag(db, eid, key, "w")
    assert set_tags(db, eid, {key: "x"}) == {key: "x"}
    assert [r["execution_id"] for r in rows(db, "ff_list_executions", tag_key=key, tag_value="x")] == [eid]


@pytest.mark.parametrize("key", BAD_KEYS)
def test_keys_that_are_refused(db, key):
    eid = create(db)
    for call in (
        lambda: create(db, tags={key: "v"}),
        lambda: set_tag(db, eid, key, "v"),
        lambda: set_tag(db, eid, key, None),
        lambda: set_tags(db, eid, {"a.b": "v", key: "v"}),
        lambda: set_tags(db, eid, {key: None}),
        lambda: rows(db, "ff_list_executions", tag_key=key),
    ):
        with refused("invalid_tag_key"):
            call()
    assert stored(db, eid) == {}


@pytest.mark.parametrize(
    "tags",
    [
        None,
        Jsonb(None),
        Jsonb([]),
        Jsonb("a"),
        Jsonb(1),
        {"a.b": 1},
        {"a.b": True},
        {"a.b": []},
        {"a.b": {}},
        {"a.b": "x" * 4097},
        {"a.b": "ä" * 2049},
        {f"a.b{n}": "" for n in range(65)},
    ],
)
def test_tags_that_are_not_an_object_of_short_strings_are_refused(db, tags):
    eid = create(db, tags={"a.keep": "1"})
    with refused("invalid_input") as refusal:
        one(db, "ff_set_execution_tags", execution_id=eid, tags=tags)
    assert refusal.detail["arg"] == "p_tags"
    assert stored(db, eid) == {"a.keep": "1"}


def test_the_longest_value_has_4096_bytes(db):
    eid = create(db)
    for value in ("x" * 4096, "ä" * 2048):
        assert set_tag(db, eid, "a.b", value)
        assert set_tags(db, eid, {"a.c": value})["a.c"] == value
    for value in ("x" * 4097, "ä" * 2049):
        with refused("invalid_input") as refusal:
            set_tag(db, eid, "a.b", value)
        assert refusal.detail["arg"] == "p_value"


def test_an_execution_has_at_most_64_tags_counted_after_the_merge(db):
    full = {f"a.b{n}": "" for n in range(64)}
    eid = create(db, tags=full)
    for call in (lambda: set_tag(db, eid, "a.more", "x"), lambda: set_tags(db, eid, {"a.more": "x"})):
        with refused("invalid_input"):
            call()
    assert len(set_tags(db, eid, {"a.more": "x", "a.b0": None})) == 64
    # Nothing wrong with more names than that, as long as what stays is not.
    swap = {f"a.b{n}": None for n in range(64)} | {f"c.d{n}": "" for n in range(63)}
    assert len(set_tags(db, eid, swap)) == 64
    assert set_tags(db, eid, {f"{area}{n}": None for area in ("a.b", "c.d") for n in range(64)}) == {
        "a.more": "x"
    }


def test_a_tag_that_is_absent_or_of_an_unknown_execution_gives_no_row(db):
    eid = create(db, tags={"a.b": "c"})
    assert get_tag(db, eid, "a.b") == ["c"]
    assert get_tag(db, eid, "a.c") == []
    assert get_tag(db, UNKNOWN, "a.b") == []
    name = uuid.UUID(eid.split(":")[-1])
    wrong = f"{{fp:{(name.bytes[-1] + 1) % 256}}}:{name}"
    assert get_tag(db, wrong, "a.b") == []


@pytest.mark.parametrize("eid", [UNKNOWN, "{fp:8}" + UNKNOWN[6:]])
def test_setting_tags_of_an_unknown_execution_is_refused(db, eid):
    for call in (lambda: set_tags(db, eid, {}), lambda: set_tag(db, eid, "a.b", "c")):
        with refused("execution_not_found") as refusal:
            call()
        assert refusal.detail["execution_id"] == eid


@pytest.mark.parametrize(("eid", "kind"), [(None, "invalid_input"), ("{fp:7}:x", "invalid_execution_id")])
def test_a_malformed_id_is_refused(db, eid, kind):
    for call in (
        lambda: set_tags(db, eid, {}),
        lambda: set_tag(db, eid, "a.b", "c"),
        lambda: get_tag(db, eid, "a.b"),
    ):
        with refused(kind):
            call()


def test_a_key_must_be_given(db):
    eid = create(db)
    for call in (lambda: set_tag(db, eid, None, "c"), lambda: get_tag(db, eid, None)):
        with refused("invalid_input") as refusal:
            call()
        assert refusal.detail["arg"] == "p_key"


# Search


def found(db, **args):
    return [row["execution_id"] for row in rows(db, "ff_list_executions", **args)]


def test_executions_are_found_by_tag(db, clock):
    clock.freeze()
    one_, two = create(db, tags={"a.b": "1", "a.c": "x"}), create(db, tags={"a.b": "2"})
    create(db)
    assert set(found(db, tag_key="a.b")) == {one_, two}
    assert found(db, tag_key="a.c") == [one_]
    assert found(db, tag_key="a.b", tag_value="2") == [two]
    assert found(db, tag_key="a.b", tag_value="") == []
    assert found(db, tag_key="a.none") == []
    set_tag(db, two, "a.b", "1")
    assert set(found(db, tag_key="a.b", tag_value="1")) == {one_, two}
    with refused("invalid_input"):
        found(db, tag_value="1")


@pytest.mark.parametrize("calls", [1, 12])
def test_a_search_by_tag_reads_the_tag_index(db, calls):
    db.execute(
        """select count(*) from generate_series(1, 2000) n,
           lateral ff_create_execution(
               p_lane_id => 'default',
               p_tags => jsonb_build_object('order.id', n::text, 'order.kind', 'k')) c"""
    )
    db.execute("select gin_clean_pending_list('ff_execution_tags')")  # as autovacuum does
    db.execute("analyze ff_execution")
    scans = "select pg_stat_get_xact_numscans('ff_execution_tags'::regclass)"
    before = db.execute(scans).fetchone()[0]
    for _ in range(calls):  # more than five: a prepared plan must not forget the tag
        assert len(rows(db, "ff_list_executions", tag_key="order.id", tag_value="1234")) == 1
    assert db.execute(scans).fetchone()[0] == before + calls


def test_concurrent_setters_lose_nothing(db, connect):
    eid = create(db)
    first, second = connect(autocommit=False), connect()
    set_tag(first, eid, "a.b", "1")
    second.execute("set lock_timeout = '50ms'")
    with pytest.raises(psycopg.errors.LockNotAvailable):
        set_tag(second, eid, "a.c", "2")
    second.execute("reset lock_timeout")
    first.commit()
    set_tag(second, eid, "a.c", "2")
    assert stored(db, eid) == {"a.b": "1", "a.c": "2"}
