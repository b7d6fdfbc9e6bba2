"""SQL types in Python: the annotation of an argument and of a column, and the conversion between the two."""

from pyff.failure import Failure
from tools.codegen.catalog import Argument, Column, Function
from tools.codegen.names import JSON_OBJECTS
from tools.codegen.text import string

_SCALARS = {
    "text": "str",
    "smallint": "int",
    "integer": "int",
    "bigint": "int",
    "boolean": "bool",
    "uuid": "UUID",
    "bytea": "bytes",
    "double precision": "float",
    "jsonb": "JsonValue",
}


def verify_types(function: Function) -> None:
    """A type or a default that a public signature cannot have."""
    for argument in function.arguments:
        argument_annotation(argument)
        default_literal(argument)
    for column in function.columns:
        column_annotation(function, column)


def argument_annotation(argument: Argument) -> str:
    annotation = _annotation(argument.name.removeprefix("p_"), argument.type, "Sequence[{}]")
    return f"{annotation} | None" if argument.nullable else annotation


def argument_converter(argument: Argument) -> str:
    """The function of pyff.statement that converts the value; '' for none."""
    return "array" if argument.type.endswith("[]") else "jsonb" if argument.type == "jsonb" else ""


def default_literal(argument: Argument) -> str:
    match argument.default:
        case None | bool() | int() | float():
            return repr(argument.default)
        case str() as text:
            return string(text)
        case []:
            return "()"
        case dict() as document if not document:
            return "EMPTY_OBJECT"
    raise Failure(f"no literal for the default {argument.default!r} of {argument.name}")


def column_annotation(function: Function, column: Column) -> str:
    comment = function.comment
    if is_public_state(column):
        annotation = "PublicState"
    elif column.name in comment.outcomes:
        annotation = f"Literal[{', '.join(string(value) for value in comment.outcomes[column.name])}]"
    else:
        annotation = _annotation(column.name, column.type, "tuple[{}, ...]")
    return f"{annotation} | None" if column.name in comment.nullable else annotation


def column_converter(column: Column) -> str:
    """The function that converts the value loaded by psycopg to the annotated type; '' for none."""
    return "public_state" if is_public_state(column) else "tuple" if column.type.endswith("[]") else ""


def is_public_state(column: Column) -> bool:
    return column.type == "text" and column.name.endswith("public_state")


def _annotation(name: str, type_: str, sequence: str) -> str:
    if type_ == "jsonb":
        return JSON_OBJECTS.get(name, _SCALARS[type_])
    element = _SCALARS.get(type_.removesuffix("[]"))
    if element is None:
        raise Failure(f"the type {type_} of {name} is not supported in a public signature")
    if not type_.endswith("[]"):
        return element
    return sequence.format(element if type_ == "text[]" else f"{element} | None")
