"""Tasks: functions that run durably, and the context of a running task."""

from pyff.app.async_context import AsyncChild, AsyncCtx
from pyff.app.async_handle import AsyncHandle
from pyff.app.context import Child, Ctx
from pyff.app.control import DuplicateStep, Fail, NotConnected, Paused, TaskCancelled, TaskFailed
from pyff.app.handle import Handle
from pyff.app.registry import App
from pyff.app.retry import Backoff, Fixed
from pyff.app.signals import send_signal
from pyff.app.task import Task
from pyff.app.values import Signal, Token

__all__ = [
    "App",
    "AsyncChild",
    "AsyncCtx",
    "AsyncHandle",
    "Backoff",
    "Child",
    "Ctx",
    "DuplicateStep",
    "Fail",
    "Fixed",
    "Handle",
    "NotConnected",
    "Paused",
    "Signal",
    "Task",
    "TaskCancelled",
    "TaskFailed",
    "Token",
    "send_signal",
]
