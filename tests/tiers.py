"""Which tests run: ./test leaves out the slow ones, ./test --slow runs only these, ./test --all runs both.

A slow test has a mark with the reason, which is one of those below. A file or a test that the command line names runs
in any case, and so does what `-m` selects by the word slow.
"""

from pathlib import Path

import pytest

REASONS = {
    "kills processes": "servers, workers and clients end by a signal, while they work",
    "waits for real time": "for the clock of a program or of the kernel, which no test can move",
    "installs packages": "into a place of its own, far from the checkout",
    "builds environments": "unpacks, copies or compiles what other tests find ready",
    "other isolation levels": "the same at READ COMMITTED is in the inner loop",
    "long run": "random clients, load, benchmarks: the longer, the more they find",
}

MARKS = {
    "slow(reason)": "left out by ./test, which runs it with --slow or --all",
    "once": "does not depend on the version of the server: .ci/run leaves it out on PostgreSQL 15",
}

# The marks of all tests of a directory.
DIRECTORIES = {
    "app": ("once", "programs"),
    "bench": ("once", "programs"),
    "bootstrap": ("once", "programs"),
    "cli": ("once", "programs"),
    "client": ("once",),
    "demo": ("once", "programs"),
    "docs": ("once", "programs"),
    "examples": ("once", "programs"),
    "intruders": ("once",),
    "migrate": ("programs",),
    "packaging": ("once", "programs"),
    "postgres": ("once", "programs"),
    "prove": ("once",),
    "testing": ("once", "programs"),
    "tools": ("once", "programs"),
    "upgrades": ("once", "programs"),
    "worker": ("once", "programs"),
}


def add_options(parser: pytest.Parser) -> None:
    group = parser.getgroup("pyff")
    group.addoption("--slow", action="store_const", const="slow", dest="tier", help="the slow tests only")
    group.addoption("--all", action="store_const", const="all", dest="tier", help="the slow tests, too")


def configure(config: pytest.Config) -> None:
    for name, meaning in MARKS.items():
        config.addinivalue_line("markers", f"{name}: {meaning}")


def mark(items: list[pytest.Item]) -> None:
    for item in items:
        for name in DIRECTORIES.get(item.path.parent.name, ()):
            item.add_marker(name)


def select(config: pytest.Config, items: list[pytest.Item]) -> None:
    tier = config.option.tier
    if tier == "all" or "slow" in config.option.markexpr:
        return
    named = {Path(config.invocation_params.dir, argument.split("::")[0]) for argument in config.args}
    kept: list[pytest.Item] = []
    others: list[pytest.Item] = []
    for item in items:
        slow = item.get_closest_marker("slow")
        if slow is not None and slow.args[0] not in REASONS:
            raise pytest.UsageError(
                f"{item.nodeid}: not a reason to be slow: {slow.args[0]!r} (tests/tiers.py)"
            )
        wanted = slow is not None if tier == "slow" else slow is None or item.path in named
        (kept if wanted else others).append(item)
    if others:
        config.hook.pytest_deselected(items=others)
        items[:] = kept
