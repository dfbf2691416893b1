"""One host task and one Context for each async resource: it is entered, lives and is left there."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextvars import ContextVar, Token
from typing import Any

import pytest

from lifegraph import Graph, resource
from tests.aio.conftest import Run
from tests.aio.looping import Gate, Through, eventually, in_thread, passing, turns, wanted, within
from tests.graph.world import fates

VARIABLE: ContextVar[str] = ContextVar("VARIABLE", default="unset")


def test_one_task_from_enter_to_leave(through: Through) -> None:
    """``current_task()`` is the same when a resource is entered and left, and no two resources share one."""
    tasks: dict[str, list[Any]] = {}

    def see(name: str) -> None:
        tasks.setdefault(name, []).append(asyncio.current_task())

    @resource
    async def generator() -> AsyncIterator[int]:
        see("generator")
        yield 1
        see("generator")

    @resource(depends_on=[generator])
    class Hooks:
        async def start(self) -> None:
            see("hooks")

        async def stop(self) -> None:
            see("hooks")

    @resource(lane="loop", depends_on=[Hooks])
    class Lane:
        def __init__(self) -> None:
            see("lane")

        def start(self) -> None:
            see("lane")

        def stop(self) -> None:
            see("lane")

    async def leave(_: object) -> None:
        see("factory")

    @resource(stop=leave)
    async def factory() -> int:
        see("factory")
        return 1

    class Manager:
        async def __aenter__(self) -> None:
            see("manager")

        async def __aexit__(self, *what: object) -> None:
            see("manager")

    graph = Graph(generator, Hooks, Lane, factory)
    if through.is_async:

        async def main() -> None:
            await graph.aenter(Manager())
            async with graph:
                pass

        through.do(lambda: None, main)
    else:
        graph.enter(Manager())
        assert through(graph).ok
    for name, seen in tasks.items():
        assert None not in seen
        assert 1 == len(set(map(id, seen))), name
    assert 5 == len({id(seen[0]) for seen in tasks.values()})


def test_tokens_are_reset_where_they_were_set(through: Through) -> None:
    """A ContextVar token made when a resource is entered can be reset when it is left."""
    values: list[str] = []

    @resource
    async def generator() -> AsyncIterator[int]:
        token = VARIABLE.set("generator")
        yield 1
        values.append(VARIABLE.get())
        VARIABLE.reset(token)

    @resource(depends_on=[generator])
    class Hooks:
        token: Token[str]

        async def start(self) -> None:
            self.token = VARIABLE.set("hooks")

        async def stop(self) -> None:
            values.append(VARIABLE.get())
            VARIABLE.reset(self.token)

    @resource(depends_on=[Hooks], lane="loop")
    class Lane:
        def __init__(self) -> None:
            self.token = VARIABLE.set("lane")

        def stop(self) -> None:
            values.append(VARIABLE.get())
            VARIABLE.reset(self.token)

    @resource(depends_on=[Lane])
    def sync_generator() -> Iterator[int]:
        token = VARIABLE.set("sync generator")
        yield 1
        values.append(VARIABLE.get())
        VARIABLE.reset(token)

    report = through(Graph(sync_generator))
    assert {"generator", "Hooks", "Lane", "sync_generator"} == set(report.released)
    assert ["sync generator", "lane", "hooks", "generator"] == values


def test_each_has_a_copy_of_the_callers_context(through: Through) -> None:
    """Every async resource sees what the caller of the verb had set, and nothing that other resources set."""
    seen: dict[str, str] = {}

    def see(name: str) -> None:
        seen[name] = VARIABLE.get()
        VARIABLE.set(name)

    @resource
    async def first() -> AsyncIterator[int]:
        see("first")
        yield 1

    @resource(depends_on=[first])
    async def second() -> AsyncIterator[int]:
        see("second")
        yield 1

    @resource(depends_on=[second])
    class Sync:
        def __init__(self) -> None:
            see("sync")

    @resource(depends_on=[Sync])
    async def last() -> AsyncIterator[int]:
        see("last")
        yield 1

    @resource(depends_on=[last])
    class Hooks:
        async def start(self) -> None:
            see("hooks")

    graph = Graph(Hooks)

    async def main() -> None:
        VARIABLE.set("caller")
        async with graph:
            assert "caller" == VARIABLE.get()

    def sync() -> None:
        token = VARIABLE.set("caller")
        with graph:
            assert "caller" == VARIABLE.get()
        VARIABLE.reset(token)

    through.do(sync, main)
    assert dict.fromkeys(("first", "second", "sync", "last", "hooks"), "caller") == seen


def test_timeout_held_open(run: Run[Any]) -> None:
    """`asyncio.timeout` may be entered when a resource is, and left when it is left."""

    async def main() -> None:
        async def generator() -> AsyncIterator[int]:
            async with asyncio.timeout(100) as limit:
                yield 1
                assert not limit.expired()

        class Hooks:
            async def start(self) -> None:
                self.limit = asyncio.timeout(100)
                await self.limit.__aenter__()

            async def stop(self) -> None:
                await self.limit.__aexit__(None, None, None)

        async with Graph() as graph:
            await graph.acreate(generator)
            await graph.acreate(resource(Hooks))

    run(main)


def test_task_group_held_open(through: Through) -> None:
    """An `asyncio.TaskGroup` may be held open in a generator, or from start to stop; leaving waits for its tasks."""
    log: list[str] = []

    async def child(stop: asyncio.Event, word: str) -> None:
        await stop.wait()
        log.append(word)

    @resource
    async def generator() -> AsyncIterator[int]:
        stop = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            group.create_task(child(stop, "generator's"))
            yield 1
            stop.set()

    @resource(depends_on=[generator])
    class Hooks:
        async def start(self) -> None:
            self.event, self.group = asyncio.Event(), asyncio.TaskGroup()
            await self.group.__aenter__()
            self.group.create_task(child(self.event, "hooks'"))

        async def stop(self) -> None:
            self.event.set()
            await self.group.__aexit__(None, None, None)

    assert through(Graph(Hooks)).ok
    assert ["hooks'", "generator's"] == log


def test_a_child_of_a_held_task_group_fails(through: Through) -> None:
    """The group cancels its host: the resource stays, leaves at its turn, and its leaving fails with the group's error."""
    log: list[str] = []

    @resource
    async def base() -> AsyncIterator[int]:
        yield 1
        log.append("base left")

    @resource(depends_on=[base])
    async def generator() -> AsyncIterator[Any]:
        async def child() -> None:
            await go.wait()
            raise OSError("child")

        go = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            group.create_task(child())
            yield go.set
            log.append("generator resumed")

    graph = Graph(base, generator)

    class Trigger:
        async def stop(self) -> None:
            graph["generator"]()
            await turns()
            log.append("triggered")

    graph.add(Trigger(), stop="stop", depends_on=[generator])
    report = through(graph)
    assert {"base": "poisoned", "generator": "failed", "Trigger": "released"} == fates(report)
    assert "triggered" == log[0]
    assert "base left" not in log


