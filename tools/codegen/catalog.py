"""Reads the public functions and the error codes of a migrated database."""

import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from psycopg import Connection, Cursor
from psycopg.rows import TupleRow, args_row, tuple_row

from pyff.failure import Failure
from pyff.migrate.place import Place, find
from tools.codegen.comment import Comment, parse

_FUNCTIONS = r"""
select p.oid, p.proname, p.proretset, format_type(p.prorettype, null),
       coalesce(obj_description(p.oid, 'pg_proc'), ''), p.prokind = 'p',
       array(select r.rolname::text
               from unnest(array['ff_reader', 'ff_producer', 'ff_worker', 'ff_signaler', 'ff_operator', 'ff_admin'])
                    with ordinality as o (name, position)
               join pg_roles r on r.rolname = o.name
              where has_function_privilege(r.oid, p.oid, 'execute')
              order by o.position)
from pg_proc p
where p.proname ~ '^ff_[^_]' and p.prokind in ('f', 'p') and pg_function_is_visible(p.oid)
order by p.proname
"""

_PARAMETERS = """
select a.name, coalesce(a.mode, 'i')::text, format_type(a.type, null), quote_ident(a.name),
       pg_get_function_arg_default(p.oid, a.position::int)
from pg_proc p,
     unnest(coalesce(p.proallargtypes, p.proargtypes::oid[]), p.proargmodes, p.proargnames)
     with ordinality as a (type, mode, name, position)
where p.oid = %s
order by a.position
"""

_ERRORS = "select sqlstate, class, kind, retryable, description, hint from {} order by sqlstate"

_CONSTANT = re.compile(r"""\(?(NULL|true|false|-?[0-9.]+|'([^'\\]|'')*')\)?(::[a-z ]+(\[\])?)?""")


@dataclass(frozen=True, slots=True)
class Argument:
    name: str  # as SQL has it, with p_
    type: str
    optional: bool
    default: object = None
    nullable: bool = False


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    type: str
    quoted: str


@dataclass(frozen=True, slots=True)
class Function:
    name: str
    arguments: tuple[Argument, ...]
    columns: tuple[Column, ...]  # none: a plain scalar
    type: str
    is_set: bool  # as declared: see is_list and is_optional
    comment: Comment
    is_procedure: bool = False
    roles: tuple[str, ...] = ()  # that may call it

    @property
    def is_list(self) -> bool:
        return self.is_set and not self.comment.rows

    @property
    def is_optional(self) -> bool:
        """It returns one row or none."""
        return self.comment.rows == "at most one"


@dataclass(frozen=True, slots=True)
class ErrorCode:
    sqlstate: str
    class_: str
    kind: str
    retryable: bool
    description: str
    hint: str


def routines(conn: Connection[object]) -> list[Function]:
    """The public functions and procedures."""
    with conn.cursor(row_factory=tuple_row) as cursor:
        found = [_function(cursor, row) for row in cursor.execute(_FUNCTIONS).fetchall()]
    names = Counter(function.name for function in found)
    if overloaded := [name for name, count in names.items() if count > 1]:
        raise Failure(f"overloaded functions: {', '.join(overloaded)}", hint="One operation is one function.")
    return found


def error_codes(conn: Connection[object]) -> list[ErrorCode]:
    place = find(conn) or Place()
    with conn.cursor(row_factory=args_row(ErrorCode)) as cursor:
        return cursor.execute(_ERRORS.format(place.of("ff_error_code")).encode()).fetchall()


@contextmanager
def about(function: str) -> Iterator[None]:
    """Adds the name of the function to a Failure."""
    try:
        yield
    except Failure as failure:
        raise Failure(f"{function}: {failure.message}", hint=failure.hint) from None


def _function(cursor: Cursor[TupleRow], row: TupleRow) -> Function:
    oid, name, is_set, type_, text, is_procedure, roles = row
    with about(name):
        comment = parse(text)
        arguments, columns = _parameters(cursor, oid, comment.nullable)
        if type_ == "record" and not columns:
            raise Failure("it returns a record without columns", hint="Declare them: returns table (...).")
        return Function(name, arguments, columns, type_, is_set, comment, is_procedure, tuple(roles))


def _parameters(
    cursor: Cursor[TupleRow], oid: int, nullable: frozenset[str]
) -> tuple[tuple[Argument, ...], tuple[Column, ...]]:
    arguments: list[Argument] = []
    columns: list[Column] = []
    for parameter, mode, parameter_type, quoted, default in cursor.execute(_PARAMETERS, [oid]).fetchall():
        if mode in "ot":
            columns.append(Column(parameter, parameter_type, quoted))
        elif mode == "i" and parameter.startswith("p_"):
            value = None if default is None else _constant(cursor, default, parameter_type)
            may_be_null = parameter in nullable or (default is not None and value is None)
            arguments.append(Argument(parameter, parameter_type, default is not None, value, may_be_null))
        else:
            raise Failure(f"the parameter {parameter!r} is neither p_<name> nor a result column")
    return tuple(arguments), tuple(columns)


def _constant(cursor: Cursor[TupleRow], expression: str, type_: str) -> object:
    """The value of a default. The database evaluates it, so no literal is parsed here."""
    if not _CONSTANT.fullmatch(expression):
        raise Failure(
            f"the default {expression} is not a constant",
            hint="Use NULL as the default and set the value in the body.",
        )
    ((value,),) = cursor.execute(f"select ({expression})::{type_}").fetchall()
    return value
