"""Planted bugs: each is a change to one function that the checker must notice; or, for what its load does not reach, a
change to one file that a test must notice."""

import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg

from pyff.migrate.place import Place
from pyff.migrate.tree import SqlFile, shipped
from tools.prove.campaign import FAULTS, Campaign
from tools.prove.server import Server

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Mutant:
    """`old` stands in `function` and is replaced, everywhere in it, by `new`. `test`: what must notice it instead of
    the checker; then `function` may be the path of any file."""

    name: str
    function: str
    old: str
    new: str
    test: str = ""

    def source(self, root: Path = ROOT) -> str:
        head, text, tail = self._parts(self.path(root).read_text())
        if self.old not in text:
            raise LookupError(f"{self.name}: {self.function} does not contain {self.old!r}")
        return head + text.replace(self.old, self.new) + tail

    def path(self, root: Path = ROOT) -> Path:
        if "/" in self.function:
            return root / self.function
        (path,) = (x for x in root.glob("db/functions/*/*.sql") if self._begin in x.read_text())
        return path

    @property
    def _begin(self) -> str:
        return f"create or replace function {self.function}("

    def _parts(self, text: str) -> tuple[str, str, str]:
        """A file as what stands before the function, the function, and what follows."""
        if "/" in self.function:
            return "", text, ""
        start = text.index(self._begin)
        end = text.index("$$;", text.index("as $$", start) + 5)
        return text[:start], text[start:end], text[end:]


SOMETIMES = "if random() < 0.2 then return; end if;\n    "

ROLLBACK = (
    "tests/worker/test_worker.py::test_a_payload_that_does_not_decode_is_put_off_and_goes_on_after_a_rollback"
)

SHARED = (
    "tests/claims/test_claim_races.py::test_claims_in_open_transactions_share_what_is_ready_without_waiting"
)
WAITER = (
    "tests/executions/test_lifecycle_races.py::test_a_waiter_checks_the_lease_at_the_time_it_got_the_lock"
)

