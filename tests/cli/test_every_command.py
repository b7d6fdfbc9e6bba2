"""Rules for every command, found through the parsers, so that a new command is covered."""

import argparse
import io
import os
import sys

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from pyff.cli import main, parser
from tests.cli.conftest import assert_one_line

NOWHERE = "host=/nonexistent dbname=x"
SAMPLES = (
    "{fp:7}:018f3a2e-7b6c-7d1e-9f00-aabbccddee07",
    "018f3a2e-7b6c-7d1e-9f00-aabbccddee07",
    "7",
    "k=7",
    "7s",
)
WAIT_FOR_THE_DATABASE = {"worker", "maintain"}  # daemons that outlive a restart of the server
FOR_EMPTY_ONES_TOO = {"migrate", "demo", "doctor", "sql"}
NEEDS = {
    ("signal",): ["--token", "k:" + "0" * 64],
    ("budget", "set"): ["--hard", "1"],
    ("quota", "set"): ["--at-once", "1"],
}


def walk(node, path=()):
    """Every command: its path and its parser; groups too."""
    if path:
        yield path, node
    for action in node._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, child in action.choices.items():
                yield from walk(child, (*path, name))


def is_group(node):
    return any(isinstance(action, argparse._SubParsersAction) for action in node._actions)


EVERY = dict(walk(parser()))
LEAVES = {path: node for path, node in EVERY.items() if not is_group(node)}
REACHING = {
    path: node
    for path, node in LEAVES.items()
    if "--dsn" in node._option_string_actions and path[0] not in WAIT_FOR_THE_DATABASE
}


def names(paths):
    return pytest.mark.parametrize("path", list(paths), ids=" ".join)


def sample(action):
    """A valid value for this argument."""
    if action.choices:
        return next(iter(action.choices))
    for text in SAMPLES:
        try:
            (action.type or str)(text)
        except (argparse.ArgumentTypeError, ValueError):
            continue
        return text
    raise AssertionError(f"no sample fits {action.dest}")


def arguments(path):
    given = [*path, *NEEDS.get(path, [])]
    for group in LEAVES[path]._mutually_exclusive_groups:
        if group.required:
            given += [group._group_actions[0].option_strings[0], sample(group._group_actions[0])]
    for action in LEAVES[path]._actions:
        if action.option_strings and action.required:
            given += [action.option_strings[0], sample(action)]
        elif not action.option_strings:
            given.append(sample(action))
    return given


def test_the_walk_finds_the_commands():
    assert {("submit",), ("lane", "pause"), ("keys", "rotate"), ("flow", "show"), ("doctor",)} <= set(LEAVES)
    assert ("server", "dsn") not in REACHING


@names(EVERY)
def test_help_ends_with_an_example(path, capsys):
    with pytest.raises(SystemExit) as left:
        main([*path, "--help"])
    assert left.value.code == 0
    said = capsys.readouterr().out
    example = said[said.index("example:") :]
    assert f"pyff {path[0]}" in example


@names(LEAVES)
def test_there_is_output_for_programs(path):
    assert "--json" in LEAVES[path]._option_string_actions


@names(REACHING)
def test_a_database_that_is_not_there_is_told_in_one_line(path, bare):
    said = bare(*arguments(path), "--dsn", NOWHERE)
    assert said.code == (2 if path == ("doctor",) else 4), said
    assert said.out == ""
    assert said.err.startswith("pyff: cannot connect")
    assert_one_line(said)
    assert "(hint: " in said.err


@names(path for path in REACHING if path[0] not in FOR_EMPTY_ONES_TOO)
def test_an_empty_database_is_told_in_one_line(path, bare, empty):
    said = bare(*arguments(path), "--dsn", empty)
    assert said.code == 4, said
    assert "pyff migrate" in said.err
    assert_one_line(said)


DAEMONS_AND_SERVERS = {"server", "demo", "bench", *WAIT_FOR_THE_DATABASE}
ORDINARY = [path for path in REACHING if path[0] not in {*DAEMONS_AND_SERVERS, "migrate", "top"}]


