"""db/README.md, the map of db: what it names exists, and what exists is on it."""

import re
from pathlib import Path

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


def test_every_rule_is_in_the_file_that_the_map_names():
    for row in re.findall(r"^\| .*ff__.*$", MAP, re.MULTILINE):
        for names, file in re.findall(r"((?:`ff__\w+`(?:, | and, for sets, )?)+): `([^`]+)`", row):
            text = (DB / file).read_text()
            for name in re.findall(r"ff__\w+", names):
                assert f"function {name}(" in text, (name, file)


def test_every_helper_of_the_map_exists(db):
    known = {row["proname"] for row in table(db, "select proname from pg_proc where proname like 'ff\\_%%'")}
    assert set(re.findall(r"\bff__\w+", MAP)) - known - {"ff__name"} == set()
