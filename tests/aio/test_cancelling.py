"""Cancelling a verb: a start is called off, a teardown is hurried; both are complete, and the cancellation comes after."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from lifegraph import Graph, GraphClosingError, resource
from tests.aio.conftest import Run, run_child
from tests.aio.looping import Gate, eventually, in_thread, passing, turns, wanted, within
from tests.conftest import Child
from tests.graph.world import fates, raises


def hanging(gate: Gate, log: list[str]) -> list[Any]:
    """``base`` under ``hangs`` (async) and ``blocks`` (sync), which stop never; ``order`` after them."""

    @resource
    async def base() -> AsyncIterator[int]:
        yield 1
        log.append("base left")

    @resource(depends_on=[base], name="hangs")
    class Hangs:
        async def stop(self) -> None:
            log.append("hangs stops")
            try:
                await gate.hang()
            except BaseException as why:
                log.append(repr(why))
                raise

    @resource(depends_on=[base], name="blocks")
    class Blocks:
        def stop(self) -> None:
            log.append("blocks stops")
            gate.block()

    @resource
    async def free() -> AsyncIterator[int]:
        yield 1
        log.append("free left")

    return [base, Hangs, Blocks, free]


HURRIED = {"base": "poisoned", "hangs": "timed_out", "blocks": "timed_out", "free": "released"}


def all_stopping(log: list[str]) -> bool:
    """Whether everything that can stop has begun to."""
    return {"hangs stops", "blocks stops", "free left"} <= set(log)


def test_cancelling_a_teardown_hurries_it(run: Run[Any], gate: Gate) -> None:
    """What runs is given up, the report is complete, no hook is cancelled, and CancelledError is raised at the end."""

    async def main() -> None:
        log: list[str] = []
        graph = Graph(*hanging(gate, log), stop_timeout=100)
        await graph.astart()
        task = asyncio.ensure_future(graph.ateardown())
        await eventually(lambda: all_stopping(log))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await within(task, 5)
        assert HURRIED == fates(graph.report)
        assert 3 == len(log)
        assert "closed" == graph.state

    run(main)


def test_cancelling_again_and_again(run: Run[Any], gate: Gate) -> None:
    """However often it is cancelled, the teardown is complete."""

    async def main() -> None:
        log: list[str] = []
        graph = Graph(*hanging(gate, log), stop_timeout=100)
        await graph.astart()
        task = asyncio.ensure_future(graph.ateardown())
        await eventually(lambda: all_stopping(log))
        while not task.done():
            task.cancel()
            await asyncio.sleep(0)
        assert task.cancelled()
        assert HURRIED == fates(graph.report)

    run(main)


def test_a_cancellation_before_the_first_step(run: Run[Any]) -> None:
    """A teardown whose task was cancelled before it began did not begin: the next one does it all."""

    async def main() -> None:
        log: list[str] = []

        @resource
        async def member() -> AsyncIterator[int]:
            yield 1
            log.append("left")

        graph = Graph(member)
        await graph.astart()
        task = asyncio.ensure_future(graph.ateardown())
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        report = await graph.ateardown()
        assert {"member": "released"} == fates(report)

    run(main)


def test_in_a_scope_that_was_cancelled_before(run: Run[Any]) -> None:
    """In an anyio scope that is cancelled already a teardown is shielded, and nothing is hurried."""
    anyio = wanted("anyio")

    async def main() -> None:
        log: list[str] = []

        @resource
        async def base() -> AsyncIterator[int]:
            yield 1
            await turns(50)
            log.append("base left")

        @resource(depends_on=[base])
        class Top:
            async def stop(self) -> None:
                await turns(50)
                log.append("top stopped")

        @resource
        class Sync:
            def stop(self) -> None:
                log.append("sync stopped")

        graph = Graph(Top, Sync)
        await graph.astart()
        with anyio.CancelScope() as scope:
            scope.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asyncio.sleep(0)
            report = await within_scope(graph)
        assert {"base": "released", "Top": "released", "Sync": "released"} == fates(report)
        assert 3 == len(log)
        with anyio.CancelScope() as scope:
            scope.cancel()
            async with Graph() as second:
                pass
        assert "closed" == second.state or "new" == second.state

    async def within_scope(graph: Graph) -> Any:
        try:
            return await graph.ateardown()
        except asyncio.CancelledError:
            return graph.report

    run(main)


def test_async_with_in_a_scope_that_is_cancelled_in_its_body(run: Run[Any]) -> None:
    """A body ended by its anyio scope is followed by a whole teardown: nothing is skipped, nothing hurried."""
    anyio = wanted("anyio")

    async def main() -> None:
        log: list[str] = []

        @resource
        async def base() -> AsyncIterator[int]:
            yield 1
            await passing(0.02)
            log.append("base left")

        @resource(depends_on=[base])
        class Top:
            async def stop(self) -> None:
                await passing(0.02)
                log.append("top stopped")

        graph = Graph(Top)
        with anyio.move_on_after(0.05) as scope:
            async with graph:
                await anyio.sleep_forever()
        assert scope.cancelled_caught
        assert ["top stopped", "base left"] == log
        assert graph.report is not None
        assert graph.report.ok

    run(main)


def test_in_a_scope_that_is_cancelled_meanwhile(run: Run[Any], gate: Gate) -> None:
    """An anyio scope that is cancelled during the teardown hurries it; it is complete, and the scope catches its own."""
    anyio = wanted("anyio")

    async def main() -> None:
        log: list[str] = []
        graph = Graph(*hanging(gate, log), stop_timeout=100)
        await graph.astart()

        async def cancel() -> None:
            await eventually(lambda: all_stopping(log))
            scope.cancel()

        canceller = asyncio.ensure_future(cancel())
        with anyio.fail_after(20), anyio.CancelScope() as scope:
            await graph.ateardown()
            log.append("went on")
        assert scope.cancelled_caught
        assert HURRIED == fates(graph.report)
        assert "went on" not in log
        await canceller

    run(main)


def test_a_deadline_of_anyio(run: Run[Any], gate: Gate) -> None:
    """``fail_after`` around a teardown hurries it at its deadline, and then raises TimeoutError."""
    anyio = wanted("anyio")

    async def main() -> None:
        log: list[str] = []
        graph = Graph(*hanging(gate, log), stop_timeout=100)
        await graph.astart()
        with pytest.raises(TimeoutError), anyio.fail_after(0.2):
            await graph.ateardown()
        assert HURRIED == fates(graph.report)

    run(main)


def test_a_timeout_around_async_with(run: Run[Any], gate: Gate) -> None:
    """`asyncio.timeout` around a graph: it ends the body, or hurries the teardown; both end with TimeoutError."""

    async def main() -> None:
        log: list[str] = []
        graph = Graph(*hanging(gate, log), stop_timeout=100)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.3):
                async with graph:
                    pass
        assert HURRIED == fates(graph.report)

        @resource
        async def member() -> AsyncIterator[int]:
            yield 1
            await turns(50)

        second = Graph(member)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                async with second:
                    await asyncio.get_running_loop().create_future()
        assert {"member": "released"} == fates(second.report)

    run(main)


def test_uncancelled_when_done(run: Run[Any], gate: Gate) -> None:
    """A task that survives the timeout around its teardown is not left half cancelled."""

    async def main() -> None:
        log: list[str] = []
        graph = Graph(*hanging(gate, log), stop_timeout=100)
        await graph.astart()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await graph.ateardown()
        task = asyncio.current_task()
        assert task is not None
        assert 0 == task.cancelling()
        await asyncio.sleep(0)
        async with asyncio.timeout(10):
            await asyncio.sleep(0)

    run(main)


def test_cancelling_a_start_calls_it_off(run: Run[Any], gate: Gate) -> None:
    """What is starting may finish, nothing more begins, what is up is torn down, and CancelledError is raised."""

    async def main() -> None:
        log: list[str] = []
        go = asyncio.Event()

        @resource
        async def base() -> AsyncIterator[int]:
            log.append("base up")
            yield 1
            log.append("base left")

        @resource(depends_on=[base])
        async def middle() -> AsyncIterator[int]:
            log.append("middle starts")
            await go.wait()
            yield 1
            log.append("middle left")

        @resource(depends_on=[middle])
        async def top() -> AsyncIterator[int]:
            log.append("never")
            yield 1

        graph = Graph(top)
        task = asyncio.ensure_future(graph.astart())
        await eventually(lambda: "middle starts" in log)
        task.cancel()
        await turns()
        go.set()
        with pytest.raises(asyncio.CancelledError):
            await within(task)
        assert ["base up", "middle starts", "middle left", "base left"] == log
        assert {"base": "released", "middle": "released", "top": "skipped"} == fates(graph.report)
        assert "closed" == graph.state

    run(main)


def test_cancelling_a_start_that_hangs(run: Run[Any], gate: Gate) -> None:
    """A start that hangs is given up at its limit after a cancellation, or at once after a second one."""

    async def main() -> None:
        log: list[str] = []

        @resource
        async def base() -> AsyncIterator[int]:
            yield 1
            log.append("base left")

        @resource(depends_on=[base])
        async def hangs() -> AsyncIterator[int]:
            log.append("hangs starts")
            await gate.hang()
            yield 1

        graph = Graph(hangs, start_timeout=100)
        task = asyncio.ensure_future(graph.astart())
        await eventually(lambda: "hangs starts" in log)
        task.cancel()
        await turns()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await within(task)
        assert {"base": "poisoned", "hangs": "timed_out"} == fates(graph.report)

    run(main)


def test_a_timeout_around_a_start(run: Run[Any]) -> None:
    """`asyncio.timeout` around ``astart`` ends with TimeoutError, and nothing is left up."""

    async def main() -> None:
        log: list[str] = []

        @resource
        async def base() -> AsyncIterator[int]:
            yield 1
            log.append("base left")

        @resource(depends_on=[base])
        class Slow:
            async def start(self) -> None:
                await passing(0.2)

            async def stop(self) -> None:
                log.append("slow stopped")

        graph = Graph(Slow)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                async with graph:
                    raise AssertionError
        assert ["slow stopped", "base left"] == log
        assert {"base": "released", "Slow": "released"} == fates(graph.report)

    run(main)


def test_cancelling_a_verb_of_a_running_graph(run: Run[Any]) -> None:
    """A cancelled ``acreate`` takes back what it brought in, and raises CancelledError; the graph runs on."""

    async def main() -> None:
        log: list[str] = []
        inside, go = asyncio.Event(), asyncio.Event()

        async def member() -> AsyncIterator[int]:
            inside.set()
            await go.wait()
            yield 1
            log.append("left")

        async with Graph() as graph:
            task = asyncio.ensure_future(graph.acreate(member))
            await inside.wait()
            task.cancel()
            await turns()
            go.set()
            with pytest.raises(asyncio.CancelledError):
                await within(task)
            assert ["left"] == log
            assert "running" == graph.state
            assert "member" not in graph
            go.set()
            assert 1 == await graph.acreate(member, name="again")

    run(main)


def test_a_scope_around_a_start(run: Run[Any]) -> None:
    """An anyio scope that is cancelled during a start calls it off without spinning; all is torn down."""
    anyio = wanted("anyio")

    async def main() -> None:
        log: list[str] = []

        @resource
        async def base() -> AsyncIterator[int]:
            yield 1
            await passing(0.02)
            log.append("base left")

        @resource(depends_on=[base])
        class Slow:
            async def start(self) -> None:
                await passing(0.2)

            async def stop(self) -> None:
                await passing(0.02)
                log.append("slow stopped")

        graph = Graph(Slow)
        with anyio.move_on_after(0.05) as scope:
            await graph.astart()
        assert scope.cancelled_caught
        assert ["slow stopped", "base left"] == log
        assert {"base": "released", "Slow": "released"} == fates(graph.report)

    run(main)


def test_a_teardown_during_a_start(run: Run[Any]) -> None:
    """A teardown asked for during a start calls it off; the start raises `GraphClosingError` with the same report."""

    async def main() -> None:
        inside, go = asyncio.Event(), asyncio.Event()

        @resource
        async def member() -> AsyncIterator[int]:
            inside.set()
            await go.wait()
            yield 1

        @resource(depends_on=[member])
        async def top() -> AsyncIterator[int]:
            raises(AssertionError())()
            yield 1

        graph = Graph(top)
        start = asyncio.ensure_future(graph.astart())
        await inside.wait()
        teardown = asyncio.ensure_future(graph.ateardown())
        from_thread = in_thread(graph.teardown)
        await turns()
        go.set()
        report = await within(teardown)
        assert report is await within(from_thread)
        with pytest.raises(GraphClosingError) as caught:
            await within(start)
        assert report is caught.value.report
        assert {"member": "released", "top": "skipped"} == fates(report)

    run(main)


def test_the_loops_own_cancellation_of_main(gate: Gate) -> None:
    """The end of ``asyncio.run`` cancels a teardown that somebody left running: it is hurried, and complete."""
    log: list[str] = []
    graph = Graph(*hanging(gate, log), stop_timeout=100)

    async def main() -> None:
        await graph.astart()
        graph_task.append(asyncio.ensure_future(graph.ateardown()))
        await eventually(lambda: all_stopping(log))

    graph_task: list[Any] = []
    asyncio.run(main())
    assert graph_task[0].cancelled()
    assert HURRIED == fates(graph.report)


CTRL_C = """
import asyncio, os, signal, sys, threading
from lifegraph import Graph, resource
kind, where = sys.argv[1:3]