def told(said, path):
    """An error is one line with a hint or a sentence; none is a traceback."""
    assert said.code in (0, 1, 2, 3, 4, 5), (path, said)
    assert "Traceback" not in said.err, path
    if said.code and path != ("doctor",):
        assert said.err.count("\n") == 1, (path, said)
        assert said.err.startswith("pyff: "), (path, said)
    return said


def test_old_functions_are_told_in_one_line(db, dsn, bare):
    db.execute("update ff_schema_state set functions_sha256 = 'old'")
    for path in ORDINARY:
        if path[0] not in FOR_EMPTY_ONES_TOO:
            said = told(bare(*arguments(path), "--dsn", dsn), path)
            assert (said.code, "(hint: run pyff migrate)" in said.err) == (4, True), (path, said)


def test_what_does_not_exist_is_told_in_one_line(db, dsn, bare):
    """With valid ids of objects that do not exist."""
    codes = {}
    for path in ORDINARY:
        codes[path] = told(bare(*arguments(path), "--dsn", dsn), path).code
    missing = {path for path, code in codes.items() if code == 3}
    assert missing >= {
        ("show",),
        ("flow", "show"),
        ("cancel",),
        ("budget", "show"),
        ("quota", "show"),
        ("tail",),
    }


def test_a_login_without_a_role_is_told_in_one_line(db, dsn, bare):
    db.execute("create role pyff_test_stranger login")
    try:
        for path in ORDINARY:
            if path[0] not in FOR_EMPTY_ONES_TOO:
                said = told(bare(*arguments(path), "--dsn", f"{dsn} user=pyff_test_stranger"), path)
                assert (said.code, "permission denied" in said.err) == (4, True), (path, said)
    finally:
        db.execute("drop role pyff_test_stranger")


@pytest.mark.parametrize("garbage", ["", "nonsense", "\udcff", "-1", "9" * 40])
def test_garbage_is_refused_without_a_traceback(db, dsn, bare, garbage):
    """As every argument, and as the value of every option."""
    for path in ORDINARY:
        plain = arguments(path)
        for action in LEAVES[path]._actions:
            if action.dest == "dsn" or action.nargs == 0 or path == ("sql",):
                continue
            if action.option_strings:
                args = [*plain, f"{action.option_strings[-1]}={garbage}"]
            else:
                args = [garbage if word == sample(action) else word for word in plain]
            said = bare(*args, "--dsn", dsn)
            assert said.code in (0, 1, 2, 3, 4, 5), (args, said)
            assert "Traceback" not in said.err, args
            if said.code:
                assert said.err.count("\n") == 1, (args, said)


@names(LEAVES)
def test_an_unknown_option_is_exit_code_2_and_one_line_that_names_the_help(path, bare):
    said = bare(*arguments(path), "--no-such-option")
    assert said.code == 2
    assert (
        said.err == f"pyff: unrecognized arguments: --no-such-option (hint: pyff {' '.join(path)} --help)\n"
    )


@names(path for path, node in LEAVES.items() if any(a.type for a in node._actions))
def test_a_wrong_argument_is_one_line_that_names_the_help_of_the_command(path, bare):
    said = bare(*path, "--limit", "x", "--state=?", "--delay=x", "\n")
    assert said.code == 2
    assert_one_line(said)
    assert said.err.startswith("pyff: ")
    assert "--help)" in said.err


@pytest.fixture(scope="module")
def empty(pyff_server):
    """A database without pyff."""
    name = f"pyff_test_empty_{os.getpid()}"
    with psycopg.connect(pyff_server, autocommit=True) as admin:
        admin.execute(f"create database {name}")
        yield make_conninfo(pyff_server, dbname=name)
        admin.execute(f"drop database {name} with (force)")


def test_without_a_command_it_says_what_there_is(monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    with pytest.raises(SystemExit) as left:
        main([])
    assert left.value.code == 2
    assert capsys.readouterr().err == (
        "pyff: the following arguments are required: COMMAND (hint: pyff --help)\n"
    )
