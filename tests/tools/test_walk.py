"""The walk of one execution: what runs is what is drawn, and it does not get longer."""

import psycopg
import pytest

from pyff.migrate.tree import shipped
from tools.walk import Step, count, walk
from tools.walk.__main__ import draw
from tools.walk.trace import Call, instrument, traced

LONGEST = 92
"""Functions of the whole walk; the aim is 45."""


@pytest.fixture(scope="module")
def steps():
    return walk()


def test_each_step_is_one_call_of_a_client(steps):
    assert [(step.title, *(call.name for call in step.calls)) for step in steps] == [
        ("create", "ff_create_execution"),
        ("claim", "ff_claim"),
        ("suspend", "ff_suspend"),
        ("signal", "ff_deliver_signal"),
        ("resume", "ff_claim"),
        ("complete", "ff_complete"),
    ]


def test_every_line_has_a_function_with_its_file(steps):
    root = shipped().root / "functions"
    for step in steps:
        for line in draw(step.calls):
            name, path = line.split()[:2]
            assert f"create or replace function {name}(" in (root / path).read_text()


def test_the_end_of_the_execution_is_passed_on_to_the_flow_behind_it(steps):
    assert "ff__dispatch_flow" in {call.name for call in steps[-1].calls[0].everything()}


def test_the_walk_does_not_get_longer_and_no_two_nouns_call_each_other(steps):
    counts = count(steps)
    assert counts.functions <= LONGEST
    assert not counts.nested


def test_going_back_and_forth_is_counted(monkeypatch):
    monkeypatch.setattr("tools.walk.counts.noun_of", lambda name: name[0])
    inner = Call("a1", [Call("b1", [Call("b2", [Call("a2")])]), Call("c1")])
    counts = count([Step("one", [Call("a0", [inner, Call("c1"), Call("a3")])])])
    assert (counts.functions, counts.calls) == (7, 8)
    assert counts.nested == {("a", "b"): 1}
    assert counts.in_order == {("a", "b"): 1, ("a", "c"): 1}


def test_calls_are_traced_in_order_and_below_their_callers(dsn):
    with psycopg.connect(dsn) as conn:
        conn.execute("""
            create function ff__inner(a int) returns int language sql as 'select a + 1';
            create function ff__outer(a int) returns int language plpgsql as $$
            declare
                v_first int := ff__inner(a);
            begin
                if a < 0 then
                    return ff__never(a);
                end if;
                return (select sum(ff__inner(x)) from generate_series(1, 2) x);
            end
            $$;
        """)
        instrument(conn)
        with traced(conn) as calls:
            conn.execute("select ff__outer(1), ff__inner(2)")
        conn.rollback()
    assert calls == [Call("ff__outer", [Call("ff__inner")] * 3), Call("ff__inner")]
