"""The errors of the engine as exceptions: one class per kind, under one base per class of error.

The table ff_error_code in the database is the source of the list; SQLSTATE and the json DETAIL of a database
error are the source of an instance. ConnectionLost is the only error that the database does not raise.
"""

import json
from typing import Any

import psycopg
from psycopg_pool import PoolClosed

from pyff._generated.errors import *  # noqa: F403
from pyff._generated.errors import BY_PREFIX, BY_SQLSTATE, EngineError
from pyff.connection_lost import *  # noqa: F403
from pyff.connection_lost import ConnectionLost, connection_lost


def translate(error: psycopg.Error, *, may_have_run: bool = True) -> EngineError | psycopg.Error:
    """The engine's error behind a database error; any other error is returned unchanged.

    An unknown code of a newer database becomes the base of its class: WF4xx is a State. A lost connection becomes
    ConnectionLost; a closed pool of the caller does not, because a retry would not help.
    """
    code = error.sqlstate or ""
    if connection_lost(error) and not isinstance(error, ConnectionLost | PoolClosed):
        return ConnectionLost(str(error).strip(), may_have_run=may_have_run, sqlstate=code)
    if not code.startswith("WF"):
        return error
    known = BY_SQLSTATE.get(code)
    cls = known or BY_PREFIX.get(code[:3], EngineError)
    detail = _json_object(error.diag.message_detail)
    translated = cls(error.diag.message_primary, hint=error.diag.message_hint, detail=detail)
    if not known:
        translated.sqlstate = code
        translated.kind = str(detail.get("kind", ""))
    return translated


def _json_object(text: str | None) -> dict[str, Any]:
    try:
        value = json.loads(text or "{}")
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}
