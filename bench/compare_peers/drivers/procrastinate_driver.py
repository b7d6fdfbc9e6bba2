"""Procrastinate: async tasks, LISTEN on, concurrency raised for many short jobs."""

import asyncio
import contextlib
import logging

import wire
from procrastinate import App, PsycopgConnector
from procrastinate.exceptions import ConnectorException

logging.disable(logging.ERROR)


def made(dsn, pool=10):
    app = App(connector=PsycopgConnector(conninfo=dsn, min_size=1, max_size=pool))

    @app.task(name="noop")
    async def noop(number):
        wire.count()

    @app.task(name="mark")
    async def mark(number):
        wire.mark(number)

    @app.task(name="nap")
    async def nap(number):
        await asyncio.sleep(wire.NAP_S)
        wire.say(ran=number)

    return app


class Client:
    def __init__(self, dsn):
        self.app = made(dsn)

    async def open(self):
        await self.app.open_async()

    async def setup(self):
        await self.app.schema_manager.apply_schema_async()

    async def enqueue(self, task, first, count, batch, sets=0):
        numbers = range(first, first + count)
        groups = {k: [n for n in numbers if n % sets == k] for k in range(sets)} if sets else {None: numbers}
        with wire.Timed() as timed:
            for group, members in groups.items():
                task_ = self.app.configure_task(task, **({} if group is None else {"queue": f"set{group}"}))
                if batch:
                    for start in range(0, len(members), 5_000):
                        await task_.batch_defer_async(
                            *({"number": n} for n in members[start : start + 5_000])
                        )
                else:
                    for number in members:
                        await task_.defer_async(number=number)
        return timed.answer

    async def cancel(self, count):
        ids = await self.app.configure_task("noop").batch_defer_async(*({"number": n} for n in range(count)))
        with wire.Timed() as timed:
            await asyncio.gather(*(self.app.job_manager.cancel_job_by_id_async(job) for job in ids))
        return timed.answer


async def worker(dsn, options):
    app = made(dsn)
    rescue = options.get("lease_s")

    async def rescuing():  # its documentation has the user schedule this; workers beat every 10 s
        while True:
            await asyncio.sleep(rescue)
            for job in await app.job_manager.get_stalled_jobs(seconds_since_heartbeat=rescue):
                with contextlib.suppress(ConnectorException):  # another one was first
                    await app.job_manager.retry_job(job)

    async with app.open_async():
        wire.ready()
        task = asyncio.create_task(rescuing()) if rescue else None
        beat = {"update_heartbeat_interval": rescue / 3, "stalled_worker_timeout": rescue} if rescue else {}
        await app.run_worker_async(
            queues=options.get("sets"),
            concurrency=options.get("concurrency", 30),
            shutdown_graceful_timeout=1,
            **beat,
        )
        if task:
            task.cancel()


if __name__ == "__main__":
    wire.main(Client, worker)
