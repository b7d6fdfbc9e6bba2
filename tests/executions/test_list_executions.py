"""ff_list_executions: filters, and pages that neither skip nor repeat."""

import uuid

import pytest

from tests.sql import create, one, refused, rows, take

SOME_ID = "018f3a2e-7b6c-7d1e-9f00-aabbccddee07"


def listed(db, **args):
    return [row["execution_id"] for row in rows(db, "ff_list_executions", **args)]


def pages(db, size, **args):
    """All rows, page by page."""
    found, after = [], None
    while page := rows(db, "ff_list_executions", limit=size, after=after, **args):
        found += [row["execution_id"] for row in page]
        after = page[-1]["cursor"]
        if len(page) < size:
            break
    return found


def in_order(created):
    """By creation, then by uuid."""
    return [eid for _, _, eid in sorted((ms, eid.split(":")[-1], eid) for ms, eid in created)]


def test_a_row_has_the_columns_of_its_execution(db, clock):
    now = clock.freeze()
    eid = create(db, "lane", namespace="ns", execution_kind="k", priority=4)
    one(db, "ff_complete", handle=take(db, "lane")["handle"])
    (row,) = rows(db, "ff_list_executions")
    assert isinstance(row.pop("cursor"), str)
    assert row == {
        "execution_id": eid,
        "namespace": "ns",
        "lane_id": "lane",
        "flow_id": None,
        "execution_kind": "k",
        "public_state": "completed",
        "priority": 4,
        "created_at_ms": now,
        "terminal_at_ms": now,
    }


@pytest.mark.parametrize("size", [1, 2, 3, 7, 12, 13])
def test_pages_neither_skip_nor_repeat_executions_of_one_millisecond(db, clock, size):
    clock.freeze()
    created = []
    for n in range(12):
        created.append((clock.now(), create(db)))
        clock.advance(int(n % 4 == 3))
    assert pages(db, size) == in_order(created)


def test_a_row_that_is_gone_does_not_lose_the_place(db, clock):
    clock.freeze()
    created = in_order([(clock.now(), create(db)) for _ in range(6)])
    after = rows(db, "ff_list_executions", limit=3)[-1]["cursor"]
    db.execute(
        "delete from ff_execution where execution_id = any(%s)",
        [[uuid.UUID(eid.split(":")[-1]) for eid in (created[2], created[3])]],
    )
    assert listed(db, after=after) == created[4:]


def test_a_cursor_is_good_for_any_filter(db, clock):
    clock.freeze()
    created = in_order([(clock.now(), create(db, "ab"[n % 2])) for n in range(8)])
    after = rows(db, "ff_list_executions", limit=4)[-1]["cursor"]
    wanted = [eid for eid in created[4:] if eid in set(listed(db, lane_id="a"))]
    assert listed(db, lane_id="a", after=after) == wanted


def test_each_filter_alone_and_all_together(db, clock):
    clock.freeze()
    done = create(db, "a", namespace="x", tags={"t.k": "1"}, priority=9)
    one(db, "ff_complete", handle=take(db, "a")["handle"])
    waiting = create(db, "a", namespace="y", tags={"t.k": "2"})
    clock.advance(1)
    delayed = create(db, "b", namespace="x", delay_ms=1000)
    assert set(listed(db)) == {done, waiting, delayed}
    assert set(listed(db, lane_id="a")) == {done, waiting}
    assert set(listed(db, namespace="x")) == {done, delayed}
    assert listed(db, public_state="delayed") == [delayed]
    assert listed(db, public_state="skipped") == []
    assert set(listed(db, tag_key="t.k")) == {done, waiting}
    assert listed(db, tag_key="t.k", tag_value="2") == [waiting]
    assert listed(db, lane_id="a", namespace="x", public_state="completed", tag_key="t.k") == [done]
    assert listed(db, flow_id=uuid.UUID(SOME_ID)) == []
    assert listed(db, lane_id="nowhere") == []
    assert listed(db, namespace="nowhere") == []


def test_a_filtered_list_is_paged_too(db, clock):
    clock.freeze()
    created = [(clock.now(), create(db, tags={"t.k": str(n % 2)})) for n in range(9)]
    wanted = in_order([c for n, c in enumerate(created) if n % 2])
    for size in (1, 2, 4, 5):
        assert pages(db, size, tag_key="t.k", tag_value="1") == wanted


def test_the_page_has_the_size_asked_for(db):
    for _ in range(3):
        create(db)
    assert listed(db, limit=0) == []
    assert len(listed(db, limit=2)) == 2
    assert len(listed(db, limit=1000)) == 3


def test_a_hundred_rows_unless_told_otherwise(db):
    db.execute(
        """select count(*) from generate_series(1, 101) n,
           lateral ff_create_execution(p_lane_id => 'default', p_priority => n) c"""
    )
    assert len(listed(db)) == 100


@pytest.mark.parametrize("limit", [None, -1, 1001, 2**31 - 1, -(2**31)])
def test_a_page_size_out_of_range_is_refused(db, limit):
    with refused("invalid_input") as refusal:
        listed(db, limit=limit)
    assert refusal.detail["arg"] == "p_limit"


@pytest.mark.parametrize("state", ["", "WAITING", "runnable", "done"])
def test_an_unknown_state_is_refused(db, state):
    with refused("invalid_input") as refusal:
        listed(db, public_state=state)
    assert refusal.detail["arg"] == "p_public_state"


@pytest.mark.parametrize(
    "cursor",
    [
        "",
        " ",
        "1",
        SOME_ID,
        f"-{SOME_ID}",
        f"x-{SOME_ID}",
        f"1.5-{SOME_ID}",
        f"1-{SOME_ID[:-1]}",
        f"1-{SOME_ID}0",
        f"1-{SOME_ID[:-1]}g",
        f"1-{SOME_ID}\n",
        f"\n1-{SOME_ID}",
        f"1-{SOME_ID.replace('-', '_')}",
        f"{2**63}-{SOME_ID}",
        f"{'9' * 100}-{SOME_ID}",
        f"٧-{SOME_ID}",
        f"{{fp:7}}:{SOME_ID}",
    ],
)
def test_a_malformed_cursor_is_refused(db, cursor):
    for function in ("ff_list_executions", "ff_list_expired_leases"):
        with refused("invalid_cursor"):
            rows(db, function, after=cursor)


def test_a_later_page_is_found_without_reading_the_earlier_ones(db, connect):
    """In a database of its own: what other tests left dead in the index would be counted."""
    read = "select pg_stat_get_xact_tuples_returned('ff_execution_pkey'::regclass)"
    with db.transaction():
        db.execute(
            """select count(*) from generate_series(1, 500) n,
               lateral ff_create_execution(p_lane_id => 'default', p_priority => n) c"""
        )
        db.execute("analyze ff_execution")
        after = rows(db, "ff_list_executions", limit=450)[-1]["cursor"]
        for _ in range(8):
            before = db.execute(read).fetchone()[0]
            assert len(listed(db, after=after, limit=10)) == 10
            assert 10 <= db.execute(read).fetchone()[0] - before <= 12
