"""The interface of observers of a worker: metrics, traces, custom logs."""

from typing import Protocol

from pyff.app.run import Run


class Observer(Protocol):
    """Called from the worker's threads: be quick, and do not raise.

    A finished run has `outcome` (complete, fail, release, put_off, paused, lost), `busy_s`, `error`, and the fields of
    its claim: `kind` (the task), `lane`, `execution_id`, `attempt_index`, `handle_kind`.
    """

    def claimed(self, run: Run) -> None: ...

    def finished(self, run: Run) -> None: ...


__all__ = ["Observer"]
