"""Mixed load of every family of operations, faults in the middle of it, then the checker."""

import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import psycopg
from psycopg.conninfo import make_conninfo

from tools.prove.server import Server
from tools.verify import Violation, check, load

ROOT = Path(__file__).parents[2]


Fault = Callable[["Campaign"], None]
NO_FAULTS: Mapping[str, Fault] = {}


@dataclass
class Report:
    """The operations and results of a campaign."""

    seconds: float
    calls: Counter[str] = field(default_factory=Counter)
    unknown: int = 0
    refused: int = 0
    answered: set[str] = field(default_factory=set)
    faults: Counter[str] = field(default_factory=Counter)
    errors: Counter[str] = field(default_factory=Counter)
    interrupted: set[str] = field(default_factory=set)
    spent: dict[str, Counter[int]] = field(default_factory=dict)
    bloat: dict[str, str] = field(default_factory=dict)
    deadlocks: int = 0
    violations: list[Violation] = field(default_factory=list)
    died: list[str] = field(default_factory=list)

    def add(self, other: "Report") -> None:
        """Another campaign on the same server. The bloat is that of the last one."""
        self.seconds += other.seconds
        self.calls += other.calls
        self.unknown += other.unknown
        self.refused += other.refused
        self.faults += other.faults
        self.errors += other.errors
        self.interrupted |= other.interrupted
        self.answered |= other.answered
        for name, times in other.spent.items():
            self.spent[name] = self.spent.get(name, Counter()) + times
        self.bloat = other.bloat
        self.deadlocks += other.deadlocks
        self.violations += other.violations
        self.died += other.died

    @property
    def p99(self) -> int:
        return _p99(sum(self.spent.values(), Counter()))

    @property
    def operations(self) -> int:
        return sum(self.calls.values())

    @property
    def silent(self) -> list[str]:
        """Functions that were called and never answered: nothing is known of them."""
        return sorted(self.calls.keys() - self.answered)

    @property
    def bad(self) -> bool:
        return bool(self.violations or self.died)

    def __str__(self) -> str:
        faults = ", ".join(f"{name} {n}" for name, n in sorted(self.faults.items())) or "none"
        often = {name: _p99(times) for name, times in self.spent.items() if times.total() >= 100}
        slowest = sorted(often.items(), key=lambda item: -item[1])
        lines = [
            f"{self.operations} operations of {len(self.calls)} functions in {self.seconds:.0f} s, "
            f"{self.refused} refused, {self.unknown} without an answer",
            f"faults injected: {sum(self.faults.values())} ({faults})",
            f"errors: {', '.join(f'{code} {n}' for code, n in sorted(self.errors.items())) or 'none'}",
            f"functions without any answer: {', '.join(self.silent) or 'none'}",
            f"deadlocks: {self.deadlocks}",
            f"p99: {self.p99} ms; by function: " + ", ".join(f"{name} {ms}" for name, ms in slowest),
            f"bloat: {', '.join(f'{name} {text}' for name, text in self.bloat.items())}",
            f"violations: {len(self.violations)}",
            *(f"  {violation}" for violation in self.violations[:20]),
            *(f"a client met what no client may meet:\n{text}" for text in self.died[:3]),
        ]
        return "\n".join(lines)


