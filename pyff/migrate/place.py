"""The two schemas of an installation: the callers' schema, and the private one."""

from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import sql
from psycopg.rows import tuple_row

from pyff.migrate import statements


@dataclass(frozen=True)
class Place:
    """Both names, unquoted."""

    schema: str = "public"
    private: str = "ff"

    @property
    def hidden(self) -> str:
        """The private schema, quoted."""
        return _identifier(self.private)

    @property
    def callers(self) -> str:
        """The callers' schema, quoted."""
        return _identifier(self.schema)

    def of(self, name: str) -> str:
        """The table `name` of the private schema, for a query."""
        return f"{self.hidden}.{name}"

    def enter(self) -> str:
        """The statements that begin a transaction on these schemas."""
        return _chosen(self.schema, self.private) + statements.PATH

    def look_here(self) -> str:
        """For statements outside a transaction. If a pooler sends them to another session, they find no table."""
        return f"set search_path = {self.hidden}, pg_temp"


def choose(schema: str | None, private: str | None) -> str:
    """The requested schemas, for `preflight.sql`."""
    return _chosen(schema or "", private or "")


def find(
    conn: psycopg.Connection[Any], schema: str | None = None, private: str | None = None
) -> Place | None:
    """
    The requested place; otherwise the first schema of the search_path, and the private schema that its comment assigns
    to it. None: there is no such schema.
    """
    row = conn.cursor(row_factory=tuple_row).execute(statements.PLACE, {"schema": schema, "private": private})
    found = row.fetchone()
    return Place(*found) if found and found[0] else None


def show_private(conn: psycopg.Connection[Any], *, local: bool = False) -> None:
    """
    Appends the private schema of the first installation to the search_path, for owners that read tables.
    `local`: until the end of the transaction.
    """
    cursor = conn.cursor(row_factory=tuple_row)
    installed = cursor.execute(statements.INSTALLATIONS).fetchone()
    place = find(conn, installed[1] if installed else None) or Place()
    path = "select set_config('search_path', concat_ws(', ', nullif(current_setting('search_path'), ''), %s::text), %s)"
    cursor.execute(path, [place.hidden, local])


def _chosen(schema: str, private: str) -> str:
    return (
        f"set local pyff.schema = {_literal(schema)};\nset local pyff.private_schema = {_literal(private)};\n"
    )


def _identifier(name: str) -> str:
    return sql.Identifier(name).as_string(None)


def _literal(text: str) -> str:
    return sql.Literal(text).as_string(None)
