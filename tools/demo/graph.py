"""The flow of the newsletter: sources, a draft, an approval, the print, translations, the dispatch."""

from collections.abc import Iterator
from dataclasses import dataclass
from uuid import UUID

from pyff.app import App
from pyff.engine import Engine
from pyff.types import JsonValue

SOURCES = ("agency", "gazette", "journal", "tabloid", "courier")
ENOUGH = 4
LANGUAGES = ("french", "german", "greek", "polish", "spanish", "turkish")


@dataclass(frozen=True)
class Graph:
    flow_id: UUID
    members: dict[str, str]
    """Execution ids by node."""


def submit(engine: Engine, app: App) -> Graph:
    made = engine.submit_flow(
        [*_nodes(app)],
        edges=[*_edges()],
        groups=[{"to": "write", "policy": "quorum", "k": ENOUGH, "on_satisfied": "let_run"}],
        namespace=app.namespace,
        flow_kind="newsletter",
    )
    return Graph(made[0].flow_id, {row.node_key: row.execution_id for row in made})


def _nodes(app: App) -> Iterator[JsonValue]:
    calls: list[tuple[str, str, tuple[object, ...]]] = [
        *((source, "fetch", (source,)) for source in SOURCES),
        ("write", "write", ()),
        ("approve", "approve", ()),
        ("print", "print", ()),
        *((language, "translate", (language,)) for language in LANGUAGES),
        ("send", "send", ()),
    ]
    for key, name, arguments in calls:
        task = app.tasks[name]
        payload = task.signature.encode(arguments)
        yield {
            "key": key,
            "lane_id": task.options.lane,
            "execution_kind": task.name,
            "policy": task.options.full_policy(),
            "payload": None if payload is None else payload.decode(),
            "payload_encoding": task.signature.encoding,
        }


def _edges() -> Iterator[JsonValue]:
    for source in SOURCES:
        yield {"from": source, "to": "write"}
    yield {"from": "write", "to": "approve"}
    yield {"from": "approve", "to": "print"}
    for language in LANGUAGES:
        yield {"from": "print", "to": language}
        yield {"from": language, "to": "send", "dependency_kind": "any_terminal"}
