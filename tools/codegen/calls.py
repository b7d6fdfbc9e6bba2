"""The generated modules: result classes, statements, and the methods that use them."""

import re
import textwrap
from collections.abc import Iterable, Sequence

from tools.codegen.annotations import (
    argument_annotation,
    argument_converter,
    column_annotation,
    column_converter,
    default_literal,
)
from tools.codegen.catalog import Argument, Column, Function
from tools.codegen.names import EXPECTED_OUTCOME, camel_case, identifier
from tools.codegen.shapes import Shape, class_name
from tools.codegen.text import WIDTH, docstring, enumeration, exported, module

_METHODS = '''
class AsyncMethods(ABC):
    """One method per public SQL function: its name without ff_, its arguments without p_."""

    @abstractmethod
    async def _call(
        self,
        statement: Statement[T],
        arguments: Mapping[str, object],
        conn: AsyncConnection[object] | None,
    ) -> T: ...
'''


def results_module(shapes: Sequence[Shape]) -> str:
    return module(
        "from collections.abc import Mapping",
        "from typing import Literal\nfrom uuid import UUID",
        "from pyff.frozen import frozen\nfrom pyff.types import JsonValue, PublicState",
        *map(_result, shapes),
        exported(shape.name for shape in shapes),
    )


def statements_module(functions: Iterable[Function], shapes: Iterable[Shape]) -> str:
    return module(
        "from typing import Final",
        _results_import(shapes),
        "from pyff.statement import Statement, array, at_most_one, converting, jsonb, many, nothing, one",
        "from pyff.statement import public_state, value",
        "from pyff.types import EMPTY_OBJECT",
        *map(_statement, functions),
    )


def async_methods_module(functions: Iterable[Function], shapes: Iterable[Shape]) -> str:
    return module(
        "from abc import ABC, abstractmethod\nfrom collections.abc import Mapping, Sequence",
        "from typing import TypeVar\nfrom uuid import UUID\n\nfrom psycopg import AsyncConnection",
        "from pyff._generated import statements",
        _results_import(shapes),
        "from pyff.statement import Statement",
        f"from pyff.expected_outcome import {', '.join(sorted(map('require_{}'.format, EXPECTED_OUTCOME.values())))}",
        "from pyff.types import EMPTY_OBJECT, JsonValue",
        'T = TypeVar("T")',
        _METHODS,
        *map(_method, functions),
    )


def outline(function: Function) -> str:
    """The short signature for the reference: `claim(lane_id, *, ...) -> ClaimRow | None`."""
    names = [identifier(argument.name) for argument in function.arguments if not argument.optional]
    optional = ["*", "..."] if len(names) < len(function.arguments) else []
    return f"{_method_name(function)}({', '.join([*names, *optional])}) -> {_answer(function)}"


def _results_import(shapes: Iterable[Shape]) -> str:
    return f"from pyff._generated.results import {', '.join(shape.name for shape in shapes)}"


def _result(shape: Shape) -> str:
    fields = "\n".join(f"    {field.name}: {field.annotation}" for field in shape.fields)
    return f"""
@frozen
class {shape.name}:
    {docstring(f"What {enumeration(shape.functions)} returns.", indent=4)}

{fields}
"""


def _statement(function: Function) -> str:
    return f'''
{_constant(function)}: Final[Statement[{_answer(function)}]] = {_reader(function)}(
    """{_sql(function)}""",
    {_maker(function)}{_optional(function)}
)
'''


def _optional(function: Function) -> str:
    """The defaults of optional arguments, and the converters of arguments that need one."""
    defaults = [
        f'"{identifier(argument.name)}": {default_literal(argument)}'
        for argument in function.arguments
        if argument.optional
    ]
    converters = [
        f'"{identifier(argument.name)}": {argument_converter(argument)}'
        for argument in function.arguments
        if argument_converter(argument)
    ]
    text = f"optional={{{', '.join(defaults)}}}," if defaults else ""
    return f"{text}converters={{{', '.join(converters)}}}," if converters else text


def _sql(function: Function) -> str:
    """Columns by name, not `*`: a newer database may have more of them. Lists of bytes are sent in binary format, which
    needs no quoting."""
    arguments = ",\n".join(
        f"    {argument.name} => %({identifier(argument.name)})"
        f"{'b' if argument.type == 'bytea[]' else 's'}::{argument.type}"
        for argument in function.arguments
    )
    call = f"{function.name}(\n{arguments}\n)" if arguments else f"{function.name}()"
    if not function.columns:
        return f"select {call}"
    columns = f"select {', '.join(column.quoted for column in function.columns)}"
    return f"{textwrap.fill(columns, WIDTH - 10, subsequent_indent='    ')}\nfrom {call}"


def _method(function: Function) -> str:
    required = [_parameter(argument) for argument in function.arguments if not argument.optional]
    optional = [_parameter(argument) for argument in function.arguments if argument.optional]
    parameters = ["self", *required, "*", *optional, "conn: AsyncConnection[object] | None = None"]
    values = ",\n".join(f'"{name}": {name}' for name in (identifier(a.name) for a in function.arguments))
    call = f"await self._call(statements.{_constant(function)}, {{{values}}}, conn)"
    name, outcome = _method_name(function), EXPECTED_OUTCOME.get(function.name)

    def method(name: str, documentation: str, result: str) -> str:
        return f"""
    async def {name}({", ".join(parameters)}) -> {_answer(function)}:
        {docstring(documentation, indent=8)}
        return {result}
"""

    if not outcome:
        return method(name, _documentation(function), call)
    note = f"try_{name} returns every outcome; {name} raises AlreadySatisfied on all but {outcome}."
    return method(name, f"{_documentation(function)}\n\n{note}", f"require_{outcome}({call})") + method(
        f"try_{name}", f"{_documentation(function)}\n\n{note}", call
    )


def _parameter(argument: Argument) -> str:
    default = f" = {default_literal(argument)}" if argument.optional else ""
    return f"{identifier(argument.name)}: {argument_annotation(argument)}{default}"


def _documentation(function: Function) -> str:
    prose = function.comment.prose or f"Calls {function.name}."
    for argument in function.arguments:
        prose = re.sub(rf"\b{argument.name}\b", identifier(argument.name), prose)
    raises = ", ".join(camel_case(kind) for kind in function.comment.errors)
    return f"{prose}\n\nRaises: {raises}." if raises else prose


def _method_name(function: Function) -> str:
    return identifier(function.name.removeprefix("ff_"))


def _constant(function: Function) -> str:
    return function.name.removeprefix("ff_").upper()


def _reader(function: Function) -> str:
    """The function of pyff.statement that reads the rows."""
    if function.type == "void":
        return "nothing"
    return "many" if function.is_list else "at_most_one" if function.is_optional else "one"


def _answer(function: Function) -> str:
    """The annotation of the method's result."""
    if function.type == "void":
        return "None"
    item = class_name(function) if function.columns else column_annotation(function, _scalar(function))
    return f"list[{item}]" if function.is_list else f"{item} | None" if function.is_optional else item


def _maker(function: Function) -> str:
    """The function that makes an item from the columns of a row."""
    if function.type == "void":
        return ""
    name = class_name(function) if function.columns else "value"
    columns = function.columns or (_scalar(function),)
    converters = {i: column_converter(column) for i, column in enumerate(columns)}
    entries = ", ".join(f"{i}: {converter}" for i, converter in converters.items() if converter)
    return f"converting({name}, {{{entries}}})," if entries else f"{name},"


def _scalar(function: Function) -> Column:
    """The only column of a plain scalar function: SQL names it after the function."""
    return Column(function.name, function.type, function.name)
