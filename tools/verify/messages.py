"""Rules about signals, frames and events: complete, in order, unchanged."""

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from tools.verify.facts import Facts
from tools.verify.history import Call

Finding = tuple[str, str]


def signals_are_stored(calls: Sequence[Call], facts: Facts) -> Iterator[Finding]:
    """Each accepted signal is stored once, unchanged, in the order of its sender; and no other signal is stored."""
    sent: Counter[tuple[str, str | None]] = Counter()
    last: dict[tuple[str, str], int] = {}
    for call in calls:
        if call.function != "ff_deliver_signal":
            continue
        id, row = call.args["execution_id"], call.row
        if call.unknown or row.get("outcome") == "accepted":
            sent[id, call.args.get("payload")] += 1
        if not call.acknowledged:
            continue
        stored = facts.signals.get((id, row["signal_id"]))
        if stored is None:
            yield id, f"signal {row['signal_id']} of {call.client} was {row['outcome']}, and is not stored"
        elif row["outcome"] == "accepted" and (stored["payload"], stored["signal_name"]) != (
            call.args.get("payload"),
            call.args["signal_name"],
        ):
            yield id, f"signal {row['signal_id']} differs from what {call.client} sent"
        elif row["outcome"] == "accepted":
            if stored["seq"] <= last.get((call.client, id), 0):
                yield id, f"signal {row['signal_id']} comes before one that {call.client} sent earlier"
            last[call.client, id] = stored["seq"]
    places: dict[str, list[int]] = defaultdict(list)
    keys: dict[tuple[str, str, bool], str] = {}
    for (id, signal_id), row in facts.signals.items():
        places[id].append(row["seq"])
        if row["source_type"] == "external":
            sent[id, row["payload"]] -= 1
            if sent[id, row["payload"]] < 0:
                yield id, f"signal {signal_id} is stored more often than it was sent"
        if row["idempotency_key"]:
            operator = row["source_type"] == "operator"
            first = keys.setdefault((row["waitpoint_id"], row["idempotency_key"], operator), signal_id)
            if first != signal_id:
                yield id, f"signals {first} and {signal_id} have the same key"
    for id, seen in places.items():
        if sorted(seen) != list(range(1, len(seen) + 1)):
            yield id, f"its signals are numbered {sorted(seen)}"


def signals_and_approvals_are_separate(calls: Sequence[Call], facts: Facts) -> Iterator[Finding]:
    """The signal in a result for an operator or a token holder is stored, with the same kind of sender."""
    for call in calls:
        if call.function not in ("ff_deliver_signal", "ff_deliver_approval_signal") or not call.acknowledged:
            continue
        id, row = call.args["execution_id"], call.row
        stored = facts.signals.get((id, row["signal_id"]), {})
        if (stored.get("source_type") == "operator") != (call.function == "ff_deliver_approval_signal"):
            source = stored.get("source_type", "no sender")
            yield id, f"{call.function} of {call.client} was {row['outcome']}: a signal of {source}"


def tokens_are_returned_to_their_fence(calls: Sequence[Call], facts: Facts) -> Iterator[Finding]:
    """Only the fence that suspended gets the recorded answer, with the tokens."""
    for call in calls:
        row = call.row
        if call.function != "ff_suspend" or not row.get("replayed") or row["outcome"] != "suspended":
            continue
        fence, made = facts.fences[call.args["handle"]], facts.suspensions.get(row["suspension_id"])
        if made is None or (made["lease_id"], made["lease_epoch"]) != (fence.lease_id, fence.lease_epoch):
            yield (
                fence.execution_id,
                f"{call.client} was shown suspension {row['suspension_id']} of another lease",
            )


def tokens_are_checked(calls: Sequence[Call], facts: Facts) -> Iterator[Finding]:
    """If a token was issued for a waitpoint, no signal is accepted with another token."""
    given: dict[str, set[str]] = defaultdict(set)
    for call in calls:
        if call.function in ("ff_suspend", "ff_create_waitpoint", "ff_read_waitpoint_token"):
            for row in call.rows or ():
                waitpoint = row.get("waitpoint_id") or call.args.get("waitpoint_id")
                if waitpoint and row["waitpoint_token"]:
                    given[waitpoint].add(row["waitpoint_token"])
    for call in calls:
        if call.function == "ff_deliver_signal" and call.acknowledged:
            known = given.get(call.args["waitpoint_id"])
            if known and call.args["waitpoint_token"] not in known:
                yield call.args["execution_id"], f"a signal of {call.client} was accepted with a wrong token"


