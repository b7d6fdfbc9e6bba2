"""The module of the errors: one class per row of ff_error_code, under one base per class of them."""

from collections.abc import Iterable
from itertools import groupby

from pyff.failure import Failure
from tools.codegen.catalog import ErrorCode
from tools.codegen.names import camel_case
from tools.codegen.text import docstring, exported, mapping, module, string


def errors_module(codes: Iterable[ErrorCode]) -> str:
    names: list[str] = []
    classes: list[str] = []
    prefixes: dict[str, str] = {}
    sqlstates: dict[str, str] = {}
    for class_, group in groupby(codes, key=lambda code: code.class_):
        members, base = list(group), camel_case(class_)
        (prefix,) = {code.sqlstate[:3] for code in members}
        prefixes[prefix] = base
        sqlstates |= {code.sqlstate: camel_case(code.kind) for code in members}
        names += [base, *(camel_case(code.kind) for code in members)]
        classes += [_base(base, prefix, members), *(_kind(base, code) for code in members)]
    if repeated := {name for name in names if names.count(name) > 1}:
        raise Failure(f"two errors would be called {', '.join(sorted(repeated))}")
    return module(
        "# ruff: noqa: N818 - named by their kind in ff_error_code",
        "from collections.abc import Mapping\nfrom typing import Final\n",
        "from pyff.engine_error import EngineError",
        *classes,
        f"BY_SQLSTATE: Final[Mapping[str, type[EngineError]]] = {mapping(sqlstates)}",
        f"BY_PREFIX: Final[Mapping[str, type[EngineError]]] = {mapping(prefixes)}",
        exported(["EngineError", *names]),
    )


def _base(name: str, prefix: str, members: list[ErrorCode]) -> str:
    return f'''
class {name}(EngineError):
    """Errors {prefix}xx."""

    retryable = {any(code.retryable for code in members)}
'''


def _kind(base: str, code: ErrorCode) -> str:
    return f"""
class {camel_case(code.kind)}({base}):
    {docstring(code.description, indent=4)}

    sqlstate = {string(code.sqlstate)}
    kind = {string(code.kind)}
    retryable = {code.retryable}
    description = {string(code.description)}
    advice = {string(code.hint)}
"""