@pytest.mark.parametrize("shape", ["generator", "hooks"])
def test_anyio_task_group_held_open(through: Through, shape: str) -> None:
    """anyio's task groups and cancel scopes work inside one resource, since it is left in the task that entered it."""
    anyio = wanted("anyio")
    log: list[str] = []

    async def child() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            log.append("child ended")

    @resource
    async def generator() -> AsyncIterator[int]:
        async with anyio.create_task_group() as group:
            group.start_soon(child)
            with anyio.CancelScope():
                yield 1
            group.cancel_scope.cancel()

    @resource
    class Hooks:
        async def start(self) -> None:
            self.group = anyio.create_task_group()
            await self.group.__aenter__()
            self.group.start_soon(child)

        async def stop(self) -> None:
            self.group.cancel_scope.cancel()
            await self.group.__aexit__(None, None, None)

    report = through(Graph(generator if shape == "generator" else Hooks))
    assert report.ok, report.to_text()
    assert ["child ended"] == log


def test_an_anyio_child_that_fails_does_not_spin(run: Run[Any]) -> None:
    """anyio cancels the host again and again: it neither spins nor leaves before its turn; then it fails."""
    anyio = wanted("anyio")

    async def main() -> None:
        log: list[str] = []
        fail = anyio.Event()

        async def child() -> None:
            await fail.wait()
            raise OSError("child")

        async def generator() -> AsyncIterator[int]:
            async with anyio.create_task_group() as group:
                group.start_soon(child)
                yield 1
                log.append("resumed")

        graph = Graph(resource(generator), stop_timeout=5)
        await graph.astart()
        fail.set()
        await turns(200)
        began = time.process_time()
        await passing(0.3)
        assert time.process_time() - began < 0.2, "it spins"
        assert [] == log
        assert "running" == graph.state
        report = await within(graph.ateardown())
        assert {"generator": "failed"} == fates(report)
        assert "resumed" in log
        assert report.seconds < 3

    run(main)