MUTANTS = (
    # Fences and leases
    Mutant("fence check removed", "ff__fence_status", "return case e.lifecycle_phase when 'active' then 'stale_lease'",
           "return case e.lifecycle_phase when 'active' then null"),
    Mutant("fence check removed from sets", "ff__fence_holds", "(c).attempt_id) = p_handle",
           "(c).attempt_id) like left(p_handle, 41) || '%'"),
    Mutant("an expired lease is valid", "ff__fence_status", " or e.lease_expires_at_ms <= e.now_ms", ""),
    Mutant("an expired lease is valid in sets", "ff__fence_holds", " and (c).lease_expires_at_ms > p_now_ms", ""),
    Mutant("epoch not bumped", "ff_claim", "c.lease_epoch + 1", "c.lease_epoch"),
    Mutant("epoch not bumped in a batch", "ff__lease", "c.lease_epoch + 1", "c.lease_epoch"),
    Mutant("row read without its lock", "ff__open", " for no key update", ""),
    Mutant("rows of a batch checked before they are locked", "ff__lock_executions", " for no key update",
           "", f"{WAITER}[ff_renew_many]"),
    Mutant("a completion that waited past the end of its lease is accepted", "ff_complete",
           " for no key update skip locked", "", f"{WAITER}[ff_complete]"),
    Mutant("heads of a queue are taken without their locks", "ff__lock_heads",
           " for no key update of c skip locked", ""),
    Mutant("the head of a queue is taken without its lock", "ff__lock_first",
           " for no key update of x skip locked", "", f"{SHARED}[ff_claim_many]"),
    Mutant("claims start behind ready work", "ff__move_start", "else greatest(q.start_rank, least(",
           "else greatest(q.start_rank, greatest("),
    Mutant("claims start behind open transactions", "ff__move_start",
           "continue when q.settled_xid >= pg_snapshot_xmin(pg_current_snapshot());", "",
           "tests/claims/test_dead_entries.py"
           "::test_what_is_due_in_an_open_transaction_is_found_after_its_commit[ff_claim]"),
    Mutant("a claim does not ask the flow again", "ff__pick", "ids := ff__still_claimable(ids);", "",
           "tests/flows/test_flow_races.py"
           "::test_no_member_is_claimed_after_the_cancellation_of_its_flow[1-ff_claim]"),
    Mutant("a lease is valid after a pause", "ff__fence_holds", "(c).state = 'leased' and ", ""),
    Mutant("a lease is valid after its revocation", "ff__revoke", "state = 'lease_revoked', ", ""),
    Mutant("a claim takes over a renewed lease", "ff__claimable",
           " and ((c).state <> 'leased' or (c).lease_expires_at_ms <= p_now_ms)", ""),
    Mutant("the sweep expires a renewed lease", "ff__sweep_row", "elsif e.lease_expires_at_ms > e.now_ms then",
           "elsif false then"),
    Mutant("fence of a step removed", "ff_record_step", "e := ff__fence(ff__decode_handle(p_handle));",
           "e := ff__open((ff__decode_handle(p_handle)).execution_id);"),
    Mutant("a batch renews expired leases", "ff__renew", "ff__fence_holds(c, p_now_ms", "ff__fence_holds(c, 0"),
    Mutant("a batch ends executions with expired leases", "ff__end",
           "ff__fence_holds(c, p_now_ms", "ff__fence_holds(c, 0"),
    Mutant("a worker may override", "ff__is_override", "if not exists (select from pg_roles c",
           "if false and not exists (select from pg_roles c"),
    Mutant("a reclaim is not counted", "ff__lease", "+ (c.state in ('leased', 'lease_expired', 'lease_revoked'))::int",
           ""),
    Mutant("a revocation does not change the lease", "ff_revoke_lease", "        perform ff__revoke(e, p_reason);",
           "        if random() < 0.7 then perform ff__revoke(e, p_reason); end if;"),
    Mutant("a delayed execution is claimable at once", "ff__settle",
           "v_delayed boolean := not v_hold and coalesce(p_delay_until_ms > e.now_ms, false);",
           "v_delayed boolean := false;"),
    # Ends and results
    Mutant("completion event not emitted", "ff_complete", "'completion', 'success', null",
           "'lease', 'released', 'complete'"),
    Mutant("completion event not emitted in a batch", "ff__end", "'completion', p_outcome, p_reason,",
           "case when r.members or not v_lease then 'completion' else 'lease' end,"
           " case when r.members or not v_lease then p_outcome else a.lease_event end, p_reason,"),
    Mutant("a batch of events omits one", "ff__emit_many", "v_last_ms, p_execution_ids, case when not v_attempt",
           "v_last_ms, p_execution_ids[1:1] || p_execution_ids[1:v_size - 1], case when not v_attempt"),
    Mutant("end of a lease not recorded", "ff__end_lease", "a.lease_event := 'released';", ""),
    Mutant("end of a lease not recorded by a completion", "ff_complete", ", 'released', 'complete');", ");"),
    Mutant("end of a lease not recorded by a batch", "ff__complete", "'released', 'complete')", "null, null)"),
    Mutant("end of a lease of members not recorded", "ff__cancel_members",
           "case when c.state = 'leased' then l.event end", "null::text"),
    Mutant("an expired lease is not recorded", "ff__end_lease", "a.lease_event := 'expired';", ""),
    Mutant("an expired lease is not recorded by a claim", "ff__lease",
           "if a.lease_event is not null then", "if false then"),
    Mutant("an expired lease is not recorded by maintenance", "ff__mark_expired",
           "e := ff__emit(e, 'lease', 'expired', 'ttl');", ""),
    Mutant("a completion leaves its waitpoints open", "ff_complete",
           " and x.open_waitpoints = 0 and not x.stream_open", ""),
    Mutant("a batch leaves its waitpoints open", "ff__end", " and c.open_waitpoints = 0 and not c.stream_open", ""),
    Mutant("replay rule removed", "ff__fence_status", "return 'replay';", "return null;"),
    Mutant("result not stored", "ff_complete", "result = p_result,", "result = null,"),
    Mutant("result not stored by a batch", "ff__end", "then x.result else", "then null else"),
    Mutant("a batch stores the result of another execution", "ff__end", "then x.result else", "then p_results[1] else"),
    Mutant("a failure has no effect", "ff__fail_verb", "    return ff__fail(e,",
           """    if random() < 0.2 then
        return '{"outcome": "terminal_failed", "public_state": "failed", "retry_count": 0, "replayed": false}';
    end if;
    return ff__fail(e,"""),
    Mutant("a cancellation has no effect", "ff_cancel_execution", "    perform ff__cancel(e, case p_source",
           "    " + SOMETIMES + "perform ff__cancel(e, case p_source"),
    Mutant("members end without their events", "ff__end", "'completion', p_outcome, p_reason,",
           "case when r.members and v_lease then 'lease' else 'completion' end,"
           " case when r.members and v_lease then a.lease_event else p_outcome end, p_reason,"),
    Mutant("a replay is not counted", "ff__settle", "replay_count = c.replay_count + v_replay::int,",
           "replay_count = c.replay_count,"),
    # What was created
    Mutant("a create is lost", "ff_create_execution", "    outcome := 'created';", """
    if random() < 0.1 then
        delete from ff_execution c where c.execution_id = v_id;
    end if;
    outcome := 'created';"""),
    Mutant("a create is not stored in a batch", "ff__insert_executions", "x(id, payload, turn, priority, waiting);",
           "x(id, payload, turn, priority, waiting) where cardinality(p_ids) = 1 or random() < 0.9;"),
    Mutant("idempotency key not honoured", "ff__claim_idempotency_key", "return k.execution_id;", "return null;"),
    Mutant("idempotency key not honoured in a batch", "ff__claim_idempotency_keys", "coalesce(v_owner, p_ids[f.n])",
           "p_ids[v_at]"),
    Mutant("all_of is satisfied by one upstream", "ff__group_state",
           "p_edges > 0 and p_success = p_edges", "p_success > 0"),
    Mutant("an edge is resolved twice", "ff__dispatch_flow", "n_success = k.n_success + v_success,",
           "n_success = k.n_success + 2 * v_success,"),
    Mutant("backed-off ends are read again by each end", "ff__backed_off_ends",
           "q.counted and q.next_dispatch_at_ms <= p_now", "q.counted",
           test="tests/flows/test_flow_races.py::test_ends_that_were_put_off_are_not_read_again_before_their_time"),
    Mutant("members of a cancelled flow continue", "ff__cancel_flow", "set public_flow_state = 'cancelled',",
           "set public_flow_state = case when random() < 0.3 then public_flow_state else 'cancelled' end,"),
    Mutant("a single claim ignores the state of the flow", "ff_claim",
           "(select f.claimable from ff_flow_core f where f.flow_id = x.flow_id)", "true",
           "tests/flows/test_cancel_flow.py::test_more_members_than_one_call_may_end_are_left_to_the_backlog"),
    Mutant("a batch claim ignores the state of the flow", "ff__heads",
           "(select f.claimable from ff_flow_core f where f.flow_id = x.flow_id)", "true",
           "tests/flows/test_flow_races.py::test_a_busy_member_is_left_to_the_backlog"),
    Mutant("a completion is not reported to the flow", "ff_complete", " and x.flow_id is null", ""),
    Mutant("an end is not reported to the flow", "ff__end", "if r.members then", "if false then"),
    Mutant("a tick is skipped", "ff__fire_due", "for i in 1..v_fired loop",
           "for i in (1 + (random() < 0.2)::int)..v_fired loop"),
    # Signals, frames, events, steps
    Mutant("events read before they are complete", "ff__event_horizon", "pg_snapshot_xmin(", "pg_snapshot_xmax("),
    Mutant("a signal is lost", "ff__add_signal", "insert into ff_signal (", SOMETIMES + "insert into ff_signal ("),
    Mutant("payload of a signal lost", "ff__add_signal", "g.content_hash, g.payload);", "g.content_hash, null);"),
    Mutant("signals numbered without a lock", "ff__next_signal_no",
           "return 1 + coalesce((select max(s.seq) from ff_signal s where s.execution_id = p_execution_id), 0);",
           "return (random() * 1000000000)::bigint;"),
    Mutant("every token is accepted", "ff__verify_token", "if not v_valid then", "if false then"),
    Mutant("an approval shares its key with token holders", "ff__accept_signal",
           "           and (x.source_type = 'operator') = v_operator\n", ""),
    Mutant("an idempotency key returns the tokens to every fence", "ff__suspend",
           "and (v_verdict is null", "and (true"),
    Mutant("every signal resumes", "ff__accept_signal", "if v_satisfied then\n        r.public_state",
           "if s.suspension_id is not null then\n        r.public_state"),
    Mutant("a suspended execution can be claimed", "ff__suspend",
           "state = ff__suspended_state(p_reason_code), ready_in = null",
           "state = 'ready_resume', ready_in = c.queue_id"),
    Mutant("a frame is lost", "ff_append_frame", "insert into ff_stream_frame (",
           SOMETIMES + "insert into ff_stream_frame ("),
    Mutant("key of a frame not honoured", "ff_append_frame", "x.frame_key = v_key;", "x.frame_key = v_key || '?';"),
    Mutant("a patch replaces the summary", "ff__apply_patch", "ff__merge_patch(v_document, p_patch)", "p_patch"),
    Mutant("a step is lost", "ff_record_step", "if v_ordinal > v_limit then",
           "outcome := 'recorded'; name := p_name; result := p_result; attempt_index := e.current_attempt_index;\n"
           "    recorded_at_ms := e.now_ms;\n    " + SOMETIMES + "if v_ordinal > v_limit then"),
    Mutant("a later record of a step replaces the first", "ff_record_step",
           "    if found then\n        if s.lease_epoch",
           """    if found and s.lease_epoch <> e.lease_epoch then
        update ff_step x set result = p_result where x.execution_id = e.execution_id and x.name = p_name;
        outcome := 'recorded'; name := p_name; result := p_result; attempt_index := s.attempt_index;
        recorded_at_ms := s.recorded_at_ms;
        return;
    end if;
    if s.name is not null then
        if s.lease_epoch"""),
    # Quotas and budgets
    Mutant("a single claim ignores the quota policy", "ff_claim", " filter (where not q.limited)", ""),
    Mutant("concurrency not counted", "ff__slots_taken", "return v_live + (", "return 0 * v_live + 0 * ("),
    Mutant("one more than the concurrency limit", "ff__evaluate_quota", "a.active_concurrency >= q.max_concurrent",
           "a.active_concurrency > q.max_concurrent"),
    # The lock is held for longer, so that two claims meet at it.
    Mutant("a locked policy admits work", "ff__admit",
           """            a.admitted := '{}'::uuid[];
            a.outcome := 'busy';
            a.quota_policy_id := p_quota_policy_id;
            a.now_ms := ff__now_ms();
            return a;
        end if;
""",
           """            a.admitted := p_ids;
            a.outcome := 'admitted';
            a.now_ms := ff__now_ms();
            return a;
        end if;
        perform pg_sleep(0.03);
"""),
    Mutant("held slots not counted", "ff__slots_taken", "and r.expires_at_ms > p_now_ms", "and r.expires_at_ms < 0"),
    Mutant("an ended execution keeps its slot", "ff__end", "if v_limited then", "if false then"),
    Mutant("an execution that completes keeps its slot", "ff_complete", " and not x.limited", "",
           "tests/quotas/test_check.py::test_a_slot_asked_for_an_execution_outside_the_policy_ends_with_it"),
    Mutant("a released slot stays taken", "ff_release_admission", "x.execution_id = v_id\n    returning",
           "x.execution_id = v_id and random() < 0.5\n    returning"),
    Mutant("one more start than the window allows", "ff__evaluate_quota", "a.window_count >= q.max_requests_per_window",
           "a.window_count > q.max_requests_per_window"),
    Mutant("hard limit not enforced", "ff__spend", "if v_hard is not null and v_mode = 'strict' then",
           "if v_hard is not null and v_mode = 'none' then"),
    Mutant("key of a report not honoured", "ff__spend", "then x.expires_at_ms > v_now end",
           "then x.expires_at_ms < 0 end"),
    Mutant("a refused report leaves its key", "ff__spend",
           "        return;\n    end if;\n\n    outcome := case when v_hard",
           """        if v_key is not null then
            insert into ff_budget_usage_dedup (budget_id, dedup_key, expires_at_ms, deltas_hash, outcome)
            values (p_budget_id, v_key, v_now + 86400000, v_hash, 'ok') on conflict do nothing;
        end if;
        return;
    end if;

    outcome := case when v_hard"""),
    Mutant("a report is applied in part", "ff__spend", "then u.current_value + x.amount else -1 end",
           "then u.current_value + x.amount / 2 else -1 end"),
    # The app
    Mutant("payload decoded before the signal is recorded", "pyff/worker/threads.py",
           "                context._enter()\n                args = arguments(run)\n",
           "                args = arguments(run)\n                context._enter()\n", ROLLBACK),
    Mutant("payload decoded before the signal is recorded, async", "pyff/worker/loop.py",
           "            await context._enter()\n            args = arguments(run)\n",
           "            args = arguments(run)\n            await context._enter()\n", ROLLBACK),
    Mutant("a signal is lost with the worker that claimed it", "ff_observe_signals",
           "s.attempt_index <= c.attempt_index", "s.attempt_index = c.attempt_index",
           "tests/app/test_deploys.py::"
           "test_a_signal_outlives_the_crash_of_workers_that_claimed_and_did_not_record_it"),
)  # fmt: skip