class Campaign:
    """Clients as processes, started again when they are killed. `earlier` are histories of the same database."""

    def __init__(
        self,
        server: Server,
        directory: Path,
        *,
        dsn: str | None = None,
        through: str | None = None,
        clients: int = 6,
        seed: int = 0,
        cuts: bool = False,
        earlier: Sequence[Path] = (),
        trouble: str = "",
        kind: str = "client",
    ) -> None:
        self.server = server
        self.direct = dsn or server.dsn
        self.dsn = through or self.direct
        self.directory = directory
        self.random = random.Random(seed)
        self.earlier = [*earlier]
        self.faults: Counter[str] = Counter()
        self.died: list[str] = []
        self.started = 1000 * seed  # no two histories of one database under one name
        self.trouble = trouble
        self.proxy = self._proxy() if cuts else None
        self.kind = kind
        self.clients = [self._start(kind) for _ in range(clients)]
        self.others = [self._start("reader"), self._start("maintainer")]
        self.stopped: list[tuple[float, subprocess.Popen[bytes]]] = []

    def _proxy(self) -> subprocess.Popen[str]:
        place = Path(tempfile.mkdtemp(prefix="pyff-proxy-", dir="/tmp"))
        given = psycopg.conninfo.conninfo_to_dict(self.direct)
        port = given["port"]
        target = Path(str(given["host"])) / f".s.PGSQL.{port}"
        command = [sys.executable, "-m", "tools.prove.proxy", str(place / f".s.PGSQL.{port}"), str(target)]
        proxy = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert proxy.stdout is not None
        proxy.stdout.readline()
        self.dsn = make_conninfo(self.direct, host=str(place))
        return proxy

    def _start(self, kind: str) -> subprocess.Popen[bytes]:
        self.started += 1
        path = self.directory / f"{kind}-{self.started}.jsonl"
        command = [sys.executable, "-m", "tools.prove.client", self.dsn, kind, str(self.started), str(path)]
        environment = {**os.environ, "PROVE_TROUBLE": self.trouble}
        return subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, env=environment)

    def run(
        self,
        seconds: float,
        faults: Mapping[str, Fault] = NO_FAULTS,
        pause: tuple[float, float] = (0.2, 1.0),
        *,
        clocks: bool = True,
    ) -> Report:
        """Load for so long, with a random fault every now and then; then everything is stopped and compared."""
        try:
            self._await_clients()
            began = time.monotonic()
            while time.monotonic() - began < seconds:
                time.sleep(self.random.uniform(*pause) if faults else 0.2)
                self._look_after()
                if faults:
                    name = self.random.choices(list(faults), [1 if name in RARE else 5 for name in faults])[0]
                    faults[name](self)
                    self.faults[name] += 1
        finally:
            self._stop()
        return self._report(time.monotonic() - began, clocks)

    def _await_clients(self) -> None:
        """Until every process works: the time of a campaign is that of its load."""
        deadline = time.monotonic() + 120
        wanted = len(self.clients) + len(self.others)
        while time.monotonic() < deadline and not self.died:
            self._look_after()
            begun = {
                path.stem.split("-")[1] for path in self.directory.glob("*.jsonl") if path.stat().st_size
            }
            if len(begun) >= wanted:
                return
            time.sleep(0.05)
        if not self.died:
            raise TimeoutError("the clients do not begin")

    @property
    def histories(self) -> list[Path]:
        """Of the clients and readers, as far as they got."""
        return [*self.earlier, *sorted(self.directory.glob("[crk]*.jsonl"))]

    def _look_after(self) -> None:
        """Wakes those whose time has come; one that ended by itself met something that it must not."""
        if self.proxy and self.proxy.poll() is not None:
            raise RuntimeError("the proxy has ended")
        now = time.monotonic()
        for due, process in [*self.stopped]:
            if due <= now:
                process.send_signal(signal.SIGCONT)
                self.stopped.remove((due, process))
        for group, kind in ((self.clients, self.kind), (self.others, "")):
            for n, process in enumerate(group):
                if process.poll() is not None:
                    assert process.stderr is not None
                    if process.returncode != -signal.SIGKILL:
                        self.died.append(process.stderr.read().decode()[-2000:])
                    group[n] = self._start(kind or ("reader", "maintainer")[n])

    def _stop(self) -> None:
        for process in [*self.clients, *self.others]:
            with suppress(ProcessLookupError):
                process.send_signal(signal.SIGCONT)
            process.kill()
        for process in [*self.clients, *self.others]:
            process.wait()
            assert process.stderr is not None
            if process.returncode not in (-signal.SIGKILL, None):
                self.died.append(process.stderr.read().decode()[-2000:])
            process.stderr.close()
        if self.proxy:
            self.proxy.kill()
            self.proxy.wait()
            shutil.rmtree(str(psycopg.conninfo.conninfo_to_dict(self.dsn)["host"]), ignore_errors=True)
        self._settle()

    def _settle(self) -> None:
        """Until the server has noticed that the clients are gone."""
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:
            with suppress(psycopg.OperationalError), psycopg.connect(self.direct, autocommit=True) as conn:
                found = conn.execute(
                    """
                    select count(*) from pg_stat_activity a
                     where a.datname = current_database() and a.pid <> pg_backend_pid()
                       and a.backend_type = 'client backend'
                    """
                ).fetchone()
                if found == (0,):
                    return
            time.sleep(0.1)
        raise TimeoutError("some client is still connected, or the server does not come back")

    def _report(self, seconds: float, clocks: bool) -> Report:
        calls = load(self.histories)
        report = Report(seconds, faults=self.faults, died=self.died)
        report.calls = Counter(call.function for call in calls)
        report.unknown = sum(call.unknown for call in calls)
        report.refused = sum(call.error is not None for call in calls)
        report.errors = Counter(
            call.error for call in calls if call.error and not call.error.startswith("WF")
        )
        report.answered = {call.function for call in calls if call.acknowledged}
        report.interrupted = {call.function for call in calls if call.error in ("57014", "55P03")}
        for call in calls:
            if call.ended_ms is not None:
                times = report.spent.setdefault(call.function.removeprefix("ff_"), Counter())
                times[call.ended_ms - call.began_ms] += 1
        with psycopg.connect(self.direct) as conn:
            report.violations = list(check(conn, calls, clocks=clocks))
        with psycopg.connect(self.direct) as conn:
            found = conn.execute(
                "select d.deadlocks from pg_stat_database d where d.datname = current_database()"
            ).fetchone()
            report.deadlocks = found[0] if found else 0
            report.bloat = {
                name: f"{size} with {dead} dead of {dead + live} rows"
                for name, size, live, dead in conn.execute(
                    """
                    select t.relname, pg_size_pretty(pg_total_relation_size(t.relid)), t.n_live_tup, t.n_dead_tup
                      from pg_stat_user_tables t order by pg_total_relation_size(t.relid) desc limit 4
                    """
                )
            }
        return report

    def kill_worker(self) -> None:
        self.random.choice(self.clients).kill()

    def stop_worker(self) -> None:
        """SIGSTOP past the lease: it comes back and believes that nothing has happened."""
        process = self.random.choice(self.clients)
        if all(other is not process for _, other in self.stopped):
            process.send_signal(signal.SIGSTOP)
            self.stopped.append((time.monotonic() + self.random.uniform(0.5, 2.0), process))

    def terminate_backend(self) -> None:
        with suppress(psycopg.Error), psycopg.connect(self.direct, autocommit=True) as conn:
            conn.execute(
                """
                select pg_terminate_backend(a.pid)
                  from (select x.pid from pg_stat_activity x
                         where x.datname = current_database() and x.pid <> pg_backend_pid() order by random() limit 2) a
                """
            )

    def cancel_statement(self) -> None:
        with suppress(psycopg.Error), psycopg.connect(self.direct, autocommit=True) as conn:
            conn.execute(
                """
                select pg_cancel_backend(a.pid) from pg_stat_activity a
                 where a.datname = current_database() and a.pid <> pg_backend_pid()
                """
            )

    def cut_before(self) -> None:
        """A request does not arrive."""
        self._cut("before")

    def cut_after(self) -> None:
        """A request arrives; its answer does not."""
        self._cut("after")

    def _cut(self, when: str) -> None:
        if self.proxy is None:
            raise RuntimeError("this campaign has no proxy: ask for cuts")
        assert self.proxy.stdin is not None
        print(when, file=self.proxy.stdin, flush=True)

    def kill_backend(self) -> None:
        self.server.kill_a_child(self.direct)

    def crash_server(self) -> None:
        self.server.crash()


FAULTS: dict[str, Fault] = {
    "kill_worker": Campaign.kill_worker,
    "stop_worker": Campaign.stop_worker,
    "terminate_backend": Campaign.terminate_backend,
    "cancel_statement": Campaign.cancel_statement,
    "cut_before": Campaign.cut_before,
    "cut_after": Campaign.cut_after,
    "kill_backend": Campaign.kill_backend,
    "crash_server": Campaign.crash_server,
}


RARE = {"kill_backend", "crash_server"}  # the server needs time to come back


def _p99(times: Counter[int]) -> int:
    left = times.total() * 0.99
    for ms in sorted(times):
        left -= times[ms]
        if left <= 0:
            return ms
    return 0
