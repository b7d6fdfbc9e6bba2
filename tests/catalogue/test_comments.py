"""Every column of a table or view has a COMMENT, which \\d+ shows."""

from tests.sql import table

COLUMNS = """
    select c.relname || '.' || a.attname as name, a.attname as column, col_description(c.oid, a.attnum) as comment
      from pg_class c
      join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
     where c.relkind in ('r', 'p', 'v', 'm') and c.relname like 'ff\\_%%'
       and c.relnamespace in ('public'::regnamespace, 'ff'::regnamespace)
     order by 1
"""


def test_every_column_has_a_comment_that_says_more_than_its_name(db):
    columns = table(db, COLUMNS)
    assert len(columns) > 800
    assert [c["name"] for c in columns if not (c["comment"] or "").strip()] == []
    repeated = [
        c["name"]
        for c in columns
        if c["comment"].strip(" .").lower().replace(" ", "_").removeprefix("the_") == c["column"]
    ]
    assert repeated == []
    assert [c["name"] for c in columns if not c["comment"].endswith(".")] == []


def test_a_time_in_milliseconds_says_so(db):
    times = [c for c in table(db, COLUMNS) if c["column"].endswith("_ms")]
    assert [c["name"] for c in times if "in ms" not in c["comment"]] == []
