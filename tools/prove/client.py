"""A client of every family of operations, as a process of its own: `python -m tools.prove.client DSN SEED HISTORY`.

It writes down every call and answer, lives through lost connections and restarts of the server, and goes on until it
is killed. What the engine may answer when others act on the same execution is expected; anything else ends it with a
traceback.
"""

import json
import os
import random
import sys
import time
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

import psycopg

from tools.verify import Recorder
from tools.verify.history import Row

LANES = ("a", "b")
# Lanes whose work is all of one kind: without a limit, under a policy. A claim of one has a short way for these.
ALIKE = ("plain", "few")
# The errors a client may get when others act on the same execution.
EXPECTED = {
    "WF008", "WF122", "WF200", "WF201", "WF202", "WF203", "WF204", "WF205", "WF206", "WF207", "WF209", "WF210",
    "WF300", "WF302", "WF304", "WF305", "WF306", "WF307", "WF318", "WF319", "WF320",
    "WF400", "WF401", "WF402", "WF403", "WF405", "WF406", "WF407", "WF408", "WF409", "WF410", "WF411", "WF412", "WF413",
    "WF414", "WF415", "WF416", "WF417", "WF421", "WF422", "WF425", "WF600", "WF601",
    "40001", "40P01",
}  # fmt: skip
# The errors that injected faults cause.
TROUBLE = {
    "timeouts": {"57014", "55P03"},
    "cancel": {"57014"},
    "disk": {"53100"},
    "pooled": set(),
}
GONE = {"57P01", "57P02", "57P03", "57P05", "53300", "08006", "08001", "08003", "08P01", "25P03"}


class Board:
    """Handles that several clients use at once, as threads of one worker would: the last few of them."""

    def __init__(self, path: Path) -> None:
        self.file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)

    def post(self, handle: str, execution_id: str) -> None:
        os.write(self.file, f"{handle} {execution_id}\n".encode())

    def look(self) -> list[tuple[str, str]]:
        size = os.fstat(self.file).st_size
        text = os.pread(self.file, 1200, max(0, size - 1200)).decode()
        whole = text[: text.rfind("\n") + 1].splitlines()[1:]  # the last may be only half written
        return [(handle, execution_id) for handle, execution_id in map(str.split, whole)]


