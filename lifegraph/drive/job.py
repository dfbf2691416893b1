"""Something to be done on a loop, once, and answered once."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from contextvars import Context
from typing import Any, Final, Protocol

from ..run import Failure, is_awaitable

__all__ = ["Job"]

_UNKNOWN: Final = object()


class _Driver(Protocol):
    def on_loop(self, job: Job, task: Any) -> Coroutine[Any, Any, None]: ...

    def lost(self, job: Job, why: BaseException) -> None: ...


class Job:
    """The user's code for one number of a run, where it is, and what it has come to."""

    __slots__ = ("begun", "context", "doing", "driver", "failure", "heard", "host", "number", "value")

    def __init__(self, driver: _Driver, number: int) -> None:
        self.driver = driver
        self.number = number
        self.begun = False
        self.heard = False  # its answer has been given
        self.doing: Any = None  # the awaitable at which it is
        self.value: Any = _UNKNOWN
        self.failure: Failure | None = None
        self.context: Context | None = None  # for a porter: the context of the resource,
        self.host: Callable[[], Any] | None = None  # and how it gets its host

    @property
    def has_value(self) -> bool:
        """Whether it has come to something, which an interrupt afterwards does not undo."""
        return self.value is not _UNKNOWN and not is_awaitable(self.value)
