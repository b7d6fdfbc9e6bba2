"""The tables of docs/settings.md: the settings of a database, and the keys of a policy.

Names, defaults and ranges come from a migrated database: from the table ff_setting, and from the errors for invalid
values. The rest of the page is written by hand.
"""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, LiteralString, cast

import psycopg

from pyff.failure import Failure
from pyff.migrate.place import show_private

PAGE = Path(__file__).parents[2] / "docs" / "settings.md"

POLICY: Mapping[str, str] = {
    "priority": "the priority, unless the submission passes one; limited to 0 to 9000, higher is claimed first",
    "delay_until_ms": "the earliest start, unless the submission passes one; milliseconds since the epoch",
    "retry_policy": "retries after failures; without it a failed attempt ends the execution",
    "retry_policy.max_retries": "retries, the first attempt not counted",
    "retry_policy.retryable_categories": "the categories to retry; `[]`: all",
    "retry_policy.backoff": "the delay before each retry",
    "retry_policy.backoff.type": "whether all delays are equal or grow",
    "retry_policy.backoff.delay_ms": "of `fixed`: the delay; required",
    "retry_policy.backoff.initial_delay_ms": "of `exponential`: the delay before the first retry",
    "retry_policy.backoff.multiplier": "of `exponential`: the factor from one delay to the next",
    "retry_policy.backoff.max_delay_ms": "of `exponential`: the longest delay",
    "retry_policy.backoff.jitter": "of `exponential`: whether each delay is random, between half of it and all of it",
    "timeout_policy": "limits on time",
    "timeout_policy.attempt_timeout_ms": "how long one attempt may run; then it fails, and may be retried",
    "timeout_policy.execution_deadline_ms": "the time from submission or replay after which the execution expires",
    "timeout_policy.max_reclaim_count": "another place for `max_reclaim_count`, which takes precedence",
    "max_reclaim_count": "how often the execution may be reclaimed before it fails",
    "max_replay_count": "how often the execution may be replayed",
    "dedup_window_ms": "how long its idempotency key is remembered; 0: not at all",
    "retention_ms": "how long it is kept after its end, instead of the settings of the database",
    "quota_policy_id": "the quota policy that limits its starts ([admission.md](admission.md))",
    "budget_ids": "the budgets that it is attached to ([budgets.md](budgets.md))",
    "routing_requirements": "requirements on the worker",
    "routing_requirements.required_capabilities": "capabilities, in addition to `p_required_capabilities`",
    "routing_requirements.preferred_locality": "stored with the execution; the engine does not use it",
    "routing_requirements.isolation_level": "stored with the execution; the engine does not use it",
    "stream_policy": "limits on the stream of an attempt",
    "stream_policy.maxlen": "how many durable frames are kept, 10 000 without it; older ones are trimmed",
    "max_signals_per_execution": "how many signals it may receive",
    "suspension_policy": "stored with the execution; the engine does not use it",
    "fallback_policy": "stored with the execution; the engine does not use it",
}
"""The meaning of every key, in the order of the page."""

NO_BOUND = 10**14
"""Larger bounds are the end of the year 9999."""


def settings_page(conn: psycopg.Connection[object]) -> str:
    """The page with its tables replaced."""
    text = PAGE.read_text()
    with conn.transaction(force_rollback=True):
        show_private(conn, local=True)
        tables = {"settings": [*_settings(conn)], "policy": [*_policy(conn)]}
    for name, rows in tables.items():
        begin, end = f"<!-- {name}:begin -->\n", f"<!-- {name}:end -->"
        head, _, rest = text.partition(begin)
        _, _, tail = rest.partition(end)
        text = "".join((head, begin, "\n".join(rows), "\n", end, tail))
    return text


def _settings(conn: psycopg.Connection[object]) -> Iterator[str]:
    yield from ("| setting | default | values | meaning |", "|---|---|---|---|")
    query = "select name, value, description from ff_setting order by name"
    for name, value, description in cast(list[tuple[str, str, str]], conn.execute(query).fetchall()):
        error = _error(conn, "select ff_set_setting(%s, '-1')", name)
        yield f"| `{name}` | `{value}`{_time(name, value)} | {_values(error)} | {description} |"


