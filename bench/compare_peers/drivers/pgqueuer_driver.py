"""PGQueuer: asyncpg as in its documentation, uvloop, and large batches for short jobs."""

import asyncio
import logging
from datetime import timedelta

import asyncpg
import uvloop
import wire
from pgqueuer import PgQueuer
from pgqueuer.db import AsyncpgDriver
from pgqueuer.queries import Queries

logging.disable(logging.ERROR)
asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())


class Client:
    def __init__(self, dsn):
        self.dsn = dsn

    async def open(self):
        self.queries = Queries(AsyncpgDriver(await asyncpg.connect(self.dsn)))

    async def setup(self):
        await self.queries.install()

    async def enqueue(self, task, first, count, batch, sets=0):
        numbers = range(first, first + count)
        names = [wire.route(n, sets) or task for n in numbers]
        payloads = [str(n).encode() for n in numbers]
        with wire.Timed() as timed:
            if batch:
                for start in range(0, count, 5_000):
                    part = slice(start, start + 5_000)
                    await self.queries.enqueue(names[part], payloads[part], [0] * len(names[part]))
            else:
                for name, payload in zip(names, payloads, strict=True):
                    await self.queries.enqueue(name, payload)
        return timed.answer

    async def cancel(self, count):
        ids = await self.queries.enqueue(["noop"] * count, [b"0"] * count, [0] * count)
        with wire.Timed() as timed:
            await self.queries.mark_job_as_cancelled(ids)
        return timed.answer


async def worker(dsn, options):
    pgq = PgQueuer(AsyncpgDriver(await asyncpg.connect(dsn)))

    async def noop(job):
        wire.count()

    async def mark(job):
        wire.mark(int(job.payload))

    async def nap(job):
        await asyncio.sleep(wire.NAP_S)
        wire.say(ran=int(job.payload))

    tasks = (
        dict.fromkeys(options["sets"], noop)
        if options.get("sets")
        else {"noop": noop, "mark": mark, "nap": nap}
    )
    for name, task in tasks.items():
        pgq.entrypoint(name)(task)
    wire.ready()
    lease = {"heartbeat_timeout": timedelta(seconds=options["lease_s"])} if options.get("lease_s") else {}
    concurrency = options.get("concurrency")
    await pgq.run(
        batch_size=concurrency or 1_000,
        dequeue_timeout=timedelta(seconds=min(30, options.get("lease_s") or 30)),
        max_concurrent_tasks=2 * concurrency if concurrency else None,
        **lease,
    )


if __name__ == "__main__":
    wire.main(Client, worker)
