"""Splits batch calls into the single calls they are equivalent to."""

from collections.abc import Iterator, Sequence

from tools.verify.history import Call, Row

# Batch function: the single function, and the list arguments with the corresponding single argument.
BATCHES = {
    "ff_complete_many": ("ff_complete", {"handles": "handle", "results": "result"}),
    "ff_renew_many": ("ff_renew", {"handles": "handle"}),
    "ff_create_executions": (
        "ff_create_execution",
        {"payloads": "payload", "idempotency_keys": "idempotency_key"},
    ),
}


def unfold(calls: Sequence[Call]) -> Iterator[Call]:
    """Every call, and after a batch its single calls: each with its own result, a rejected item with its error."""
    for call in calls:
        yield call
        if call.function not in BATCHES:
            continue
        single, lists = BATCHES[call.function]
        shared = {name: value for name, value in call.args.items() if name not in lists}
        answers: dict[int, Row] = {row["ordinal"]: row for row in call.rows or ()}
        for n in range(len(call.args[next(iter(lists))])):
            args = shared | {one: call.args[many][n] for many, one in lists.items() if call.args.get(many)}
            part = Call(call.client, call.number, single, args, call.began_ms, ended_ms=call.ended_ms)
            part.error = call.error
            if call.acknowledged:
                row = answers.get(n + 1, {"error_kind": "no answer"})
                part.error = row.get("error_kind")
                part.rows = None if part.error else [row]
            yield part
