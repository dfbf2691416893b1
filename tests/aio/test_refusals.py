"""Verbs that would block the loop they are called on, or cannot work from it: a clear error with the cure, never a hang."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from lifegraph import (
    Graph,
    GraphClosingError,
    GraphStateError,
    PoisonedError,
    ReentrantTeardownError,
    StartError,
    resource,
)
from tests.aio.conftest import Run
from tests.aio.looping import Gate, Through, eventually, in_thread, passing, turns, within
from tests.graph.world import Elsewhere, fates


@resource
async def generator() -> AsyncIterator[int]:
    """Lives on a loop."""
    yield 1


@resource
class Hooks:
    """Its constructor is sync, its stop lives on a loop."""

    async def aclose(self) -> None:
        """Stop."""


@resource(lane="loop")
class Lane:
    """Sync, but on a loop."""


@contextlib.asynccontextmanager
async def manager() -> AsyncIterator[int]:
    """Lives on a loop."""
    yield 1


VERBS: dict[str, tuple[Callable[[Graph], object], str]] = {
    "start": (lambda graph: graph.start(), "astart"),
    "with": (lambda graph: graph.__enter__(), "async with"),
    "create": (lambda graph: graph.create(generator, name="more"), "acreate"),
    "enter": (lambda graph: graph.enter(manager(), name="more"), "aenter"),
}


@pytest.mark.parametrize("member", [generator, Hooks, Lane], ids=["generator", "hooks", "lane"])
@pytest.mark.parametrize("verb", VERBS)
def test_sync_verbs_in_a_running_loop(run: Run[Any], verb: str, member: Any) -> None:
    """On a new graph with loop resources a sync verb is one `GraphStateError` that names the async verb; nothing happened."""

    async def main() -> None:
        graph = Graph(member)
        call, cure = VERBS[verb]
        with pytest.raises(GraphStateError) as caught:
            call(graph)
        assert cure in str(caught.value)
        assert "loop" in str(caught.value)
        assert "new" == graph.state
        async with graph:
            assert "running" == graph.state
        assert graph.report is not None
        assert graph.report.ok

    run(main)


def test_sync_teardown_in_a_running_loop(run: Run[Any]) -> None:
    """The same of `teardown` and of leaving ``with``, in a running graph; the async verb then works."""

    async def main() -> None:
        graph = Graph(generator)
        await graph.astart()
        with pytest.raises(GraphStateError) as caught:
            graph.teardown()
        assert "ateardown" in str(caught.value)
        with pytest.raises(GraphStateError) as caught:
            graph.__exit__(None, None, None)
        assert "async with" in str(caught.value) or "ateardown" in str(caught.value)
        assert "running" == graph.state
        assert (await graph.ateardown()).ok

    run(main)


def test_sync_verbs_that_bring_a_loop_resource_in(run: Run[Any]) -> None:
    """In a running graph `add` and `create` of something that pulls a loop resource in are refused, with the cure."""

    async def main() -> None:
        @resource(depends_on=[generator])
        class Top:
            pass

        async with Graph() as graph:
            for verb, call in {"aadd": lambda: graph.add(Top), "acreate": lambda: graph.create(Top)}.items():
                with pytest.raises(GraphStateError) as caught:
                    call()
                assert verb in str(caught.value)
                assert [] == list(graph)
            await graph.aadd(Top)
            assert {"Top", "generator"} == set(graph)

    run(main)


def test_a_def_hook_that_turns_out_to_be_async(run: Run[Any]) -> None:
    """A live object whose stop is a lambda for a coroutine lives on the loop where it was added: a sync teardown called
    there is an error or ends in bounded time, never a deadlock."""

    async def main() -> None:
        class Client:
            async def aclose(self) -> None:
                await asyncio.sleep(0)

        graph = Graph(stop_timeout=1)
        graph.add(Client(), stop=lambda client: client.aclose())
        refused: list[str] = []
        try:
            graph.teardown()
        except GraphStateError as why:
            refused.append(str(why))
        report = await within(graph.ateardown())
        assert report.ok == bool(refused)
        assert all("ateardown" in text for text in refused)

    run(main)


def test_a_graph_without_loop_resources_in_a_running_loop(run: Run[Any]) -> None:
    """Sync verbs on a purely sync graph work in a running loop, as in the cell of a notebook."""

    async def main() -> None:
        log: list[str] = []

        @resource
        class Sync:
            def stop(self) -> None:
                log.append("stopped")

        with Graph(Sync):
            pass
        assert ["stopped"] == log

    run(main)


def test_sync_verbs_from_a_thread_beside_a_loop(run: Run[Any]) -> None:
    """What is refused on the loop works in `asyncio.to_thread`."""

    async def main() -> None:
        graph = Graph(generator)
        await asyncio.to_thread(graph.start)
        assert (await asyncio.to_thread(graph.teardown)).ok

    run(main)


@pytest.mark.parametrize("verb", ["astart", "async with", "acreate", "aenter", "aadd", "ateardown"])
def test_the_callers_lane_is_refused_by_async_verbs(run: Run[Any], verb: str) -> None:
    """An async verb has no thread to lend: a member on the caller's lane is refused, with the cure, before anything."""

    async def main() -> None:
        made: list[str] = []

        @resource(lane="caller")
        class Lent:
            def __init__(self) -> None:
                made.append("made")

            def stop(self) -> None:
                made.append("stopped")

        @contextlib.contextmanager
        def lent() -> Any:
            made.append("made")
            yield

        graph = Graph()
        with pytest.raises(GraphStateError) as caught:
            match verb:
                case "astart":
                    graph.add(Lent)
                    await graph.astart()
                case "async with":
                    graph.add(Lent)
                    async with graph:
                        raise AssertionError
                case "acreate":
                    await graph.acreate(Lent)
                case "aenter":
                    await graph.aenter(lent(), lane="caller")
                case "aadd":
                    await graph.astart()
                    await graph.aadd(Lent)
                case "ateardown":
                    await in_thread(lambda: graph.create(Lent))
                    made.clear()
                    await graph.ateardown()
        assert "caller" in str(caught.value)
        assert [] == made
        if verb == "ateardown":
            assert (await in_thread(graph.teardown)).ok

    run(main)


