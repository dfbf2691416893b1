"""Something that happens once, and that threads and coroutines wait for."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

from .caller import Caller

__all__ = ["Latch"]


class Latch:
    """Something that happens once, and that others wait for, on threads or on loops."""

    __slots__ = ("_callbacks", "_gate")

    def __init__(self) -> None:
        self._gate = threading.Lock()
        self._gate.acquire()
        self._callbacks: list[Callable[[], None]] = []

    def open(self) -> None:
        """It has happened. Only the first time counts."""
        if self._gate.locked():
            self._gate.release()
        for call in self._callbacks:
            call()

    @property
    def is_open(self) -> bool:
        """Whether it has happened."""
        return not self._gate.locked()

    def wait(self, seconds: float = -1) -> bool:
        """Wait until it has happened; False after so many seconds (default: never). Bears a KeyboardInterrupt."""
        if not self._gate.acquire(timeout=min(seconds, threading.TIMEOUT_MAX)):
            return False
        self._gate.release()
        return True

    def wait_on_thread(self, caller: Caller[Any] | None) -> bool:
        """The same for steps; an interrupt of ``caller`` is raised here."""
        if caller is None:
            return self.wait()
        bell, struck = threading.Event(), list[BaseException]()

        def hear(why: BaseException) -> None:
            struck.append(why)
            bell.set()

        self._callbacks.append(bell.set)
        caller.on_interrupt(hear)
        if not self.is_open:
            bell.wait()
        caller.on_interrupt(None)
        if struck:
            raise struck[0]
        return True

    async def awaited(self) -> bool:
        """The same for a coroutine, which it does not block."""
        from . import loop  # noqa: PLC0415 - loads asyncio, which only async users need

        waiter = loop.Waiter()
        self._callbacks.append(waiter.wake)
        if not self.is_open:
            with loop.shield() if loop.forever_cancelled() else nullcontext():
                await waiter.wait()
        return True
