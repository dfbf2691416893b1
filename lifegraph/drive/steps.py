"""One text for both worlds: a verb is a generator that yields what it waits for, on a thread or on a loop."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from typing import Any, Protocol, TypeAlias, TypeVar

from .caller import AsyncCaller, Caller
from .pool import NoThread, loop_here
from .threads import Driver, acting, acting_for

__all__ = ["Steps", "T", "Waitable", "on_loop", "on_thread"]

T = TypeVar("T")


class Waitable(Protocol):
    """Something to wait for, either way; what it returns, or raises, is sent back into the steps."""

    def wait_on_thread(self, caller: Caller[Any] | None) -> Any:
        """Wait on this thread; ``caller`` is who called, where that is another one."""
        ...

    async def awaited(self) -> Any:
        """Wait in this coroutine."""
        ...


Steps: TypeAlias = Generator[Waitable, Any, T]


def on_thread(steps: Steps[T], *, brief: bool = False, undo: Callable[[], Steps[Any]] | None = None) -> T:
    """Take the steps on threads. The main thread only waits: an interrupt must not strike between two of them.

    ``brief`` steps wait for nothing, and are taken where they are asked for. ``undo`` is taken when the steps have
    done something (they returned what is true), and an interrupt came too late for them to hear of it.
    """
    on_main = threading.current_thread() is threading.main_thread()
    if brief or not on_main or acting() is not None or loop_here() is not None:
        return _take(steps, None)
    caller = Caller[T](lambda caller: _take(steps, caller))
    try:
        return caller.wait()
    except NoThread:  # none can be started any more
        return _take(steps, None)
    except KeyboardInterrupt:
        if undo is not None and caller.done_before:
            on_thread(undo())
        raise


def _take(steps: Steps[T], caller: Caller[Any] | None) -> T:
    try:
        due = next(steps)
        while True:
            try:
                got = due.wait_on_thread(caller)
            except BaseException as why:  # noqa: BLE001 - an interrupt belongs to the steps, which end in order
                due = steps.throw(why)
            else:
                due = steps.send(got)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]  # typed by Steps


async def on_loop(steps: Steps[T], *, undo: Callable[[], Steps[Any]] | None = None) -> T:
    """Take the steps for this coroutine; on threads where its loop runs on the main one, for the same reason."""
    if threading.current_thread() is not threading.main_thread():
        return await _take_here(steps)
    found = acting()
    caller = AsyncCaller[T](lambda caller: _take_for(found, steps, caller))
    try:
        return await caller.awaited()
    except NoThread:  # none can be started any more
        return await _take_here(steps)
    finally:
        if undo is not None and caller.done_before:
            await on_loop(undo())


def _take_for(found: tuple[Driver, int] | None, steps: Steps[T], caller: Caller[T]) -> T:
    with acting_for(found):
        return _take(steps, caller)


async def _take_here(steps: Steps[T]) -> T:
    try:
        due = next(steps)
        while True:
            try:
                got = await due.awaited()
            except BaseException as why:  # noqa: BLE001 - a cancellation belongs to the steps, which end in order
                due = steps.throw(why)
            else:
                due = steps.send(got)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]  # typed by Steps
