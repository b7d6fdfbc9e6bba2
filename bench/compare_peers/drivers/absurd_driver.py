"""Absurd: its Python SDK, schema from absurdctl; polling at its default of 250 ms."""

import functools
import threading
import time

import wire
from absurd_sdk import Absurd


def register(app):
    @app.register_task("noop")
    def noop(params, ctx):
        wire.count()

    @app.register_task("mark")
    def mark(params, ctx):
        wire.mark(params["number"])

    @app.register_task("nap")
    def nap(params, ctx):
        time.sleep(wire.NAP_S)
        wire.say(ran=params["number"])

    @app.register_task("chain")
    def chain(params, ctx):
        for step in range(wire.STEPS):
            ctx.step(f"step {step}", functools.partial(abs, params["number"]))
        wire.count()

    @app.register_task("wait")
    def wait(params, ctx):
        wire.say(waiting=params["number"])
        ctx.await_event(f"go-{params['number']}")
        wire.mark(params["number"])


class Client:
    def __init__(self, dsn):
        self.dsn = dsn

    @functools.cached_property
    def app(self):
        return Absurd(self.dsn, queue_name="bench")

    def setup(self):
        import absurdctl
        import psycopg

        with psycopg.connect(self.dsn, autocommit=True) as conn:
            conn.execute(absurdctl.BUNDLED_SCHEMA_SQL)  # what `absurdctl init` runs
        self.app.create_queue()
        for number in range(10):
            self.app.create_queue(f"set{number}")

    def enqueue(self, task, first, count, batch, sets=0):
        with wire.Timed() as timed:
            for number in range(first, first + count):
                self.app.spawn(task, {"number": number}, queue=wire.route(number, sets) or "bench")
        return timed.answer

    def signal(self, number, token):
        with wire.Timed() as timed:
            self.app.emit_event(f"go-{number}", {"n": number})
        return timed.answer

    def cancel(self, count):
        ids = [self.app.spawn("noop", {"number": n}, queue="bench")["task_id"] for n in range(count)]
        with wire.Timed() as timed:
            for task in ids:
                self.app.cancel_task(task)
        return timed.answer


def worker(dsn, options):
    queues = options.get("sets") or ["bench"]
    lease = {"claim_timeout": options["lease_s"]} if options.get("lease_s") else {}
    apps = [Absurd(dsn, queue_name=queue) for queue in queues]
    for app in apps:
        register(app)
    wire.ready()
    work = [
        threading.Thread(
            target=app.start_worker,
            kwargs={"concurrency": options.get("concurrency", 16), **lease},
            daemon=True,
        )
        for app in apps
    ]
    for thread in work:
        thread.start()
    for thread in work:
        thread.join()


if __name__ == "__main__":
    wire.main(Client, worker)
