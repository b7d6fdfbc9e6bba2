"""The tasks of the newsletter. Fetching, writing and printing are simulated; waits, failures and crashes are real."""

import os
import time
from collections.abc import Callable

from pyff.app import App, Backoff, Ctx, Fail, Token

FETCH, WRITE, DESK, MODEL = "demo-fetch", "demo-write", "demo-desk", "demo-model"
TEXT = ("Postgres", "keeps", "the", "work", "safe", "even", "when", "those", "who", "do", "it", "are", "gone")
CRASH_AFTER = 6
TOKENS_PER_TRANSLATION = 900


def newsroom(
    namespace: str,
    *,
    who: str = "",
    mail: Callable[[Token], object] = lambda _: None,
    begun: Callable[[Ctx], object] = lambda _: None,
) -> App:
    """The app of one run. `who`: the worker's name; `mail` receives the editor's mail; `begun` is called per draft."""
    app = App(namespace=namespace)

    @app.task(lane=FETCH, policy={"quota_policy_id": f"{namespace}-api"})
    def fetch(source: str) -> str:
        if source == "tabloid":
            raise Fail("404", retryable=False)
        return f"what {source} says"

    @app.task(lane=WRITE)
    def write(ctx: Ctx) -> str:
        begun(ctx)
        headline = ctx.step("headline", _headline, who)
        for n, word in enumerate(TEXT):
            while who == "carl" and n == CRASH_AFTER:
                time.sleep(0.1)  # until the process is killed
            ctx.emit(word, type="token")
            time.sleep(0.08)
        return headline

    @app.task(lane=DESK)
    def approve(ctx: Ctx) -> str:
        answer = ctx.wait(
            "approval",
            signals={"approve", "reject"},
            timeout_ms=600_000,
            on_token=mail,
            reason="waiting_for_approval",
        )
        if answer.name == "reject":
            raise Fail("rejected", retryable=False)
        return f"{answer.name} by {answer.source}: {(answer.payload or b'').decode()}"

    @app.task("print", lane=DESK, retry=Backoff(max=3, base_ms=300, jitter=False))
    def print_issue(ctx: Ctx) -> str:
        if ctx.attempt == 0:
            raise Fail("paper jam")
        return "10 000 copies"

    @app.task(
        lane=MODEL, policy={"budget_ids": [f"{namespace}-tokens"], "quota_policy_id": f"{namespace}-model"}
    )
    def translate(ctx: Ctx, language: str) -> str:
        time.sleep(0.05)
        spent = ctx.usage(f"{namespace}-tokens", {"tokens": TOKENS_PER_TRANSLATION}, key=ctx.execution_id)
        if not spent.applied:
            raise Fail("out of tokens", retryable=False)
        return language

    @app.task(lane=DESK)
    def send(ctx: Ctx) -> int:
        inputs = ctx.engine.read_dependency_inputs(ctx.execution_id)
        return sum(row.outcome == "success" for row in inputs)

    return app


def _headline(who: str) -> str:
    return f"Nothing is lost, by {who} (process {os.getpid()})"
