"""The SQL files of one release, as read from the disk."""

import functools
import hashlib
import json
import re
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pyff._paths import db_root
from pyff.failure import Failure
from pyff.migrate.place import Place

ROLES: Final = ("ff_reader", "ff_producer", "ff_worker", "ff_signaler", "ff_operator", "ff_admin")
"""The roles of sql/roles.sql, in the order in which a grant line names them."""

# The schema of an object follows from its name: pyff__home in tools.sql decides the same.
_FOR_CALLERS = re.compile(
    r"^((?:create or replace|comment on) (?:(?:function|procedure) (?=ff_(?!_))|(?:view|column) (?=ff_v_)))",
    re.MULTILINE,
)
_MIGRATION = re.compile(r"(\d{4})\.[a-z0-9_]+")
# An object begins with the comment above it.
_OBJECT = re.compile(r"^(?:--.*\n)*create or replace (function|procedure|view) ([a-z0-9_]+)", re.MULTILINE)
_GRANT = re.compile(r"^-- grant:(.*)$", re.MULTILINE)


class MigrateError(Failure):
    """A migration that was refused or failed. What had been applied completely before stays applied."""


@dataclass(frozen=True)
class Migration:
    """`db/migrations/<id>.sql`, together with `<id>.rollback.sql`."""

    id: str
    path: Path
    text: str

    @property
    def version(self) -> int:
        return int(self.id[:4])

    @property
    def sha256(self) -> str:
        return _sha256(self.text)


@dataclass(frozen=True)
class SqlFile:
    """What creates or replaces the function or view `name`: a part of a file of `db/functions/<noun>`; or a script."""

    name: str
    path: Path
    text: str
    kind: str = "script"
    roles: tuple[str, ...] = ()
    """Who may call the function or select from the view: its grant line. None for a helper."""

    def sql(self, place: Place) -> str:
        """
        The file as it is executed. What callers use is created in their schema. @extschema@ stands for that schema,
        as in the script of an extension. All other names are found in the private schema.
        """
        return _FOR_CALLERS.sub(r"\1@extschema@.", self.text).replace("@extschema@", place.callers)


@dataclass(frozen=True)
class DbTree:
    """What a release ships: tables come by migration, functions and views by replacement."""

    root: Path
    migrations: tuple[Migration, ...]
    objects: tuple[SqlFile, ...]
    """Functions, then views, each by path: bodies are checked when all exist, but a view needs what it names."""
    scripts: tuple[SqlFile, ...]
    """The files at the top of db/functions, by name: they run after all objects, every time."""
    functions_sha256: str

    @property
    def version(self) -> int:
        return self.migrations[-1].version

    @staticmethod
    def load(root: Path) -> "DbTree":
        functions = root / "functions"
        paths = {path.relative_to(functions).as_posix(): path for path in functions.rglob("*.sql")}
        texts = {name: _read(path) for name, path in sorted(paths.items())}
        objects = [
            part for name, text in texts.items() if "/" in name for part in _objects(paths[name], text)
        ]
        _refuse_bad_names(objects)
        _refuse_bad_grants(objects)
        return DbTree(
            root=root,
            migrations=tuple(_migrations(root / "migrations")),
            objects=tuple(sorted(objects, key=lambda file: file.kind == "view")),
            scripts=tuple(
                SqlFile(paths[n].stem, paths[n], text.replace("@grants@", _grants(objects)))
                for n, text in texts.items()
                if "/" not in n
            ),
            functions_sha256=_sha256("".join(f"{name}\n{len(text)}\n{text}" for name, text in texts.items())),
        )


@functools.cache
def shipped() -> DbTree:
    """The files of this release, read once per process."""
    return DbTree.load(db_root())


def _migrations(directory: Path) -> list[Migration]:
    found = []
    for path in sorted(directory.glob("*.sql")):
        if path.name.endswith(".rollback.sql"):
            continue
        if not _MIGRATION.fullmatch(path.stem):
            raise MigrateError(f"{path}: a migration is called NNNN.what_it_does.sql")
        if not path.with_suffix(".rollback.sql").is_file():
            raise MigrateError(f"{path}: {path.stem}.rollback.sql is missing")
        found.append(Migration(path.stem, path, _read(path)))
    if [migration.version for migration in found] != list(range(1, len(found) + 1)) or not found:
        numbers = ", ".join(migration.id[:4] for migration in found) or "none"
        raise MigrateError(f"{directory}: migrations must be numbered 0001, 0002, ... (found: {numbers})")
    return found


def _objects(path: Path, text: str) -> list[SqlFile]:
    """The objects that a file defines, one after the other; each text keeps the numbers of its lines."""
    found = list(_OBJECT.finditer(text))
    if not found:
        raise MigrateError(f"{path}: the file defines no function or view")
    starts = [0, *(match.start() for match in found[1:])]
    ends = [*starts[1:], len(text)]
    return [
        SqlFile(
            match[2],
            path,
            "\n" * text.count("\n", 0, start) + text[start:end],
            match[1],
            tuple(re.findall(r"\w+", ",".join(_GRANT.findall(text[start:end])))),
        )
        for match, start, end in zip(found, starts, ends, strict=True)
    ]


def _refuse_bad_grants(objects: Collection[SqlFile]) -> None:
    """A public function or view names its roles; a helper has none."""
    for file in objects:
        if file.name.startswith("ff__"):
            if file.roles:
                raise MigrateError(
                    f"{file.path}: {file.name} has a grant line, but helpers are granted to no role"
                )
        elif not file.roles:
            hint = "write it below the COMMENT: -- grant: ff_reader, ff_admin"
            raise MigrateError(f"{file.path}: {file.name} has no grant line", hint=hint)
        elif list(file.roles) != [role for role in ROLES if role in file.roles]:
            raise MigrateError(
                f"{file.path}: the grant line of {file.name} must name roles in the order of {', '.join(ROLES)}"
            )


def _grants(objects: Collection[SqlFile]) -> str:
    """What @grants@ stands for in a script: an object as JSON, the roles of each public function and view."""
    return json.dumps({file.name: file.roles for file in objects if file.roles})


def _refuse_bad_names(objects: Collection[SqlFile]) -> None:
    """Helpers stand in any file; a public function or view begins the file that is named after it."""
    seen: dict[str, Path] = {}
    for file in objects:
        if not re.fullmatch(r"ff_[a-z0-9_]+", file.name):
            raise MigrateError(f"{file.path}: {file.name} is not the name of an ff_ function or ff_v_ view")
        if file.name in seen:
            raise MigrateError(f"{file.path}: {seen[file.name]} defines the same name")
        if not file.name.startswith("ff__") and file.path.stem != file.name:
            raise MigrateError(f"{file.path}: the file is not named after {file.name}, which it defines")
        seen[file.name] = file.path
    for path in {file.path for file in objects}:
        if path.stem.startswith("ff_") and seen.get(path.stem) != path:
            raise MigrateError(f"{path}: the file does not define {path.stem}, after which it is named")


def _read(path: Path) -> str:
    # Text mode: a checkout with CRLF line ends has the same checksum.
    return path.read_text(encoding="utf-8")


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
