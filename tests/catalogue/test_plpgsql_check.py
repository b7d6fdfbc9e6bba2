"""plpgsql_check, if the server has it: no errors, no warnings, nothing unused."""

import os

import pytest

from tests.sql import table


def test_plpgsql_check_finds_nothing(db, connect):
    """On a connection of its own: the extension hooks into every function of the session that loads it."""
    if not table(db, "select 1 as x from pg_available_extensions where name = 'plpgsql_check'"):
        if os.environ.get("PYFF_NEED_PLPGSQL_CHECK"):
            pytest.fail("plpgsql_check is not installed, and PYFF_NEED_PLPGSQL_CHECK wants it")
        pytest.skip("this server has no plpgsql_check")
    db.execute("create extension plpgsql_check")
    query = """
        select p.proname, r.lineno, r.level, r.message, r.detail, r.statement
          from pg_proc p
          join pg_language l on l.oid = p.prolang and l.lanname = 'plpgsql',
               lateral plpgsql_check_function_tb(p.oid, fatal_errors => false, all_warnings => true) r
         where p.proname like 'ff\\_%%' and p.pronamespace in ('public'::regnamespace, 'ff'::regnamespace)
         order by p.proname, r.lineno
    """
    found = [row for row in table(db, query) if row["level"] != "performance"]
    assert not found, "\n".join(map(str, found))
