"""Loops to test on, and a gate at which coroutines hang until the end of a test."""

from __future__ import annotations

import asyncio
import importlib.util
import threading
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

import pytest

from lifegraph import Graph, Report
from tests.graph.world import PATIENCE

T = TypeVar("T")

LOOPS = ("asyncio", "uvloop", "anyio")


def has(package: str) -> bool:
    """Whether ``package`` is installed here."""
    return importlib.util.find_spec(package) is not None


def wanted(package: str) -> Any:
    """The module, or the test is skipped with a message."""
    return pytest.importorskip(package, reason=f"{package} is not installed")


class Gate:
    """Whatever hangs, on threads or on loops, hangs here until it is opened."""

    def __init__(self) -> None:
        self.thread = threading.Event()
        self.reached = threading.Event()  # set as soon as something hangs
        self._hung: list[asyncio.Future[None]] = []

    async def hang(self) -> None:
        """Never go on, until the end of the test."""
        future = asyncio.get_running_loop().create_future()
        self._hung.append(future)
        self.reached.set()
        await future

    def block(self) -> None:
        """The same, for a thread."""
        self.reached.set()
        self.thread.wait(PATIENCE * 10)

    def open(self) -> None:
        """Let everything go on."""
        self.thread.set()
        for future in self._hung:
            loop = future.get_loop()
            if not loop.is_closed():
                loop.call_soon_threadsafe(_resolve, future)


def _resolve(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


def run_on(kind: str, main: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run ``main`` to its end, as users of this kind of loop do."""
    match kind:
        case "uvloop":
            with asyncio.Runner(loop_factory=wanted("uvloop").new_event_loop) as runner:
                return runner.run(main())
        case "anyio":
            return wanted("anyio").run(main)  # type: ignore[no-any-return]  # what main returns
        case _:
            return asyncio.run(main())


async def turns(count: int = 20) -> None:
    """Let the loop turn some times."""
    for _ in range(count):
        await asyncio.sleep(0)


async def passing(seconds: float) -> None:
    """Let some time pass, where that is the point."""
    future = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().call_later(seconds, _resolve, future)
    await future


async def eventually(condition: Callable[[], bool]) -> None:
    """Let the loop turn until ``condition`` holds, where nothing tells of the moment."""
    async with asyncio.timeout(PATIENCE):
        while not condition():
            await passing(0.001)


async def within(awaitable: Awaitable[T], seconds: float = PATIENCE) -> T:
    """What it returns; fails when it takes longer, and leaves it where it is."""
    task = asyncio.ensure_future(awaitable)
    done, _ = await asyncio.wait({task}, timeout=seconds)
    assert done, "it never came back"
    return task.result()


def in_thread(action: Callable[[], T]) -> asyncio.Future[T]:
    """Run ``action`` on a daemon thread, so that one that never ends keeps nothing from ending."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def tell(set_it: Callable[[Any], None], what: Any) -> None:
        if not future.done():
            set_it(what)

    def work() -> None:
        try:
            value = action()
        except BaseException as why:
            loop.call_soon_threadsafe(tell, future.set_exception, why)
        else:
            loop.call_soon_threadsafe(tell, future.set_result, value)

    threading.Thread(target=work, daemon=True).start()
    return future


class Beside:
    """A loop that runs in a thread of its own, and can be paused or closed."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread: threading.Thread | None = None
        self.resume()

    def resume(self) -> None:
        """Let it run (again)."""
        running = threading.Event()
        self.loop.call_soon(running.set)
        self._thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self._thread.start()
        assert running.wait(PATIENCE)

    def pause(self) -> None:
        """Let it run no more, but do not close it."""
        assert self._thread is not None
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive()

    def close(self) -> None:
        """End it."""
        if not self.loop.is_closed():
            if self.loop.is_running():
                self.pause()
            self.loop.close()

    def call(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """What ``coroutine`` returns there."""
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(PATIENCE)


class Through:
    """One way to bring a graph up and down: sync verbs, or async ones on some loop."""

    def __init__(self, kind: str, gate: Gate) -> None:
        self.kind = kind
        self._gate = gate

    @property
    def is_async(self) -> bool:
        """Whether the verbs are the async ones."""
        return self.kind != "threads"

    def __call__(self, graph: Graph, body: Callable[[], object] = lambda: None) -> Report:
        """Start, body, teardown; the report."""
        if not self.is_async:
            graph.start()
            body()
            return graph.teardown()

        async def main() -> Report:
            try:
                await graph.astart()
                body()
                return await graph.ateardown()
            finally:
                self._gate.open()
                await turns()

        return run_on(self.kind, main)

    def do(self, sync: Callable[[], T], awaited: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Either way."""
        return run_on(self.kind, awaited) if self.is_async else sync()
