"""The scenarios: each measures one peer once, in a database of its own."""

import contextlib
import random
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import psycopg

from bench.compare_peers.place import Place
from bench.compare_peers.protocol import DriverError, Worker, until
from bench.compare_peers.stats import percentile
from bench.process import megabytes

Values = dict[str, float | str]  # a text is the reason for a missing figure
SETS = 10
FAST: dict[str, object] = {"fast": True}
Open = Callable[[], contextlib.AbstractContextManager[Place]]


@dataclass(frozen=True)
class Sizes:
    """Amounts of work; `drain` and others are multiplied by the size of a peer."""

    single: int = 3_000
    drain: int = 60_000
    latencies: int = 40
    latency_s: float = 12.0
    signals: int = 20
    resumes: int = 200
    chains: int = 600
    naps: int = 1_000
    kill_s: float = 45.0
    routed: int = 40_000
    retained: int = 1_000_000
    longest_s: float = 25.0


def measure(scenario: str, peer_open: Open, sizes: Sizes) -> Values:
    return SCENARIOS[scenario](peer_open, sizes)


def _scaled(place: Place, count: int) -> int:
    return max(int(count * place.peer.size), 20)


# --- A ----------------------------------------------------------------------------------------------------


def enqueue_and_drain(place_of: Open, sizes: Sizes) -> Values:
    found: Values = {}
    with place_of() as place:
        count = min(sizes.single, _scaled(place, sizes.single * 5))
        place.enqueue("noop", 20, batch=False)  # connections, plans
        found["enqueue_single"] = count / place.enqueue("noop", count, batch=False)
    for processes in (1, 2):
        with place_of() as place:
            count = _scaled(place, sizes.drain)
            before = place.reading([place.client])
            seconds = place.enqueue("noop", count)
            if processes == 1:
                found["enqueue_batch"] = place.peer.batch or count / seconds
                spent = place.reading([place.client]).per_task(before, count)
                found |= {f"enqueue_{what}": value for what, value in spent.items()}
            if processes == 2 and place.peer.one_process:
                found["drain_2"] = place.peer.one_process
                continue
            rate, spent = _drain(place, count, processes, sizes.longest_s)
            found[f"drain_{processes}"] = rate
            if processes == 1:
                found |= {f"drain_{what}": value for what, value in spent.items()}
    return found


def _drain(place: Place, count: int, processes: int, longest_s: float) -> tuple[float, dict[str, float]]:
    """Tasks per second, of the finished ones on a timeout; and the cost of one."""
    place.settle()
    with place.workers(*[FAST] * processes) as workers:
        before = place.reading(workers)
        began, done, ended = _work_off(place, workers, count, longest_s)
        after = place.reading(workers)
    return done / (ended - began), after.per_task(before, max(_done(workers), 1))


def _work_off(place: Place, workers: list[Worker], count: int, longest_s: float) -> tuple[float, int, float]:
    """When the first task ran, how many were finished, and when, according to the database."""
    if not until(workers, lambda: _done(workers) > 0, longest_s):
        raise DriverError(f"no task ran within {longest_s:.0f} s")
    complete = until(workers, lambda: _done(workers) >= count, longest_s)
    ended = place.finished(workers, longest_s) if complete else None
    began, seen = min(worker.first for worker in workers if worker.first)
    return began, (count if ended else _done(workers)) - seen, ended or time.time()


def _done(workers: list[Worker]) -> int:
    return sum(worker.done for worker in workers)


# --- B ----------------------------------------------------------------------------------------------------


def idle_latency(place_of: Open, sizes: Sizes) -> Values:
    with place_of() as place, place.workers({}) as (worker,):
        waits = _latencies(place, worker, sizes)
    return {"start_p50": percentile(waits, 50), "start_p95": percentile(waits, 95)}


def _latencies(place: Place, worker: Worker, sizes: Sizes, first: int = 10_000_000) -> list[float]:
    """Milliseconds from before the call to the first line of the task. The first ones warm up."""
    waits: list[float] = []
    end = time.monotonic() + sizes.latency_s
    warm = 3
    for number in range(first, first + sizes.latencies + warm):
        answer = place.client.ask("enqueue", task="mark", first=number, count=1, batch=False)
        if not worker.until(lambda number=number: number in worker.marks, 20):  # type: ignore[misc]
            raise DriverError("an idle worker did not start a task within 20 s")
        if number >= first + warm:
            waits.append(1000 * (worker.marks[number] - answer["t0"]))
            if time.monotonic() > end and len(waits) >= 3:
                break
        time.sleep(random.uniform(0.02, 0.06))  # noqa: S311 - out of step with the polling of all systems
    return waits


