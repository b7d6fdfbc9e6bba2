"""The demo, chapter by chapter. Every chapter checks its own claims."""

import logging
import queue
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import psycopg

from pyff.app import Token
from pyff.cli.output import cell
from pyff.engine import Engine
from pyff.engine_error import EngineError
from pyff.errors import InvalidToken
from pyff.failure import Failure
from pyff.flow_picture import draw, load
from pyff.worker import Worker
from tools.demo import graph
from tools.demo.process import WorkerProcess
from tools.demo.screen import Screen
from tools.demo.tasks import CRASH_AFTER, DESK, FETCH, MODEL, TEXT, TOKENS_PER_TRANSLATION, newsroom

PATIENCE_S = 60.0
STARTS, WINDOW_S = 3, 2
TOKENS = 3_000
TRANSLATED = TOKENS // TOKENS_PER_TRANSLATION


@dataclass(frozen=True)
class Story:
    """Where to find the results of a run."""

    namespace: str
    flow_id: str
    seconds: float


@dataclass
class Stage:
    """State shared by the chapters."""

    dsn: str
    engine: Engine
    screen: Screen
    namespace: str
    flow: graph.Graph
    mailbox: "queue.Queue[Token]" = field(default_factory=queue.Queue)

    def until(self, what: str, probe: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not probe():
            self.expect(time.monotonic() < deadline, what)
            time.sleep(0.02)

    def expect(self, so: bool, what: str) -> None:
        if not so:
            raise Failure(
                f"the demo did not run as expected: {what}",
                hint="please report this, with the output above",
            )

    def state(self, member: str) -> str:
        found = self.engine.read_execution_state(self.flow.members[member])
        return found.public_state if found else ""

    def states(self, members: tuple[str, ...]) -> Counter[str]:
        return Counter(self.state(member) for member in members)

    def uuid(self, member: str) -> str:
        return self.flow.members[member][-36:]

    def look(self, template: str, **names: object) -> list[tuple[str, ...]]:
        """Prints a statement, with these names filled in, and its rows. Returns the rows."""
        statement = template.format(**names)
        with psycopg.connect(self.dsn) as conn:
            cursor = conn.execute(statement.encode())
            header = tuple(column.name for column in cursor.description or ())
            rows = [tuple(cell("", value, shorten=False) for value in row) for row in cursor]
        self.screen.sql(f"{statement};", [header, *rows])
        return rows


def run(dsn: str, screen: Screen) -> Story:
    """Runs the demo on a migrated database, through the public functions only.

    Raises Failure if a check fails.
    """
    logging.getLogger("pyff.worker").addHandler(logging.NullHandler())  # failures are part of the demo
    began = time.monotonic()
    with Engine(dsn) as engine:
        namespace = f"demo-{engine.now_ms()}"
        mailbox: queue.Queue[Token] = queue.Queue()
        app = newsroom(namespace, who="anna", mail=mailbox.put)
        with (
            WorkerProcess(dsn, namespace, "carl") as carl,
            Worker(app, dsn, lanes=[FETCH, DESK, MODEL], poll_s=0.1, drain_s=5, worker_id="anna"),
        ):
            _limits(engine, namespace)
            stage = Stage(dsn, engine, screen, namespace, graph.submit(engine, app), mailbox)
            _flow(stage)
            _quota(stage)
            _crash(stage, carl)
            _approval(stage)
            _retry(stage)
            _budget(stage)
        seconds = time.monotonic() - began
        _end(stage, seconds)
    return Story(namespace, str(stage.flow.flow_id), seconds)


def _limits(engine: Engine, namespace: str) -> None:
    engine.create_quota_policy(f"{namespace}-api", window_seconds=WINDOW_S, max_requests_per_window=STARTS)
    engine.create_quota_policy(f"{namespace}-model", max_concurrent=1)
    engine.create_budget(f"{namespace}-tokens", ["tokens"], [TOKENS], [0], on_hard_limit="cancel_pending")


def _flow(stage: Stage) -> None:
    screen = stage.screen
    screen.chapter("A flow")
    screen.say(f"A newsletter: {len(graph.SOURCES)} sources, of which {graph.ENOUGH} are enough for a draft;")
    screen.say("an editor approves it; it is printed, translated and sent. One call submits all of it:")
    stage.look(
        "select execution_kind, count(*), min(lane_id) as lane,\n"
        "       count(quota_policy_id) > 0 as quota, count(nullif(budget_ids, '{{}}')) > 0 as budget\n"
        "  from ff_v_execution\n"
        " where flow_id = '{flow}'\n"
        " group by execution_kind order by count(*) desc, execution_kind",
        flow=stage.flow.flow_id,
    )


def _quota(stage: Stage) -> None:
    screen = stage.screen
    screen.chapter(f"A rate limit: {STARTS} starts in any {WINDOW_S} seconds")
    sources = graph.SOURCES

    def ended() -> bool:
        return not stage.states(sources) - Counter(completed=9, failed=9)

    stage.until("no source was held back", lambda: stage.states(sources)["rate_limited"] > 0 or ended())
    screen.say(
        f"{len(sources) - STARTS} of {len(sources)} sources wait for the API's quota; other work is not delayed"
    )
    stage.until("the sources were not fetched", ended)
    starts = stage.look(
        "select round(extract(epoch from a.started_at - e.created_at) * 1000) as started_after_ms,\n"
        "       a.outcome, a.failure_reason\n"
        "  from ff_v_execution e join ff_v_attempt a using (execution_uuid)\n"
        " where e.flow_id = '{flow}'\n"
        "   and e.execution_kind = 'fetch' order by a.started_at",
        flow=stage.flow.flow_id,
    )
    moments = [int(row[0]) for row in starts]
    stage.expect(len(moments) == len(sources), "a source was fetched twice")
    # No window began before the submission, so that those beyond the first few started later than one window.
    stage.expect(min(moments[STARTS:]) >= WINDOW_S * 1000, "the rate limit was passed")
    stage.expect(stage.states(sources) == Counter(completed=4, failed=1), "the wrong sources failed")
    screen.good(f"never more than {STARTS} in {WINDOW_S} s; one source failed, {graph.ENOUGH} were enough")


def _crash(stage: Stage, carl: WorkerProcess) -> None:
    screen, engine = stage.screen, stage.engine
    screen.chapter("A stream, and a crash")
    draft = stage.flow.members["write"]
    attempt, handle = carl.lease()
    screen.say(f"carl, process {carl.pid}, writes; readers follow the stream:")
    screen.words("carl:")
    tail = engine.tail(draft, attempt, poll_s=0.05)
    for _ in range(CRASH_AFTER):
        screen.words(f" {next(tail).payload.decode()}")
    tail.close()
    carl.kill()
    screen.bad(f"kill -9 {carl.pid}: carl has died; his lease has not expired yet")
    with WorkerProcess(stage.dsn, stage.namespace, "dora") as dora:
        again, _ = dora.lease()
        stage.expect(again > attempt, "the crashed attempt was not replaced")
        screen.say(f"dora, process {dora.pid}, took over as attempt {again}, under a new lease:")
        screen.words("dora:")
        refused = ""
        for n, frame in enumerate(engine.tail(draft, again, poll_s=0.05)):
            screen.words(f" {frame.payload.decode()}")
            if n == 0:
                refused = _refused(engine, handle)
        stage.expect(bool(refused), "carl's late result was accepted")
        screen.bad(f"ff_complete with carl's old handle is refused: {refused}")
        stage.until("dora did not finish", lambda: stage.state("write") == "completed")
    leases = stage.look(
        "select event_type, attempt_index, lease_epoch, worker_id, reason\n"
        "  from ff_v_event\n"
        " where execution_uuid = '{uuid}'\n"
        "   and family = 'lease' and event_type <> 'renewed' order by event_id",
        uuid=stage.uuid("write"),
    )
    epochs = [int(row[2]) for row in leases if row[3] == "dora"]
    stage.expect(bool(epochs) and min(epochs) > 1, "dora's lease is not newer than carl's")
    (stream,) = stage.look(
        "select string_agg(convert_from(payload, 'UTF8'), ' ' order by frame_id) as stream\n"
        "  from ff_read_stream('{draft}', {attempt})",
        draft=draft,
        attempt=again,
    )
    stage.expect(stream[0] == " ".join(TEXT), "the stream is incomplete")
    steps = stage.look(
        "select name, convert_from(result, 'UTF8') as result, attempt_index\n  from ff_read_steps('{draft}')",
        draft=draft,
    )
    stage.expect(len(steps) == 1 and "carl" in steps[0][1], "the recorded step was repeated")
    screen.good("dora's lease has the higher epoch; carl's recorded headline was not computed again")


def _refused(engine: Engine, handle: str) -> str:
    """The error for the result of a worker that was replaced; empty if it is accepted."""
    try:
        engine.complete(handle, result=b"mine")
    except EngineError as error:
        return error.kind
    return ""


def _approval(stage: Stage) -> None:
    screen, engine = stage.screen, stage.engine
    screen.chapter("An approval")
    try:
        token = stage.mailbox.get(timeout=PATIENCE_S)
    except queue.Empty:
        stage.expect(False, "no approval was requested")
        raise
    stage.until("the execution does not wait for the approval", lambda: stage.state("approve") == "suspended")
    screen.say("The draft waits for its editor: it needs no process, no connection and no lease, only a row.")
    screen.say("The bearer of this token can answer, once:")
    screen.say(f"  {token.secret}")
    forged = token.secret[:-1] + ("0" if token.secret[-1] != "0" else "1")
    try:
        engine.deliver_signal(token.execution_id, token.waitpoint_id, forged, "approve")
        stage.expect(False, "a forged token was accepted")
    except InvalidToken as error:
        screen.bad(f"a forged token is refused: {error.kind}")
    answered = _signal(stage.dsn, token)
    screen.say(f"another process: pyff signal .. approve --source editor --token -\n     {answered}")
    stage.until("the approval did not arrive", lambda: stage.state("approve") == "completed")
    stage.look(
        "select reason_code, close_reason, resume_trigger, (closed_at - suspended_at)::text as waited\n"
        "  from ff_v_suspension\n"
        " where execution_uuid = '{uuid}'",
        uuid=stage.uuid("approve"),
    )
    result = engine.get_execution_result(token.execution_id)
    answer = (result.result or b"").decode() if result else ""
    stage.expect("editor: fine with me" in answer, "the task did not get the editor's answer")
    screen.good(f"the same attempt continued, with the answer: {answer}")


def _signal(dsn: str, token: Token) -> str:
    done = subprocess.run(
        [
            *(sys.executable, "-P", "-m", "pyff", "signal", "--dsn", dsn, "--token", "-"),
            *("--source", "editor", "--payload", "fine with me"),
            *(token.execution_id, str(token.waitpoint_id), "approve"),
        ],
        input=token.secret,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    return (done.stdout or done.stderr).strip()


def _retry(stage: Stage) -> None:
    screen = stage.screen
    screen.chapter("A retry")
    screen.say("The printer jams. The database applies the retry policy that is stored with the execution:")
    stage.until("the issue was not printed", lambda: stage.state("print") == "completed")
    attempts = stage.look(
        "select attempt_index, attempt_type, state, failure_reason, to_char(started_at, 'SS.MS') as second\n"
        "  from ff_v_attempt\n"
        " where execution_uuid = '{uuid}' order by attempt_index",
        uuid=stage.uuid("print"),
    )
    stage.expect(
        [row[2] for row in attempts] == ["ended_failure", "ended_success"], "the print was not retried"
    )
    screen.good("300 ms later the second attempt printed it")


def _budget(stage: Stage) -> None:
    screen = stage.screen
    screen.chapter(f"A budget of {TOKENS} tokens")
    languages = graph.LANGUAGES
    screen.say(f"{len(languages)} translations of {TOKENS_PER_TRANSLATION} tokens each, one at a time")
    done = 0
    while done < TRANSLATED:
        stage.until("a translation is missing", lambda: stage.states(languages)["completed"] > done)  # noqa: B023
        done += 1
        screen.good(f"{done * TOKENS_PER_TRANSLATION} tokens used")
    stage.until("the budget did not stop a translation", lambda: stage.states(languages)["failed"] > 0)
    screen.bad(
        f"{(done + 1) * TOKENS_PER_TRANSLATION} would exceed the limit: refused, and the rest is cancelled"
    )
    stage.until("the remaining translations were not cancelled", lambda: stage.state("send") == "completed")
    ends = stage.look(
        "select public_state, count(*), failure_reason, cancellation_reason\n"
        "  from ff_v_execution\n"
        " where flow_id = '{flow}'\n"
        "   and execution_kind = 'translate'\n"
        " group by 1, 3, 4 order by count(*) desc, public_state",
        flow=stage.flow.flow_id,
    )
    left = len(languages) - TRANSLATED - 1
    counts = {row[0]: int(row[1]) for row in ends}
    stage.expect(
        counts == {"completed": TRANSLATED, "failed": 1, "cancelled": left},
        "the budget stopped the wrong work",
    )
    (usage,) = stage.look(
        "select dimension, current_usage, hard_limit, breached\n"
        "  from ff_get_budget_status('{namespace}-tokens')",
        namespace=stage.namespace,
    )
    stage.expect(int(usage[1]) == TRANSLATED * TOKENS_PER_TRANSLATION, "the usage of the budget is wrong")
    screen.good(f"the newsletter was sent in {TRANSLATED} languages")


def _end(stage: Stage, seconds: float) -> None:
    screen = stage.screen
    screen.chapter("The whole flow")
    picture = load(stage.dsn, stage.flow.flow_id)
    stage.expect(picture is not None, "the flow is gone")
    if picture is not None:
        screen.block(draw(picture, colour=screen.colour))
        stage.expect(picture.flow.public_flow_state == "completed", "the flow did not complete")
    broken = stage.look("select * from ff_check_invariants()")
    stage.expect(not broken, "the database violates an invariant")
    screen.good(f"no invariant is violated; {seconds:.1f} s in total")
