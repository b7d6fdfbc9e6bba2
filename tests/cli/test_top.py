"""`pyff top` and `pyff bench`."""

import fcntl
import os
import pty
import select
import subprocess
import sys
import termios
import time

from pyff import overview
from tests.sql import create, one, rows, table, take


def busy(db):
    for _ in range(3):
        create(db, "mail")
    one(db, "ff_complete", handle=take(db, "mail")["handle"])
    taken = take(db, "mail")
    create(db, "later", delay_ms=60_000)
    create(db, "bad")
    lost = take(db, "bad", worker="v")
    one(db, "ff_fail", handle=lost["handle"], reason="no such box", classification="permanent")
    rows(db, "ff_register_worker", worker_id="v", worker_instance_id="v-1", lanes=["bad", "mail"])
    return taken, lost


def test_a_look_tells_lanes_workers_and_failures(db, pyff, clock):
    clock.freeze()
    _, lost = busy(db)
    seen = pyff("top", "--once", "--json").object
    lanes = {lane["lane_id"]: lane for lane in seen["lanes"]}
    assert (lanes["mail"]["ready"], lanes["mail"]["running"], lanes["mail"]["lapsed"]) == (1, 1, 0)
    assert lanes["mail"]["oldest_ready_ms"] >= 0
    assert lanes["mail"]["rate_per_s"] == 0.1
    assert (lanes["later"]["ready"], lanes["later"]["delayed"]) == (0, 1)
    assert [(w["worker_instance_id"], w["alive"], w["leases"]) for w in seen["workers"]] == [
        ("w-1", None, 1),
        ("v-1", True, 0),
    ]
    assert [(f["execution_id"], f["reason"]) for f in seen["failures"]] == [
        (lost["execution_id"], "no such box")
    ]
    said = pyff("top", "--once").out
    assert "ready 1  running 1  ends 0.2/s  workers alive 1" in said
    assert "no such box" in said
    assert "not registered" in said
    assert len(pyff("top", "--count", "3", "--interval", "1ms", "--json").objects) == 3


def test_a_lapsed_lease_and_an_empty_database(db, pyff, clock):
    assert "no lane" in pyff("top", "--once").out
    clock.freeze()
    create(db, "mail")
    take(db, "mail", lease_ttl_ms=1000)
    clock.advance(1000)
    (lane,) = pyff("top", "--once", "--json").object["lanes"]
    assert (lane["running"], lane["lapsed"]) == (1, 1)


def test_counts_are_capped_and_every_look_reads_little_of_a_large_database(db, pyff, monkeypatch):
    rows(db, "ff_create_executions", lane_id="mail", payloads=[b""] * 5000)
    db.execute("analyze ff_execution")
    monkeypatch.setattr(overview, "ROWS", 300)
    db.execute("select pg_stat_force_next_flush()")
    before = table(db, "select seq_tup_read from pg_stat_user_tables where relname = 'ff_execution'")
    (lane,) = pyff("top", "--once", "--json").object["lanes"]
    assert (lane["ready"], lane["ready_capped"]) == (300, True)
    assert "300+" in pyff("top", "--once").out
    db.execute("select pg_stat_clear_snapshot()")
    assert table(db, "select seq_tup_read from pg_stat_user_tables where relname = 'ff_execution'") == before


def test_a_rate_that_the_newest_completions_do_not_cover_is_taken_over_what_they_do():
    now = 1_000_000
    recent = [{"lane_id": "a", "occurred_at_ms": now - 1000 + n // 2} for n in range(overview.COMPLETIONS)]
    assert overview._rates(recent, now) == {"a": 2000.0}
    assert overview._rates(recent[:50], now) == {"a": 5.0}
    assert overview._rates([], now) == {}


def test_the_role_of_readers_is_enough(db, dsn, bare):
    busy(db)
    db.execute("create role pyff_test_top login in role ff_reader")
    try:
        for args in (["top", "--once"], ["ls"], ["budget", "list"], ["quota", "list"]):
            assert bare(*args, "--dsn", f"{dsn} user=pyff_test_top").code == 0
    finally:
        db.execute("drop role pyff_test_top")


def screen(master, wanted, seconds=90.0):
    """The terminal output up to this text."""
    got = b""
    until = time.monotonic() + seconds
    while wanted not in got:
        assert time.monotonic() < until, got
        if select.select([master], [], [], 0.1)[0]:
            got += os.read(master, 65536)
    return got


def own_terminal():
    """So that ctrl-c on it reaches the process."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def live(dsn, key):
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "pyff", "top", "--interval", "100ms", "--dsn", dsn],
        stdin=slave,
        stdout=slave,
        stderr=slave,
        start_new_session=True,
        preexec_fn=own_terminal,  # noqa: PLW1509
    )
    os.close(slave)
    got = screen(master, b"mail")
    got += screen(master, b"\x1b[H")
    os.write(master, key)
    got += screen(master, b"\x1b[?1049l")
    code = process.wait(90)
    os.close(master)
    return code, got


def test_on_a_terminal_it_repaints_until_q_or_ctrl_c(db, dsn):
    busy(db)
    code, got = live(dsn, b"q")
    assert code == 0
    assert got.startswith(b"\x1b[?1049h")
    code, got = live(dsn, b"\x03")
    assert code == 130
    assert b"Traceback" not in got


def test_bench_measures_and_leaves_nothing_behind(db, pyff):
    told = pyff("bench", "--seconds", "300ms", "--clients", "2", "--json").object
    assert told["cycles"] > 0
    assert told["clients"] == 2
    assert 0 < told["calls"]["claim"]["p50_ms"] <= told["calls"]["claim"]["p99_ms"]
    assert table(db, "select count(*) as n from ff_exec_core") == [{"n": 0}]
    said = pyff("bench", "--seconds", "100ms", "--clients", "1").out
    assert "cycles/s" in said
    assert "p99 ms" in said
