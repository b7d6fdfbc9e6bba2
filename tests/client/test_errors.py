"""Python's errors are those of the table ff_error_code, and database errors become them."""

import json
import pickle

import psycopg
import pytest
from psycopg import sql

import pyff
from pyff import errors
from pyff._generated.errors import BY_PREFIX, BY_SQLSTATE
from pyff.errors import EngineError, translate
from pyff.failure import Failure

BASES = {
    "not_found": errors.NotFound,
    "validation": errors.Validation,
    "contention": errors.Contention,
    "conflict": errors.Conflict,
    "state": errors.State,
    "corruption": errors.Corruption,
    "resource": errors.Resource,
}


def kinds():
    """Every leaf class under EngineError."""
    return {kind for base in EngineError.__subclasses__() for kind in base.__subclasses__()}


def raised(db, code, *, message="No.", detail=None, hint=None):
    """The database error of a raise with these fields."""
    fields = {"errcode": code, "message": message, "detail": detail, "hint": hint}
    using = ", ".join(f"{field} = {sql.quote(text)}" for field, text in fields.items() if text is not None)
    with pytest.raises(psycopg.Error) as caught, db.transaction():
        db.execute(f"do $do$ begin raise exception using {using}; end $do$")
    return caught.value


def test_every_row_of_the_registry_has_its_class(db):
    for code, class_, kind, retryable, description, hint in db.execute(
        "select sqlstate, class, kind, retryable, description, hint from ff_error_code"
    ):
        name = "".join(word.capitalize() for word in kind.split("_"))
        error = getattr(errors, name)
        assert issubclass(error, BASES[class_])
        assert (error.sqlstate, error.kind, error.retryable) == (code, kind, retryable)
        assert (error.description, error.advice) == (description, hint)
        assert getattr(pyff, name) is error


def test_every_class_has_its_row_in_the_registry(db):
    registered = {code for (code,) in db.execute("select sqlstate from ff_error_code")}
    assert {error.sqlstate for error in kinds()} == registered
    assert set(BY_SQLSTATE) == registered
    assert set(BY_SQLSTATE.values()) == kinds()


def test_the_bases_are_the_seven_classes_of_the_registry(db):
    assert {class_ for (class_,) in db.execute("select distinct class from ff_error_code")} == set(BASES)
    assert set(BASES.values()) == set(BY_PREFIX.values())
    assert set(EngineError.__subclasses__()) == {*BASES.values(), errors.ConnectionLost}


def test_the_registry_knows_the_errors_that_only_python_raises():
    assert errors.RetryExhausted.sqlstate == "WF211"
    assert errors.AlreadySatisfied.sqlstate == "WF426"
    assert errors.WaitTimeout.sqlstate == "WF603"


def test_each_code_is_translated_to_its_class(db):
    for code, class_ in BY_SQLSTATE.items():
        detail = {"kind": class_.kind, "execution_id": "{fp:1}:x"}
        error = translate(raised(db, code, message="Late.", detail=json.dumps(detail), hint="Stop."))
        assert type(error) is class_
        assert (error.sqlstate, error.kind, error.retryable) == (code, class_.kind, class_.retryable)
        assert error.detail == detail
        assert (error.message, error.hint, str(error)) == ("Late.", "Stop.", "Late.\n  hint: Stop.")


def test_a_code_of_a_newer_database_becomes_the_base_of_its_class(db):
    newer = {f"WF{i}99": base for i, base in enumerate(BASES.values())} | {"WF999": EngineError}
    for code, base in newer.items():
        error = translate(raised(db, code, detail='{"kind": "from_the_future"}'))
        assert type(error) is base
        assert (error.sqlstate, error.kind) == (code, "from_the_future")
        assert error.retryable == (base is errors.Contention)


def test_a_detail_that_is_no_json_object_is_read_as_an_empty_one(db):
    for detail in (None, "plain text", "[1, 2]"):
        assert translate(raised(db, "WF401", detail=detail)).detail == {"kind": "stale_lease"}


def test_an_error_without_a_hint_takes_the_one_of_the_registry(db):
    assert translate(raised(db, "WF401")).hint == errors.StaleLease.advice != ""


def test_an_error_that_is_not_the_engines_stays_as_it_is(db):
    for code in ("22012", "40001", "P0001", "23505"):
        error = raised(db, code)
        assert translate(error) is error


def test_a_method_raises_the_translated_error_and_keeps_the_database_error_as_its_cause(engine):
    with pytest.raises(errors.InvalidInput) as caught:
        engine.setting("no such setting")
    assert caught.value.kind == "invalid_input"
    assert caught.value.detail["kind"] == "invalid_input"
    assert isinstance(caught.value.__cause__, psycopg.Error)
    assert caught.value.__cause__.sqlstate == "WF100"


async def test_an_async_method_raises_the_translated_error(async_engine):
    with pytest.raises(errors.InvalidInput):
        await async_engine.setting("no such setting")


def test_an_engine_error_is_a_failure_so_the_command_line_shows_it_without_a_traceback():
    assert issubclass(EngineError, Failure)


def test_an_error_survives_pickling():
    error = pickle.loads(pickle.dumps(errors.StaleLease("Late.", hint="Stop.", detail={"lease_epoch": 3})))  # noqa: S301
    assert type(error) is errors.StaleLease
    assert (str(error), error.detail) == ("Late.\n  hint: Stop.", {"kind": "stale_lease", "lease_epoch": 3})


@pytest.mark.parametrize(
    "error",
    [
        pyff.TaskFailed("{fp:0}:0", "failed", reason="no", category="c"),
        pyff.NotConnected(),
        pyff.DuplicateStep("a"),
        pyff.CursorMoved("a"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_failures_of_the_python_layer_survive_pickling_too(error):
    again = pickle.loads(pickle.dumps(error))  # noqa: S301
    assert (type(again), str(again), vars(again)) == (type(error), str(error), vars(error))
