"""Scenarios: one kind of fault each, under mixed load, with the checker at the end."""

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from pyff.postgres import cluster, find, places, postmaster
from tools.prove.campaign import FAULTS, Campaign, Report
from tools.prove.client import MANY
from tools.prove.server import Server


class Unavailable(Exception):  # noqa: N818
    """This machine cannot do it; the text says what is missing."""


@contextmanager
def _campaign(server: Server, **options: object) -> Iterator[Campaign]:
    with tempfile.TemporaryDirectory() as directory:
        yield Campaign(server, Path(directory), **options)  # type: ignore[arg-type]


def calm(seconds: float) -> Report:
    """none"""
    with _running(Server()) as server, _campaign(server) as campaign:
        return campaign.run(seconds)


def kill(seconds: float) -> Report:
    """SIGKILL of workers"""
    return _trouble(seconds, "kill_worker", pause=(0.05, 0.4))


def stop(seconds: float) -> Report:
    """SIGSTOP of workers past their leases"""
    return _trouble(seconds, "stop_worker", pause=(0.05, 0.4))


def cuts(seconds: float) -> Report:
    """connection cut in mid-call, before the request or before the answer gets through"""
    return _trouble(seconds, "cut_before", "cut_after", pause=(0.02, 0.1), cuts=True)


def terminate(seconds: float) -> Report:
    """`pg_terminate_backend` at random"""
    return _trouble(seconds, "terminate_backend", pause=(0.02, 0.2))


def cancel(seconds: float) -> Report:
    """`pg_cancel_backend` of all sessions"""
    return _trouble(seconds, "cancel_statement", pause=(0.02, 0.2), trouble="cancel")


def children(seconds: float) -> Report:
    """`kill -9` of the postmaster's children, recovery"""
    return _trouble(seconds, "kill_backend", pause=(0.5, 2.0))


def crash(seconds: float) -> Report:
    """immediate shutdown of the server, recovery"""
    return _trouble(seconds, "crash_server", pause=(0.5, 2.0))


def _trouble(seconds: float, *faults: str, pause: tuple[float, float], **options: object) -> Report:
    with _running(Server()) as server, _campaign(server, **options) as campaign:
        return campaign.run(seconds, {name: FAULTS[name] for name in faults}, pause)


def timeouts(seconds: float) -> Report:
    """`statement_timeout` or `lock_timeout` of some milliseconds in every call, while tables are locked now and then"""

    def lock(campaign: Campaign) -> None:
        with suppress(psycopg.Error), psycopg.connect(campaign.direct) as conn:
            conn.execute("set local lock_timeout = '2s'")
            tables = conn.execute("select relid::regclass::text from pg_stat_user_tables").fetchall()
            conn.execute(f"lock table {campaign.random.choice(tables)[0]}")
            time.sleep(0.03)

    with _running(Server()) as server, _campaign(server, trouble="timeouts") as campaign:
        report = campaign.run(seconds, {"lock_table": lock}, (0.0, 0.05))
    report.faults = Counter(statement_timeout=report.errors["57014"], lock_timeout=report.errors["55P03"])
    return report


def many(seconds: float) -> Report:
    """200 connections with the default `max_locks_per_transaction`"""
    server = Server(max_connections=230, max_locks_per_transaction=64, fsync=False)
    with _running(server), _campaign(server, clients=6, kind="many") as campaign:
        report = campaign.run(seconds)
    report.faults["connections"] = 6 * MANY + 2
    return report


def clock(seconds: float) -> Report:
    """steps of `ff_now_ms` forwards and backwards"""

    def step(campaign: Campaign) -> None:
        offset = campaign.random.choice([-5000, -500, 0, 500, 5000, 60000])
        with suppress(psycopg.Error), psycopg.connect(campaign.direct, autocommit=True) as conn:
            conn.execute(
                f"""
                create or replace function ff_now_ms() returns bigint language sql volatile parallel safe
                as $$ select (extract(epoch from clock_timestamp()) * 1000)::bigint + ({offset}) $$
                """
            )

    with _running(Server()) as server, _campaign(server) as campaign:
        return campaign.run(seconds, {"step_clock": step}, (0.5, 2.0), clocks=False)


def pooler(seconds: float) -> Report:
    """PgBouncer in transaction mode killed and started again"""
    program = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin")
    if not program:
        raise Unavailable("pgbouncer is not installed")
    with _running(Server()) as server:
        bouncer = _Bouncer(program, server)

        def restart(_: Campaign) -> None:
            bouncer.stop(signal.SIGKILL)
            bouncer.start()

        bouncer.start()
        try:
            with _campaign(server, through=bouncer.dsn, trouble="pooled") as campaign:
                return campaign.run(seconds, {"restart_pooler": restart}, (0.5, 2.0))
        finally:
            bouncer.stop(signal.SIGTERM)
            shutil.rmtree(bouncer.directory, ignore_errors=True)