@resource
async def base():
    yield 1
    print("base left")

@resource(depends_on=[base])
class Hangs:
    async def stop(self):
        if where == "teardown":
            kill(); await asyncio.get_running_loop().create_future()
        print("top stopped")
    async def start(self):
        if where == "start": kill(); await asyncio.sleep(0.1)

def kill():
    threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()

graph = Graph(Hangs, stop_timeout=100)
async def main():
    async with graph:
        if where == "body": kill(); await asyncio.get_running_loop().create_future()
        elif where == "start": await asyncio.get_running_loop().create_future()
try:
    if kind == "uvloop":
        import uvloop
        uvloop.run(main())
    elif kind == "anyio":
        import anyio
        anyio.run(main)
    else:
        asyncio.run(main())
except KeyboardInterrupt:
    print("KeyboardInterrupt", graph.state, *(f"{n}={f}" for n, f in graph.report.fates.items()), flush=True)
"""


@pytest.mark.parametrize("kind", ["asyncio", "uvloop", "anyio"])
@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("teardown", "KeyboardInterrupt closed Hangs=timed_out base=poisoned\n"),
        ("body", "top stopped\nbase left\nKeyboardInterrupt closed Hangs=released base=released\n"),
        ("start", "top stopped\nbase left\nKeyboardInterrupt closed Hangs=released base=released\n"),
    ],
)
def test_ctrl_c(loop_child: Child, kind: str, where: str, expected: str) -> None:
    """Ctrl-C cancels the main task: in a teardown that is a hurry, elsewhere a whole teardown follows."""
    done = run_child(loop_child, CTRL_C, kind, where, timeout=30)
    assert sorted(expected.split()) == sorted(done.stdout.split()), done.stderr
