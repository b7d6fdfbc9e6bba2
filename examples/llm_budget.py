"""A fan-out of prompts to a language model that stops when its tokens are used up.

    PYFF_DSN=... python examples/llm_budget.py

Every prompt is an execution of a flow; a summary waits for all of them, however they end. The prompts share a budget
with `cancel_pending`: the first call that would pass the limit is rejected, prompts that have not begun are cancelled,
and the summary runs on the answers so far. The model is simulated.
"""

import os
import uuid
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pyff

PROMPTS = 40
WORKERS = 4
TOKENS = 10_500


def model(prompt: str) -> tuple[str, int]:
    """Returns an answer and its number of tokens."""
    return prompt.upper(), 700 + 20 * len(prompt)


def work(dsn: str, lane: str, budget: str, name: str) -> None:
    """Answers prompts until there is nothing left to claim."""
    with pyff.Engine(dsn) as engine:
        while task := engine.claim(lane, name, name):
            prompt = (task.payload or b"").decode()
            answer, tokens = model(prompt)
            # The key identifies the attempt, so a repeated report counts once.
            key = f"{task.execution_id}/{task.attempt_index}"
            usage = engine.report_usage(task.handle, budget, {"tokens": tokens}, dedup_key=key)
            if usage.applied:
                engine.complete(task.handle, result=answer.encode())
            else:
                engine.cancel(task.handle, reason="out of tokens")


def main(dsn: str) -> None:
    run = uuid.uuid4().hex[:8]
    lane, summaries, budget = f"prompts-{run}", f"summaries-{run}", f"tokens-{run}"
    with pyff.Engine(dsn) as engine:
        engine.create_budget(budget, ["tokens"], [TOKENS], [TOKENS * 8 // 10], on_hard_limit="cancel_pending")
        prompts = [f"prompt number {n}" for n in range(PROMPTS)]
        nodes = engine.submit_flow(
            [
                *({"key": prompt, "lane_id": lane, "payload": prompt} for prompt in prompts),
                {"key": "summary", "lane_id": summaries},
            ],
            edges=[{"from": p, "to": "summary", "dependency_kind": "any_terminal"} for p in prompts],
        )
        for node in nodes:
            if node.node_key != "summary":
                engine.attach_budget(budget, execution_id=node.execution_id)

        with ThreadPoolExecutor(WORKERS) as pool:
            list(pool.map(lambda n: work(dsn, lane, budget, f"worker-{n}"), range(WORKERS)))

        # If maintenance runs, it does this within a second.
        while engine.sweep_budget_breaches().more:
            continue
        summary = engine.claim(summaries, "summary", "summary-1")
        if not summary:
            raise SystemExit("the summary still waits for prompts")
        ends = Counter(row.outcome for row in engine.read_dependency_inputs(summary.execution_id))
        engine.complete(summary.handle)
        (tokens,) = engine.read_budget_usage_and_limits(budget)
        print(f"{tokens.current_usage} of {tokens.hard_limit} tokens used")
        print(f"{ends['success']} prompts answered, {ends['cancelled']} cancelled")


if __name__ == "__main__":
    main(os.environ["PYFF_DSN"])
