"""A resource remembers its loop, and the private loop of sync code ends when nothing on it is unproven."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from lifegraph import Graph, Report, resource
from tests.aio.looping import Beside, Gate, in_thread, passing, turns, wanted, within
from tests.graph.world import Elsewhere, fates, until


class Client:
    """Has sockets on the loop where it was opened, by whatever form it has."""

    loops: list[Any]

    def __init__(self) -> None:
        self.loops = [None]

    async def aclose(self) -> None:
        """Close the sockets."""
        self.loops.append(asyncio.get_running_loop())


FORMS = ("stop only", "start and stop", "generator", "context", "factory", "live", "live by lambda", "live by partial")


def bring(form: str, log: list[Any]) -> Callable[[Graph], Any]:
    """How the client of this form comes into a graph; the loop on which it is closed goes into ``log``."""

    async def close(_: object = None) -> None:
        log.append(asyncio.get_running_loop())

    class StopOnly:
        async def stop(self) -> None:
            await close()

    class Both:
        async def start(self) -> None:
            await asyncio.sleep(0)

        async def stop(self) -> None:
            await close()

    async def generator() -> AsyncIterator[int]:
        yield 1
        await close()

    class Context:
        async def __aenter__(self) -> int:
            return 1

        async def __aexit__(self, *what: object) -> None:
            await close()

    async def factory() -> object:
        return object()

    async def come(graph: Graph) -> None:
        below: dict[str, Any] = {"name": "client", "depends_on": ["base"]}
        match form:
            case "stop only":
                await graph.acreate(resource(StopOnly), **below)
            case "start and stop":
                await graph.acreate(resource(Both), **below)
            case "generator":
                await graph.acreate(generator, **below)
            case "context":
                await graph.aenter(Context(), **below)
            case "factory":
                await graph.acreate(factory, stop=close, **below)
            case "live":
                await graph.aadd(StopOnly(), stop="stop", **below)
            case "live by lambda":
                graph.add(StopOnly(), stop=lambda it: it.stop(), **below)
            case "live by partial":
                graph.add(StopOnly(), stop=lambda it: asyncio.ensure_future(it.stop()), lane="loop", **below)
        await graph.astart()

    return come


def with_base(log: list[Any]) -> Graph:
    """A graph with something below the client, that must not be stopped when the client was not."""
    graph = Graph()

    class Base:
        def stop(self) -> None:
            log.append("base stopped")

    graph.add(Base(), name="base", stop="stop")
    return graph


def down(graph: Graph, how: str) -> Report:
    """Tear down from somewhere else than the loop of the resources."""
    match how:
        case "another loop":
            return asyncio.run(graph.ateardown())
        case "uvloop":
            return wanted("uvloop").run(graph.ateardown())  # type: ignore[no-any-return]  # what a teardown returns
        case "thread":
            return Elsewhere(graph.teardown).result()
        case _:
            return graph.teardown()


HOWS = ("another loop", "uvloop", "thread", "here")


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("form", FORMS)
def test_a_closed_loop(form: str, how: str) -> None:
    """Opened in one `asyncio.run`, torn down under another: it failed, by name and reason; what it uses is poisoned."""
    log: list[Any] = []
    graph = with_base(log)
    asyncio.run(bring(form, log)(graph))
    report = down(graph, how)
    assert [] == log
    assert {"client": "failed", "base": "poisoned"} == fates(report)
    error = str(report.outcomes["client"].error)
    assert "closed" in error
    assert "client" in error
    assert "loop" in error
    assert report.seconds < 2


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("form", FORMS)
def test_a_loop_that_does_not_run(beside: Beside, form: str, how: str) -> None:
    """The same where its loop is not closed, but runs no more: it failed at once, and says so."""
    log: list[Any] = []
    graph = with_base(log)
    beside.call(bring(form, log)(graph))
    beside.pause()
    report = down(graph, how)
    assert [] == log
    assert {"client": "failed", "base": "poisoned"} == fates(report)
    assert "not running" in str(report.outcomes["client"].error)
    assert report.seconds < 2


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("form", FORMS)
def test_a_loop_elsewhere_that_runs(beside: Beside, form: str, how: str) -> None:
    """While its loop runs in its thread, a teardown from anywhere sends the hooks there, and all is released."""
    log: list[Any] = []
    graph = with_base(log)
    beside.call(bring(form, log)(graph))
    report = down(graph, how)
    assert [beside.loop, "base stopped"] == log
    assert report.ok


def test_a_loop_that_stops_before_it_got_the_hook(beside: Beside) -> None:
    """A loop that is stopped for good while a hook is on its way: timed out or failed, never a hang."""
    hanging = threading.Event()

    class Hangs:
        async def stop(self) -> None:
            hanging.set()
            await asyncio.get_running_loop().create_future()

    graph = Graph(stop_timeout=0.5)

    async def come() -> None:
        await graph.aadd(Hangs(), stop="stop")
        await graph.astart()

    beside.call(come())
    teardown = Elsewhere(graph.teardown)
    assert hanging.wait(20)
    beside.close()
    report = teardown.result()
    assert {"Hangs": "timed_out"} == fates(report)


def test_what_is_created_from_a_thread_lives_on_the_graphs_loop() -> None:
    """In a graph opened by ``async with``, async resources brought in by a thread live on that loop."""

    async def main() -> None:
        loops: list[Any] = []

        async def generator() -> AsyncIterator[int]:
            loops.append(asyncio.get_running_loop())
            yield 1
            loops.append(asyncio.get_running_loop())

        class Live:
            async def start(self) -> None:
                loops.append(asyncio.get_running_loop())

            async def stop(self) -> None:
                loops.append(asyncio.get_running_loop())

        async with Graph() as graph:
            await in_thread(lambda: graph.create(generator))
            await in_thread(lambda: graph.add(Live(), start="start", stop="stop"))
        assert [asyncio.get_running_loop()] * 4 == loops

    asyncio.run(main())


def test_a_live_objects_loop_is_where_it_was_added(beside: Beside) -> None:
    """A live object added on one loop is stopped there, though the graph is opened on another."""
    loops: list[Any] = []

    class Live:
        async def stop(self) -> None:
            loops.append(asyncio.get_running_loop())

    graph = Graph()

    async def come() -> None:
        graph.add(Live(), name="there", stop="stop")

    beside.call(come())
    graph.add(Live(), name="graph's", stop="stop", depends_on=["there"])

    async def main() -> None:
        async with graph:
            pass
        loops.append(asyncio.get_running_loop())

    asyncio.run(main())
    assert loops[0] is loops[2]
    assert loops[1] is beside.loop


def private_loop(graph: Graph, *others: Any) -> asyncio.AbstractEventLoop:
    """The loop on which a sync graph's async members live."""
    loops: list[asyncio.AbstractEventLoop] = []

    class Sees:
        async def start(self) -> None:
            loops.append(asyncio.get_running_loop())

        async def stop(self) -> None:
            loops.append(asyncio.get_running_loop())

    graph.add(Sees(), name="sees", start="start", stop="stop")
    for number in range(5):
        graph.add(Sees(), name=f"sees{number}", start="start", stop="stop")
    graph.start()
    assert 1 == len(set(map(id, loops)))
    return loops[0]


