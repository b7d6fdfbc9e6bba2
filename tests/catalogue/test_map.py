"""db/README.md, the map of db: the objects it names exist, and it names all tables."""

import re
from pathlib import Path

from pyff.migrate.tree import shipped
from tests.sql import table

DB = Path(__file__).parents[2] / "db"
MAP = (DB / "README.md").read_text()


def test_every_file_of_the_map_exists():
    named = set(re.findall(r"`((?:functions|migrations)[/.\w]*)`", MAP))
    assert [name for name in sorted(named) if not (DB / name).exists()] == []
    assert len(named) > 50


def test_every_table_is_on_the_map(db):
    tables = table(
        db,
        "select relname from pg_class where relkind in ('r', 'p') and relnamespace = 'ff'::regnamespace"
        " and relname like 'ff\\_%%' and not relispartition",
    )
    assert sorted(row["relname"] for row in tables if f"`{row['relname']}`" not in MAP) == []


def test_every_folder_and_script_is_on_the_map():
    entries = [path for path in (DB / "functions").iterdir() if path.is_dir() or path.suffix == ".sql"]
    assert [path.name for path in entries if f"`functions/{path.name}`" not in MAP] == []
    missing = [
        path.name for path in (DB / "migrations").glob("*.sql") if f"migrations/{path.name}" not in MAP
    ]
    assert [name for name in missing if "rollback" not in name] == ["0002.error_codes.sql"]


def test_every_noun_has_its_tests_in_a_directory_of_the_same_name():
    nouns = {path.name for path in (DB / "functions").iterdir() if path.is_dir()} - {"core"}
    tests = Path(__file__).parents[1]
    assert [noun for noun in sorted(nouns) if not any((tests / noun).glob("test_*.py"))] == []


def test_every_rule_is_in_the_file_that_the_map_names():
    for row in re.findall(r"^\| .*ff__.*$", MAP, re.MULTILINE):
        for names, file in re.findall(r"((?:`ff__\w+`(?:, | and, for sets, )?)+): `([^`]+)`", row):
            text = (DB / file).read_text()
            for name in re.findall(r"ff__\w+", names):
                assert f"function {name}(" in text, (name, file)


def test_every_helper_of_the_map_exists(db):
    known = {row["proname"] for row in table(db, "select proname from pg_proc where proname like 'ff\\_%%'")}
    assert set(re.findall(r"\bff__\w+", MAP)) - known - {"ff__name"} == set()


def calls() -> tuple[dict[str, str], dict[str, set[str]]]:
    """The file of each helper, as noun/file.sql, and those of the functions that call it."""
    objects = shipped().objects
    files = {file.name: f"{file.path.parent.name}/{file.path.name}" for file in objects}
    callers: dict[str, set[str]] = {name: set() for name in files if name.startswith("ff__")}
    for file in objects:
        for called in set(re.findall(r"\bff__\w+(?=\()", re.sub("--.*", "", file.text))) - {file.name}:
            callers[called].add(files[file.name])
    return files, callers


def test_every_helper_has_a_caller():
    _, callers = calls()
    assert [name for name, found in callers.items() if not found] == []


def test_a_helper_that_one_file_uses_stands_in_that_file():
    """Or in a file of its own idea: neither below a public function, nor among those that several functions share."""
    files, callers = calls()
    for name, found in callers.items():
        if re.search(r"/(shared|errors|ff_(?!_)\w+)\.sql$", files[name]):
            assert len(found) > 1 or found == {files[name]}, (name, files[name], found)


def test_below_a_public_function_stand_helpers_that_it_alone_uses():
    """Invariants may use them too."""
    files, callers = calls()
    for name, found in callers.items():
        if re.search(r"/ff_(?!_)\w+\.sql$", files[name]):
            assert {file for file in found if not file.startswith("invariants/")} == {files[name]}, (
                name,
                found,
            )


def test_what_only_one_noun_uses_is_in_its_room():
    files, callers = calls()
    for name, found in callers.items():
        nouns = {file.split("/")[0] for file in found} - {"invariants", "views"}
        noun = files[name].split("/")[0]
        # Events are written in one file.
        if noun == "core" and files[name] != "core/events.sql":
            assert len(nouns) > 1 or nouns == {"core"}, (name, found)
        elif noun not in {"core", "invariants"}:
            assert nouns == {noun}, (name, found)
