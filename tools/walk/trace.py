"""Functions that announce their calls."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import psycopg
from psycopg.errors import Diagnostic

_ANNOUNCE = """
set check_function_bodies = off;
create schema walk;
create function walk.announce() returns boolean language plpgsql as $$
begin
    raise notice 'walk';
    return true;
end
$$;
grant usage on schema walk to public;
"""
_FUNCTIONS = """
select pg_get_functiondef(p.oid), l.lanname, p.prosrc
  from pg_proc p join pg_language l on l.oid = p.prolang
 where p.proname like 'ff\\_%' and l.lanname in ('sql', 'plpgsql')
"""
_FRAME = re.compile(r"^(?:PL/pgSQL|SQL) function \"?(?:\w+\.)?(\w+)", re.M)


@dataclass
class Call:
    """One call of a function, with the calls that it makes, in order."""

    name: str
    calls: "list[Call]" = field(default_factory=list)

    def everything(self) -> "Iterator[Call]":
        """This call and those below it, in order."""
        yield self
        for call in self.calls:
            yield from call.everything()


def instrument(conn: psycopg.Connection[Any]) -> None:
    """Replaces every function by one that announces its calls. It also keeps SQL functions from being inlined."""
    conn.execute(_ANNOUNCE)
    for definition, language, body in conn.execute(_FUNCTIONS).fetchall():
        announcing = _announcing_sql(body) if language == "sql" else _announcing_plpgsql(body)
        conn.execute(definition.replace(body, announcing).encode())


def _announcing_sql(body: str) -> str:
    return f"\nselect walk.announce();{body}"


def _announcing_plpgsql(body: str) -> str:
    """By the first variable: the values of others may be calls."""
    first = re.search(r"^\s*(declare|begin)\b", body, re.M)
    if first is None:
        raise ValueError(f"no block: {body[:80]}")
    rest = body[first.end() :] if first[1] == "declare" else f"\nbegin{body[first.end() :]}"
    return f"{body[: first.start(1)]}declare v_walk boolean := walk.announce();{rest}"


@contextmanager
def traced(conn: psycopg.Connection[Any]) -> Iterator[list[Call]]:
    """The calls that the block makes at the top, each with those below it; complete at its end."""
    stacks: list[list[str]] = []
    calls: list[Call] = []

    def collect(notice: Diagnostic) -> None:  # psycopg logs its errors and continues
        if notice.message_primary == "walk":
            stacks.append(_FRAME.findall(notice.context or ""))

    conn.add_notice_handler(collect)
    try:
        yield calls
    finally:
        conn.remove_notice_handler(collect)
    for _, name, *callers in stacks:  # from the inside
        below = calls
        for caller in reversed(callers):
            if below[-1].name != caller:
                raise ValueError(f"{name} is called by {caller}, which is not the last call")
            below = below[-1].calls
        below.append(Call(name))
