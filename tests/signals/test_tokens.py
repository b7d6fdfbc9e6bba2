"""Tokens: what they are, that they are checked, and that a wrong one reveals nothing."""

import hashlib
import hmac
import json
import re
import shutil
import subprocess
import uuid

import psycopg
import pytest

from pyff.migrate import migrate
from pyff.postgres import temporary
from tests.sql import one, refused, rows, table
from tests.suspensions.support import (
    UNKNOWN,
    deliver,
    run,
    seed,
    signals,
    stored,
    suspend,
    suspended,
    waitpoint,
)

SECRET = bytes(range(32))


def message(kid, claim, point):
    return f"{kid}:{claim['execution_id']}:{point['waitpoint_id']}".encode()


def test_a_token_is_what_pythons_hmac_says(db):
    seed(db, "a.b-C_1", SECRET.hex())
    claim, point = suspended(db)
    pending = waitpoint(db, run(db)["handle"])
    assert pending["waitpoint_token"].startswith("a.b-C_1:")
    mac = hmac.new(SECRET, message("a.b-C_1", claim, point), hashlib.sha256).hexdigest()
    assert point["waitpoint_token"] == f"a.b-C_1:{mac}"
    fingerprint = hashlib.sha256(point["waitpoint_token"].encode()).hexdigest()[:16]
    (listed,) = rows(db, "ff_list_pending_waitpoints", execution_id=claim["execution_id"])
    assert listed["token_fingerprint"] == fingerprint
    assert fingerprint not in mac


@pytest.mark.skipif(not shutil.which("openssl"), reason="there is no openssl")
def test_a_token_is_what_openssl_says(db):
    seed(db, "k", SECRET.hex())
    claim, point = suspended(db)
    command = ["openssl", "dgst", "-sha256", "-mac", "HMAC", "-macopt", f"hexkey:{SECRET.hex()}", "-hex"]
    done = subprocess.run(command, input=message("k", claim, point), capture_output=True, check=True)
    assert point["waitpoint_token"] == f"k:{done.stdout.decode().split()[-1]}"


def test_an_execution_id_in_upper_case_is_the_same_execution(db):
    claim, point = suspended(db)
    shouted = re.sub(r"[0-9a-f-]{36}$", lambda m: m[0].upper(), claim["execution_id"])
    assert deliver(db, {"execution_id": shouted}, point)["resumed"]


def flipped(token):
    return token[:-1] + ("0" if token[-1] != "0" else "1")


def test_without_the_token_no_caller_learns_what_exists(db):
    """Wrong token, unknown waitpoint, other execution, closed waitpoint, other key: all the same to the caller."""
    claim, point = suspended(db)
    other, others = suspended(db)
    done, closed = suspended(db)
    deliver(db, done, closed)
    one(db, "ff_rotate_waitpoint_hmac_secret", new_kid="k2")
    mine = {"waitpoint_id": point["waitpoint_id"], "waitpoint_token": point["waitpoint_token"]}
    token = point["waitpoint_token"]
    attempts = [
        (claim, {**mine, "waitpoint_token": flipped(token)}),
        (claim, {**mine, "waitpoint_token": "k2:" + token.split(":")[1]}),
        (claim, {**mine, "waitpoint_token": "unknown:" + token.split(":")[1]}),
        (claim, {**mine, "waitpoint_token": others["waitpoint_token"]}),
        (claim, {**mine, "waitpoint_token": "garbage"}),
        (claim, {**mine, "waitpoint_id": uuid.uuid4()}),
        (claim, {**mine, "waitpoint_id": others["waitpoint_id"]}),
        (other, mine),
        ({"execution_id": f"{{fp:7}}:{UNKNOWN}"}, mine),
        ({"execution_id": f"{{fp:8}}:{UNKNOWN}"}, mine),
        (
            done,
            {"waitpoint_id": closed["waitpoint_id"], "waitpoint_token": flipped(closed["waitpoint_token"])},
        ),
    ]
    seen = set()
    for execution, given in attempts:
        with refused("invalid_token") as refusal:
            deliver(db, execution, given, signal_id=UNKNOWN)
        # What is left when the caller's own words are taken out.
        said = json.dumps(
            [refusal.error.diag.message_primary, refusal.detail, refusal.error.diag.message_hint]
        )
        said = said.replace(execution["execution_id"], "E").replace(str(given["waitpoint_id"]), "W")
        where = [line for line in (refusal.error.diag.context or "").splitlines() if "ff__verify" in line]
        seen.add((refusal.error.sqlstate, said, *where))
    assert len(seen) == 1, seen
    assert signals(db, claim) == []


@pytest.mark.parametrize("token", [None, ""])
def test_no_token_is_missing(db, token):
    claim, point = suspended(db)
    with refused("missing_token"):
        deliver(db, claim, {**point, "waitpoint_token": token})


@pytest.mark.parametrize(
    "change",
    [
        str.upper,
        lambda token: token + "\n",
        lambda token: " " + token,
        lambda token: token[:-1],
        lambda token: token.replace(":", "::"),
        lambda token: token.split(":")[1],
        lambda token: "x" * 65 + ":" + token.split(":")[1],
        lambda token: token * 1000,
    ],
)
def test_a_token_has_one_form(db, change):
    claim, point = suspended(db)
    with refused("invalid_token"):
        deliver(db, claim, {**point, "waitpoint_token": change(point["waitpoint_token"])})