# --- C ----------------------------------------------------------------------------------------------------


def suspend_and_signal(place_of: Open, sizes: Sizes) -> Values:
    waits: list[float] = []
    with place_of() as place, place.workers({}) as (worker,):
        end = time.monotonic() + sizes.latency_s
        for number in range(sizes.signals):
            place.enqueue("wait", 1, batch=False, first=number)
            _signal_when_waiting(place, worker, [number])
            waits.append(1000 * _resumed(worker, number, _signal(place, worker, number)))
            if time.monotonic() > end and len(waits) >= 3:
                break
        first, count = 1_000_000, max(int(sizes.resumes * min(1.0, 5 * place.peer.size)), 10)
        numbers = range(first, first + count)
        place.enqueue("wait", count, first=first)
        _signal_when_waiting(place, worker, list(numbers))
        began = time.time()
        for number in numbers:
            _signal(place, worker, number)
        if not worker.until(lambda: all(n in worker.marks for n in numbers), sizes.longest_s):
            raise DriverError("not all waiting tasks continued after their signals")
        ended = place.finished([worker], sizes.longest_s) or time.time()
    return {
        "resume_p50": percentile(waits, 50),
        "resume_p95": percentile(waits, 95),
        "resumes": count / (ended - began),
    }


def _signal_when_waiting(place: Place, worker: Worker, numbers: list[int]) -> None:
    if not worker.until(lambda: all(n in worker.waiting for n in numbers), 30):
        raise DriverError("a task did not begin to wait within 30 s")
    time.sleep(0.1)  # reported just before it waits


def _signal(place: Place, worker: Worker, number: int) -> float:
    return float(place.client.ask("signal", number=number, token=worker.waiting[number])["t0"])


def _resumed(worker: Worker, number: int, sent: float) -> float:
    if not worker.until(lambda: number in worker.marks, 30):
        raise DriverError("a waiting task did not continue within 30 s of its signal")
    return worker.marks[number] - sent


# --- D ----------------------------------------------------------------------------------------------------


def durable_chain(place_of: Open, sizes: Sizes) -> Values:
    with place_of() as place:
        count = max(int(sizes.chains * min(1.0, 3 * place.peer.size)), 10)
        place.enqueue("chain", count)
        rate, spent = _drain(place, count, 1, sizes.longest_s)
    return {"chains": rate, **{f"chain_{what}": value for what, value in spent.items()}}


# --- E ----------------------------------------------------------------------------------------------------


def killed(place_of: Open, sizes: Sizes) -> Values:
    with place_of() as place:
        peer = place.peer
    found: Values = {}
    for which, reason, options in (
        ("default", peer.slow_default, {}),
        ("short", peer.no_short_lease, {"lease_s": peer.shortest_lease_s}),
    ):
        if reason:
            found |= dict.fromkeys((f"{what}_{which}" for what in ("recovery", "lost", "doubled")), reason)
        else:
            found |= _kill(which, options, place_of, sizes)
    return found


