"""The framework's own daemon threads: parked between uses, shared by all graphs of the process.

They are no executor's, so a hook that hangs keeps no process from ending; and they are daemons, so threads that
a hook starts inherit ``daemon=True``.
"""

from __future__ import annotations

import os
import sys
import threading
from collections import deque
from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count
from time import monotonic
from typing import Any, Final
from weakref import WeakMethod

__all__ = ["Alarms", "Mutex", "NoThread", "Pool", "alarms", "callers_loop", "here", "lent", "loop_here", "pool"]

_IDLE: Final = 30.0  # seconds after which a parked thread ends

Mutex = threading.RLock
here = threading.get_ident


def loop_here() -> Any:
    """The event loop that runs on this thread, if asyncio is loaded and one does."""
    asyncio = sys.modules.get("asyncio")
    if asyncio is None:
        return None
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


lent: Final[dict[int, Any]] = {}  # a thread of ours that does a verb -> the loop on which that was called


def callers_loop() -> Any:
    """The event loop of whoever called the verb that is done here."""
    return (lent and lent.get(here())) or loop_here()


class _Seat:
    """One parked thread: what it is to do next, and the lock at which it waits."""

    __slots__ = ("bell", "work")

    def __init__(self, work: Callable[[], None]) -> None:
        self.work = work
        self.bell = threading.Lock()
        self.bell.acquire()


class NoThread(RuntimeError):
    """No thread can be started: late in the interpreter's end, or at the system's limit."""


class Pool:
    """Parked daemon threads. `engage` is safe from any thread, and never waits for the work."""

    def __init__(self) -> None:
        self._parked: deque[_Seat] = deque()
        self._numbers = count(1)

    def engage(self, work: Callable[[], None]) -> None:
        """Have ``work`` done by a thread of ours; raises RuntimeError where no thread can be started."""
        try:
            seat = self._parked.pop()
        except IndexError:
            seat = _Seat(work)
            name = f"lifegraph-{next(self._numbers)}"
            try:
                threading.Thread(target=self._live, args=(seat,), name=name, daemon=True).start()
            except RuntimeError as why:
                raise NoThread(str(why)) from why
        else:
            seat.work = work
            seat.bell.release()

    def forget(self) -> None:
        """After a fork the parked threads are the parent's."""
        self._parked.clear()

    def _live(self, seat: _Seat) -> None:
        while True:
            seat.work()
            seat.work = _nothing
            self._parked.append(seat)
            if seat.bell.acquire(timeout=_IDLE):
                continue
            try:
                self._parked.remove(seat)
            except ValueError:  # engaged at this very moment
                seat.bell.acquire()
            else:
                return


class Alarms:
    """One clock for all runs: calls back, on a thread of ours, when a moment has come."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._awake = False
        self.forget()

    def at(self, moment: float, ring: Callable[[], None]) -> None:
        """Call ``ring``, a method, at ``moment`` (seconds, monotonic), from a thread of ours. It must not block.

        Its object is not kept alive for that.
        """
        with self._lock:
            heappush(self._due, (moment, next(self._numbers), WeakMethod(ring)))
            first = self._due[0][0] == moment
            asleep, self._awake = not self._awake, True
        if asleep:
            try:
                self._pool.engage(self._watch)
            except RuntimeError:
                self._awake = False
                raise
        elif first:
            self._wake.set()

    def forget(self) -> None:
        """After a fork: nothing is due here."""
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._due: list[tuple[float, int, WeakMethod[Callable[[], None]]]] = []
        self._numbers = count()
        self._awake = False

    def _watch(self) -> None:
        while True:
            self._wake.clear()
            with self._lock:
                if not self._due:
                    self._awake = False
                    return
                moment, _, ring = self._due[0]
                wait = moment - monotonic()
                if wait <= 0:
                    heappop(self._due)
            if wait > 0:
                self._wake.wait(min(wait, 3600.0))
            elif (due := ring()) is not None:
                due()


def _nothing() -> None:
    """What a parked thread does."""


pool: Final = Pool()
alarms: Final = Alarms(pool)


def _after_fork() -> None:
    pool.forget()
    alarms.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