# Not a change to a function but a setting, without which a crash loses what was acknowledged.
CARELESS = Mutant("commits do not wait for the disk", "synchronous_commit", "on", "off")


SOUND = "the engine as it is"
LOOKS = 6


@dataclass(frozen=True)
class Catch:
    """The rule that found a mutant, '' if none did, and the seconds of load until then."""

    mutant: Mutant | None
    rule: str
    evidence: str
    seconds: float


def hunt(seconds: float, names: Sequence[str] = (), clients: int = 4, at_once: int = 2) -> Iterator[Catch]:
    """Each mutant as it was caught or not; at last None, the engine as it is. If all are tried, that gets as much load
    as one that is hard to find."""
    chosen = [mutant for mutant in (*MUTANTS, CARELESS) if not names or mutant.name in names]
    server = Server(fsync=False, synchronous_commit=False, full_page_writes=False)
    pool = ThreadPoolExecutor(at_once)
    try:
        jobs = []
        for n, mutant in enumerate((*chosen, None)):
            looks = LOOKS if mutant or not names else 1
            jobs.append(pool.submit(_try, server, n, mutant, seconds=seconds, clients=clients, looks=looks))
        for job in jobs:
            yield job.result()
    finally:
        pool.shutdown(cancel_futures=True)
        server.close()