class Client:
    """Random operations over one connection after another. It knows only the results of its calls."""

    def __init__(self, dsn: str, seed: int, history: str) -> None:
        self.dsn = dsn
        self.random = random.Random(seed)
        self.name = f"client-{seed}"
        self.recorder = Recorder(history, self.name)
        self.conn: psycopg.Connection[Any] | None = None
        self.handles: list[str] = []
        self.known: list[str] = []
        self.points: list[tuple[str, str, str]] = []
        self.releases: list[tuple[str, Row]] = []
        self.board = Board(Path(history).parent / "board")
        self.serial = 0
        trouble = os.environ.get("PROVE_TROUBLE", "").split()
        self.timeouts = "timeouts" in trouble
        self.expected = EXPECTED.union(*(TROUBLE[name] for name in trouble))
        self.pooled = "pooled" in trouble  # a session is not its own
        self.isolation = self.random.choice(["read committed"] * 2 + ["repeatable read", "serializable"])
        self.visitors: list[str] = []
        self.parents: dict[str, str] = {}
        self.flows: list[str] = []
        self.pending: list[tuple[str, str]] = []
        self.operations: dict[Callable[[], object], int] = {
            self.create: 16,
            self.create_many: 2,
            self.submit: 2,
            self.claim: 26,
            self.claim_many: 4,
            self.claim_by_grant: 4,
            self.reclaim: 2,
            self.renew: 8,
            self.renew_many: 2,
            self.progress: 3,
            self.complete: 18,
            self.complete_many: 3,
            self.fail: 8,
            self.delay: 4,
            self.gather: 4,
            self.suspend: 8,
            self.open_waitpoint: 3,
            self.signal: 12,
            self.approve: 5,
            self.append: 12,
            self.read_stream: 3,
            self.step: 8,
            self.spend: 8,
            self.knock: 6,
            self.schedule: 2,
            self.repeat: 6,
            self.cancel: 2,
            self.override: 2,
            self.cancel_flow: 1,
            self.revoke: 2,
            self.replay: 2,
            self.resume: 1,
            self.prioritize: 1,
            self.register: 2,
            self.pause_lane: 1,
            self.read: 4,
            self.forget: 2,
        }

    def run(self) -> None:
        """Runs until it is killed, or the parent process ends."""
        parent = os.getppid()
        while os.getppid() == parent:
            try:
                if self.conn is None or self.conn.closed:
                    self.connect()
                self.act()
            except psycopg.Error as error:
                code = error.sqlstate or ""
                if code in self.expected:
                    continue
                if code in GONE or (not code and isinstance(error, psycopg.OperationalError)):
                    self.drop()
                    continue
                raise

    def connect(self) -> None:
        self.conn = psycopg.connect(self.dsn, autocommit=True, connect_timeout=5, prepare_threshold=None)
        if not self.pooled:
            self.conn.execute(f"set default_transaction_isolation = '{self.isolation}'")

    def act(self) -> None:
        self.random.choices(list(self.operations), list(self.operations.values()))[0]()

    def drop(self) -> None:
        if self.conn is not None:
            self.conn.close()
        self.conn = None
        time.sleep(self.random.uniform(0.01, 0.1))

    def call(self, function: str, **args: Any) -> list[Row]:
        assert self.conn is not None
        if not self.timeouts:
            return self.recorder.call(self.conn, function, **args)
        name = self.random.choice(["statement_timeout", "lock_timeout"])
        self.conn.execute(f"set {name} = {self.random.choice([0, 1, 2, 3, 5, 10, 20])}")
        try:
            return self.recorder.call(self.conn, function, **args)
        finally:
            if not self.conn.closed:
                self.conn.execute(f"reset {name}")

    def create(self) -> None:
        policy: Row = {"retry_policy": {"max_retries": 2, "backoff": {"type": "fixed", "delay_ms": 20}}}
        kind = self.random.random()
        if kind < 0.25:
            policy["quota_policy_id"] = "few"
        elif kind < 0.35:
            policy["quota_policy_id"] = "slow"
        elif kind < 0.45:
            policy["budget_ids"] = ["tokens"]
        elif kind < 0.55:
            policy["timeout_policy"] = {"attempt_timeout_ms": 500}
        # Another request under the same key would be refused, so what goes with a key follows from it.
        key = self.random.choice([None, None, f"{self.name}-{self.random.randrange(40)}"])
        given = random.Random(key or self.random.random())
        lane = given.choice([*LANES * 4, "c", *ALIKE])
        rows = self.call(
            "ff_create_execution",
            lane_id=lane,
            payload=given.randbytes(6),
            idempotency_key=key,
            policy={"quota_policy_id": "few"} if lane == "few" else {} if key or lane == "plain" else policy,
        )
        self.known.append(rows[0]["execution_id"])

    def create_many(self) -> None:
        keys = [self.random.choice([None, f"{self.name}-many-{self.random.randrange(40)}"]) for _ in range(3)]
        rows = self.call(
            "ff_create_executions",
            lane_id="a",
            payloads=[(key or str(self.random.random())).encode() for key in keys],
            idempotency_keys=keys,
        )
        self.known += [row["execution_id"] for row in rows]

    def submit(self) -> None:
        """A graph of four; or a flow with a parent, who gets his children when he runs."""
        if self.random.random() < 0.5:
            flow = self.call("ff_create_flow")[0]["flow_id"]
            args: Row = {"lane_id": self.random.choice(LANES), "execution_kind": "parent", "flow_id": flow}
            self.call("ff_create_execution", **args)
            return
        group = self.random.choice(["all_of", "any_of", "quorum"])
        kind = self.random.choice(["success_only", "any_terminal"])
        rows = self.call(
            "ff_submit_flow",
            nodes=[{"key": key, "lane_id": self.random.choice(LANES)} for key in "abcd"],
            edges=[{"from": key, "to": "d", "dependency_kind": kind} for key in "abc"],
            groups=[{"to": "d", "policy": group, **({"k": 2} if group == "quorum" else {})}],
        )
        self.flows.append(rows[0]["flow_id"])
        self.known += [row["execution_id"] for row in rows]

    def cancel_flow(self) -> None:
        if self.flows:
            policy = self.random.choice(["cancel_all", "cancel_pending"])
            self.call("ff_cancel_flow", flow_id=self.random.choice(self.flows[-10:]), policy=policy)

    def gather(self) -> None:
        """Children for a parent that it runs; then the parent waits for them."""
        parents = [handle for handle in self.handles[-20:] if handle in self.parents]
        if not parents:
            return
        handle = parents[-1]
        flow = self.parents.pop(handle)
        parent = self.execution_of(handle)
        children = self.call("ff_create_executions", lane_id="b", payloads=[b"1", b"2"], flow_id=flow)
        for child in children:
            self.call(
                "ff_add_dependency",
                flow_id=flow,
                upstream_execution_id=child["execution_id"],
                downstream_execution_id=parent,
                dependency_kind=self.random.choice(["success_only", "any_terminal"]),
            )
        self.releases.append(("ff_wait_children", {"handle": handle}))
        self.call("ff_wait_children", handle=handle)

    def claim(self) -> None:
        rows = self.call(
            "ff_claim",
            lane_id=self.random.choice([*LANES * 4, "c", *ALIKE]),
            worker_id=self.name,
            worker_instance_id=self.name,
            lease_ttl_ms=self.random.choice([50, 300, 1000, 5000]),
        )
        self.take(rows)
        if rows and self.random.random() < 0.3:
            self.board.post(rows[0]["handle"], rows[0]["execution_id"])

    def take(self, rows: list[Row]) -> None:
        for row in rows:
            if row["handle"] is not None:
                self.handles.append(row["handle"])
                if row["execution_kind"] == "parent":
                    self.parents[row["handle"]] = row["flow_id"]

    def claim_many(self) -> None:
        self.take(
            self.call(
                "ff_claim_many",
                lane_id=self.random.choice(LANES),
                worker_id=self.name,
                worker_instance_id=self.name,
                limit=4,
                lease_ttl_ms=self.random.choice([300, 1000]),
            )
        )

    def claim_by_grant(self) -> None:
        me = {"worker_id": self.name, "worker_instance_id": self.name}
        for row in self.call(
            "ff_claim_for_worker", lane_id=self.random.choice(LANES), **me, grant_ttl_ms=500
        ):
            self.take(self.call("ff_claim_from_grant", grant_id=row["grant_id"], **me, lease_ttl_ms=1000))

    def reclaim(self) -> None:
        """Takes over work whose lease has expired."""
        me = {"worker_id": self.name, "worker_instance_id": self.name}
        lapsed = self.call("ff_list_expired_leases", limit=3)
        if lapsed:
            id = self.random.choice(lapsed)["execution_id"]
            (grant,) = self.call("ff_issue_reclaim_grant", execution_id=id, **me)
            if grant["grant_id"]:
                args = {"execution_id": id, "grant_id": grant["grant_id"], **me, "lease_ttl_ms": 1000}
                self.take(self.call("ff_reclaim_execution", **args))

    def renew(self) -> None:
        if handle := self.handle():
            self.call("ff_renew", handle=handle, lease_ttl_ms=self.random.choice([100, 500, 2000]))

    def renew_many(self) -> None:
        if handles := list(dict.fromkeys(self.handles[-4:])):
            self.call("ff_renew_many", handles=handles, lease_ttl_ms=self.random.choice([300, 1000]))

    def progress(self) -> None:
        if handle := self.handle():
            self.call("ff_progress", handle=handle, percent=self.random.randrange(101))

    def complete(self) -> None:
        self.release("ff_complete", result=self.random.randbytes(8))

    def complete_many(self) -> None:
        if handles := list(dict.fromkeys(self.handles[-3:])):
            results = [self.random.randbytes(8) for _ in handles]
            for handle, result in zip(handles, results, strict=True):
                self.releases.append(("ff_complete", {"handle": handle, "result": result}))
            self.call("ff_complete_many", handles=handles, results=results)

    def fail(self) -> None:
        self.release("ff_fail", classification=self.random.choice(["transient", "permanent"]))

    def delay(self) -> None:
        self.release("ff_delay", delay_ms=self.random.choice([0, 20, 80]))

    def suspend(self) -> None:
        handle = self.handle()
        if handle is None:
            return
        # As with creates, what goes with a key follows from it: handles of earlier leases repeat the same call.
        key = self.random.choice([None, None, "wait"])
        given = random.Random(key or self.random.random())
        matcher = given.choice(["wildcard", {"by_name": "go"}])
        condition = {"kind": "single", "waitpoint_key": "go", "matcher": matcher}
        bound = [point for held, point in self.pending if held == handle]
        rows = self.call(
            "ff_suspend",
            handle=handle,
            condition=condition,
            waitpoints=[{"use_pending": bound[-1]}] if bound and key is None else None,
            timeout_ms=given.choice([200, 3000]),
            timeout_behavior=given.choice(["fail", "auto_resume_with_timeout_signal"]),
            idempotency_key=key,
        )
        for row in rows:
            if row["waitpoint_token"]:
                execution = self.execution_of(handle)
                self.points.append((execution, str(row["waitpoint_id"]), row["waitpoint_token"]))

    def open_waitpoint(self) -> None:
        """Before the suspension: signals that arrive are kept for it."""
        if handle := self.handle():
            (row,) = self.call("ff_create_waitpoint", handle=handle, waitpoint_key="go")
            self.pending.append((handle, str(row["waitpoint_id"])))
            del self.pending[:-20]
            self.points.append((self.execution_of(handle), str(row["waitpoint_id"]), row["waitpoint_token"]))

    def execution_of(self, handle: str) -> str:
        assert self.conn is not None
        found = self.conn.execute("select execution_id from ff_handle_decode(%s)", [handle]).fetchone()
        assert found is not None
        return str(found[0])

    def signal(self) -> None:
        if not self.points:
            return
        execution, waitpoint, token = self.random.choice(self.points[-6:])
        forged = self.random.random() < 0.1
        if forged:  # that of another waitpoint, or one that was never issued
            kid = token.partition(":")[0]
            token = self.random.choice(
                [*(t for _, _, t in self.points[-6:] if t != token), f"{kid}:{'0' * 64}"]
            )
        name = self.random.choice(["go", "ok"])
        guess = self.random.random() < 0.2  # the key and content of an approval
        try:
            self.call(
                "ff_deliver_signal",
                execution_id=execution,
                waitpoint_id=waitpoint,
                waitpoint_token=token,
                signal_name=name,
                payload=None if guess else self.random.randbytes(8),
                idempotency_key=f"approval:{name}:1"
                if guess
                else self.random.choice([None, f"{self.random.randrange(3)}"]),
            )
        except psycopg.Error as error:
            if not (forged and error.sqlstate == "WF121"):
                raise

    def approve(self) -> None:
        if not self.points:
            return
        execution, waitpoint, _ = self.random.choice(self.points[-6:])
        assert self.conn is not None
        found = self.conn.execute("select lane_id from ff_describe_execution(%s)", [execution]).fetchone()
        assert found is not None
        name = self.random.choice(["go", "ok"])
        self.call(
            "ff_deliver_approval_signal",
            execution_id=execution,
            lane_id=found[0],
            waitpoint_id=waitpoint,
            signal_name=name,
            idempotency_suffix="1",
        )

    def append(self) -> None:
        handle = self.handle()
        if handle is None:
            return
        mode = self.random.choice(["durable"] * 4 + ["durable_summary", "best_effort_live"])
        for _ in range(3 if mode == "durable_summary" else 1):
            self.serial += 1
            mark = f"{self.name}-{self.serial}"
            payload = json.dumps({mark: self.serial}) if mode == "durable_summary" else mark
            key = mark if self.random.random() < 0.3 else None
            for _ in range(2 if key else 1):  # as if the first answer had been lost
                self.call(
                    "ff_append_frame", handle=handle, payload=payload.encode(), mode=mode, frame_key=key
                )

    def read_stream(self) -> None:
        if handle := self.handle():
            assert self.conn is not None
            found = self.conn.execute(
                "select execution_id, attempt_index from ff_handle_decode(%s)", [handle]
            )
            id, index = found.fetchall()[0]
            self.call(
                "ff_read_stream", execution_id=id, attempt_index=index, visibility="exclude_best_effort"
            )

    def step(self) -> None:
        if handle := self.handle():
            self.call(
                "ff_record_step",
                handle=handle,
                name=f"step-{self.random.randrange(3)}",
                result=self.random.randbytes(4),
            )

    def spend(self) -> None:
        self.serial += 1
        deltas = {"tokens": self.random.randrange(1, 50)}
        key = f"{self.name}-{self.serial}"
        if (handle := self.handle()) and self.random.random() < 0.7:
            budget = self.random.choice(["tokens", "turn"])
            self.report("ff_report_usage", handle=handle, budget_id=budget, deltas=deltas, dedup_key=key)
        elif self.known:
            self.report(
                "ff_record_spend",
                budget_id="money",
                execution_id=self.random.choice(self.known),
                deltas=deltas,
                idempotency_key=key,
            )

    def report(self, function: str, **args: Any) -> None:
        """Sometimes twice, as if the answer had been lost."""
        for _ in range(self.random.choice([1, 1, 2])):
            self.call(function, **args)

    def knock(self) -> None:
        """Slots for work that is done elsewhere."""
        if not self.visitors:
            rows = self.call("ff_create_executions", lane_id="elsewhere", payloads=[b"", b"", b""])
            self.visitors = [row["execution_id"] for row in rows]
        visit = {"quota_policy_id": "doors", "execution_id": self.random.choice(self.visitors)}
        (row,) = self.call("ff_check_admission", **visit, hold_ms=2000)
        if row["outcome"] == "admitted" and self.random.random() < 0.3:
            self.call("ff_release_admission", **visit)
        elif row["outcome"] == "admitted" and self.random.random() < 0.3:  # what ends holds no slot
            self.visitors.remove(visit["execution_id"])
            self.call("ff_cancel_execution", execution_id=visit["execution_id"])

    def schedule(self) -> None:
        mine = f"{self.name}-{self.random.randrange(2)}"
        kind = self.random.randrange(5)
        if kind == 0:
            self.serial += 1
            self.report(
                "ff_fire_schedule", schedule_id="beat", idempotency_key=f"{self.name}-fire-{self.serial}"
            )
        elif kind == 1:
            self.call("ff_create_schedule", schedule_id=mine, lane_id="a", interval_ms=1000, catch_up="all")
        elif kind == 2:
            self.call("ff_pause_schedule", schedule_id=mine)
        elif kind == 3:
            self.call("ff_resume_schedule", schedule_id=mine)
        elif self.random.random() < 0.3:
            self.call("ff_delete_schedule", schedule_id=mine)

    def repeat(self) -> None:
        """Repeats a call, as after a lost answer."""
        if self.releases:
            function, args = self.random.choice(self.releases[-8:])
            self.call(function, **args)

    def cancel(self) -> None:
        self.control("ff_cancel_execution", source="operator_override")

    def override(self) -> None:
        """With the rights of a worker, which do not suffice."""
        seen = [id for _, id in self.board.look()]
        if not seen:
            return
        assert self.conn is not None
        function = self.random.choice(["ff_complete_execution", "ff_fail_execution"])
        try:
            with self.conn.transaction():
                self.conn.execute("set local role ff_worker")
                self.recorder.call(
                    self.conn, function, execution_id=self.random.choice(seen), source="operator_override"
                )
        except psycopg.Error as error:
            if error.sqlstate != "WF430":
                raise
        else:
            raise RuntimeError(f"{function} let a worker act in place of the lease holder")

    def revoke(self) -> None:
        self.control("ff_revoke_lease")

    def replay(self) -> None:
        self.control("ff_replay_execution")

    def resume(self) -> None:
        self.control("ff_resume_execution")

    def prioritize(self) -> None:
        self.control("ff_change_priority", priority=self.random.randrange(100))

    def register(self) -> None:
        kind = self.random.randrange(4)
        if kind == 0:
            args = {"worker_id": self.name, "worker_instance_id": self.name, "lanes": [*LANES]}
            self.call("ff_register_worker", **args, liveness_ttl_ms=1000)
        elif kind < 3:
            self.call("ff_heartbeat_worker", worker_instance_id=self.name)
        else:
            self.call("ff_mark_worker_dead", worker_instance_id=self.name, revoke_leases=True)

    def pause_lane(self) -> None:
        self.call("ff_set_lane_state", lane_id="c", state=self.random.choice(["active", "paused"]))

    def read(self) -> None:
        self.control(self.random.choice(["ff_describe_execution", "ff_get_execution_result"]))

    def forget(self) -> None:
        """A worker that crashes: its leases live on."""
        self.handles.clear()

    def release(self, function: str, **args: Any) -> None:
        handle = self.handle()
        if handle is None:
            return
        self.releases.append((function, {"handle": handle, **args}))
        self.call(function, handle=handle, **args)

    def control(self, function: str, **args: Any) -> None:
        seen = [id for _, id in self.board.look()]
        if known := self.random.choice([self.known[-30:], seen]):
            self.call(function, execution_id=self.random.choice(known), **args)

    def handle(self) -> str | None:
        """One of its handles, mostly a young one, sometimes one that has long been taken from it or is another's."""
        if self.random.random() < 0.2 and (seen := self.board.look()):
            return self.random.choice(seen)[0]
        if not self.handles:
            return None
        return self.random.choice(
            self.random.choice([self.handles[-40:], self.handles[-4:], self.handles[-3:]])
        )


class Reader(Client):
    """Follows all events by their cursor."""

    cursor: str | None = None

    def act(self) -> None:
        page = self.call("ff_read_events", after=self.cursor, limit=200)
        if page:
            self.cursor = page[-1]["cursor"]
        else:
            time.sleep(0.05)


class Maintainer(Client):
    """Runs maintenance."""

    def act(self) -> None:
        self.call("ff_tick", force=self.random.random() < 0.3)
        time.sleep(0.1)


KINDS = {"client": Client, "reader": Reader, "maintainer": Maintainer}
MANY = 33


def main(dsn: str, kind: str, seed: str, history: str) -> None:
    if kind != "many":
        KINDS[kind](dsn, int(seed), history).run()
        return
    place = Path(history)
    many = [
        Client(dsn, int(seed) * MANY + n, str(place.with_name(f"{place.stem}-{n}.jsonl")))
        for n in range(MANY)
    ]
    with ThreadPoolExecutor(MANY) as pool:
        for done in as_completed([pool.submit(client.run) for client in many]):
            try:
                done.result()
            except BaseException:
                traceback.print_exc()
                sys.stderr.flush()
                os._exit(1)


if __name__ == "__main__":
    main(*sys.argv[1:])
