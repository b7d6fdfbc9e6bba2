"""Generates the files, compares them with those on disk, writes them."""

import difflib
import subprocess
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import psycopg

import pyff
from pyff.failure import Failure
from tools.codegen.annotations import verify_types
from tools.codegen.calls import async_methods_module, results_module, statements_module
from tools.codegen.catalog import Function, about, error_codes, routines
from tools.codegen.errors import errors_module
from tools.codegen.reference import reference_pages
from tools.codegen.settings import settings_page
from tools.codegen.shapes import shapes
from tools.codegen.text import header
from tools.codegen.unasync import unasync

PACKAGE = Path(pyff.__file__).parent
SYNC_TWINS = ("engine.py", "follow.py", "stored_cursor.py", "app/handle.py", "app/context.py")
"""Generated from modules written by hand, whose names begin with async_."""


def generate(conn: psycopg.Connection[object]) -> dict[str, str]:
    """Text by file name, relative to the package, from what is in this database."""
    known, codes = routines(conn), error_codes(conn)
    public = [routine for routine in known if not routine.is_procedure]
    for function in known:
        with about(function.name):
            _verify(function, {code.kind for code in codes})
    results = shapes(public)
    async_methods = async_methods_module(public, results)
    texts = {
        "_generated/errors.py": errors_module(codes),
        "_generated/results.py": results_module(results),
        "_generated/statements.py": statements_module(public, results),
        "_generated/async_methods.py": async_methods,
        "_generated/methods.py": unasync(async_methods),
    }
    for name in SYNC_TWINS:
        source = (PACKAGE / name).with_name(f"async_{Path(name).name}")
        _, text = source.read_text().split("\n", 1)
        texts[name] = f"{header(source.name)}\n{unasync(text)}"
    pages = {**reference_pages(known, codes), "settings.md": settings_page(conn)}
    return {name: _tidy(name, text) for name, text in texts.items()} | {
        f"../docs/{name}": text for name, text in pages.items()
    }


def stale(texts: Mapping[str, str]) -> dict[str, str]:
    """The files that differ on disk, each with its difference."""
    found = {}
    for name, text in texts.items():
        path = PACKAGE / name
        old = path.read_text() if path.exists() else ""
        if old != text:
            lines = difflib.unified_diff(old.splitlines(), text.splitlines(), name, "generated", lineterm="")
            found[name] = "\n".join(lines)
    for path in sorted((PACKAGE.parent / "docs" / "reference").glob("*.md")):
        if (name := f"../docs/reference/{path.name}") not in texts:
            found[name] = f"{name}: a page without a chapter"
    return found


def write(texts: Mapping[str, str]) -> list[str]:
    """Writes the files that differ and returns their names."""
    names = list(stale(texts))
    for name in names:
        if name in texts:
            (PACKAGE / name).parent.mkdir(exist_ok=True)
            (PACKAGE / name).write_text(texts[name])
        else:
            (PACKAGE / name).unlink()
    return names


def _verify(function: Function, kinds: set[str]) -> None:
    """Rejects a comment that names columns or errors that do not exist."""
    comment = function.comment
    columns = {column.name for column in function.columns} or {function.name}
    arguments = {argument.name for argument in function.arguments}
    if unknown := sorted({*comment.outcomes} - columns | {*comment.nullable} - columns - arguments):
        raise Failure(f"the comment names unknown columns: {', '.join(unknown)}")
    if unknown := sorted({*comment.errors} - kinds):
        raise Failure(f"the comment names unknown errors: {', '.join(unknown)}")
    if comment.rows and not function.is_set:
        raise Failure("it always returns one row", hint=f"Drop the line `Rows: {comment.rows}`.")
    verify_types(function)


@cache
def _tidy(name: str, text: str) -> str:
    """Removes unused imports, sorts the others and formats the text, as the checks of the project require."""
    for options in (("check", "--quiet", "--fix-only", "--select", "I,F401"), ("format", "--quiet")):
        command = [sys.executable, "-m", "ruff", *options, "--stdin-filename", str(PACKAGE / name), "-"]
        done = subprocess.run(
            command, input=text, capture_output=True, text=True, cwd=PACKAGE.parent, check=False
        )
        if done.returncode != 0:
            raise Failure(f"ruff failed on {name}: {done.stderr.strip()}", hint="Is ruff installed?")
        text = done.stdout
    return text