def frames_are_stored(calls: Sequence[Call], facts: Facts) -> Iterator[Finding]:
    """Each durable frame is stored once, unchanged, in the order of its writer; and no other frame is stored."""
    sent: Counter[tuple[str, int, str]] = Counter()
    last: dict[tuple[str, str, int], tuple[int, int]] = {}
    for call in calls:
        if (
            call.function != "ff_append_frame"
            or call.args.get("mode", "durable") != "durable"
            or call.error is not None
            or call.args["handle"] not in facts.fences
        ):
            continue
        fence, row = facts.fences[call.args["handle"]], call.row
        if not row.get("replayed"):
            sent[fence.execution_id, fence.attempt_index, call.args["payload"]] += 1
        if call.unknown:
            continue
        stored = facts.frames.get((fence.execution_id, fence.attempt_index, row["frame_id"]))
        if stored is None:
            yield (
                fence.execution_id,
                f"frame {row['frame_id']} of attempt {fence.attempt_index} is not stored",
            )
        elif stored["payload"] != call.args["payload"] and not row["replayed"]:
            yield fence.execution_id, f"frame {row['frame_id']} differs from what {call.client} wrote"
        if not row["replayed"]:
            key, place = (call.client, fence.execution_id, fence.attempt_index), (row["ts_ms"], row["seq"])
            if place <= last.get(key, (0, -1)):
                yield fence.execution_id, f"frame {row['frame_id']} comes before one that was written earlier"
            last[key] = place
    for (id, index, frame_id), stored in facts.frames.items():
        if stored["mode"] == "durable":
            sent[id, index, stored["payload"]] -= 1
            if sent[id, index, stored["payload"]] < 0:
                yield id, f"frame {frame_id} of attempt {index} is stored more often than it was written"


def streams_are_read_in_order(calls: Sequence[Call], facts: Facts) -> Iterator[Finding]:
    """A page of the durable frames of a stream is contiguous and in order."""
    stored: dict[tuple[str, int], list[str]] = defaultdict(list)
    for (id, index, frame_id), row in facts.frames.items():
        if row["mode"] == "durable":
            stored[id, index].append(frame_id)
    for call in calls:
        seen = [row["frame_id"] for row in call.rows or () if row.get("mode") == "durable"]
        if call.function not in ("ff_read_stream", "ff_tail_stream") or not seen:
            continue
        id, index = call.args["execution_id"], call.args["attempt_index"]
        frames = stored[id, index]
        start = frames.index(seen[0]) if seen[0] in frames else len(frames)
        if frames[start : start + len(seen)] != seen:
            yield id, f"{call.client} read frames of attempt {index} that are not a run of those stored"


def summaries_contain_every_patch(calls: Sequence[Call], facts: Facts) -> Iterator[Finding]:
    """A member that only one patch has set is in the summary of its stream, and versions of patches are unique."""
    made: dict[tuple[str, int, int], Call] = {}
    patches: list[tuple[str, int, Call, dict[str, object]]] = []
    setters: Counter[tuple[str, int, str]] = Counter()
    for call in calls:
        if call.function != "ff_append_frame" or call.args.get("mode") != "durable_summary":
            continue
        if call.error or call.args["handle"] not in facts.fences:
            continue
        fence = facts.fences[call.args["handle"]]
        patch = json.loads(bytes.fromhex(call.args["payload"].removeprefix("\\x")))
        if isinstance(patch, dict):
            patches.append((fence.execution_id, fence.attempt_index, call, patch))
            for name in patch:
                setters[fence.execution_id, fence.attempt_index, name] += 1
    for id, index, call, patch in patches:
        if call.unknown:
            continue
        summary = facts.summaries.get((id, index), {"version": 0, "document": {}})
        version = call.row["summary_version"]
        other = made.setdefault((id, index, version), call)
        if version > summary["version"] or (other is not call and not call.row["replayed"]):
            yield id, f"version {version} of the summary of attempt {index} is not {call.client}'s"
        for name, value in patch.items():
            if setters[id, index, name] == 1 and value is not None and summary["document"].get(name) != value:
                yield id, f"the summary of attempt {index} does not hold {name}, which {call.client} set"


def events_are_read_once_in_order(calls: Sequence[Call], facts: Facts) -> Iterator[Finding]:
    """A reader that follows all families sees every event once, in the order in which they are stored."""
    readers: dict[str, list[int]] = defaultdict(list)
    for call in calls:
        if call.function == "ff_read_events":
            readers[call.client] += [r["event_id"] for r in call.rows or () if r["event_type"] != "watermark"]
    for client, seen in readers.items():
        if not seen:
            continue
        if len(set(seen)) != len(seen):
            yield client, f"read {len(seen) - len(set(seen))} events twice"
        stored = facts.event_order
        if seen[0] not in stored:
            yield client, f"read event {seen[0]}, which is not stored"
            continue
        start = stored.index(seen[0])
        if stored[start : start + len(seen)] != seen:
            missed = set(stored[start : start + len(seen)]) - set(seen)
            yield client, f"skipped {len(missed)} events, or read them out of order: {sorted(missed)[:5]}"
