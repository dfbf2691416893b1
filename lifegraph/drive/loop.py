"""The loop lane: one host task for each async resource, in which it is entered, lives and is left.

A host task is held strongly and taken out of the loop's registry at birth, so neither the loop's end nor its
cancel-all reaches it. A limit means "wait, give up": no host task is ever cancelled by us.
"""

from __future__ import annotations

import asyncio
import sys
import threading
import types
from asyncio import CancelledError
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Generator
from contextlib import AbstractContextManager, nullcontext, suppress
from contextvars import Context, copy_context
from typing import Any

from ..errors import HookError
from ..quarantine import hide_task
from .pool import loop_here, pool

__all__ = [
    "CancelledError",
    "Host",
    "Job",
    "PrivateLoop",
    "Waiter",
    "begin_on",
    "forever_cancelled",
    "runner_of",
    "shield",
    "without_hooks",
]

Job = Callable[[], Awaitable[None]]


class PrivateLoop:
    """An event loop in a thread of ours, for async hooks of a graph that is driven without one."""

    def __init__(self, factory: Callable[[], asyncio.AbstractEventLoop] | None) -> None:
        self.loop = asyncio.new_event_loop() if factory is None else factory()
        self._ended = False
        ready = threading.Event()
        pool.engage(lambda: self._live(ready))
        ready.wait()

    def end(self) -> None:
        """Stop and close it; not while something on it is held."""
        self._ended = True
        self.loop.call_soon_threadsafe(self.loop.stop)

    def _live(self, ready: threading.Event) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.call_soon(ready.set)
        while not self._ended:
            try:
                self.loop.run_forever()
            except BaseException as why:  # noqa: BLE001 - some task's SystemExit must not take the others' loop away
                self.loop.call_exception_handler({"message": "a task tried to end lifegraph's loop", "exception": why})
        self.loop.run_until_complete(self._clear())
        asyncio.set_event_loop(None)
        self.loop.close()

    async def _clear(self) -> None:
        """End what hooks left behind on the loop, as `asyncio.run` would, but for a second at most."""
        left = asyncio.all_tasks() - {asyncio.current_task()}
        for task in left:
            task.cancel()
        if left:
            await asyncio.wait(left, timeout=1.0)
        await self.loop.shutdown_asyncgens()


class Host:
    """The host task of one resource, on one loop, with one context. `do` is safe from any thread."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, context: Context, name: str, note: Callable[[str], None], *, ours: bool
    ) -> None:
        self.loop = loop
        self._ours = ours  # a private loop, which runs until we end it
        self.doing: Any = None  # the awaitable at which it is
        self._context = context
        self._name = name
        self._note = note
        self._cancelled = False
        self._jobs: deque[Job] = deque()
        self._wake: asyncio.Future[None] | None = None
        self.task: asyncio.Task[None] | None = None
        self._ended = False

    def do(self, job: Job) -> None:
        """Do this next; raises `HookError` when the loop can no longer do anything."""
        self._jobs.append(job)
        if loop_here() is self.loop:
            self._go_on()
            return
        if self.loop.is_closed() or not (self._ours or self.loop.is_running()):
            self._jobs.remove(job)
            state = "closed" if self.loop.is_closed() else "not running"
            raise HookError(f"the event loop on which {self._name} lives is {state}, so no hook can run there")
        try:
            self.loop.call_soon_threadsafe(self._go_on)
        except RuntimeError as why:
            raise HookError(f"the event loop on which {self._name} lives is closed: {why}") from why

    def end(self) -> None:
        """It has been left: let the task end."""
        self._ended = True
        try:
            if loop_here() is self.loop:
                self._go_on()
            elif not self.loop.is_closed():
                self.loop.call_soon_threadsafe(self._go_on)
        except RuntimeError:  # closed at this very moment: nothing is left to end
            return

    def _go_on(self) -> None:
        if self.task is None:
            name = f"lifegraph host of {self._name}"
            self.task = asyncio.Task(self._unhooked(), loop=self.loop, name=name, context=self._context)
            hide_task(self.task)
        elif self._wake is not None and not self._wake.done():
            self._wake.set_result(None)

    async def _unhooked(self) -> None:
        await without_hooks(self._live())

    async def _live(self) -> None:
        while True:
            while self._jobs:
                await self._jobs.popleft()()
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


class Waiter:
    """Lets one coroutine wait for something that another thread will say. `wake` is safe from any thread."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self._future: asyncio.Future[None] | None = None
        self._woken = False

    def wake(self) -> None:
        """Let it go on."""
        self._woken = True
        try:
            if loop_here() is self.loop:
                self._resolve()
            else:
                self.loop.call_soon_threadsafe(self._resolve)
        except RuntimeError:  # the loop was closed under the waiting coroutine: nobody waits any more
            return

    async def wait(self) -> None:
        """Wait for `wake`; raises CancelledError when cancelled meanwhile."""
        if not self._woken:
            self._future = self.loop.create_future()
            await self._future
        self._woken = False

    def _resolve(self) -> None:
        if self._future is not None and not self._future.done():
            self._future.set_result(None)


@types.coroutine
def without_hooks(coroutine: Coroutine[Any, Any, Any]) -> Generator[Any, Any, Any]:
    """Await ``coroutine`` so that no async generator which it steps first gets to know the loop.

    A loop that ends closes every async generator it knows, and with it what it holds.
    """
    got: Any = None
    thrown: BaseException | None = None
    while True:
        hooks = sys.get_asyncgen_hooks()
        sys.set_asyncgen_hooks(None, hooks.finalizer)  # what a hook drops is still closed by its loop
        try:
            due = coroutine.send(got) if thrown is None else coroutine.throw(thrown)
        except StopIteration as end:
            return end.value
        finally:
            sys.set_asyncgen_hooks(*hooks)
        try:
            got, thrown = (yield due), None
        except BaseException as why:  # noqa: BLE001 - whatever is thrown in belongs to the coroutine
            got, thrown = None, why


def begin_on(
    loop: asyncio.AbstractEventLoop, coroutine: Coroutine[Any, Any, None], then: Callable[[], None]
) -> Callable[[], None]:
    """Have ``coroutine``, which raises nothing, run on ``loop``, in the caller's context; return what cancels it.

    ``then`` is called when it is over. From any other thread than the loop's.
    """
    context, tasks = copy_context(), list[asyncio.Task[None]]()

    def begin() -> None:
        tasks.append(asyncio.Task(coroutine, loop=loop, context=context))
        tasks[0].add_done_callback(lambda _: then())

    def stop() -> None:
        tasks[0].cancel()  # `begin` came first

    def cancel() -> None:
        with suppress(RuntimeError):  # the loop is closed, and what ran there is over
            loop.call_soon_threadsafe(stop)

    loop.call_soon_threadsafe(begin)
    return cancel


def runner_of(loop_factory: Callable[[], asyncio.AbstractEventLoop] | None) -> asyncio.Runner:
    """A runner for an async main."""
    return asyncio.Runner(loop_factory=loop_factory)


def shield() -> AbstractContextManager[Any]:
    """A scope in which anyio's cancellation does not strike again and again; nothing where anyio is not loaded."""
    anyio = sys.modules.get("anyio")
    return anyio.CancelScope(shield=True) if anyio is not None else nullcontext()


def forever_cancelled() -> bool:
    """Whether an anyio scope around this task is cancelled already."""
    anyio = sys.modules.get("anyio")
    return (
        anyio is not None
        and anyio.get_cancelled_exc_class() is CancelledError
        and (anyio.current_effective_deadline() == float("-inf"))
    )
