"""What is measured: the scenarios and their metrics."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Metric:
    key: str
    title: str
    unit: str
    more_is_better: bool
    log: bool = True


@dataclass(frozen=True)
class Scenario:
    key: str
    title: str
    text: str
    metrics: tuple[Metric, ...]
    costs: tuple[Metric, ...] = ()  # what a task costs: shown in a table of their own, not drawn


def _rate(key: str, title: str, unit: str = "per s") -> Metric:
    return Metric(key, title, unit, more_is_better=True)


def _less(key: str, title: str, unit: str, *, log: bool = True) -> Metric:
    return Metric(key, title, unit, more_is_better=False, log=log)


def _costs(prefix: str, title: str, other: str) -> tuple[Metric, ...]:
    return (
        _less(f"{prefix}_wal", f"{title}: log", "bytes"),
        _less(f"{prefix}_transactions", "transactions that write", ""),
        _less(f"{prefix}_server", "server's processor", "µs"),
        _less(f"{prefix}_other", f"{other}'s processor", "µs"),
    )


SCENARIOS = (
    Scenario(
        "A",
        "Enqueue and drain",
        "Tasks that do nothing. Enqueue: one client, one call after another, or the batch call of the peer. Drain: the"
        " work is enqueued before the workers start; from the first task that runs until nothing is unfinished in the"
        " database.",
        (
            _rate("enqueue_single", "enqueue, one by one"),
            _rate("enqueue_batch", "enqueue, in batches"),
            _rate("drain_1", "drain, 1 process"),
            _rate("drain_2", "drain, 2 processes"),
        ),
        (*_costs("enqueue", "enqueue in batches", "client"), *_costs("drain", "drain", "worker")),
    ),
    Scenario(
        "B",
        "Latency of an idle worker",
        "From before the call that enqueues to the first line of the task, one task at a time.",
        (_less("start_p50", "p50", "ms"), _less("start_p95", "p95", "ms")),
    ),
    Scenario(
        "C",
        "Suspend, signal, resume",
        "A task waits for a signal. From before the call that signals to the line after the wait; and how many waiting"
        " tasks per second go on when one client signals them all, one by one.",
        (
            _less("resume_p50", "resume, p50", "ms"),
            _less("resume_p95", "resume, p95", "ms"),
            _rate("resumes", "signalled and resumed"),
        ),
    ),
    Scenario(
        "D",
        "Durable chain of ten steps",
        "Tasks of ten steps whose results are recorded one after another; one worker process.",
        (_rate("chains", "chains"),),
        _costs("chain", "a chain", "worker"),
    ),
    Scenario(
        "E",
        "kill -9 in the middle of the work",
        "Tasks of 20 ms, two worker processes with 16 at a time each; one of them is killed after a third. Seconds"
        " from the kill until every task has run and nothing is unfinished; tasks that did not run, and that ran twice"
        " to the end. Once with the defaults, as far as they recover within half a minute, and once with leases"
        " (heartbeats, rescue timers) of five seconds for every peer, or the shortest that the peer allows.",
        (
            _less("recovery_default", "recovered, defaults", "s"),
            _less("lost_default", "not run in time, defaults", "tasks", log=False),
            _less("doubled_default", "ran twice, defaults", "tasks", log=False),
            _less("recovery_short", "recovered, short leases", "s"),
            _less("lost_short", "not run in time, short leases", "tasks", log=False),
            _less("doubled_short", "ran twice, short leases", "tasks", log=False),
        ),
    ),
    Scenario(
        "F",
        "Work routed by capabilities",
        "Ten kinds of work, four worker processes that can do five of them each. Peers without capabilities are routed"
        " by queue or task names, which is what their documentation offers.",
        (_rate("routed", "routed tasks"),),
    ),
    Scenario(
        "G",
        "Cancel many",
        "Cancels work that has not begun, in one call where the peer has one: pyff cancels a flow with all members.",
        (_less("cancel_100", "100 tasks", "ms"), _less("cancel_1000", "1 000 tasks", "ms")),
    ),
    Scenario(
        "H",
        "Growth",
        "As A with one process and as B, once after many finished tasks are retained, and once while another session"
        " holds back vacuum (a transaction that stays open) and has done so for one whole drain before.",
        (
            _rate("drain_retained", "drain, retained rows"),
            _less("start_retained", "start p50, retained rows", "ms"),
            _rate("drain_held", "drain, held horizon"),
            _less("start_held", "start p50, held horizon", "ms"),
        ),
    ),
    Scenario(
        "I",
        "Weight of a worker",
        "One idle worker process that has just drained: resident memory (private and shared) and connections.",
        (
            _less("memory", "memory", "MB", log=False),
            _less("connections", "connections", "", log=False),
        ),
    ),
)

BY_KEY = {scenario.key: scenario for scenario in SCENARIOS}