def _try(
    server: Server, number: int, mutant: Mutant | None, *, seconds: float, clients: int, looks: int
) -> Catch:
    if mutant is not None and mutant.test:
        return _try_test(mutant)
    if mutant is CARELESS:
        server = Server(synchronous_commit=False, wal_writer_delay="10s")
    try:
        dsn = server.clone(f"mutant_{number}")
        if mutant is not None and mutant is not CARELESS:
            with psycopg.connect(dsn) as conn:
                _plant(conn, mutant)
        earlier: list[Path] = []
        spent = 0.0
        with tempfile.TemporaryDirectory() as directory:
            # Some show only when two meet: such a one gets more time.
            for again in range(looks):
                where = Path(directory, str(again))
                where.mkdir()
                seed = 10 * number + again
                campaign = Campaign(server, where, dsn=dsn, clients=clients, seed=seed, earlier=earlier)
                faults = {"crash_server": FAULTS["crash_server"]} if mutant is CARELESS else {}
                report = campaign.run(seconds, faults, (seconds / 2, seconds))
                earlier = campaign.histories
                spent += seconds
                if report.bad:
                    break
        if report.violations:
            # Histories first: the invariants of the database alone are checked elsewhere, too.
            found = sorted(report.violations, key=lambda x: x.rule.startswith("invariant "))
            rules = list(dict.fromkeys(violation.rule for violation in found))
            return Catch(mutant, ", ".join(rules[:3]), str(found[0]), spent)
        died = "".join(report.died[:1]).strip().splitlines()[-1:]
        return Catch(mutant, "an unexpected error" if died else "", "".join(died), spent)
    finally:
        if mutant is CARELESS:
            server.close()


