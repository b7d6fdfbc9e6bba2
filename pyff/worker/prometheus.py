"""Metrics of a worker for Prometheus: `pip install 'pyff-engine[prometheus]'`."""

from pyff.app.run import Run

try:
    from prometheus_client import REGISTRY, CollectorRegistry, Counter, Histogram, start_http_server
except ModuleNotFoundError as error:
    from pyff.failure import Failure

    raise Failure(
        "prometheus_client is not installed", hint="pip install 'pyff-engine[prometheus]'"
    ) from error


class Prometheus:
    """An observer: `Worker(..., observers=[Prometheus(port=9000)])`. Without a port it serves nothing itself."""

    def __init__(self, *, port: int | None = None, registry: CollectorRegistry = REGISTRY) -> None:
        self._claimed = Counter("pyff_claimed", "Executions claimed", ["task", "lane"], registry=registry)
        self._finished = Counter(
            "pyff_finished", "Runs by outcome", ["task", "lane", "outcome"], registry=registry
        )
        self._seconds = Histogram("pyff_run_seconds", "Duration of runs", ["task", "lane"], registry=registry)
        if port is not None:
            start_http_server(port, registry=registry)

    def claimed(self, run: Run) -> None:
        self._claimed.labels(run.kind, run.lane).inc()

    def finished(self, run: Run) -> None:
        self._finished.labels(run.kind, run.lane, run.outcome).inc()
        self._seconds.labels(run.kind, run.lane).observe(run.busy_s)


__all__ = ["Prometheus"]
