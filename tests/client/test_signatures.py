"""The Python methods against the database, without the generator: inspect shows what SQL declares."""

import dataclasses
import inspect
import re
import types
import typing
import uuid
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Literal

import pytest

from pyff import AsyncEngine, Engine, PublicState

OWN_METHODS = {"close", "subscribe", "tail", "try_suspend"}
# What a method takes beyond its function: waiting is the client's business.
OWN_PARAMETERS = {"cancel_flow": {"wait"}}

FUNCTIONS = """
select r.routine_name, r.specific_name, p.proretset, t.typname,
       coalesce(obj_description(p.oid, 'pg_proc'), '')
from information_schema.routines r
join pg_proc p on r.specific_name = p.proname || '_' || p.oid
join pg_type t on t.oid = p.prorettype
where r.routine_type = 'FUNCTION' and r.routine_name like 'ff\\_%' and r.routine_name not like 'ff\\_\\_%'
"""

PARAMETERS = """
select parameter_mode, parameter_name, udt_name, parameter_default
from information_schema.parameters where specific_name = %s order by ordinal_position
"""

UNIONS = (types.UnionType, type(int | Literal["a"]))

PLAIN = {
    "text": str,
    "int2": int,
    "int4": int,
    "int8": int,
    "bool": bool,
    "uuid": uuid.UUID,
    "bytea": bytes,
    "float8": float,
}


SQL_NAMES = {
    "int2": "smallint",
    "int4": "integer",
    "int8": "bigint",
    "bool": "boolean",
    "float8": "double precision",
}


class Declared:
    """One function, as the catalog and its comment declare it."""

    def __init__(self, db, row):
        self.name, specific_name, self.is_set, self.type, comment = row
        parameters = db.execute(PARAMETERS, [specific_name]).fetchall()
        self.arguments = [(n.removeprefix("p_"), t, d) for mode, n, t, d in parameters if mode == "IN"]
        self.columns = [(n, t) for mode, n, t, _ in parameters if mode == "OUT"]
        self.nullable = {
            name.strip()
            for line in re.findall(r"^Nullable: (.*)$", comment, re.M)
            for name in line.split(",")
        }
        self.literals = defaultdict(set)
        for column, values in re.findall(r"^Outcomes: (\w+) *= *(.*)$", comment, re.M):
            self.literals[column] |= {value.strip() for value in values.split("|")}
        self.is_optional = re.search(r"^Rows: at most one$", comment, re.M) is not None
        if re.search(r"^Rows: exactly one$", comment, re.M):
            self.is_set = False

    @property
    def method(self):
        return self.name.removeprefix("ff_")


@pytest.fixture
def declared(db):
    return [Declared(db, row) for row in db.execute(FUNCTIONS)]


def methods(engine_class):
    found = inspect.getmembers(engine_class, inspect.isfunction)
    return {name: method for name, method in found if not name.startswith("_") and name not in OWN_METHODS}


def python_name(name):
    return name + "_" if name in {"from", "class", "in", "is", "as", "with"} else name


def constant(default):
    """The value of a default, read from its SQL text."""
    text = re.sub(r"::[a-z ]+(\[\])?$", "", default)
    literals = {"NULL": None, "true": True, "false": False}
    if text in literals:
        return literals[text]
    if text.startswith("'"):
        text = text[1:-1].replace("''", "'")
        if default.endswith("]"):
            assert text == "{}"
            return ()
        return {"{}": {}, "[]": ()}[text] if default.endswith("::jsonb") else text
    return float(text) if "." in text else int(text)


def members(hint):
    """The members of a union, without None."""
    return {*(typing.get_args(hint) if isinstance(hint, UNIONS) else [hint])} - {type(None)}


def only(hint):
    (member,) = members(hint)
    return member


def is_nullable(hint):
    return isinstance(hint, UNIONS) and type(None) in typing.get_args(hint)


def is_json(hint):
    """A JsonValue, or a mapping where more is known."""
    kinds = {typing.get_origin(member) or member for member in members(hint)}
    return kinds in ({Mapping}, {Mapping, Sequence, str, int, float, bool})