class _Bouncer:
    def __init__(self, program: str, server: Server) -> None:
        self.program = program
        self.directory = Path(tempfile.mkdtemp(prefix="pyff-pooler-"))
        target = conninfo_to_dict(server.dsn)
        self.account: dict[str, int | list[int]] = {}
        if os.getuid() == 0:  # it refuses to run as root: then as the one who owns the server's socket
            owner = Path(str(target["host"])).stat()
            os.chown(self.directory, owner.st_uid, owner.st_gid)
            self.account = {"user": owner.st_uid, "group": owner.st_gid, "extra_groups": []}
        where = " ".join(f"{name}={target[name]}" for name in ("host", "port", "dbname", "user"))
        (self.directory / "pgbouncer.ini").write_text(
            f"[databases]\n{target['dbname']} = {where}\n[pgbouncer]\nlisten_addr =\nlisten_port = 6432\n"
            f"unix_socket_dir = {self.directory}\nauth_type = any\npool_mode = transaction\ndefault_pool_size = 6\n"
        )
        self.directory.chmod(0o755)
        self.dsn = make_conninfo(
            "", host=str(self.directory), port=6432, dbname=str(target["dbname"]), user=str(target["user"])
        )
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        for left in self.directory.glob(".s.PGSQL.*"):
            left.unlink()
        self.process = subprocess.Popen(
            [self.program, str(self.directory / "pgbouncer.ini")],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            **self.account,  # type: ignore[call-overload]
        )

    def stop(self, how: signal.Signals) -> None:
        assert self.process is not None
        self.process.send_signal(how)
        self.process.wait(20)


def failover(seconds: float) -> Report:
    """the primary dies; failover to its synchronous standby"""
    server = Server(max_wal_senders=5, wal_level="replica")
    standby = Path(tempfile.mkdtemp(prefix="pyff-standby-"))
    binaries = find()
    binaries.account.give(standby)
    data = standby / "data"
    options = {
        **server.settings,
        "listen_addresses": "",
        "port": places.SOCKET_PORT,
        "unix_socket_directories": str(standby),
        "synchronous_standby_names": "",
    }
    try:
        where = conninfo_to_dict(server.dsn)
        command: list[str | Path] = [
            binaries.bindir / "pg_basebackup",
            "-D",
            data,
            "-R",
            "-X",
            "stream",
            "-c",
            "fast",
        ]
        command += ["-h", str(where["host"]), "-p", str(where["port"]), "-U", cluster.SUPERUSER]
        done = binaries.account.run(command, binaries.env)
        if done.returncode:
            raise RuntimeError(done.stdout)
        cluster.start(data, standby / "log", binaries, options, patience=60)
        with psycopg.connect(server.dsn, autocommit=True) as conn:
            conn.execute("alter system set synchronous_standby_names = '*'")
            conn.execute("select pg_reload_conf()")
            deadline = time.monotonic() + 30
            while not conn.execute("select 1 from pg_stat_replication where sync_state = 'sync'").fetchone():
                if time.monotonic() > deadline:
                    raise TimeoutError("the standby does not follow")
                time.sleep(0.1)
        hosts = make_conninfo(
            server.dsn,
            host=f"{where['host']},{standby}",
            port=f"{where['port']},{places.SOCKET_PORT}",
            target_session_attrs="read-write",
        )

        def promote(campaign: Campaign) -> None:
            if campaign.faults["promote"]:
                return
            for pid in postmaster.processes(server.running.data):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            postmaster.end_orphans(server.running.data)
            done = binaries.account.run(
                [binaries.bindir / "pg_ctl", "promote", "-D", data, "-w"], binaries.env
            )
            if done.returncode:
                raise RuntimeError(done.stdout)
            campaign.direct = make_conninfo(server.dsn, host=str(standby), port=places.SOCKET_PORT)

        with _campaign(server, through=hosts) as campaign:
            report = campaign.run(seconds, {"promote": promote}, (seconds / 2, seconds / 2))
            report.faults["promote"] = 1
            return report
    finally:
        postmaster.stop(data, postmaster.IMMEDIATE)
        shutil.rmtree(standby, ignore_errors=True)
        server.close()


def disk_full(seconds: float) -> Report:
    """the disk of the data directory full, then room again"""
    if os.getuid() != 0:
        raise Unavailable("only root can make a small file system")
    place = Path(tempfile.mkdtemp(prefix="pyff-small-", dir="/tmp"))
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=420m,mode=755", "tmpfs", place], check=False
    )
    if mounted.returncode:
        place.rmdir()
        raise Unavailable("a small file system cannot be mounted here")
    try:
        server = Server(where=place, max_wal_size="64MB", min_wal_size="32MB", checkpoint_timeout="30s")
        filler = place / "filler"

        def fill(campaign: Campaign) -> None:
            with filler.open("ab") as file, suppress(OSError):
                file.write(b"\0" * (shutil.disk_usage(place).free - 65536))
            time.sleep(campaign.random.uniform(1.0, 2.5))
            filler.unlink(missing_ok=True)
            if not postmaster.running(server.running.data):
                postmaster.stop(server.running.data, postmaster.IMMEDIATE)
                server.start()

        with _running(server), _campaign(server, trouble="disk") as campaign:
            return campaign.run(seconds, {"fill_disk": fill}, (1.0, 3.0))
    finally:
        subprocess.run(["umount", "-l", place], check=False)
        with suppress(OSError):
            place.rmdir()


@contextmanager
def _running(server: Server) -> Iterator[Server]:
    try:
        yield server
    finally:
        server.close()


SCENARIOS: dict[str, Callable[[float], Report]] = {
    scenario.__name__: scenario
    for scenario in (
        calm, kill, stop, cuts, terminate, cancel, timeouts, children, crash, disk_full, clock, failover, pooler, many,
    )
}  # fmt: skip
