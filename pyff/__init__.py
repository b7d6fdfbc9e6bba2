"""pyff: a durable execution engine that lives inside PostgreSQL.

`Engine` and `AsyncEngine` have one typed method per SQL function. Their results and errors are here too:
`from pyff import ClaimRow, StaleLease`.
"""

from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "0.1.0"

_HOMES = (
    "engine",
    "async_engine",
    "stored_cursor",
    "async_stored_cursor",
    "types",
    "failure",
    "_generated.errors",
    "connection_lost",
    "_generated.results",
    "app",
    "worker",
)

if TYPE_CHECKING:
    from pyff._generated.errors import *  # noqa: F403
    from pyff._generated.results import *  # noqa: F403
    from pyff.app import *  # noqa: F403
    from pyff.async_engine import *  # noqa: F403
    from pyff.async_stored_cursor import *  # noqa: F403
    from pyff.connection_lost import *  # noqa: F403
    from pyff.engine import *  # noqa: F403
    from pyff.failure import *  # noqa: F403
    from pyff.stored_cursor import *  # noqa: F403
    from pyff.types import *  # noqa: F403
    from pyff.worker import *  # noqa: F403
else:

    def __getattr__(name: str) -> object:
        """Imports on demand, so that the command line starts quickly."""
        if not name.startswith("_"):
            for home in _HOMES:
                module = import_module(f"pyff.{home}")
                if name in module.__all__:
                    return globals().setdefault(name, getattr(module, name))
        raise AttributeError(f"module 'pyff' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *(name for home in _HOMES for name in import_module(f"pyff.{home}").__all__)})
