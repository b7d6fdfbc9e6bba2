"""Metrics and traces, through the libraries that people use for them, and maintenance in passing."""

import sys
from time import monotonic

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode
from prometheus_client import CollectorRegistry

from pyff.app.run import Run
from pyff.failure import Failure
from pyff.worker.opentelemetry import OpenTelemetry
from pyff.worker.prometheus import Prometheus
from tests.worker.conftest import until


def finished(outcome: str = "complete") -> Run:
    run = Run("h", "fresh", "{fp:0}:x", "charge", None, 0, lane="billing")
    run.outcome, run.busy_s, run.started = outcome, 0.25, monotonic() - 1
    return run


def test_prometheus_counts_what_came_of_the_runs():
    registry = CollectorRegistry()
    observer = Prometheus(registry=registry)
    observer.claimed(finished())
    observer.finished(finished())
    observer.finished(finished("fail"))
    labels = {"task": "charge", "lane": "billing"}
    assert registry.get_sample_value("pyff_claimed_total", labels) == 1
    for outcome in ("complete", "fail"):
        assert registry.get_sample_value("pyff_finished_total", {**labels, "outcome": outcome}) == 1
    assert registry.get_sample_value("pyff_run_seconds_sum", labels) == 0.5


def test_opentelemetry_gets_a_span_for_every_run():
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    observer = OpenTelemetry(provider)
    good, bad = finished(), finished("fail")
    bad.error = ValueError("broken")
    observer.finished(good)
    observer.finished(bad)
    one, two = exporter.get_finished_spans()
    assert (one.name, one.status.status_code, one.attributes["pyff.lane"]) == (
        "pyff charge",
        StatusCode.UNSET,
        "billing",
    )
    assert (one.end_time - one.start_time) / 1e9 == pytest.approx(0.25)
    assert (two.status.status_code, two.events[0].name) == (StatusCode.ERROR, "exception")


@pytest.mark.parametrize(
    ("library", "module"), [("prometheus_client", "prometheus"), ("opentelemetry", "opentelemetry")]
)
def test_a_library_that_is_not_installed_is_named(monkeypatch, library, module):
    monkeypatch.delitem(sys.modules, f"pyff.worker.{module}", raising=False)
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(Failure, match=f"pyff-engine\\[{module}\\]"):
        __import__(f"pyff.worker.{module}")


TICK = """
create table ticks (n serial, at timestamptz default clock_timestamp());
create or replace function ff_tick(p_limit int default 200, p_only text[] default null, p_force boolean default false,
                                   p_max_ms int default 1000)
returns table (step text, processed int, errors int, more boolean, skipped boolean, elapsed_ms bigint)
language plpgsql as $$
begin
    insert into ticks default values;
    return query select 'a step'::text, 1, 0, false, false, 0::bigint;
end $$;
"""
CAPABLE = """
create or replace function ff_capabilities() returns table (capability text, supported boolean, note text)
language sql as $$ select 'maintenance', {supported}, '' $$
"""


@pytest.mark.parametrize("supported", [True, False])
def test_an_idle_worker_keeps_the_database_in_order_if_it_can(db, work, supported):
    db.execute("drop function if exists ff_tick(int, text[], boolean, int)")
    db.execute(TICK)
    db.execute(CAPABLE.format(supported=supported))

    def ticks():
        return db.execute("select count(*) from ticks").fetchone()[0]

    worker = work()
    if supported:
        until(lambda: ticks() >= 2)
    else:
        until(lambda: worker.health().healthy)
        assert "maintain" not in worker._background
        assert ticks() == 0