def test_anyio_threads_within_resources(through: Through) -> None:
    """`anyio.to_thread.run_sync` and `asyncio.to_thread` work in async resources, on a private loop as well."""
    anyio = wanted("anyio")

    @resource
    async def generator() -> AsyncIterator[int]:
        assert 4 == await anyio.to_thread.run_sync(lambda: 4)
        assert 5 == await asyncio.to_thread(lambda: 5)
        yield 1
        assert 6 == await anyio.to_thread.run_sync(lambda: 6)

    assert through(Graph(generator)).ok


def test_a_cancellation_of_a_waiting_host_is_noted(run: Run[Any]) -> None:
    """Somebody cancels the task in which a resource lives: it leaves at its turn all the same, and the report notes it."""

    async def main() -> None:
        hosts: list[asyncio.Task[Any]] = []
        log: list[str] = []

        async def generator() -> AsyncIterator[int]:
            task = asyncio.current_task()
            assert task is not None
            hosts.append(task)
            yield 1
            await asyncio.sleep(0)  # a cancellation that is still pending would strike here
            async with asyncio.timeout(100):
                await asyncio.sleep(0)
            log.append("left")

        graph = Graph(resource(generator))
        await graph.astart()
        await turns()
        hosts[0].cancel()
        await turns()
        hosts[0].cancel()
        await turns()
        assert [] == log
        report = await within(graph.ateardown())
        assert ["left"] == log
        assert {"generator": "released"} == fates(report)
        assert any("generator" in note and "cancel" in note for note in report.notes), report.notes

    run(main)


def test_a_timeout_that_expires_while_it_lives(run: Run[Any]) -> None:
    """An `asyncio.timeout` that expires while a resource is up does not end it before its turn."""

    async def main() -> None:
        log: list[str] = []

        async def generator() -> AsyncIterator[Any]:
            async with asyncio.timeout(100) as limit:
                yield limit
                log.append("resumed")
                await asyncio.sleep(0)

        graph = Graph(resource(generator), stop_timeout=5)
        await graph.astart()
        limit = graph["generator"]
        limit.reschedule(asyncio.get_running_loop().time() - 1)
        await eventually(limit.expired)
        assert [] == log
        await within(graph.ateardown())
        assert ["resumed"] == log

    run(main)


