"""PgQ: one consumer that reads batches; ticks are made here, once a second, as its ticker does by default."""

import sys
import threading
import time
from pathlib import Path

import psycopg
import wire

DEB = Path(sys.argv.pop(1))
TICK_S = 1.0


class Client:
    def __init__(self, dsn):
        self.dsn = dsn

    def setup(self):
        (source,) = DEB.rglob("pgq_pl_only.sql")
        with psycopg.connect(self.dsn, autocommit=True) as conn:
            conn.execute(source.read_text())
            # The very first event of a queue waits for the tick of an idle one; the consumer begins after it.
            conn.execute("select pgq.create_queue('bench')")
            conn.execute("select pgq.insert_event('bench', 'first', '0')")
            conn.execute("select pgq.force_tick('bench')")
            conn.execute("select pgq.ticker()")
            conn.execute("select pgq.register_consumer('bench', 'c')")

    def enqueue(self, task, first, count, batch, sets=0):
        with psycopg.connect(self.dsn, autocommit=True, prepare_threshold=1) as conn:
            conn.execute("select 1")
            with wire.Timed() as timed:
                if batch:
                    conn.execute(
                        "select count(pgq.insert_event('bench', %s, n::text)) from generate_series(%s::int, %s::int) n",
                        [task, first, first + count - 1],
                    )
                else:
                    for number in range(first, first + count):
                        conn.execute("select pgq.insert_event('bench', %s, %s)", [task, str(number)])
            return timed.answer


def ticking(dsn):
    with psycopg.connect(dsn, autocommit=True) as conn:
        while True:
            conn.execute("select pgq.ticker()")
            time.sleep(TICK_S)


def worker(dsn, options):
    with psycopg.connect(dsn, autocommit=True) as conn:
        wire.ready()
        threading.Thread(target=ticking, args=[dsn], daemon=True).start()
        while True:
            (batch,) = conn.execute("select pgq.next_batch('bench', 'c')").fetchone()
            if batch is None:
                time.sleep(0.01)
                continue
            wire.say(done=0)  # reading is work, too
            events = conn.execute("select ev_type, ev_data from pgq.get_batch_events(%s)", [batch]).fetchall()
            for task, number in events:
                wire.mark(int(number)) if task == "mark" else wire.count()
            conn.execute("select pgq.finish_batch(%s)", [batch])


if __name__ == "__main__":
    wire.main(Client, worker)
