"""The page on settings: its tables are generated (tests/client/test_codegen.py); the environment variables are all."""

import re

from tests.docs.blocks import ROOT

PAGE = (ROOT / "docs" / "settings.md").read_text()


def test_every_environment_variable_of_the_package_is_listed():
    sources = [path.read_text() for path in (ROOT / "pyff").rglob("*.py") if "codegen" not in path.parts]
    used = {name for source in sources for name in re.findall(r"\bPYFF_[A-Z_]+\b", source)}
    _, _, section = PAGE.partition("## Environment variables")
    assert {*re.findall(r"^\| `(PYFF_[A-Z_]+)` \|", section, re.M)} == used


def test_the_tables_are_filled():
    for name in ("settings", "policy"):
        _, _, rest = PAGE.partition(f"<!-- {name}:begin -->")
        assert rest.partition(f"<!-- {name}:end -->")[0].count("\n| `") > 8
