"""pyff without its Worker: any client that calls the functions, in batches of a hundred."""

import psycopg
import wire

from pyff.migrate import migrate

BATCH = 100
PAYLOAD = b"12345678"


class Client:
    def __init__(self, dsn):
        self.dsn = dsn

    def setup(self):
        migrate(self.dsn)

    def enqueue(self, task, first, count, batch, sets=0):
        with psycopg.connect(self.dsn, autocommit=True, prepare_threshold=1) as conn:
            conn.execute("select 1")
            with wire.Timed() as timed:
                if batch:
                    for start in range(0, count, 5_000):
                        conn.execute(
                            "select count(*) from ff_create_executions(%s, %s::bytea[])",
                            ["bench", [PAYLOAD] * min(5_000, count - start)],
                        )
                else:
                    for _ in range(count):
                        conn.execute(
                            "select execution_id from ff_create_execution(%s, p_payload => %s)",
                            ["bench", PAYLOAD],
                        )
            return timed.answer


def worker(dsn, options):
    with psycopg.connect(dsn, autocommit=True, prepare_threshold=1) as conn:
        wire.ready()
        while True:
            claimed = conn.execute(
                "select handle from ff_claim_many('bench', 'w', pg_backend_pid()::text, %s)", [BATCH]
            ).fetchall()
            if claimed:
                conn.execute("select count(*) from ff_complete_many(%s)", [[handle for (handle,) in claimed]])
                for _ in claimed:
                    wire.count()


if __name__ == "__main__":
    wire.main(Client, worker)
