"""Resources that misbehave on purpose, and honestly: what fails is really left as it was, what hangs really runs."""

from __future__ import annotations

import errno
import os
import signal
import threading
import types
from enum import StrEnum
from typing import Any, Protocol, TypeVar

from .memory.view import View
from .tiers.tier import KEY_BYTES, Job
from .tiers.transfers import Transfers

T = TypeVar("T")


class Fault(StrEnum):
    """How a resource misbehaves."""

    START = "start"
    """its start raises"""
    STOP = "stop"
    """its stop raises, and has done nothing"""
    HANG = "hang"
    """its stop does not return"""
    LIE = "lie"
    """its stop returns, and has done nothing"""
    LATE = "late"
    """a tier: one of its threads is stuck in the region, and nothing ends it"""
    DIE = "die"
    """the process is killed in the middle of its stop"""


def broken(kind: type[T], fault: Fault, *, for_good: bool) -> type[T]:
    """A class like `kind` with this fault; `for_good`: its kill, where it has one, is of no more use than its stop."""
    parts: tuple[type, ...] = (_BY_FAULT[fault], kind)
    killable = hasattr(kind, "kill")
    if issubclass(kind, _with_threads()) and fault in (Fault.HANG, Fault.LIE) and (for_good or not killable):
        parts = (_StuckInTheRegion, *parts)
    if for_good and killable:
        parts = (_FailsToBeKilled, *parts)
    made: type[T] = types.new_class(f"{kind.__name__}With{fault.name.title()}", parts)
    return made


def _with_threads() -> tuple[type, ...]:
    from .tiers.disk_tier import DiskTier  # noqa: PLC0415 - the kinds of tiers import nothing from here, nor at import
    from .tiers.remote import RemoteTier  # noqa: PLC0415 - the same

    return (DiskTier, RemoteTier)


class _FailsToStart:
    def start(self) -> None:
        raise OSError(errno.EIO, "injected: the start fails")


class _FailsToStop:
    def stop(self) -> None:
        """Its threads, and what they may touch, are as they were when it raises."""
        raise OSError(errno.EIO, "injected: the stop fails")


class _Hangs:
    def stop(self) -> None:
        """Nothing is let go of."""
        threading.Event().wait()


class _Lies:
    def stop(self) -> None:
        """Nothing is let go of, and it says nothing of that."""


class _Dies:
    def stop(self) -> None:
        """No hook, no exit handler, nothing of ours runs after this."""
        os.kill(os.getpid(), signal.SIGKILL)


class _FailsToBeKilled:
    def kill(self) -> None:
        raise OSError(errno.EIO, "injected: the kill fails")


class HasBlocks(Protocol):
    """A view, or what looks like one."""

    def block(self, slot: int) -> memoryview:
        """The bytes of a slot."""


class StuckRead(Job):
    """A job that reads into a block of the region from a pipe to which nobody writes, until `late` is called."""

    def __init__(self) -> None:
        super().__init__("load", [bytes(KEY_BYTES)], [0], lambda _: None)
        self.begun = threading.Event()
        self.over = threading.Event()

    def carry_out(self, view: HasBlocks) -> list[bool]:
        """On the tier's own thread."""
        reading, self._writing = os.pipe()
        print(f"injected  {threading.current_thread().name}: a read into the region that never returns", flush=True)
        self.begun.set()
        try:
            return [os.readv(reading, [view.block(0)]) > 0]
        finally:
            self.over.set()

    def late(self, data: bytes) -> None:
        """Let the read return: the bytes are in the block then."""
        os.write(self._writing, data)
        self.over.wait()


class _StuckInTheRegion:
    """When its end is near, one of its I/O threads enters a read that never returns."""

    _transfers: Transfers
    _view: View
    stuck: StuckRead | None = None

    def drain(self) -> None:
        self._get_stuck()
        self._transfers.close_door()

    def stop(self) -> None:
        self._get_stuck()
        super().stop()  # type: ignore[misc]  # a mixin: the next class hangs, or lies

    def execute(self, job: Job) -> list[bool]:
        if isinstance(job, StuckRead):
            return job.carry_out(self._view)
        ran: list[bool] = super().execute(job)  # type: ignore[misc]  # a mixin: a class after the next is a tier
        return ran

    def _get_stuck(self) -> None:
        if self.stuck is None:
            self.stuck = StuckRead()
            self._transfers.submit(self.stuck)
            if self.stuck.outcome is None:
                self.stuck.begun.wait()


_BY_FAULT: dict[Fault, type[Any]] = {
    Fault.START: _FailsToStart,
    Fault.STOP: _FailsToStop,
    Fault.HANG: _Hangs,
    Fault.LIE: _Lies,
    Fault.LATE: _StuckInTheRegion,
    Fault.DIE: _Dies,
}
