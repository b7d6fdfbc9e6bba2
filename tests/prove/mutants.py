"""Planted bugs: each is a change to one function that the checker must notice."""

import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import psycopg

from tests.prove.campaign import FAULTS, Campaign
from tests.prove.server import Server

FUNCTIONS = Path(__file__).parents[2] / "db" / "functions"


@dataclass(frozen=True)
class Mutant:
    """`old` stands in the file of `function` and is replaced, everywhere, by `new`."""

    name: str
    function: str
    old: str
    new: str

    def source(self) -> str:
        (path,) = FUNCTIONS.glob(f"*/{self.function}.sql")
        text = path.read_text()
        if self.old not in text:
            raise LookupError(f"{self.name}: {path.name} does not contain {self.old!r}")
        return text.replace(self.old, self.new)


SOMETIMES = "if random() < 0.2 then return; end if;\n    "

MUTANTS = (
    # Fences and leases
    Mutant("fence check removed", "ff__verdict", "return case e.lifecycle_phase when 'active' then 'stale_lease'",
           "return case e.lifecycle_phase when 'active' then null"),
    Mutant("an expired lease still counts", "ff__fence_handle", " and e.lease_expires_at_ms > e.now_ms", ""),
    Mutant("epoch not bumped", "ff__lease", "e.lease_epoch := e.lease_epoch + 1;", ""),
    Mutant("epoch not bumped in a batch", "ff__lease_many", "lease_epoch = c.lease_epoch + 1,", ""),
    Mutant("row opened without its lock", "ff__open", "where c.execution_id = p_execution_id for update",
           "where c.execution_id = p_execution_id"),
    Mutant("a paused lease lives on", "ff__requeue",
           "lease_id = null, lease_ttl_ms = null, lease_expires_at_ms = null,", "lease_ttl_ms = null,"),
    Mutant("a revoked lease lives on", "ff__revoke", "ownership_state = 'lease_revoked', ", ""),
    Mutant("a renewed lease is taken away", "ff__enter_due",
           "elsif e.ownership_state = 'leased' and e.lease_expires_at_ms > e.now_ms then", "elsif false then"),
    Mutant("fence of a step removed", "ff_record_step", "e := ff__fence_handle(p_handle);",
           "e := ff__open((ff__decode_handle(p_handle)).execution_id);"),
    # Ends and results
    Mutant("completion event not emitted", "ff__terminate",
           "e := ff__emit(e, 'completion', p_outcome, p_reason, p_outcome);", ""),
    Mutant("end of a lease not told", "ff__end_lease", "e.lease_end := 'released';", ""),
    Mutant("a lapsed lease is not told", "ff__end_lease", "e.lease_end := 'expired';", ""),
    Mutant("replay rule removed", "ff__verdict", "return 'replay';", "return null;"),
    Mutant("result not stored", "ff__end_attempt", "result = p_result,", "result = null,"),
    Mutant("a batch stores another's result", "ff_complete_many", "result = p_results[e.n],", "result = p_results[1],"),
    # What was created
    Mutant("a create is lost", "ff_create_execution", "    outcome := 'created';", """
    if random() < 0.1 then
        delete from ff_exec_core c where c.execution_id = v_id;
        delete from ff_exec_input i where i.execution_id = v_id;
    end if;
    outcome := 'created';"""),
    Mutant("idempotency key not honoured", "ff__claim_idempotency_key", "return k.execution_id;", "return null;"),
    Mutant("a child needs one of all", "ff__group_state", "p_edges > 0 and p_success = p_edges", "p_success > 0"),
    Mutant("a tick is left out", "ff__fire_due", "for i in 1..v_fired loop",
           "for i in (1 + (random() < 0.2)::int)..v_fired loop"),
    # Signals, frames, events, steps
    Mutant("events read before they are complete", "ff__event_horizon", "pg_snapshot_xmin(", "pg_snapshot_xmax("),
    Mutant("a signal is lost", "ff__add_signal", "insert into ff_signal (", SOMETIMES + "insert into ff_signal ("),
    Mutant("payload of a signal lost", "ff__add_signal", "g.content_hash, g.payload);", "g.content_hash, null);"),
    Mutant("signals numbered from a guess", "ff__next_signal_no",
           "return 1 + coalesce((select max(s.seq) from ff_signal s where s.execution_id = p_execution_id), 0);",
           "return (random() * 1000000000)::bigint;"),
    Mutant("a frame is lost", "ff_append_frame", "insert into ff_stream_frame (",
           SOMETIMES + "insert into ff_stream_frame ("),
    Mutant("key of a frame not honoured", "ff_append_frame", "x.frame_key = v_key;", "x.frame_key = v_key || '?';"),
    Mutant("a patch starts the summary anew", "ff__apply_patch", "ff__merge_patch(v_document, p_patch)", "p_patch"),
    Mutant("a step is lost", "ff_record_step", "if v_ordinal > v_limit then",
           "outcome := 'recorded'; name := p_name; result := p_result; attempt_index := e.current_attempt_index;\n"
           "    recorded_at_ms := e.now_ms;\n    " + SOMETIMES + "if v_ordinal > v_limit then"),
    # Quotas and budgets
    Mutant("cap not counted", "ff__slots_taken", "return v_live + (", "return 0 * v_live + 0 * ("),
    Mutant("one more than the cap", "ff__judge", "a.active_concurrency >= q.max_concurrent",
           "a.active_concurrency > q.max_concurrent"),
    Mutant("held slots not counted", "ff__slots_taken", "and r.expires_at_ms > p_now_ms", "and r.expires_at_ms < 0"),
    Mutant("one more start than the window allows", "ff__judge", "a.window_count >= q.max_requests_per_window",
           "a.window_count > q.max_requests_per_window"),
    Mutant("hard limit not kept", "ff__spend", "if v_hard is not null and v_mode = 'strict' then",
           "if v_hard is not null and v_mode = 'none' then"),
    Mutant("key of a report not honoured", "ff__spend", "x.dedup_key = v_key and x.expires_at_ms > v_now",
           "x.dedup_key = v_key and x.expires_at_ms < 0"),
    Mutant("a report is applied in part", "ff__spend", "then u.current_value + x.amount else -1 end",
           "then u.current_value + x.amount / 2 else -1 end"),
)  # fmt: skip


# Not a change to a function but a setting, without which a crash loses what was acknowledged.
CARELESS = Mutant("commits do not wait for the disk", "synchronous_commit", "on", "off")


SOUND = "the engine as it is"
LOOKS = 6


@dataclass(frozen=True)
class Catch:
    """What gave a mutant away, '' if nothing did, and after how many seconds of load."""

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
        for job in [
            pool.submit(_try, server, n, mutant, seconds, clients, LOOKS if mutant or not names else 1)
            for n, mutant in enumerate((*chosen, None))
        ]:
            yield job.result()
    finally:
        pool.shutdown(cancel_futures=True)
        server.close()


def _try(
    server: Server, number: int, mutant: Mutant | None, seconds: float, clients: int, looks: int
) -> Catch:
    if mutant is CARELESS:
        server = Server(synchronous_commit=False, wal_writer_delay="10s")
    try:
        dsn = server.clone(f"mutant_{number}")
        if mutant is not None and mutant is not CARELESS:
            with psycopg.connect(dsn, autocommit=True) as conn:
                conn.execute(mutant.source())  # type: ignore[arg-type]
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
        return Catch(mutant, "an error that no client may meet" if died else "", "".join(died), spent)
    finally:
        if mutant is CARELESS:
            server.close()