def _plant(conn: psycopg.Connection[Any], mutant: Mutant) -> None:
    """Replaces the function as `pyff migrate` does."""
    place = Place()
    conn.execute(place.enter().encode())
    conn.execute(SqlFile(mutant.function, mutant.path(), mutant.source()).sql(place).encode())
    for file in shipped().scripts:
        if file.name == "planner":  # replacing a function removes its settings
            conn.execute(file.sql(place).encode())


def _try_test(mutant: Mutant) -> Catch:
    """In a copy of the repository: the test passes there, and fails with the mutant."""
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory, "repo")
        shutil.copytree(ROOT, root, ignore=shutil.ignore_patterns(".*", "__pycache__"))
        command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", mutant.test]
        began = time.monotonic()
        for planted in (False, True):
            if planted:
                mutant.path(root).write_text(mutant.source(root))
            began = time.monotonic()
            done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
            if done.returncode not in ((0, 1) if planted else (0,)):
                raise RuntimeError(f"{mutant.test}: {done.stdout}{done.stderr}")
        told = [line[1:].strip() for line in done.stdout.splitlines() if line.startswith("E  ")]
        rule = mutant.test.rpartition("::")[2].removeprefix("test_").replace("_", " ")
        seconds = time.monotonic() - began
        return Catch(mutant, rule, told[0], seconds) if done.returncode else Catch(mutant, "", "", seconds)
