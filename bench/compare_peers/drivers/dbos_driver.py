"""DBOS Transact: workflows on a registered queue, polled every second as by default."""

import logging
import os
import signal
import time

import wire

logging.disable(logging.ERROR)

from dbos import DBOS, DBOSClient

SETS = [f"set{k}" for k in range(10)]


def launch(dsn, sets=(), concurrency=None, name=None):
    # one application version, whatever file it is started from; executors are distinguished by name or process
    DBOS(
        config={
            "name": "bench",
            "system_database_url": dsn,
            "log_level": "CRITICAL",
            "run_admin_server": False,
            "application_version": "1",
            "executor_id": name or str(os.getpid()),
        }
    )
    if sets:
        DBOS.listen_queues(sets)
    DBOS.launch()
    for queue in ["bench", *SETS]:
        DBOS.register_queue(queue, worker_concurrency=concurrency)


def tasks():
    @DBOS.workflow(name="noop")
    def noop(number):
        wire.count()

    @DBOS.workflow(name="mark")
    def mark(number):
        wire.mark(number)

    @DBOS.workflow(name="nap")
    def nap(number):
        time.sleep(wire.NAP_S)
        wire.say(ran=number)

    @DBOS.step(name="step")
    def step(number):
        return abs(number)

    @DBOS.workflow(name="chain")
    def chain(number):
        for _ in range(wire.STEPS):
            step(number)
        wire.count()

    @DBOS.workflow(name="wait")
    def wait(number):
        wire.say(waiting=number, token=DBOS.workflow_id)
        DBOS.recv()
        wire.mark(number)


class Client:
    def __init__(self, dsn):
        self.dsn = dsn

    @property
    def client(self):
        if not hasattr(self, "_client"):
            self._client = DBOSClient(system_database_url=self.dsn, application_name="bench")
        return self._client

    def setup(self):
        tasks()
        launch(self.dsn)
        DBOS.destroy()

    def enqueue(self, task, first, count, batch, sets=0):
        client = self.client
        with wire.Timed() as timed:
            for number in range(first, first + count):
                queue = wire.route(number, sets) or "bench"
                client.enqueue({"workflow_name": task, "queue_name": queue, "app_version": "1"}, number)
        return timed.answer

    def signal(self, number, token):
        with wire.Timed() as timed:
            self.client.send(token, "go")
        return timed.answer

    def cancel(self, count):
        options = {"workflow_name": "noop", "queue_name": "bench", "app_version": "1"}
        ids = [self.client.enqueue(options, n).get_workflow_id() for n in range(count)]
        with wire.Timed() as timed:
            self.client.cancel_workflows(ids)
        return timed.answer


def worker(dsn, options):
    tasks()
    launch(dsn, options.get("sets", ()), options.get("concurrency"), options.get("name"))
    wire.ready()
    signal.sigwait({signal.SIGTERM})
    os._exit(0)


if __name__ == "__main__":
    wire.main(Client, worker)
