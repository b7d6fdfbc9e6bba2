"""The hot queries use the index that was made for them, however small or stale the statistics are."""

import re

import pytest

from tests.sql import create, one, table, take

QUERIES = {
    "ff_exec_core_ready": """
        select * from ff_exec_core c
         where c.lane_id = 'default' and c.caps_key = '' and c.blocking_reason = 'waiting_for_worker'
           and not c.flow_stopped
         order by c.priority desc, c.created_at_ms, c.execution_id limit 1 for update skip locked""",
    "ff_exec_core_due": """
        select * from ff_exec_core c
         where c.lane_id = 'default' and coalesce(c.lease_check_at_ms, c.delay_until_ms) <= 5
           and (c.ownership_state = 'leased' or c.eligibility_state = 'not_eligible_until_time')
         order by coalesce(c.lease_check_at_ms, c.delay_until_ms) limit 200 for update skip locked""",
}


def plan(db, query: str) -> str:
    return "\n".join(row["QUERY PLAN"] for row in table(db, f"explain {query}"))


@pytest.mark.parametrize("index", sorted(QUERIES))
def test_a_hot_query_reads_its_own_index_without_a_sort(db, index):
    for n in range(200):
        create(db, priority=n % 7)
    db.execute("analyze ff_exec_core")
    found = plan(db, QUERIES[index])
    assert re.search(rf"Index Scan using {index}\b", found), found
    assert "Sort" not in found


def test_the_statements_of_the_tests_are_those_of_the_functions(db):
    bodies = {
        row["proname"]: re.sub(r"\s+", " ", row["prosrc"])
        for row in table(db, "select proname, prosrc from pg_proc where proname like 'ff\\_\\_%%'")
    }
    assert (
        "order by c.priority desc, c.created_at_ms, c.execution_id limit 1 for update of c skip locked"
        in bodies["ff__pick"]
    )
    due = "coalesce(c.lease_check_at_ms, c.delay_until_ms)"
    assert f"order by {due} limit 200 for update skip locked" in bodies["ff__enter_due"]
    assert f"and {due} <= ff_now_ms()" in bodies["ff__check_claim"]


def test_a_plain_execution_sits_in_the_primary_key_and_one_more_index(db, connect):
    """Entries in each index after a whole life: none but the primary key and retention."""
    db.execute("create extension if not exists pgstattuple")
    create(db)
    sizes = "select indexrelname, (pgstatindex(indexrelid::regclass)).leaf_pages from pg_stat_user_indexes"
    query = f"{sizes} where relname = 'ff_exec_core'"

    def used() -> set[str]:
        db.execute("vacuum ff_exec_core")
        return {row["indexrelname"] for row in table(db, query) if row["leaf_pages"]}

    assert used() == {"ff_exec_core_pkey", "ff_exec_core_ready"}
    row = take(db)
    assert used() >= {"ff_exec_core_pkey", "ff_exec_core_due"}
    one(db, "ff_complete", handle=row["handle"])
    assert used() >= {"ff_exec_core_pkey", "ff_exec_core_retention"}
