"""What goes in and what comes out: dataclasses, enums, arrays, json, bytes."""

import copy
import dataclasses
import json
import pickle
from collections import OrderedDict
from types import MappingProxyType
from uuid import UUID

import psycopg
import pytest

from pyff import CreateExecutionResult, PingResult, PublicState, SweepResult
from pyff._generated import results
from pyff.statement import array, at_most_one, converting, jsonb, many, one, public_state, value


def test_a_function_that_always_has_one_row_returns_its_dataclass(engine):
    ping = engine.ping()
    assert isinstance(ping, PingResult)
    assert ping.ok is True


def test_a_plain_scalar_function_returns_the_bare_value(engine):
    assert isinstance(engine.now_ms(), int)


def test_a_public_state_is_an_enum_that_is_also_its_text(engine):
    created = engine.create_execution("default", payload=b"\x00\xff", tags={"app.env": "test"})
    assert isinstance(created, CreateExecutionResult)
    assert created.public_state is PublicState.WAITING
    assert created.public_state == "waiting"
    assert created.outcome == "created"


def test_the_public_states_are_those_of_the_legal_state_vectors(db):
    legal = db.execute("select public_state from ff_state_word").fetchall()
    assert {state for (state,) in legal} == set(PublicState)


def test_results_are_frozen_and_slotted():
    for result in (getattr(results, name) for name in results.__all__):
        fields = dataclasses.fields(result)
        instance = result(*[None] * len(fields))
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(instance, fields[0].name, 1)
        assert not hasattr(instance, "__dict__")


@dataclasses.dataclass(frozen=True, slots=True)
class Plain:
    processed: int
    errors: int
    more: bool


def test_a_result_behaves_like_a_frozen_dataclass():
    for kind in (SweepResult, Plain):
        one_error = kind(3, errors=1, more=False)
        assert one_error == kind(3, 1, False) != kind(3, 2, False)
        assert one_error != Plain(3, 1, False) or kind is Plain
        assert hash(one_error) == hash(kind(3, 1, False)) == hash((3, 1, False))
        assert repr(one_error) == f"{kind.__name__}(processed=3, errors=1, more=False)"
        assert dataclasses.asdict(dataclasses.replace(one_error, more=True)) == {
            "processed": 3,
            "errors": 1,
            "more": True,
        }
        for again in (copy.copy(one_error), copy.deepcopy(one_error), pickle.loads(pickle.dumps(one_error))):  # noqa: S301
            assert again == one_error
        match one_error:
            case kind(3, errors, more=False):
                assert errors == 1
        with pytest.raises(dataclasses.FrozenInstanceError):
            del one_error.more
        for positional, named in [
            ((3, 1), {}),
            ((3, 1, False, 4), {}),
            ((3, 1), {"less": 1}),
            ((3, 1, 2), {"more": 2}),
        ]:
            with pytest.raises(TypeError):
                kind(*positional, **named)


def test_uuids_and_numbers_survive_the_round_trip(engine):
    lease_id, attempt_id = UUID(int=1), UUID(int=2)
    created = engine.create_execution("default")
    handle = engine.handle_encode(created.execution_id, 3, lease_id, 2**40, attempt_id).handle
    decoded = engine.handle_decode(handle)
    assert dataclasses.astuple(decoded) == (created.execution_id, 3, lease_id, 2**40, attempt_id)


def test_arguments_that_are_left_out_mean_what_sql_says(engine, db):
    created = engine.create_execution("default")
    alone = db.execute("select public_state from ff_create_execution('default')").fetchone()
    assert alone == (created.public_state,)


def test_an_empty_array_and_an_empty_object_can_be_passed(engine):
    engine.create_execution("default", required_capabilities=[], tags={}, policy={})
    engine.create_execution("default", required_capabilities=(), idempotency_key=None, payload=None)


class Series(list):
    """Compares as numbers of some libraries do: item by item, and the answer is neither true nor false."""

    def __eq__(self, other):
        return Series(item == other for item in self)

    def __ne__(self, other):
        return Series(item != other for item in self)

    def __bool__(self):
        raise ValueError("ambiguous")

    __hash__ = None


def test_a_sequence_with_an_equality_of_its_own_can_be_passed(engine):
    made = engine.create_executions("l", [b"x"], priorities=Series([7]), required_capabilities=Series(["a"]))
    assert made[0].outcome == "created"
    claim = engine.claim("l", "w", "w-1", capabilities=["a"])
    assert claim.priority == 7


@pytest.mark.parametrize("items", [[b"1", None, b""], [None], [], [bytearray(b"1"), memoryview(b"2")]])
def test_payloads_of_a_batch_are_stored_as_they_are(engine, db, items):
    engine.create_executions("l", items)
    stored = db.execute("select payload from ff_exec_input order by execution_id").fetchall()
    assert [row[0] for row in stored] == [None if item is None else bytes(item) for item in items]


def test_a_text_that_cannot_be_stored_is_refused_before_it_is_sent(engine, connect):
    conn = connect(autocommit=False)
    with pytest.raises(psycopg.DataError, match="NUL"):
        engine.create_execution("l", required_capabilities=["a\0"], conn=conn)
    assert engine.create_execution("l", conn=conn).outcome == "created"


def test_a_string_is_no_array_of_its_letters(engine):
    with pytest.raises(TypeError, match="sequence"):
        engine.create_execution("default", required_capabilities="gpu")


def test_any_mapping_and_sequence_is_json():
    document = MappingProxyType({"a": OrderedDict(b=(1, 2)), "c": range(2)})
    argument = jsonb(document)
    assert argument is not None
    assert json.loads(argument.dumps(argument.obj)) == {"a": {"b": [1, 2]}, "c": [0, 1]}


@pytest.mark.parametrize("document", [float("nan"), {"a": b"bytes"}, {"a": object()}])
def test_what_json_cannot_hold_is_refused_before_it_is_sent(document):
    argument = jsonb(document)
    with pytest.raises((TypeError, ValueError)):
        argument.dumps(argument.obj)


def test_none_is_null_and_not_json_null_or_an_empty_array():
    assert jsonb(None) is None
    assert array(None) is None


def test_rows_are_read_as_one_or_none_or_a_list():
    assert one("", value).read([1]) == 1
    assert at_most_one("", value).read([1]) == 1
    assert at_most_one("", value).read([]) is None
    assert many("", value).read([]) == []
    assert many("", value).read([1, 2]) == [1, 2]


def test_only_the_columns_that_need_it_are_converted_and_null_stays_none():
    make = converting(lambda *columns: columns, {1: tuple})
    assert make([1], [2], "active") == ([1], (2,), "active")
    assert make([1], None, None) == ([1], None, None)


def test_a_state_that_only_a_newer_database_knows_is_handed_on_as_it_is():
    assert public_state("active") is PublicState.ACTIVE
    assert public_state("from_the_future") == "from_the_future"