@pytest.mark.parametrize("engine_class", [Engine, AsyncEngine])
def test_every_public_function_has_its_method_and_every_method_its_function(declared, engine_class):
    assert set(methods(engine_class)) == {python_name(function.method) for function in declared}


@pytest.mark.parametrize("engine_class", [Engine, AsyncEngine])
def test_arguments_have_the_names_the_order_and_the_defaults_of_the_function(declared, engine_class):
    for function in declared:
        *parameters, conn = list(
            inspect.signature(methods(engine_class)[function.method]).parameters.values()
        )[1:]
        own = OWN_PARAMETERS.get(function.method, set())
        parameters = [p for p in parameters if p.name not in own]
        assert (conn.name, conn.kind, conn.default) == ("conn", conn.KEYWORD_ONLY, None)
        assert [p.name for p in parameters] == [python_name(name) for name, _, _ in function.arguments]
        for parameter, (_, _, default) in zip(parameters, function.arguments, strict=True):
            if default is None:
                assert parameter.default is parameter.empty, function.name
                assert parameter.kind is parameter.POSITIONAL_OR_KEYWORD
            else:
                assert parameter.default == constant(default), (function.name, parameter.name)
                assert parameter.kind is parameter.KEYWORD_ONLY


@pytest.mark.parametrize("engine_class", [Engine, AsyncEngine])
def test_arguments_have_the_types_of_the_function(declared, engine_class):
    for function in declared:
        hints = typing.get_type_hints(methods(engine_class)[function.method])
        for name, type_, default in function.arguments:
            hint = hints[python_name(name)]
            place = (function.name, name, hint)
            if type_ == "jsonb":
                assert is_json(hint), place
                continue
            nullable = f"p_{name}" in function.nullable or (default or "").startswith("NULL")
            assert is_nullable(hint) == nullable, place
            plain = only(hint)
            if type_.startswith("_"):
                assert typing.get_origin(plain) is Sequence, place
                assert typing.get_args(plain)[0] in (PLAIN[type_[1:]], PLAIN[type_[1:]] | None), place
            else:
                assert plain is PLAIN[type_], place


def test_a_method_returns_one_result_or_none_or_a_list_as_the_function_does(declared):
    for function in declared:
        hint = typing.get_type_hints(methods(Engine)[function.method])["return"]
        if function.is_set and not function.is_optional:
            assert typing.get_origin(hint) is list, function.name
        elif function.type == "void":
            assert hint is type(None)
        else:
            assert is_nullable(hint) == (function.is_set or function.name in function.nullable), function.name


@pytest.mark.parametrize(
    "name",
    [
        "claim_execution",
        "claim_from_grant",
        "claim_resumed_execution",
        "claim_from_resume_grant",
        "reclaim_execution",
        "issue_grant_and_claim",
    ],
)
@pytest.mark.parametrize("engine_class", [Engine, AsyncEngine])
def test_a_claim_of_one_execution_returns_one_result_never_none_and_never_a_list(engine_class, name):
    hint = typing.get_type_hints(methods(engine_class)[name])["return"]
    assert dataclasses.is_dataclass(hint), hint


def result_class(function):
    hint = typing.get_type_hints(methods(Engine)[function.method])["return"]
    if typing.get_origin(hint) is list:
        (hint,) = typing.get_args(hint)
    return only(hint) if function.type != "void" else hint


def test_results_have_the_columns_of_the_function_in_order(declared):
    for function in declared:
        result = result_class(function)
        if not function.columns:
            assert result is PLAIN.get(function.type, type(None)), function.name
            continue
        assert dataclasses.is_dataclass(result)
        names = [field.name for field in dataclasses.fields(result)]
        assert names == [python_name(name) for name, _ in function.columns], function.name


