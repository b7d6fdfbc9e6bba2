"""The result class of a function, and its fields."""

from collections.abc import Iterable
from dataclasses import dataclass

from pyff.failure import Failure
from tools.codegen.annotations import column_annotation, column_converter
from tools.codegen.catalog import Function
from tools.codegen.names import SHARED_RESULTS, camel_case, identifier

_SHARED = {function: name for name, functions in SHARED_RESULTS.items() for function in functions}


@dataclass(frozen=True, slots=True)
class Field:
    name: str
    annotation: str
    converter: str


@dataclass(frozen=True, slots=True)
class Shape:
    """One result class and the functions that return it."""

    name: str
    fields: tuple[Field, ...]
    functions: tuple[str, ...]


def class_name(function: Function) -> str:
    """`ClaimRow` for a shared one, else `<Function>Row` in a list and `<Function>Result` alone."""
    suffix = "Row" if function.is_list else "Result"
    own = camel_case(function.name.removeprefix("ff_")).removesuffix(suffix) + suffix
    return _SHARED.get(function.name, own)


def shapes(functions: Iterable[Function]) -> list[Shape]:
    """In alphabetical order. Plain scalar functions have none."""
    found: dict[str, Shape] = {}
    for function in functions:
        if not function.columns:
            continue
        name, fields = class_name(function), _fields(function)
        sharing = found.get(name, Shape(name, fields, ()))
        if sharing.fields != fields:
            different = sorted({field.name for field in {*sharing.fields} ^ {*fields}}) or ["their order"]
            raise Failure(
                f"{function.name} does not return {name} like {sharing.functions[0]}: see {', '.join(different)}",
                hint="Make columns and comments equal, or change SHARED_RESULTS in tools/codegen/names.py.",
            )
        found[name] = Shape(name, fields, (*sharing.functions, function.name))
    return sorted(found.values(), key=lambda shape: shape.name)


def _fields(function: Function) -> tuple[Field, ...]:
    return tuple(
        Field(identifier(column.name), column_annotation(function, column), column_converter(column))
        for column in function.columns
    )
