"""The main thread as a caller: it only waits, in one place, since an interrupt may strike between any two of its lines.

What a verb does is done by a thread of ours, where no KeyboardInterrupt is ever raised. `AsyncCaller` is a caller whose
loop runs on the main thread: one coroutine that only waits.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from contextlib import nullcontext, suppress
from contextvars import copy_context
from typing import Any, Generic, TypeVar

from .pool import here, lent, pool

__all__ = ["AsyncCaller", "Caller"]

T = TypeVar("T")


class Caller(Generic[T]):
    """One verb called on the main thread: ``verb`` runs elsewhere, in the caller's context; `wait` is for the caller."""

    def __init__(self, verb: Callable[[Caller[T]], T]) -> None:
        self._verb = verb
        self._context = copy_context()
        self._once = threading.Lock()
        self._bell = threading.Lock()  # wakes the caller
        self._bell.acquire()
        self._calls: deque[_Call] = deque()
        self._engaged = False
        self._over = False
        self._error: BaseException | None = None
        self._value: T
        self._unheard: deque[BaseException] = deque()
        self._heard: Callable[[BaseException], None] | None = None
        self.done_before = False  # the verb has done something, and the interrupt came too late for it
        self.loop: Any = None  # on which the verb was called, where it was on one

    # On the main thread ----------------------------------------------------------------------------------

    def wait(self) -> T:
        """Have the verb done, and wait for it; an interrupt meanwhile is passed on to it."""
        struck: list[BaseException] = []
        told = 0
        while True:
            try:
                if told < len(struck):
                    told += 1
                    self._strike(struck[told - 1])
                self._attend()
                break
            except KeyboardInterrupt as why:
                struck.append(why)
        return self._outcome(struck)

    def _outcome(self, struck: list[BaseException]) -> T:
        if self._error is not None:
            raise self._error
        if struck:  # too late for the verb to take notice
            self.done_before = bool(self._value)
            raise struck[0]
        return self._value

    def _begin(self) -> None:
        if not self._engaged:
            pool.engage(self._go)
            self._engaged = True

    def _attend(self) -> None:
        self._begin()
        while not self._over:
            if self._calls:
                self._calls[0].run()
                self._calls.popleft()
            else:
                self._bell.acquire()

    def _strike(self, why: BaseException) -> None:
        self._unheard.append(why)
        self._pass_on()

    def _pass_on(self) -> None:
        """On either thread: each interrupt is heard once, by whoever listens."""
        while (hear := self._heard) is not None and self._unheard:
            with suppress(IndexError):  # the other thread was faster
                hear(self._unheard.popleft())

    # On the thread that does the verb --------------------------------------------------------------------

    def on_interrupt(self, hear: Callable[[BaseException], None] | None) -> None:
        """Call ``hear`` from now on when the caller is interrupted; at once, if it was while nobody listened."""
        self._heard = hear
        self._pass_on()

    def lend(self, work: Callable[[], None]) -> None:
        """Have ``work`` done on the caller's own thread, and wait for it; raises what it raises."""
        call = _Call(work)
        self._calls.append(call)
        self._ring()
        call.wait()

    def _go(self) -> None:
        if not self._once.acquire(blocking=False):
            return
        if self.loop is not None:
            lent[here()] = self.loop
        try:
            self._value = self._context.run(self._verb, self)
        except BaseException as why:  # noqa: BLE001 - whatever the verb raises is raised by the caller
            self._error = why
        lent.pop(here(), None)
        self._over = True
        self._ring()

    def _ring(self) -> None:
        try:
            self._bell.release()
        except RuntimeError:  # rung already
            return


class AsyncCaller(Caller[T]):
    """The same for a verb called on a loop of the main thread; `awaited` is for the calling coroutine."""

    def __init__(self, verb: Callable[[Caller[T]], T]) -> None:
        from . import loop  # noqa: PLC0415 - loads asyncio, which only async users need

        super().__init__(verb)
        self._asyncio = loop
        self._waiter = loop.Waiter()
        self.loop = self._waiter.loop
        self._ring = self._waiter.wake  # type: ignore[method-assign]  # it is the loop that has to be woken

    async def awaited(self) -> T:
        """Have the verb done, and wait for it; an interrupt or a cancellation meanwhile is passed on to it."""
        struck: list[BaseException] = []
        told = 0
        forever = self._asyncio.forever_cancelled()
        while True:
            try:
                if told < len(struck):
                    told += 1
                    self._strike(struck[told - 1])
                self._begin()
                while not self._over:
                    with self._asyncio.shield() if forever or struck else nullcontext():
                        await self._waiter.wait()
                break
            except (KeyboardInterrupt, self._asyncio.CancelledError) as why:
                struck.append(why)
        return self._outcome(struck)


class _Call:
    """Something to be done on the caller's thread, once."""

    def __init__(self, work: Callable[[], None]) -> None:
        self._work: Callable[[], None] | None = work
        self._error: BaseException | None = None
        self._done = threading.Lock()
        self._done.acquire()

    def run(self) -> None:
        """Do it; an interrupt that strikes meanwhile is its answer."""
        try:
            work, self._work = self._work, None
            if work is not None:
                work()
        except BaseException as why:  # noqa: BLE001 - raised again where the work was asked for
            self._error = why
        finally:
            if self._done.locked():
                self._done.release()

    def wait(self) -> None:
        """Wait until it is done; raises what it raised."""
        self._done.acquire()
        if self._error is not None:
            raise self._error