def test_fields_have_the_types_of_the_columns(declared):
    for function in declared:
        hints = typing.get_type_hints(result_class(function)) if function.columns else {}
        for name, type_ in function.columns:
            hint = hints[python_name(name)]
            place = (function.name, name, hint)
            if type_ == "jsonb":
                assert is_json(hint), place
                continue
            assert is_nullable(hint) == (name in function.nullable), place
            plain = only(hint)
            if name.endswith("public_state"):
                assert plain is PublicState, place
            elif name in function.literals:
                assert typing.get_origin(plain) is Literal, place
                assert {*typing.get_args(plain)} == function.literals[name], place
            elif type_.startswith("_"):
                assert typing.get_origin(plain) is tuple, place
            else:
                assert plain is PLAIN[type_], place


def test_the_async_methods_have_the_signatures_of_the_sync_ones():
    for name, method in methods(Engine).items():
        async_method = methods(AsyncEngine)[name]
        assert inspect.iscoroutinefunction(async_method)
        assert not inspect.iscoroutinefunction(method)
        assert async_method.__doc__ == method.__doc__
        sync, asynchronous = inspect.signature(method), inspect.signature(async_method)
        assert sync.return_annotation == asynchronous.return_annotation
        for parameter in sync.parameters.values():
            if parameter.name != "conn":
                assert asynchronous.parameters[parameter.name] == parameter


class Recorder(Engine):
    """Keeps what a method would send."""

    def __init__(self):
        self.sent = None

    def _call(self, statement, arguments, conn):
        self.sent = statement, arguments, conn


def test_every_argument_reaches_its_own_parameter_with_its_own_type(declared):
    recorder = Recorder()
    for function in declared:
        marks = {python_name(name): [name] for name, _, _ in function.arguments}
        getattr(recorder, function.method)(**marks, conn="the connection")
        statement, sent, conn = recorder.sent
        assert conn == "the connection"
        assert set(sent) == set(marks)
        for name, type_, _ in function.arguments:
            python = python_name(name)
            value = sent[python]
            assert getattr(value, "obj", value) == marks[python], (function.name, name)
            base = type_.removeprefix("_")
            cast = SQL_NAMES.get(base, base) + ("[]" if type_.startswith("_") else "")
            form = "b" if cast == "bytea[]" else "s"
            assert f"p_{name} => %({python}){form}::{cast}" in statement.sql
        assert statement.sql.count("=>") == len(function.arguments)


def test_what_is_at_its_default_is_left_to_the_function(declared):
    recorder = Recorder()
    for function in declared:
        required = {python_name(name): [name] for name, _, default in function.arguments if default is None}
        getattr(recorder, function.method)(**required)
        text, sent = recorder.sent[0].call(recorder.sent[1])
        assert set(sent) == set(required), function.name
        assert text.decode().count("=>") == len(required), function.name
        for name in required:
            assert f"%({name})" in text.decode()


def sent_by(function):
    recorder = Recorder()
    getattr(recorder, function.method)(**{python_name(name): [] for name, _, _ in function.arguments})
    return recorder.sent[0]


def test_every_column_reaches_its_own_field(declared):
    for function in declared:
        statement = sent_by(function)
        if not function.columns:
            assert statement.sql.startswith(f"select {function.name}(")
            assert function.type == "void" or statement.make(7) == 7
            continue
        selected = statement.sql.removeprefix("select ").partition("\nfrom ")[0].split(",")
        assert [name.strip(' \n"') for name in selected] == [name for name, _ in function.columns]
        values = {name: ["item"] if type_.startswith("_") else name for name, type_ in function.columns}
        values |= {name: "active" for name in values if name.endswith("public_state")}
        result = statement.make(*values.values())
        for name, value in values.items():
            assert getattr(result, python_name(name)) == (tuple(value) if isinstance(value, list) else value)


def test_rows_are_read_as_the_method_promises(declared):
    for function in declared:
        read = sent_by(function).read
        if function.is_set and not function.is_optional:
            assert (read([]), read([1])) == ([], [1])
        elif function.is_set:
            assert (read([]), read([1])) == (None, 1)
        elif function.type != "void":
            assert read([1]) == 1
