"""Counts finished work per outcome, exactly once, even if the program is killed.

    PYFF_DSN=... python examples/exactly_once.py            # until Ctrl-C
    PYFF_DSN=... python examples/exactly_once.py --drain    # only the events so far

Kill it at any moment and start it again: the table `finished` and the cursor are committed together, so no event
is counted twice and none is left out.
"""

import os
import sys

import psycopg

import pyff


def main(dsn: str, *, follow: bool) -> None:
    stored = pyff.StoredCursor("finished")
    with psycopg.connect(dsn) as mine, pyff.Engine(dsn) as engine:
        with mine.transaction():
            mine.execute("create table if not exists finished (outcome text primary key, n bigint not null)")
        stored.create_table(mine)
        for event in engine.subscribe("completion", after=stored.load(mine), follow=follow):
            with stored.advance(mine, event.cursor):  # one transaction: the effect and the cursor
                mine.execute(
                    "insert into finished values (%s, 1) on conflict (outcome) do update set n = finished.n + 1",
                    [event.outcome],
                )
            print(event.event_id, event.outcome, flush=True)


if __name__ == "__main__":
    main(os.environ["PYFF_DSN"], follow="--drain" not in sys.argv)