def _policy(conn: psycopg.Connection[object]) -> Iterator[str]:
    known = _keys(conn)
    if known != POLICY.keys():
        raise Failure(
            f"keys of a policy without a meaning, or unknown ones: {', '.join(sorted(known ^ POLICY.keys()))}",
            hint="Change POLICY in tools/codegen/settings.py.",
        )
    stored = _normal(conn, {"retry_policy": {}})
    yield from ("| key | default | values | meaning |", "|---|---|---|---|")
    for path, meaning in POLICY.items():
        default: object = stored
        for key in path.split("."):
            default = default.get(key) if isinstance(default, dict) else None
        shown = "" if default is None or isinstance(default, dict) else json.dumps(default)
        shown = f"`{shown}`{_time(path, shown)}" if shown else ""
        yield f"| `{path}` | {shown} | {_accepted(conn, path)} | {meaning} |"


def _keys(conn: psycopg.Connection[object]) -> set[str]:
    """The keys that the functions accept, as paths."""
    found: set[str] = set()
    query = "select prosrc from pg_proc where proname in ('ff__normal_policy', 'ff__normal_retry_policy')"
    for (source,) in cast(list[tuple[str]], conn.execute(query).fetchall()):
        for path, keys in re.findall(r"ff__policy_object\(.*?'([a-z_.]*)',\s*'\{([a-z_,\s]+)\}'\)", source):
            found |= {f"{path}.{key.strip()}".lstrip(".") for key in keys.split(",")}
    return found


def _accepted(conn: psycopg.Connection[object], path: str) -> str:
    """The values of a key, from the error for an invalid one."""
    *parents, key = path.split(".")
    for invalid in (-1.5, "", [""], True):
        policy: dict[str, object] = {key: invalid}
        if path == "retry_policy.backoff.delay_ms":
            policy["type"] = "fixed"
        for parent in reversed(parents):
            policy = {parent: policy}
        error = _error(conn, _NORMAL, json.dumps(policy))
        if error and not error.endswith(("must be a number", "must be an array of strings")):
            return _values(error)
    return _BY_HAND[path]


_BY_HAND = {
    "routing_requirements.required_capabilities": "strings",
    "routing_requirements.preferred_locality": "any",
    "routing_requirements.isolation_level": "any",
}


def _values(error: str) -> str:
    if found := re.search(r"between (-?\d+) and (\d+)", error):
        low, high = int(found[1]), int(found[2])
        return f"{low} or more" if high > NO_BOUND else f"{low} to {high}"
    _, _, rest = error.partition(" must be ")
    return _PHRASES.get(rest, rest) or error.partition(" must hold ")[2]


_PHRASES = {"an object": "an object", "true or false": "`true` or `false`", "on or off": "`on` or `off`"}


def _time(name: str, value: str) -> str:
    """The value of a setting in milliseconds, for people."""
    if not name.endswith("_ms") or not value.isdigit() or int(value) == 0:
        return ""
    for size, unit in ((86_400_000, "day"), (3_600_000, "hour"), (60_000, "minute"), (1000, "second")):
        if int(value) % size == 0:
            count = int(value) // size
            return f" ({count} {unit}{'' if count == 1 else 's'})"
    return ""


_NORMAL: Final = "select ff__normal_policy(%s::jsonb, ff_now_ms())"


def _normal(conn: psycopg.Connection[object], policy: object) -> object:
    (row,) = cast(list[tuple[object]], conn.execute(_NORMAL, [json.dumps(policy)]).fetchall())
    return row[0]


def _error(conn: psycopg.Connection[object], query: LiteralString, argument: str) -> str:
    """The message of the error of a call; empty if there is none."""
    try:
        with conn.transaction(force_rollback=True):
            conn.execute(query, [argument])
    except psycopg.Error as error:
        return error.diag.message_primary or ""
    return ""
