"""Loops: the private one of a graph, and how a coroutine waits for what threads say."""

from __future__ import annotations

import asyncio
import sys
import threading
from asyncio import CancelledError
from collections.abc import Callable, Coroutine
from contextlib import AbstractContextManager, nullcontext, suppress
from contextvars import copy_context
from typing import Any

from .pool import loop_here, pool

__all__ = [
    "CancelledError",
    "PrivateLoop",
    "Waiter",
    "begin_on",
    "forever_cancelled",
    "runner_of",
    "shield",
]


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
