"""A span per run, with OpenTelemetry: `pip install 'pyff-engine[opentelemetry]'`."""

import time

from pyff.app.run import Run

try:
    from opentelemetry import trace
    from opentelemetry.trace import SpanKind, Status, StatusCode, TracerProvider
except ModuleNotFoundError as error:
    from pyff.failure import Failure

    raise Failure(
        "opentelemetry is not installed", hint="pip install 'pyff-engine[opentelemetry]'"
    ) from error


class OpenTelemetry:
    """An observer: `Worker(..., observers=[OpenTelemetry()])`. The span covers the task, not the wait for a slot."""

    def __init__(self, provider: TracerProvider | None = None) -> None:
        self._tracer = trace.get_tracer("pyff.worker", tracer_provider=provider)

    def claimed(self, run: Run) -> None:
        pass

    def finished(self, run: Run) -> None:
        end = (
            time.time_ns() - int((time.monotonic() - run.started - run.busy_s) * 1e9)
            if run.started
            else time.time_ns()
        )
        span = self._tracer.start_span(
            f"pyff {run.kind}",
            kind=SpanKind.CONSUMER,
            start_time=end - int(run.busy_s * 1e9),
            attributes={
                "pyff.execution_id": run.execution_id,
                "pyff.task": run.kind,
                "pyff.lane": run.lane,
                "pyff.attempt": run.attempt_index,
                "pyff.outcome": run.outcome,
            },
        )
        if run.outcome == "fail" and run.error is not None:
            span.record_exception(run.error)
            span.set_status(Status(StatusCode.ERROR, str(run.error)))
        span.end(end)


__all__ = ["OpenTelemetry"]
