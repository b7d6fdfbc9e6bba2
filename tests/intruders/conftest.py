"""Logins that are members of one role and own a schema, in which they create objects."""

from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest
from psycopg import sql

Enter = Callable[[str], psycopg.Connection[Any]]


@pytest.fixture
def enter(db: psycopg.Connection[Any], connect: Callable[..., psycopg.Connection[Any]]) -> Iterator[Enter]:
    """A session of a login that is a member of one role. It owns the schema `lair`, which comes first in its path."""
    made: list[str] = []

    def session(role: str) -> psycopg.Connection[Any]:
        name = f"intruder_{role}_{db.info.dbname}"
        db.execute(
            sql.SQL("create role {} login in role {}").format(sql.Identifier(name), sql.Identifier(role))
        )
        made.append(name)
        db.execute(sql.SQL("create schema if not exists lair"))
        db.execute(sql.SQL("grant all on schema lair to {}").format(sql.Identifier(name)))
        conn = connect(user=name)
        conn.execute("set search_path = lair, public")
        return conn

    yield session
    for name in made:
        db.execute(sql.SQL("drop owned by {} cascade").format(sql.Identifier(name)))
        db.execute(sql.SQL("drop role {}").format(sql.Identifier(name)))