def test_the_callers_lane_pulled_in(run: Run[Any]) -> None:
    """A member on the caller's lane that is pulled in by what `aadd` or `acreate` brings is refused too, and nothing hangs."""

    async def main() -> None:
        @resource(lane="caller")
        class Lent:
            pass

        @resource(depends_on=[Lent])
        class Top:
            pass

        async with Graph() as graph:
            with pytest.raises(GraphStateError):
                await within(graph.aadd(Top), 5)
            with pytest.raises(GraphStateError):
                await within(graph.acreate(Top), 5)
            assert [] == list(graph)

    run(main)


@pytest.mark.parametrize("how", ["thread", "hook"])
def test_the_callers_lane_joins_an_async_start(run: Run[Any], gate: Gate, how: str) -> None:
    """Something on the caller's lane that joins an ``astart`` from a thread is refused or runs there: neither hangs."""

    async def main() -> None:
        inside = threading.Event()
        told: list[Any] = []

        @resource(lane="caller")
        class Lent:
            pass

        def join() -> None:
            try:
                told.append(graph.create(Lent))
            except GraphStateError as why:
                told.append(why)

        @resource
        class Slow:
            def __init__(self) -> None:
                inside.set()
                gate.block()

            def start(self) -> None:
                if how == "hook":
                    join()

        graph = Graph(Slow)
        start = asyncio.ensure_future(graph.astart())
        await eventually(inside.is_set)
        joined = in_thread(join) if how == "thread" else None
        await passing(0.05)
        gate.open()
        await within(start, 5)
        if joined is not None:
            await within(joined, 5)
        assert 1 == len(told)
        assert isinstance(told[0], Lent | GraphStateError)
        if isinstance(told[0], GraphStateError):
            assert (await within(graph.ateardown())).ok
        else:
            assert (await within(in_thread(graph.teardown))).ok

    run(main)


@pytest.mark.parametrize("where", ["start", "stop"])
@pytest.mark.parametrize("form", ["async hook", "sync hook", "generator", "sync teardown in an async hook"])
def test_teardown_from_a_hook(through: Through, form: str, where: str) -> None:
    """A hook of the graph, on whichever lane, that asks for the graph's teardown is told at once."""
    errors: list[BaseException] = []

    async def ask() -> None:
        with pytest.raises(ReentrantTeardownError) as caught:
            await graph.ateardown()
        errors.append(caught.value)

    def ask_sync() -> None:
        with pytest.raises(ReentrantTeardownError) as caught:
            graph.teardown()
        errors.append(caught.value)

    class AsyncHook:
        async def start(self) -> None:
            await asyncio.sleep(0)
            if where == "start":
                await ask()

        async def stop(self) -> None:
            await asyncio.sleep(0)
            if where == "stop":
                await ask()

    class SyncHook:
        def start(self) -> None:
            if where == "start":
                ask_sync()

        def stop(self) -> None:
            if where == "stop":
                ask_sync()

    class Crossed:
        async def start(self) -> None:
            if where == "start":
                ask_sync()

        async def stop(self) -> None:
            if where == "stop":
                ask_sync()

    async def member() -> AsyncIterator[int]:
        if where == "start":
            await ask()
        yield 1
        if where == "stop":
            await ask()

    kinds = {
        "async hook": AsyncHook,
        "sync hook": SyncHook,
        "generator": member,
        "sync teardown in an async hook": Crossed,
    }
    graph = Graph(resource(kinds[form]))
    assert through(graph).ok
    assert 1 == len(errors)


