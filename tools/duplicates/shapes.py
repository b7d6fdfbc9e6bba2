"""The lines of a file that count, each with its shape and the name of the place in which it is."""

import ast
import io
import keyword
import re
import tokenize
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_WORDS = """
all and any array as asc begin between by case coalesce conflict cross current cursor declare
default delete desc distinct do each else elsif end except exception execute exists exit false fetch
filter first for foreach from full group having if in insert intersect into is join last lateral
left like limit locked loop materialized next not nothing null nulls of offset on only open or order
ordinality out over partition perform query raise recursive return returning select set skip some
strict then true union update using values when where while window with within
"""
WORDS = frozenset(_WORDS.split())
"""The words of SQL and PL/pgSQL that are part of the shape."""
_SQL = re.compile(r"'(?:[^']|'')*'|\"[^\"]+\"|[a-z_][\w$]*|\d[\w.]*|:=|=>|->>?|::|<>|[<>!]=|\|\||\S", re.I)
_CODE = re.compile(r"(?<!')\b[a-z]")
"""A word that is not `'text'`."""


@dataclass(frozen=True, slots=True)
class Line:
    path: str
    number: int
    shape: str
    place: str


def lines(path: Path, name: str) -> list[Line]:
    text = path.read_text(encoding="utf-8")
    counted = _sql(text, name) if path.suffix == ".sql" else _python(text, name)
    return [Line(name, number, shape, place) for number, shape, place in counted if _CODE.search(shape)]


def _sql(text: str, name: str) -> Iterator[tuple[int, str, str]]:
    """Bodies between `$$`, and views up to their `;`. The texts of COMMENTs stand between `$$` too."""
    place, wanted, inside = name, "", ""
    for number, line in enumerate(text.splitlines(), 1):
        if begun := re.match(r"(?:create (?:or replace )?)?(function|procedure|view|do)\b(?: (\w+))?", line):
            place = begun[2] or name
            wanted, inside = ("", ";") if begun[1] == "view" else ("$$", "")
        elif not inside and wanted and wanted in line:
            wanted, inside = "", wanted
        elif inside:
            yield number, _shape_of_sql(line), place
            inside = "" if inside in line else inside


def _shape_of_sql(line: str) -> str:
    return " ".join(map(_sql_token, _SQL.findall(line.partition("--")[0])))


def _sql_token(token: str) -> str:
    if token[0] == "'":
        return "'text'"
    if token[0].isdigit():
        return "0"
    if token[0].isalpha() or token[0] in '_"':
        return token.lower() if token.lower() in WORDS else "name"
    return token


def _python(text: str, name: str) -> Iterator[tuple[int, str, str]]:
    tree = ast.parse(text)
    skipped = set(_documentation(tree))
    places = dict(_places(tree, name))
    shapes: dict[int, list[str]] = defaultdict(list)
    depth = 0  # inside f-strings, which Python 3.12 and later takes apart
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        kind = tokenize.tok_name[token.type]
        if depth == 0 and (shape := _python_token(token)):
            shapes[token.start[0]].append(shape)
        depth += kind.endswith("STRING_START") - kind.endswith("STRING_END")
    for number, tokens in sorted(shapes.items()):
        if number not in skipped:
            yield number, " ".join(tokens), places.get(number, name)


def _documentation(tree: ast.Module) -> Iterator[int]:
    """Lines of imports, and of strings that are statements."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom) or (
            isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        ):
            yield from range(node.lineno, (node.end_lineno or node.lineno) + 1)


def _places(node: ast.AST, name: str, separator: str = ":") -> Iterator[tuple[int, str]]:
    """Each line with the innermost function or class around it."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            inner = f"{name}{separator}{child.name}"
            first = min(node.lineno for node in (child, *child.decorator_list))
            for number in range(first, (child.end_lineno or first) + 1):
                yield number, inner
            yield from _places(child, inner, ".")
        else:
            yield from _places(child, name, separator)


def _python_token(token: tokenize.TokenInfo) -> str:
    if token.type == tokenize.NAME:
        return token.string if keyword.iskeyword(token.string) else "name"
    if tokenize.tok_name[token.type] in ("STRING", "FSTRING_START"):
        return "'text'"
    if token.type == tokenize.NUMBER:
        return "0"
    return token.string if token.type == tokenize.OP else ""
