"""A client of this release on the schema of a later one, which added arguments, columns and tables."""

import re

import psycopg
import pytest

from pyff import Engine
from pyff._generated import statements
from pyff.migrate import require_current
from pyff.statement import Statement
from tests.upgrades.releases import LONGER, later, upgrade

STATEMENTS = {name: value for name, value in vars(statements).items() if isinstance(value, Statement)}


@pytest.fixture
def upgraded(db, dsn, tmp_path):
    upgrade(dsn, later(tmp_path / "later"), 1)
    return db


def test_an_older_client_works_on_a_later_schema(upgraded, dsn):
    longer = "select p.proname from pg_proc p where 'p_later' = any (p.proargnames) and p.proname not like 'ff\\_\\_%'"
    assert {name for (name,) in upgraded.execute(longer)} == set(LONGER)
    require_current(upgraded)
    for name, statement in STATEMENTS.items():
        # NULL for every argument: refused by the function, if at all, and never for its signature or its columns.
        nothing = dict.fromkeys(re.findall(r"%\((\w+)\)[sb]", statement.sql))
        try:
            with upgraded.transaction():
                found = upgraded.execute(statement.sql, nothing)
                [statement.make(*row) for row in found] if found.description else None
        except psycopg.Error as error:
            assert (error.sqlstate or "").startswith("WF"), (name, error)
    with Engine(dsn) as engine:
        made = engine.create_execution("l", payload=b"x")
        claim = engine.claim("l", "w", "w-1")
        assert claim is not None
        engine.renew(claim.handle)
        assert engine.complete(claim.handle, result=b"y").outcome == "completed"
        assert engine.get_execution_result(made.execution_id).result == b"y"