def test_a_cancelled_hook_fails_and_nothing_else(run: Run[Any]) -> None:
    """Whoever cancels a host task in the middle of its stop fails that stop."""

    async def main() -> None:
        inside: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        log: list[str] = []

        @resource
        async def base() -> AsyncIterator[int]:
            yield 1
            log.append("base left")

        @resource(depends_on=[base])
        class Top:
            async def stop(self) -> None:
                inside.set_result(asyncio.current_task())
                await asyncio.get_running_loop().create_future()

        @resource
        async def neighbour() -> AsyncIterator[int]:
            yield 1
            log.append("neighbour left")

        graph = Graph(Top, neighbour)
        await graph.astart()
        teardown = asyncio.ensure_future(graph.ateardown())
        (await inside).cancel()
        report = await within(teardown)
        assert {"base": "poisoned", "Top": "failed", "neighbour": "released"} == fates(report)
        assert "CancelledError" == report.outcomes["Top"].error_type
        assert ["neighbour left"] == log

    run(main)


def test_hosts_are_not_among_the_loops_tasks(run: Run[Any]) -> None:
    """A host is out of the loop's registry from birth: nobody's cancel-all reaches it, in its hooks or between them."""

    async def main() -> None:
        seen: list[bool] = []

        def see() -> None:
            task = asyncio.current_task()
            assert task is not None
            seen.append(task in asyncio.all_tasks())

        async def generator() -> AsyncIterator[int]:
            see()
            yield 1
            see()

        class Hooks:
            async def stop(self) -> None:
                see()

        async with Graph() as graph:
            await graph.acreate(generator)
            await graph.acreate(resource(Hooks))
            assert 1 == len(asyncio.all_tasks() - {asyncio.current_task()}) or not (
                asyncio.all_tasks() - {asyncio.current_task()}
            )
        assert [False] * 3 == seen

    run(main)


def test_cancel_all_while_it_is_up(run: Run[Any]) -> None:
    """A cancel-all of somebody's, like the one of `asyncio.run`, leaves the resources where they are."""

    async def main() -> None:
        log: list[str] = []

        async def generator() -> AsyncIterator[int]:
            try:
                yield 1
                log.append("left")
            except BaseException as why:
                log.append(repr(why))
                raise

        graph = Graph(resource(generator))
        await graph.astart()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            if "lifegraph" in task.get_name():
                task.cancel()
        await asyncio.get_running_loop().shutdown_asyncgens()
        await turns()
        assert [] == log
        assert (await graph.ateardown()).ok
        assert ["left"] == log

    run(main)


@pytest.mark.parametrize("how", ["entered", "generator", "hooks"])
def test_nothing_inside_is_known_to_the_loop(run: Run[Any], how: str) -> None:
    """Async generators begun inside a resource (``@asynccontextmanager``) are not the loop's to close either."""

    async def main() -> None:
        log: list[str] = []

        @contextlib.asynccontextmanager
        async def connection() -> AsyncIterator[str]:
            await asyncio.sleep(0)
            try:
                yield "connection"
            finally:
                log.append("closed")

        async def generator() -> AsyncIterator[str]:
            async with connection() as opened:
                yield opened

        class Hooks:
            async def start(self) -> None:
                self.stack = contextlib.AsyncExitStack()
                await asyncio.sleep(0)
                await self.stack.enter_async_context(connection())

            async def stop(self) -> None:
                await self.stack.aclose()

        graph = Graph()
        match how:
            case "entered":
                await graph.aenter(connection())
            case "generator":
                await graph.acreate(generator)
            case "hooks":
                await graph.acreate(resource(Hooks))
        await graph.astart()
        await asyncio.get_running_loop().shutdown_asyncgens()
        await turns()
        assert [] == log, "the end of the loop would have closed it"
        assert (await graph.ateardown()).ok
        assert ["closed"] == log

    run(main)


def test_the_hooks_of_the_loop_are_left_in_place(run: Run[Any]) -> None:
    """Other people's async generators are still known to the loop, also those begun in between."""

    async def main() -> None:
        log: list[str] = []

        async def theirs() -> AsyncIterator[int]:
            try:
                yield 1
                yield 2
            finally:
                log.append("closed")

        async def ours() -> AsyncIterator[int]:
            await turns(3)
            yield 1

        begun = theirs()
        graph = Graph(resource(ours))
        start = asyncio.ensure_future(graph.astart())
        await asyncio.sleep(0)
        await begun.__anext__()
        await start
        second = theirs()
        await second.__anext__()
        await graph.ateardown()
        await asyncio.get_running_loop().shutdown_asyncgens()
        assert ["closed"] * 2 == log

    run(main)