def test_the_private_loop_ends_after_the_teardown() -> None:
    """Sync code has one private loop for each graph, from start to teardown; then it is closed."""
    first, second = Graph(), Graph()
    loops = private_loop(first), private_loop(second)
    assert loops[0] is not loops[1]
    assert all(loop.is_running() for loop in loops)
    assert first.teardown().ok
    until(loops[0].is_closed)
    assert loops[1].is_running()
    assert second.teardown().ok
    until(loops[1].is_closed)


@pytest.mark.parametrize("why", ["failed", "hung", "poisoned"])
def test_it_stays_while_something_on_it_is_unproven(gate: Gate, why: str) -> None:
    """With something failed, hung or poisoned on it, the private loop is never stopped."""
    log: list[str] = []

    @resource(name="base")
    async def base() -> AsyncIterator[int]:
        try:
            yield 1
        finally:
            log.append("left")

    class Fails:
        async def stop(self) -> None:
            raise OSError("no")

    class Hangs:
        async def stop(self) -> None:
            await gate.hang()

    class SyncFails:
        def stop(self) -> None:
            raise OSError("no")

    graph = Graph(base, stop_timeout=0.1)
    top = {"failed": Fails, "hung": Hangs, "poisoned": SyncFails}[why]()
    graph.add(top, name="top", stop="stop", depends_on=[base])
    loop = private_loop(graph)
    report = graph.teardown()
    assert {"base", "top"} == {name for name, fate in report.fates.items() if fate != "released"}
    assert not loop.is_closed()
    assert loop.is_running()
    assert asyncio.run_coroutine_threadsafe(turns(), loop).result(20) is None
    assert [] == log


