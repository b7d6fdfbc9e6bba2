"""No line of db and pyff is longer than 120 characters, generated code included."""

from pathlib import Path

ROOT = Path(__file__).parents[2]
LIMIT = 120


def test_no_line_is_too_long():
    files = [path for folder in ("db", "pyff") for path in (ROOT / folder).rglob("*.*")]
    texts = [path for path in files if path.suffix in {".sql", ".py"}]
    assert len(texts) > 300
    assert [
        f"{path.relative_to(ROOT)}:{number}"
        for path in texts
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if len(line) > LIMIT
    ] == []
