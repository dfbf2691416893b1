"""One text for both worlds: a verb is a generator that yields what it waits for, on a thread or on a loop."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, Protocol, TypeAlias, TypeVar

__all__ = ["Steps", "T", "Waitable", "on_loop", "on_thread"]

T = TypeVar("T")


class Waitable(Protocol):
    """Something to wait for, either way; what it returns, or raises, is sent back into the steps."""

    def wait(self) -> Any:
        """Wait on this thread."""

    async def awaited(self) -> Any:
        """Wait in this coroutine."""


Steps: TypeAlias = Generator[Waitable, Any, T]


def on_thread(steps: Steps[T]) -> T:
    """Take the steps, waiting on this thread."""
    try:
        due = next(steps)
        while True:
            try:
                got = due.wait()
            except BaseException as why:  # noqa: BLE001 - an interrupt belongs to the steps, which end in order
                due = steps.throw(why)
            else:
                due = steps.send(got)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]  # typed by Steps


async def on_loop(steps: Steps[T]) -> T:
    """Take the steps, waiting in this coroutine."""
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