def test_shapes_are_checked_before_the_token_and_the_key_before_the_waitpoint(db):
    claim, point = suspended(db)
    nothing = {"waitpoint_id": UNKNOWN, "waitpoint_token": None}
    with refused("invalid_execution_id"):
        deliver(db, {"execution_id": "x"}, nothing, "__reserved")
    bad = {"payload": b"x" * 65_537, "source_type": "engine", "dedup_ttl_ms": -1}
    with refused("invalid_signal_name"):
        deliver(db, claim, nothing, "__reserved", **bad)
    with refused("payload_too_large"):
        deliver(db, claim, nothing, **bad)
    with refused("invalid_source_type"):
        deliver(db, claim, nothing, **{**bad, "payload": None})
    with refused("invalid_input"):
        deliver(db, claim, nothing, dedup_ttl_ms=-1)
    with refused("missing_token"):
        deliver(db, claim, nothing)
    one(db, "ff_rotate_waitpoint_hmac_secret", new_kid="k2", grace_ms=0)
    with refused("token_expired") as refusal:
        deliver(db, claim, {**point, "waitpoint_id": UNKNOWN})
    assert refusal.detail["kid"] == "k1"
    one(db, "ff_rotate_waitpoint_hmac_secret", new_kid="k3", grace_ms=0)
    assert stored(db, "ff_waitpoint_hmac", kid="k1")["secret"] is None
    with refused("token_expired"):
        deliver(db, claim, point)


def test_no_key_no_waitpoint(db):
    seed(db)
    claim = run(db)
    db.execute("delete from ff_waitpoint_hmac")
    with refused("hmac_not_initialized"):
        waitpoint(db, claim["handle"])
    with refused("hmac_not_initialized"):
        suspend(db, claim["handle"])


def everywhere(conn):
    """Every row of every table, as text; bytes as hex."""
    for row in table(conn, "select relname from pg_class where relkind = 'r' and relname like 'ff\\_%%'"):
        for stored_row in table(conn, f"select t::text as row from {row['relname']} t"):
            yield row["relname"], stored_row["row"]


def test_no_token_mac_or_secret_is_in_a_table_an_event_an_error_or_the_log_of_the_server():
    """A server of its own, which logs every error with its statement and context."""
    log = {
        "log_min_messages": "debug1",
        "log_min_error_statement": "debug1",
        "log_error_verbosity": "verbose",
        "logging_collector": "off",
        "search_path": "public, ff",
    }
    secret = hashlib.sha256(b"a secret").hexdigest()
    errors = []
    with temporary(**log) as server:
        migrate(server.dsn)
        with psycopg.connect(server.dsn, autocommit=True) as conn:
            conn.add_notice_handler(lambda diagnostic: errors.append(str(diagnostic.message_primary)))

            def refuse(work):
                with pytest.raises(psycopg.Error) as caught:
                    work()
                diag = caught.value.diag
                errors.append(
                    f"{diag.message_primary} {diag.message_detail} {diag.message_hint} {diag.context}"
                )

            seed(conn, "k1", secret)
            one(conn, "ff_seed_waitpoint_hmac_secret", kid="k1", secret_hex=secret)
            one(conn, "ff_seed_waitpoint_hmac_secret", kid="k2", secret_hex=secret)
            refuse(lambda: one(conn, "ff_seed_waitpoint_hmac_secret", kid="k2", secret_hex=secret[::-1]))
            refuse(lambda: one(conn, "ff_seed_waitpoint_hmac_secret", kid="k2", secret_hex=secret + "0"))
            claim, point = suspended(conn, idempotency_key="k")
            pending = waitpoint(conn, run(conn)["handle"])
            tokens = [point["waitpoint_token"], pending["waitpoint_token"]]
            refuse(lambda: deliver(conn, claim, {**point, "waitpoint_id": UNKNOWN}))
            refuse(lambda: deliver(conn, claim, {**point, "waitpoint_token": tokens[1]}))
            refuse(lambda: deliver(conn, claim, point, "__x"))
            refuse(lambda: suspend(conn, claim["handle"], {"kind": "operator_only"}, idempotency_key="k"))
            suspend(conn, claim["handle"], idempotency_key="k")
            one(
                conn, "ff_rotate_waitpoint_hmac_secret", new_kid="k2", new_secret_hex=secret[::-1], grace_ms=0
            )
            refuse(lambda: one(conn, "ff_rotate_waitpoint_hmac_secret", new_kid="k1", new_secret_hex=secret))
            refuse(lambda: deliver(conn, claim, point))
            again = one(
                conn,
                "ff_read_waitpoint_token",
                execution_id=claim["execution_id"],
                waitpoint_id=point["waitpoint_id"],
            )
            tokens.append(again["waitpoint_token"])
            deliver(conn, claim, {**point, **again}, idempotency_key="k")
            refuse(lambda: deliver(conn, claim, {**point, **again}))
            stored_rows = list(everywhere(conn))
        written = server.log.read_text()
    assert "ff__raise_bad_token" in written  # the log has what went wrong
    needles = [token.split(":")[1] for token in tokens]
    assert len(set(needles)) == 3
    for needle in [*needles, secret, secret[::-1]]:
        assert needle not in written
        assert not [error for error in errors if needle in error]
        found = [name for name, row in stored_rows if needle in row]
        assert found == ([] if needle in needles else ["ff_waitpoint_hmac"])