def test_threads_may_tear_down_what_lives_on_a_loop(run: Run[Any]) -> None:
    """A teardown from a thread sends the hooks to the tasks where the resources live."""

    async def main() -> None:
        tasks: list[Any] = []

        async def generator() -> AsyncIterator[int]:
            token = VARIABLE.set("x")
            tasks.append(asyncio.current_task())
            yield 1
            tasks.append(asyncio.current_task())
            VARIABLE.reset(token)

        graph = Graph(resource(generator))
        await graph.astart()
        report = await within(in_thread(graph.teardown))
        assert report.ok
        assert tasks[0] is tasks[1]

    run(main)


def test_task_factories_of_the_loop(gate: Gate) -> None:
    """A loop's own task factory, even one that knows no context, does not come between a resource and its host."""

    async def main() -> None:
        loop = asyncio.get_running_loop()
        loop.set_task_factory(lambda loop, coro: asyncio.Task(coro, loop=loop))
        contexts: list[str] = []

        async def generator() -> AsyncIterator[int]:
            token = VARIABLE.set("x")
            yield 1
            contexts.append(VARIABLE.get())
            VARIABLE.reset(token)

        graph = Graph(resource(generator))
        await within(graph.astart(), 5)
        assert (await within(graph.ateardown(), 5)).ok
        assert ["x"] == contexts

    asyncio.run(main())


@pytest.mark.skipif(not hasattr(asyncio, "eager_task_factory"), reason="eager tasks came with Python 3.12")
def test_eager_tasks(gate: Gate) -> None:
    """Under the eager task factory hooks still know whose they are, and hang without holding anybody up."""

    async def main() -> None:
        asyncio.get_running_loop().set_task_factory(vars(asyncio)["eager_task_factory"])
        left: list[float] = []

        @resource(stop_timeout=0.1)
        class Hangs:
            async def stop(self) -> None:
                await gate.hang()

        @resource(start_timeout=50, depends_on=[Hangs])
        class Asks:
            async def start(self) -> None:
                left.append(graph.time_left())

        graph = Graph(Asks)
        await within(graph.astart())
        report = await within(graph.ateardown())
        assert {"Hangs": "timed_out", "Asks": "released"} == fates(report)
        assert 0 < left[0] <= 50
        gate.open()
        await turns()

    asyncio.run(main())


def test_debug_mode(gate: Gate) -> None:
    """asyncio's debug mode, which checks from which thread a loop is used, has nothing to complain about."""
    log: list[str] = []

    @resource
    async def generator() -> AsyncIterator[int]:
        yield 1
        log.append("left")

    @resource(depends_on=[generator])
    class Sync:
        def stop(self) -> None:
            log.append("stopped")

    async def main() -> None:
        async with Graph(Sync):
            pass

    asyncio.run(main(), debug=True)
    assert ["stopped", "left"] == log


def test_what_a_hook_drops_is_closed(through: Through) -> None:
    """An async generator that a hook leaves half-way is closed by its loop, as anywhere else in asyncio."""
    log: list[str] = []
    closed = threading.Semaphore(0)

    async def stream() -> AsyncIterator[int]:
        try:
            yield 1
            yield 2
        finally:
            await asyncio.sleep(0)
            log.append("closed")
            closed.release()

    async def first() -> None:
        async for _ in stream():
            break

    class Reads:
        async def start(self) -> None:
            await first()
            while not closed.acquire(blocking=False):
                await asyncio.sleep(0)

        async def stop(self) -> None:
            await first()
            while not closed.acquire(blocking=False):
                await asyncio.sleep(0)

    assert through(Graph(resource(Reads), start_timeout=2, stop_timeout=2)).ok
    assert ["closed"] * 2 == log
