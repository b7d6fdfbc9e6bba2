"""`pyff ls`: executions, newest first."""

import argparse
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any
from uuid import UUID

from pyff.cli.arguments import LIMIT, LONGEST_MS, STATES, Commands, command, count, number, text, uuid
from pyff.cli.database import connection
from pyff.cli.output import fields, print_rows
from pyff.failure import Failure

if TYPE_CHECKING:
    import psycopg

    from pyff._generated.results import ListExecutionsRow
    from pyff.engine import Engine

COLUMNS = {
    "execution": "execution_id",
    "lane": "lane_id",
    "kind": "execution_kind",
    "state": "public_state",
    "priority": "priority",
    "created": "created_at_ms",
    "ended": "terminal_at_ms",
}


def register(commands: Commands) -> None:
    parser = command(
        commands,
        "ls",
        "list executions",
        "Lists executions by creation time, newest first. With --json each has a cursor for --after.",
        "pyff ls --lane mail --state failed",
        "pyff ls --tag app.customer=42 --all --oldest --json | jq -r .execution_id",
    )
    add_filters(parser)
    parser.add_argument("--oldest", action="store_true", help="oldest first")
    parser.add_argument("--after", metavar="CURSOR", type=text, help="start after this cursor")
    many = parser.add_mutually_exclusive_group()
    many.add_argument("--limit", type=count, default=50, metavar="N", help="at most N rows (default 50)")
    many.add_argument("--all", action="store_true", help="all of them")
    parser.set_defaults(run=run)


def add_filters(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--lane", type=text, help="only of this lane")
    parser.add_argument("--namespace", type=text, metavar="NAME", help="only of this namespace")
    parser.add_argument("--state", choices=STATES, metavar="STATE", help=", ".join(STATES))
    parser.add_argument("--flow", type=uuid, metavar="ID", help="only members of this flow")
    parser.add_argument("--tag", type=text, metavar="KEY[=VALUE]", help="only with this tag")


def run(args: argparse.Namespace) -> int:
    from pyff.engine import Engine

    at_most = None if args.all else args.limit
    with connection(args) as conn, Engine(conn, prepare_threshold=None) as db:
        db.ping()
        found: Iterator[object]
        if args.oldest:
            found = pages(db, args, after=args.after, at_most=at_most)
        else:
            if args.tag is not None:  # rejects an invalid tag key; there is nothing after the last id
                db.list_executions(tag_key=args.tag.partition("=")[0], after=_LAST, limit=1)
            found = newest(conn, args, after=args.after, at_most=at_most)
        if args.json:
            print_rows(args, found, COLUMNS, "")
            return 0
        rows = list(found)
        print_rows(args, rows, COLUMNS, "no such execution")
        if rows and len(rows) == at_most:
            print(f"there may be more: --all, or --after {fields(rows[-1])['cursor']}", file=sys.stderr)
    return 0


def pages(
    db: "Engine", args: argparse.Namespace, *, after: str | None, at_most: int | None
) -> "Iterator[ListExecutionsRow]":
    """The executions that match the filters, one page at a time."""
    key, sign, value = (args.tag or "").partition("=")
    left = at_most
    while left is None or left > 0:
        wanted = LIMIT if left is None else min(left, LIMIT)
        page = db.list_executions(
            lane_id=args.lane,
            namespace=args.namespace,
            public_state=args.state,
            flow_id=args.flow,
            tag_key=key or None,
            tag_value=value if sign else None,
            after=after,
            limit=wanted,
        )
        yield from page
        if len(page) < wanted:
            return
        after = page[-1].cursor
        left = None if left is None else left - len(page)


_NEWEST = """\
select (extract(epoch from e.created_at) * 1000)::bigint || '-' || e.execution_uuid as cursor, e.execution_id,
       e.namespace, e.lane_id, e.flow_id, e.execution_kind, e.public_state, e.priority,
       (extract(epoch from e.created_at) * 1000)::bigint as created_at_ms,
       (extract(epoch from e.terminal_at) * 1000)::bigint as terminal_at_ms
  from ff_v_execution e
 where {conditions}
 order by e.execution_uuid desc limit %(limit)s"""
_LAST = f"{LONGEST_MS}-{UUID(int=2**128 - 1)}"
_FILTERS = {
    "lane": "e.lane_id = %(lane)s",
    "namespace": "e.namespace = %(namespace)s",
    "state": "e.public_state = %(state)s",
    "flow": "e.flow_id = %(flow)s",
}


def newest(
    conn: "psycopg.Connection[Any]", args: argparse.Namespace, *, after: str | None, at_most: int | None
) -> "Iterator[dict[str, Any]]":
    """The rows of ff_list_executions in reverse order, read from the view with its index."""
    from psycopg.rows import dict_row

    conditions = ["true", *(text for name, text in _FILTERS.items() if getattr(args, name) is not None)]
    values = {name: getattr(args, name) for name in _FILTERS}
    key, sign, value = (args.tag or "").partition("=")
    if args.tag is not None:
        conditions.append(
            "e.tags @> jsonb_build_object(%(key)s::text, %(value)s::text)" if sign else "e.tags ? %(key)s"
        )
        values |= {"key": key, "value": value}
    left = at_most
    while left is None or left > 0:
        place = []
        if after is not None:
            values["id"] = _place(after)
            place = ["e.execution_uuid < %(id)s"]
        values["limit"] = LIMIT if left is None else min(left, LIMIT)
        query = _NEWEST.format(conditions=" and ".join([*conditions, *place]))
        page = conn.cursor(row_factory=dict_row).execute(query.encode(), values).fetchall()
        yield from page
        if len(page) < values["limit"]:
            return
        after = page[-1]["cursor"]
        left = None if left is None else left - len(page)


def _place(cursor: str) -> UUID:
    """The id in a cursor, which is a time and an id."""
    ms, _, name = cursor.partition("-")
    try:
        number(ms)
        return UUID(name)
    except (ValueError, argparse.ArgumentTypeError):
        raise Failure(
            f"{cursor[:64]!r} is not a cursor",
            hint="take it from the field cursor of --json, or from the note below a table",
        ) from None