def test_async_verbs_after_the_end(run: Run[Any]) -> None:
    """Once the door is closed the async verbs raise `GraphClosingError`, like the sync ones."""

    async def main() -> None:
        graph = Graph(generator)
        async with graph:
            pass
        with pytest.raises(GraphClosingError):
            await graph.aadd(Hooks)
        with pytest.raises(GraphClosingError):
            await graph.acreate(Hooks)
        with pytest.raises(GraphClosingError):
            await graph.aenter(manager())
        assert await graph.ateardown() is graph.report

    run(main)


def test_async_verbs_while_closing(run: Run[Any], gate: Gate) -> None:
    """The same while the teardown runs."""

    async def main() -> None:
        class Hangs:
            async def stop(self) -> None:
                await gate.hang()

        graph = Graph(stop_timeout=None)
        graph.add(Hangs(), stop="stop")
        await graph.astart()
        teardown = asyncio.ensure_future(graph.ateardown())
        await eventually(gate.reached.is_set)
        with pytest.raises(GraphClosingError):
            await within(graph.acreate(generator))
        with pytest.raises(GraphClosingError):
            await within(graph.astart())
        gate.open()
        assert (await within(teardown)).ok

    run(main)


def test_building_on_what_is_held(run: Run[Any], gate: Gate) -> None:
    """`acreate` on something whose start hung is a `PoisonedError`."""

    async def main() -> None:
        async def hangs() -> AsyncIterator[int]:
            await gate.hang()
            yield 1

        async with contextlib.AsyncExitStack() as stack:
            graph = Graph()
            await graph.astart()
            with pytest.raises(StartError):
                await graph.acreate(hangs, start_timeout=0.1, name="hangs")
            assert "hangs" in graph
            with pytest.raises(PoisonedError):
                await graph.acreate(generator, depends_on=["hangs"])
            stack.callback(lambda: None)
        report = await graph.ateardown()
        assert {"hangs": "timed_out"} == fates(report)

    run(main)


def test_needing_what_is_not_up(run: Run[Any]) -> None:
    """In a new graph `acreate` needs dependencies that are up: else `GraphStateError`."""

    async def main() -> None:
        graph = Graph(generator)
        with pytest.raises(GraphStateError) as caught:
            await graph.acreate(Hooks, depends_on=[generator])
        assert "not up" in str(caught.value)
        await graph.astart()
        await graph.acreate(Hooks, depends_on=[generator])
        assert (await graph.ateardown()).ok

    run(main)


@pytest.mark.parametrize("verb", ["astart", "acreate", "aadd", "ateardown"])
def test_an_async_verb_without_a_loop_of_asyncio(verb: str) -> None:
    """Awaiting a verb where no loop of asyncio runs (under trio, say) is an error that leaves the graph as it was."""
    graph = Graph()
    if verb in ("aadd", "ateardown"):
        graph.start()
    state = graph.state
    match verb:
        case "astart":
            graph.add(Hooks)
            coroutine: Any = graph.astart()
        case "acreate":
            coroutine = graph.acreate(generator)
        case "aadd":
            coroutine = graph.aadd(generator)
        case _:
            graph.create(Hooks)
            coroutine = graph.ateardown()
    with pytest.raises((RuntimeError, GraphStateError)):
        coroutine.send(None)
    coroutine.close()
    assert state == graph.state
    members = set(graph)
    Elsewhere(graph.start).result()
    assert members <= {"Hooks"}
    assert Elsewhere(graph.teardown).result().ok


def test_a_verb_that_waits_for_its_own_resource(run: Run[Any]) -> None:
    """In an async start hook, a verb that would wait for that very resource raises `GraphStateError`."""

    async def main() -> None:
        seen: list[BaseException] = []

        class Itself:
            async def start(self) -> None:
                with pytest.raises(GraphStateError) as caught:
                    await graph.acreate(generator, depends_on=["itself"])
                seen.append(caught.value)
                with pytest.raises(GraphStateError) as caught:
                    await graph.astart()
                seen.append(caught.value)

            async def stop(self) -> None:
                await turns()

        graph = Graph()
        graph.add(resource(Itself), name="itself")
        await within(graph.astart())
        assert 2 == len(seen)
        assert (await within(graph.ateardown())).ok

    run(main)
