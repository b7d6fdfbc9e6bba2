"""pyff: tasks of an App, its Worker and its Engine, as docs/ show them."""

import time

import wire

from pyff import App, Ctx, Engine, Worker, send_signal
from pyff.migrate import migrate

BATCH = 5_000
app = App(lane="bench")


@app.task()
def noop(number: int) -> None:
    wire.count()


@app.task()
def mark(number: int) -> None:
    wire.mark(number)


@app.task()
def nap(number: int) -> None:
    time.sleep(wire.NAP_S)
    wire.say(ran=number)


@app.task()
def chain(ctx: Ctx, number: int) -> None:
    for step in range(wire.STEPS):
        ctx.step(f"step {step}", abs, number)
    wire.count()


@app.task()
def wait(ctx: Ctx, number: int) -> None:
    ctx.wait("answer", on_token=lambda token: wire.say(waiting=number, token=token.url_param))
    wire.mark(number)


class Client:
    def __init__(self, dsn):
        self.dsn = dsn

    def setup(self):
        migrate(self.dsn)
        with Engine(self.dsn) as engine:
            engine.seed_waitpoint_hmac_secret("bench")

    @property
    def engine(self):
        if not hasattr(self, "_engine"):
            self._engine = Engine(self.dsn)
        return self._engine

    def enqueue(self, task, first, count, batch, sets=0):
        numbers = range(first, first + count)
        made = app.tasks[task]
        groups = {k: [n for n in numbers if n % sets == k] for k in range(sets)} if sets else {None: numbers}
        self.engine.ping()
        with wire.Timed() as timed:
            for group, members in groups.items():
                which = made if group is None else made.using(needs=[f"set{group}"])
                if batch:
                    for start in range(0, len(members), BATCH):
                        calls = [(n,) for n in members[start : start + BATCH]]
                        which.enqueue_many(calls, conn=self.engine)
                else:
                    for number in members:
                        which.enqueue(number, conn=self.engine)
        return timed.answer

    def signal(self, number, token):
        with wire.Timed() as timed:
            send_signal(token, "go", conn=self.engine)
        return timed.answer

    def cancel(self, count):
        flow = self.engine.create_flow().flow_id
        self.engine.create_executions("bench", [b"0"] * count, flow_id=flow)
        with wire.Timed() as timed:
            self.engine.cancel_flow(flow, max_members=count)
        return timed.answer


def worker(dsn, options):
    lease = {"lease_ttl_ms": 1000 * options["lease_s"]} if options.get("lease_s") else {}
    made = Worker(app, dsn, lanes=["bench"], capabilities=options.get("sets", ()), drain_s=1, **lease)
    wire.ready()
    made.run()


if __name__ == "__main__":
    wire.main(Client, worker)
