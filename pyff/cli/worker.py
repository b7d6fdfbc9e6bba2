"""`pyff worker`: run the tasks of an app."""

import argparse
import importlib
import json
import logging
import math
import os
import sys
from typing import TYPE_CHECKING

from pyff.cli.arguments import Commands, command
from pyff.cli.database import find, open_one
from pyff.failure import Failure

if TYPE_CHECKING:
    from pyff.app.registry import App
    from pyff.worker.observer import Observer

_STANDARD = set(logging.makeLogRecord({}).__dict__) | {"message", "asctime"}


def register(commands: Commands) -> None:
    parser = command(
        commands,
        "worker",
        "run the tasks of an app",
        "Claims executions and runs their tasks, until SIGTERM or Ctrl-C: then it lets running tasks finish and "
        "releases the rest; a second signal releases all at once. --json logs an object per line.",
        "pyff worker shop.tasks:app --lanes billing=3,mail --slots 32",
    )
    parser.add_argument("app", metavar="MODULE:APP", help="the App, such as shop.tasks:app")
    parser.add_argument(
        "--lanes",
        type=_lanes,
        metavar="A,B=3",
        help="lanes, optionally with weights (default: those of the tasks)",
    )
    parser.add_argument("--slots", type=_positive, default=16, help="concurrent tasks (default 16)")
    parser.add_argument(
        "--capabilities", type=_names, default=[], metavar="A,B", help="capabilities that executions may need"
    )
    parser.add_argument("--lease-ttl-ms", type=_positive, default=10_000, metavar="MS", help="default 10000")
    parser.add_argument(
        "--drain-s", type=_seconds, default=30.0, metavar="S", help="seconds to let tasks finish (default 30)"
    )
    parser.add_argument("--poll-s", type=_pause, default=1.0, metavar="S", help="default 1")
    parser.add_argument("--worker-id", metavar="NAME", help="default: the name of the host")
    parser.add_argument(
        "--listen-dsn", metavar="DSN", help="a direct connection for LISTEN if --dsn is a pooler"
    )
    parser.add_argument("--no-prepare", action="store_true", help="for a pooler in transaction mode")
    parser.add_argument("--no-maintain", action="store_true", help="run no maintenance")
    parser.add_argument("--sync-schedules", action="store_true", help="write the schedules of the app first")
    parser.add_argument("--metrics-port", type=_port, metavar="PORT", help="serve Prometheus metrics")
    parser.add_argument("--otel", action="store_true", help="a span per run, with OpenTelemetry")
    parser.add_argument("--log-level", choices=("debug", "info", "warning", "error"), default="info")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from pyff import Engine
    from pyff.worker import Worker

    _logging(args.log_level, as_json=args.json)
    app = load(args.app)
    dsn = find(args)
    for one in (dsn, args.listen_dsn):
        if one:
            open_one(one).close()  # for the best message on a connection error
    worker = Worker(
        app,
        dsn,
        lanes=args.lanes,
        slots=args.slots,
        capabilities=args.capabilities,
        lease_ttl_ms=args.lease_ttl_ms,
        poll_s=args.poll_s,
        drain_s=args.drain_s,
        worker_id=args.worker_id,
        listen_dsn=args.listen_dsn,
        prepare=not args.no_prepare,
        maintain=not args.no_maintain,
        observers=_observers(args.metrics_port, args.otel),
    )
    if args.sync_schedules:
        with Engine(dsn) as engine:
            app.sync_schedules(engine)
    worker.run()
    return 0


def load(place: str) -> "App":
    """The App at module:name."""
    from pyff.app import App

    module_name, _, name = place.partition(":")
    if not all(part.isidentifier() for part in module_name.split(".")):
        raise Failure(f"{module_name!r} is not a module name", hint="give MODULE:APP, as in shop.tasks:app")
    sys.path.insert(0, os.getcwd())  # noqa: PTH109
    try:
        found: object = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not (module_name + ".").startswith(error.name + "."):
            raise  # an import in the module failed
        raise Failure(
            f"module {module_name} not found", hint="give MODULE:APP, as in shop.tasks:app"
        ) from None
    for part in (name or "app").split("."):
        found = getattr(found, part, None)
    if not isinstance(found, App):
        raise Failure(f"{place} is not an App", hint="give MODULE:APP, as in shop.tasks:app")
    return found


def _observers(port: int | None, otel: bool) -> "list[Observer]":
    found: list[Observer] = []
    if port is not None:
        from pyff.worker.prometheus import Prometheus

        found.append(Prometheus(port=port))
    if otel:
        from pyff.worker.opentelemetry import OpenTelemetry

        found.append(OpenTelemetry())
    return found


class JsonLines(logging.Formatter):
    """One JSON object per line, with the extra fields of the record."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "time": self.formatTime(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        line |= {name: value for name, value in record.__dict__.items() if name not in _STANDARD}
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


def _logging(level: str, *, as_json: bool) -> None:
    handler = logging.StreamHandler()
    handler.setFormatter(
        JsonLines() if as_json else logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s")
    )
    logging.basicConfig(level=level.upper(), handlers=[handler])


def _names(text: str) -> list[str]:
    return [name for name in text.split(",") if name]


def _lanes(text: str) -> dict[str, float]:
    lanes = {}
    for item in _names(text):
        name, _, weight = item.partition("=")
        try:
            lanes[name] = float(weight or 1)
        except ValueError:
            lanes[name] = math.nan
        if not 0 < lanes[name] < math.inf:
            raise argparse.ArgumentTypeError(f"{weight[:32]!r} is not a weight: give a number above 0")
    if not lanes:
        raise argparse.ArgumentTypeError("no lane given")
    return lanes


def _positive(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 0 < int(text) <= 86_400_000):
        raise argparse.ArgumentTypeError(f"{text[:32]!r} is not a number above 0")
    return int(text)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 <= seconds <= 86_400:
        raise argparse.ArgumentTypeError(f"{text[:32]!r} is not between 0 and 86400")
    return seconds


def _pause(text: str) -> float:
    if not _seconds(text):
        raise argparse.ArgumentTypeError("must be above 0")
    return _seconds(text)


def _port(text: str) -> int:
    if _positive(text) > 65_535:
        raise argparse.ArgumentTypeError(f"{text[:32]!r} is not a port")
    return int(text)
