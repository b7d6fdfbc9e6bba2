"""Installs and upgrades the SQL side of pyff."""

from pyff.migrate.run import Report, check, migrate, render_sql, rollback
from pyff.migrate.state import (
    SchemaGap,
    State,
    Status,
    check_installed,
    require_current,
    require_current_async,
)
from pyff.migrate.tree import DbTree, MigrateError

__all__ = [
    "DbTree",
    "MigrateError",
    "Report",
    "SchemaGap",
    "State",
    "Status",
    "check",
    "check_installed",
    "migrate",
    "render_sql",
    "require_current",
    "require_current_async",
    "rollback",
]