def test_leftover_tasks_on_the_private_loop_are_no_noise(caplog: pytest.LogCaptureFixture) -> None:
    """A task that a released resource left on the private loop is ended with it, as at the end of `asyncio.run`."""
    ended: list[str] = []

    class Leaves:
        async def start(self) -> None:
            async def background() -> None:
                try:
                    await asyncio.get_running_loop().create_future()
                finally:
                    ended.append("background")

            self.task = asyncio.create_task(background())

        async def stop(self) -> None: ...

    graph = Graph()
    graph.add(Leaves(), name="leaves", start="start", stop="stop")
    loop = private_loop(graph)
    assert graph.teardown().ok
    until(loop.is_closed)
    import gc

    del graph
    gc.collect()
    assert ["background"] == ended
    assert [] == [record.getMessage() for record in caplog.records if record.name == "asyncio"]


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt()], ids=lambda error: type(error).__name__)
def test_a_background_task_does_not_end_the_private_loop(error: BaseException) -> None:
    """A task of the user's that raises SystemExit or KeyboardInterrupt there ends itself, and nobody else."""
    raised = threading.Event()

    class Bad:
        async def start(self) -> None:
            async def background() -> None:
                asyncio.get_running_loop().call_soon(raised.set)
                raise error

            self.task = asyncio.create_task(background())

        async def stop(self) -> None:
            await asyncio.sleep(0)

    graph = Graph(stop_timeout=5)
    graph.add(Bad(), name="bad", start="start", stop="stop")
    loop = private_loop(graph)
    assert raised.wait(5), "the loop ended with it"
    report = graph.teardown()  # at that very moment
    assert report.ok, report.to_text()
    until(loop.is_closed)


def test_closing_a_loop_between_an_async_start_and_a_sync_stop(caplog: pytest.LogCaptureFixture) -> None:
    """What needs no loop any more to stop is released though its loop is closed, and nothing complains."""

    class Mixed:
        async def start(self) -> None: ...

        def close(self) -> None: ...

    graph = Graph(resource(Mixed))
    asyncio.run(graph.astart())
    assert graph.teardown().ok
    import gc

    del graph
    gc.collect()
    assert [] == [record.getMessage() for record in caplog.records if record.name == "asyncio"]


def test_start_on_one_thread_teardown_on_another(gate: Gate) -> None:
    """Sync verbs may come from any thread; the private loop is no thread's but its own."""
    loops: list[Any] = []
    graph = Graph()
    Elsewhere(lambda: loops.append(private_loop(graph))).result()
    assert Elsewhere(graph.teardown).result().ok
    until(loops[0].is_closed)


def test_a_graph_for_each_of_many_loops() -> None:
    """Several graphs on several loops at once do not mix."""

    def life() -> bool:
        async def main() -> bool:
            async def generator() -> AsyncIterator[Any]:
                yield asyncio.get_running_loop()
                assert mine is asyncio.get_running_loop()

            mine = asyncio.get_running_loop()
            async with Graph(*[resource(generator)] * 1) as graph:
                return graph["generator"] is mine

        return asyncio.run(main())

    assert [True] * 8 == [each.result() for each in [Elsewhere(life) for _ in range(8)]]


def test_two_graphs_on_one_loop() -> None:
    """They come and go side by side, each with its own hosts."""

    async def main() -> None:
        tasks: list[Any] = []

        async def generator() -> AsyncIterator[int]:
            tasks.append(asyncio.current_task())
            yield 1
            await turns()

        graphs = [Graph(resource(generator), name=f"g{n}") for n in range(3)]
        await asyncio.gather(*[graph.astart() for graph in graphs])
        reports = await asyncio.gather(*[graph.ateardown() for graph in graphs])
        assert all(report.ok for report in reports)
        assert 3 == len(set(map(id, tasks)))

    asyncio.run(main())


def test_a_teardown_on_another_loop_does_not_block_it(beside: Beside) -> None:
    """While the hooks run on their loop, the loop that waits for them turns."""
    log: list[str] = []
    graph = Graph()

    async def come() -> None:
        go = asyncio.Event()

        class Slow:
            async def stop(self) -> None:
                log.append("stopping")
                await go.wait()

        await graph.aadd(Slow(), stop="stop")
        await graph.astart()
        goes.append(lambda: beside.loop.call_soon_threadsafe(go.set))

    goes: list[Callable[[], object]] = []
    beside.call(come())

    async def main() -> None:
        teardown = asyncio.ensure_future(graph.ateardown())
        while "stopping" not in log:
            await passing(0.001)
        await turns()
        goes[0]()
        assert (await within(teardown)).ok

    asyncio.run(main())
