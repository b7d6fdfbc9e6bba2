"""Each transition has one body, and one more where a single call in one statement saves more than 15 % of a cycle."""

import re

import pytest

from tests.sql import table

SOURCES = """select p.proname as name, regexp_replace(p.prosrc, '--[^\n]*', '', 'g') as source from pg_proc p
 where p.proname ~ '^ff_'"""
# The assignments of an update of executions, up to its condition.
UPDATE = r"update ff_execution \w+\s+set\s((?:(?!\bwhere\b).)*)"

BODIES = {
    # ff_complete: without it a cycle of single calls takes 30 % more instructions.
    "leads to terminal": (UPDATE, r"\bterminal_at_ms = (?!null\b)", {"ff__end", "ff_complete"}),
    # ff_claim: without it 40 % more.
    "grants a lease": (UPDATE, r"lease_epoch = c\.lease_epoch \+ 1", {"ff__lease", "ff_claim"}),
    "creates executions": (r"(insert into ff_execution )", r"", {"ff__insert_executions"}),
    "writes events": (r"(insert into ff_event_log )", r"", {"ff__emit_event", "ff__emit_other"}),
    "says what a claim may take": (r"(ready_in is not null\s+or [^;]*due_at_ms <= )", r"", {"ff__claimable"}),
    "compares a handle with a lease": (
        r"(ff__encode_handle\([^;]*\)\s+= p_handle)",
        r"",
        {"ff__fence_holds", "ff__parse_handle", "ff_complete_many"},
    ),
    # For the error of a fence that does not hold, and for repeated calls.
    "compares an epoch": (
        r"(lease_epoch = p_fence\.lease_epoch)",
        r"",
        {"ff__fence_status", "ff__recorded_release", "ff__suspend"},
    ),
}


@pytest.mark.parametrize("what", BODIES)
def test_only_these_bodies_do_it(db, what):
    pattern, within, names = BODIES[what]
    found = {
        function["name"]
        for function in table(db, SOURCES)
        for part in re.findall(pattern, function["source"], re.S)
        if re.search(within, part)
    }
    assert found == names