def _kill(which: str, lease: Mapping[str, object], place_of: Open, sizes: Sizes) -> Values:
    """Kills the busier one of two workers after a third of the work."""
    with place_of() as place, contextlib.ExitStack() as stack:
        place.enqueue(place.peer.short_task if lease else "nap", sizes.naps)
        place.settle()
        options = [{"concurrency": 16, "name": f"worker-{n}", **lease} for n in range(2)]
        workers = stack.enter_context(place.workers(*options))
        if not until(workers, lambda: _ran(workers) >= sizes.naps // 3, 60):
            raise DriverError("a third of the tasks did not run within 60 s")
        time.sleep(random.uniform(0.03, 0.06))  # noqa: S311 - at any moment, not just after a batch was reported
        victim = max(workers, key=lambda worker: len(worker.ran))
        victim.kill()
        began = time.monotonic()
        victim.read_rest()
        alive = [worker for worker in workers if worker is not victim]
        if place.peer.restarted:
            alive += stack.enter_context(place.workers(options[workers.index(victim)]))
        wanted = set(range(sizes.naps))

        def ran() -> list[int]:
            return [number for worker in (victim, *alive) for number in worker.ran]

        def over() -> bool:
            return len(ran()) >= sizes.naps and wanted <= set(ran()) and not place.left()

        done = until(alive, over, sizes.kill_s)
        spent = time.monotonic() - began
        return {
            f"recovery_{which}": spent if done else f"not within {sizes.kill_s:.0f} s",
            f"lost_{which}": float(len(wanted - set(ran()))),
            f"doubled_{which}": float(len(ran()) - len(set(ran()))),
        }


def _ran(workers: list[Worker]) -> int:
    return sum(len(worker.ran) for worker in workers)


# --- F ----------------------------------------------------------------------------------------------------


def routed(place_of: Open, sizes: Sizes) -> Values:
    """Worker w can do the sets k with k mod 4 in (w, w + 1): five of ten, each set by two workers."""
    with place_of() as place:
        count = _scaled(place, sizes.routed)
        place.enqueue("noop", count, sets=SETS)
        place.settle()
        able = [[f"set{k}" for k in range(SETS) if (k - w) % 4 in (0, 1)] for w in range(4)]
        with place.workers(*[{"sets": sets, **FAST} for sets in able]) as workers:
            began, done, ended = _work_off(place, workers, count, sizes.longest_s)
    return {"routed": done / (ended - began)}


# --- G ----------------------------------------------------------------------------------------------------


def cancelled(place_of: Open, sizes: Sizes) -> Values:
    with place_of() as place:
        place.client.ask("cancel", count=10)
        return {f"cancel_{n}": 1000 * place.client.ask("cancel", count=n)["seconds"] for n in (100, 1000)}


# --- H ----------------------------------------------------------------------------------------------------


def growth(place_of: Open, sizes: Sizes) -> Values:
    found: Values = {}
    with place_of() as place:
        if place.peer.retain:
            _run_one(place, sizes)
            place.retain(sizes.retained)
            count = _scaled(place, sizes.drain // 2)
            place.enqueue("noop", count)
            found["drain_retained"], _ = _drain(place, count, 1, sizes.longest_s)
            with place.workers({}) as (worker,):
                found["start_retained"] = percentile(_latencies(place, worker, sizes), 50)
        else:
            found |= dict.fromkeys(
                ("drain_retained", "start_retained"), place.peer.keeps or "retains nothing"
            )
    with place_of() as place, _held_horizon(place.dsn):
        count = _scaled(place, sizes.drain // 2)
        for _ in range(2):
            place.enqueue("noop", count)
            found["drain_held"], _ = _drain(place, count, 1, sizes.longest_s)
        with place.workers({}) as (worker,):
            found["start_held"] = percentile(_latencies(place, worker, sizes), 50)
    return found


def _run_one(place: Place, sizes: Sizes) -> None:
    with place.workers({}) as (worker,):
        place.enqueue("noop", 1, batch=False)
        if not worker.until(lambda: worker.done >= 1, 30) or place.finished([worker], 30) is None:
            raise DriverError("one task did not end within 30 s")


@contextlib.contextmanager
def _held_horizon(dsn: str) -> Iterator[None]:
    with psycopg.connect(dsn) as conn:
        conn.execute("set transaction isolation level repeatable read")
        conn.execute("select txid_current_snapshot()")
        yield
        conn.rollback()


# --- I ----------------------------------------------------------------------------------------------------


def weight(place_of: Open, sizes: Sizes) -> Values:
    with place_of() as place:
        count = _scaled(place, sizes.drain // 4)
        place.enqueue("noop", count)
        before = place.connections()
        with place.workers({}) as workers:
            _work_off(place, workers, count, sizes.longest_s)
            return {
                "memory": megabytes(workers[0].process.pid),
                "connections": float(len(place.connections() - before)),
            }


SCENARIOS: dict[str, Callable[[Open, Sizes], Values]] = {
    "A": enqueue_and_drain,
    "B": idle_latency,
    "C": suspend_and_signal,
    "D": durable_chain,
    "E": killed,
    "F": routed,
    "G": cancelled,
    "H": growth,
    "I": weight,
}
