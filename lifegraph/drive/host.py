"""The loop lane: one host task for each async resource, in which it is entered, lives and is left.

A host task is held strongly and taken out of the loop's registry at birth, so neither the loop's end nor its
cancel-all reaches it. A limit means "wait, give up": no host task is ever cancelled by us.

A resource that only has to be stopped has nothing that a task would keep for it. A `Porter` does such stops one after
another in one task, each in a context of its own; the first that suspends has that task for its host from there on.

On a loop of the main thread a KeyboardInterrupt may strike any line in here. Then a job that had begun is answered
with it, once, and the others are done by a new task.
"""

from __future__ import annotations

import asyncio
import types
from asyncio import CancelledError
from collections import deque
from collections.abc import Callable, Coroutine, Generator
from contextlib import nullcontext
from contextvars import Context
from time import monotonic
from typing import Any, Final

from ..errors import HookError
from ..quarantine import hide_task
from .job import Job
from .loop import shield
from .pool import here, loop_here
from .stepping import driven, stepped, unknown

__all__ = ["Bell", "Host", "Porter"]

_TURN: Final = 0.005  # seconds after which a porter lets the loop turn


class Bell:
    """Wakes one loop, once for all who have something to do there. `ring` is safe from any thread."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self._rung: deque[_Tasked] = deque()
        self._called = False

    def ring(self, tasked: _Tasked) -> None:
        """Have it go on, on the loop; raises RuntimeError when that is closed."""
        self._rung.append(tasked)
        if not self._called:
            self._called = True
            try:
                self.loop.call_soon_threadsafe(self._answer)
            except RuntimeError:
                self._called = False
                raise

    def again(self) -> None:
        """An interrupt may have kept it from being heard."""
        self._called = False

    def _answer(self) -> None:
        self._called = False
        while self._rung:
            self._rung.popleft().go_on()


class _Tasked:
    """One task at a time on one loop, which does the jobs it is given. `do` and `nudge` are safe from any thread."""

    def __init__(self, bell: Bell, context: Context, label: str, *, ours: bool) -> None:
        self.loop = bell.loop
        self._bell = bell
        self.task: asyncio.Task[None] | None = None
        self._ours = ours  # a private loop, which runs until we end it
        self._context = context
        self._label = label
        self._jobs: deque[Job] = deque()
        self._job: Job | None = None  # at which it is
        self._called = False  # to the loop, and not there yet
        self._thread = 0  # where the loop was last seen

    def do(self, job: Job, whose: str) -> None:
        """Do this next, for ``whose``; raises `HookError` when the loop can no longer do anything."""
        self._jobs.append(job)
        if self._called and not self.loop.is_closed():  # it will look at all there is
            return
        if self._is_here():
            self.go_on()
            return
        if self.loop.is_closed() or not (self._ours or self.loop.is_running()):
            self._jobs.remove(job)
            state = "closed" if self.loop.is_closed() else "not running"
            raise HookError(f"the event loop on which {whose} lives is {state}, so no hook can run there")
        try:
            self._call()
        except RuntimeError as why:
            raise HookError(f"the event loop on which {whose} lives is closed: {why}") from why

    def _is_here(self) -> bool:
        return self._thread in (0, here()) and loop_here() is self.loop

    def nudge(self) -> None:
        """An interrupt may have struck while the loop was told: tell it again."""
        if self._jobs and not self.loop.is_closed():
            self._called = False
            self._bell.again()
            try:
                self._call()
            except RuntimeError:  # closed at this very moment
                return

    def _call(self) -> None:
        if not self._called:
            self._called = True
            self._bell.ring(self)

    def go_on(self) -> None:
        """On the loop: see that there is a task, and that it looks at its jobs."""
        self._called, self._thread = False, here()
        if self._is_idle():
            self._begin()

    def _is_idle(self) -> bool:
        return self.task is None or self.task.done()

    def _begin(self) -> None:
        self.task = asyncio.Task(self._live(), loop=self.loop, name=self._label, context=self._context)
        self.task.add_done_callback(self._died)
        hide_task(self.task)

    def _died(self, task: asyncio.Task[None]) -> None:
        """The task is over; when an interrupt did that, another one goes on."""
        if self.task is task:
            self.task = None
        if not task.cancelled() and (why := task.exception()) is not None:
            self._answer(why)
        if self._jobs:
            self.go_on()

    def _struck(self, why: BaseException) -> None:
        """A line of ours was struck: the interrupt goes on as if it had struck the loop."""
        self._answer(why)
        self.loop.call_soon(_strike_again, why)

    def _answer(self, why: BaseException) -> None:
        """The job that had begun is answered, and never begun again."""
        job, self._job = self._job, None
        if job is not None:
            job.begun = True
            job.driver.lost(job, why)

    def _next(self) -> Job | None:
        """The next job, if it is to begin now. The order of these lines bears an interrupt at each."""
        job = self._job = self._jobs[0]
        del self._jobs[0]
        if job.begun:
            return None
        job.begun = True
        return job

    def _live(self) -> Coroutine[Any, Any, None]:
        raise NotImplementedError


class Host(_Tasked):
    """The host task of one resource, on one loop, with one context."""

    def __init__(self, bell: Bell, context: Context, name: str, note: Callable[[str], None], *, ours: bool) -> None:
        super().__init__(bell, context, f"lifegraph host of {name}", ours=ours)
        self._name = name
        self._note = note
        self._cancelled = False
        self._wake: asyncio.Future[None] | None = None
        self._ended = False

    def end(self) -> None:
        """It has been left: let the task end."""
        self._ended = True
        try:
            if self._is_here():
                self.go_on()
            elif not self.loop.is_closed():
                self._call()
        except RuntimeError:  # closed at this very moment: nothing is left to end
            return

    def go_on(self) -> None:
        self._called, self._thread = False, here()
        if self._is_idle():
            if self._jobs or not self._ended:
                self._begin()
        elif self._wake is not None and not self._wake.done():
            self._wake.set_result(None)

    def take_over(self, porter: Porter) -> None:
        """The porter's task, in which this resource is, is this host's from here on."""
        self.task, porter.task, porter._job = porter.task, None, None  # noqa: SLF001 - our own kind
        assert self.task is not None
        self.task.remove_done_callback(porter._died)  # noqa: SLF001 - our own kind
        self.task.add_done_callback(self._died)

    async def _live(self) -> None:
        await unknown(self.live())

    async def live(self) -> None:
        """Do what comes, until the end."""
        while self._jobs or not self._ended:
            try:
                await self._work()
            except KeyboardInterrupt as why:  # it struck a line of ours: what a hook raises is its answer
                self._struck(why)

    async def _work(self) -> None:
        task = asyncio.current_task()
        while self._jobs:
            if (job := self._next()) is not None:
                await job.driver.on_loop(job, task)
            self._job = None
        if self._ended:
            return
        self._wake = self.loop.create_future()
        try:
            with shield() if self._cancelled else nullcontext():
                await self._wake
        except CancelledError:
            self._refuse()

    def _refuse(self) -> None:
        """A cancellation reached the waiting task: it leaves at its turn, and not before."""
        if self.task is not None:
            self.task.uncancel()
        if not self._cancelled:
            self._cancelled = True
            self._note(f"{self._name}: a cancellation reached it while it was up; it was left at its turn")


class Porter(_Tasked):
    """Does stops that need no task of their own, one after another, each in the context of its job."""

    def __init__(self, bell: Bell, context: Context, *, ours: bool) -> None:
        super().__init__(bell, context, "lifegraph porter", ours=ours)

    async def _live(self) -> None:
        await self._carry()

    @types.coroutine
    def _carry(self) -> Generator[Any, Any, None]:
        task, until = asyncio.current_task(), monotonic() + _TURN
        while self._jobs:
            if (job := self._next()) is not None:
                coroutine = job.driver.on_loop(job, task)
                over, due = stepped(coroutine, None, None, job.context)
                if not over:
                    yield from self._become(job, coroutine, due)
                    return
            self._job = None
            if task is None or task.cancelling():  # one cancelled the task in which it was: no other's matter
                return
            if monotonic() > until:
                yield
                until = monotonic() + _TURN

    def _become(self, job: Job, coroutine: Coroutine[Any, Any, None], due: Any) -> Generator[Any, Any, None]:
        """It suspends: this task is its own from here on; another one does the others."""
        assert job.host is not None
        host: Host = job.host()
        host.take_over(self)
        if self._jobs:
            self.go_on()
        try:
            yield from driven(coroutine, job.context, waits_for=due)
            yield from driven(host.live(), job.context)
        except KeyboardInterrupt as why:
            job.driver.lost(job, why)
            raise
        finally:
            host.task = None


def _strike_again(why: BaseException) -> None:
    raise why
