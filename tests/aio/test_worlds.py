"""Every form of resource, in both worlds: async verbs on the caller's loop, sync verbs with a private one."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextvars import ContextVar
from typing import Any

import pytest

from lifegraph import Graph, StartError, TeardownError, order_only, resource
from tests.aio.conftest import Run
from tests.aio.looping import Gate, Through, in_thread, turns, within
from tests.graph.world import World, fates, raises, until


class Recorder:
    """A resource of which each hook is async, and records on which thread, loop and task it ran."""

    def __init__(self) -> None:
        self.places: dict[str, tuple[int, asyncio.AbstractEventLoop, Any]] = {}

    def see(self, what: str) -> None:
        """Note where we are."""
        self.places[what] = (threading.get_ident(), asyncio.get_running_loop(), asyncio.current_task())

    async def start(self) -> None:
        """Come up."""
        await asyncio.sleep(0)
        self.see("start")

    async def stop(self) -> None:
        """Go down."""
        await asyncio.sleep(0)
        self.see("stop")


def chain(log: list[str]) -> list[Any]:
    """One resource of each form, each depending on the one before it; they record into ``log``."""

    class Handle:
        """What factories make."""

        def __init__(self, name: str) -> None:
            self.name = name

    @resource(name="async hooks")
    class AsyncHooks:
        async def start(self) -> None:
            await asyncio.sleep(0)
            log.append("+async hooks")

        async def aclose(self) -> None:
            await asyncio.sleep(0)
            log.append("-async hooks")

    @resource(name="sync hooks", depends_on=["async hooks"])
    class SyncHooks:
        def start(self) -> None:
            log.append("+sync hooks")

        def stop(self) -> None:
            log.append("-sync hooks")

    @resource(name="async generator", depends_on=["sync hooks"])
    async def async_generator() -> AsyncIterator[str]:
        await asyncio.sleep(0)
        log.append("+async generator")
        yield "async generator"
        await asyncio.sleep(0)
        log.append("-async generator")

    @resource(name="generator", depends_on=["async generator"])
    def generator() -> Iterator[str]:
        log.append("+generator")
        yield "generator"
        log.append("-generator")

    async def leave(handle: Handle) -> None:
        await asyncio.sleep(0)
        log.append(f"-{handle.name}")

    @resource(name="async factory", depends_on=["generator"], stop=leave)
    async def async_factory() -> Handle:
        await asyncio.sleep(0)
        log.append("+async factory")
        return Handle("async factory")

    @resource(name="factory", depends_on=["async factory"], stop=leave)
    def factory() -> Handle:
        log.append("+factory")
        return Handle("factory")

    @resource(name="def returns awaitable", depends_on=["factory"])
    class Returns:
        def start(self) -> Awaitable[None]:
            return self.later("+def returns awaitable")

        def stop(self) -> Awaitable[None]:
            return self.later("-def returns awaitable")

        async def later(self, word: str) -> None:
            await asyncio.sleep(0)
            log.append(word)

    @resource(name="loop lane", depends_on=["def returns awaitable"], lane="loop")
    class LoopLane:
        def __init__(self) -> None:
            asyncio.get_running_loop()

        def start(self) -> None:
            asyncio.get_running_loop()
            log.append("+loop lane")

        def stop(self) -> None:
            asyncio.get_running_loop()
            log.append("-loop lane")

    @resource(name="dedicated", depends_on=["loop lane"], lane="dedicated")
    class Dedicated:
        def start(self) -> None:
            log.append("+dedicated")

        async def stop(self) -> None:
            await asyncio.sleep(0)
            log.append("-dedicated")

    return [AsyncHooks, SyncHooks, async_generator, generator, async_factory, factory, Returns, LoopLane, Dedicated]


NAMES = [
    "async hooks", "sync hooks", "async generator", "generator", "async factory", "factory", "def returns awaitable",
    "loop lane", "dedicated",
]  # fmt: skip


def test_every_form_in_order(through: Through) -> None:
    """A mixed graph comes up dependencies first and goes down dependents first, in either world."""
    log: list[str] = []
    graph = Graph(*chain(log))
    report = through(graph)
    assert [f"+{name}" for name in NAMES] + [f"-{name}" for name in reversed(NAMES)] == log
    assert dict.fromkeys(NAMES, "released") == fates(report)
    assert report.ok


def test_what_is_provided(through: Through) -> None:
    """Async factories and generators provide what they return and yield; it fills the parameters of others."""

    class Db:
        pass

    class Cache:
        pass

    db, cache = Db(), Cache()
    seen: list[Any] = []

    @resource(stop=None)
    async def make_db() -> Db:
        return db

    @resource
    async def make_cache(below: Db) -> AsyncIterator[Cache]:
        seen.append(below)
        yield cache

    @resource
    class Api:
        def __init__(self, db: Db, cache: Cache) -> None:
            seen.extend((db, cache))

    make_cache.__annotations__.update(below=Db)
    Api.__init__.__annotations__.update(db=Db, cache=Cache)
    graph = Graph(make_db, make_cache, Api)
    report = through(graph, lambda: seen.extend((graph["make_db"], graph["make_cache"])))
    assert [db, db, cache, db, cache] == seen
    assert report.ok


@pytest.mark.parametrize("how", ["generator", "factory", "context", "class"])
def test_a_value_that_can_be_awaited_is_left_alone(run: Run[Any], gate: Gate, how: str) -> None:
    """What a resource provides may be a task, a future or a pool with ``__await__``: it is handed on, not awaited."""

    async def main() -> None:
        class Awaited(asyncio.Future[None]):
            """Never done."""

        async def generator() -> AsyncIterator[Any]:
            yield value

        async def factory() -> Any:
            return value

        @contextlib.asynccontextmanager
        async def context() -> AsyncIterator[Any]:
            yield value

        value: Any = asyncio.get_running_loop().create_future()
        graph = Graph(start_timeout=2)
        match how:
            case "generator":
                made = await graph.acreate(generator)
            case "factory":
                made = await graph.acreate(factory, stop=None)
            case "context":
                made = await graph.aenter(context())
            case "class":
                value = made = await graph.acreate(Awaited, stop=None, lane="loop")
        assert value is made
        assert (await graph.ateardown()).ok

    run(main)


@pytest.mark.parametrize("hook", ["coroutine", "future", "task", "object"])
def test_any_awaitable_of_a_hook_is_awaited(run: Run[Any], hook: str) -> None:
    """A hook that is plain ``def`` may return a coroutine, a future, a task or any object with ``__await__``."""

    async def main() -> None:
        loop = asyncio.get_running_loop()
        awaited: list[str] = []

        async def work() -> None:
            await asyncio.sleep(0)
            awaited.append(hook)

        class Awaitable_:
            def __await__(self) -> Any:
                return work().__await__()

        class Thing:
            def stop(self) -> Any:
                match hook:
                    case "coroutine":
                        return work()
                    case "task":
                        return loop.create_task(work())
                    case "future":
                        return asyncio.ensure_future(work())
                    case _:
                        return Awaitable_()

        graph = Graph()
        graph.add(Thing(), stop="stop", lane="loop" if hook in ("task", "future") else "worker")
        await graph.astart()
        report = await graph.ateardown()
        assert [hook] == awaited
        assert report.ok

    run(main)


def test_hooks_given_as_callables(through: Through) -> None:
    """Async lambdas, partials and callables with an async ``__call__`` are hooks like any other."""
    log: list[str] = []

    class Thing:
        pass

    async def named(word: str, thing: Thing) -> None:
        await asyncio.sleep(0)
        log.append(word)

    class Caller:
        async def __call__(self, thing: Thing) -> None:
            await asyncio.sleep(0)
            log.append("called")

    graph = Graph()
    graph.add(Thing(), name="a", start=functools.partial(named, "a up"), stop=functools.partial(named, "a down"))
    graph.add(Thing(), name="b", stop=lambda thing: named("b down", thing), depends_on=["a"])
    graph.add(Thing(), name="c", stop=Caller(), depends_on=["b"])
    report = through(graph)
    assert ["a up", "called", "b down", "a down"] == log
    assert report.ok


def test_async_with(run: Run[Any]) -> None:
    """``async with graph`` starts, gives the graph, and tears down."""

    async def main() -> None:
        log: list[str] = []
        graph = Graph(*chain(log))
        async with graph as entered:
            assert entered is graph
            assert "running" == graph.state
            assert "async generator" == graph["async generator"]
        assert "closed" == graph.state
        assert 2 * len(NAMES) == len(log)

    run(main)


def test_async_with_says_what_was_not_released(run: Run[Any], world: World) -> None:
    """Leaving it raises `TeardownError` with the report; a body's own exception stays, with a note."""

    async def bad() -> AsyncIterator[None]:
        yield
        raise OSError("no")

    async def main() -> None:
        with pytest.raises(TeardownError) as caught:
            async with Graph() as graph:
                await graph.acreate(bad)
        assert {"bad": "failed"} == fates(caught.value.report)
        assert [OSError] == [type(error) for error in caught.value.exceptions]
        body = KeyError("body")
        with pytest.raises(KeyError) as kept:
            async with Graph() as graph:
                await graph.acreate(bad)
                raise body
        assert body is kept.value
        assert any("bad" in note for note in kept.value.__notes__)

    run(main)


def test_acreate_aenter_aadd_in_a_new_graph(run: Run[Any]) -> None:
    """In a new graph they construct and enter at once; a start hook waits for the start."""

    async def main() -> None:
        log: list[str] = []

        class Thing:
            def __init__(self) -> None:
                log.append("made")

            async def start(self) -> None:
                log.append("started")

            async def stop(self) -> None:
                log.append("stopped")

        async def generator(thing: Thing) -> AsyncIterator[str]:
            log.append("generator up")
            yield "value"
            log.append("generator down")

        @contextlib.asynccontextmanager
        async def context() -> AsyncIterator[str]:
            log.append("entered")
            yield "entered value"
            log.append("left")

        generator.__annotations__["thing"] = Thing
        graph = Graph()
        assert "entered value" == await graph.aenter(context(), name="context")
        thing = Thing()
        assert thing is await graph.aadd(thing, stop="stop", start=None)
        assert "value" == await graph.acreate(generator)
        made = await graph.acreate(resource(Thing), name="second")
        assert ["entered", "made", "generator up", "made"] == log
        await graph.astart()
        assert ["started"] == log[4:]
        assert made is graph["second"]
        report = await graph.ateardown()
        assert {"context", "Thing", "generator", "second"} == set(report.released)
        assert log.index("generator down") < log.index("stopped")

    run(main)


def test_they_start_at_once_in_a_running_graph(run: Run[Any]) -> None:
    """In a running graph what is added starts at once, and the verb waits for it without blocking the loop."""

    async def main() -> None:
        log: list[str] = []

        @resource
        class Thing:
            async def start(self) -> None:
                await turns()
                log.append("started")

            async def stop(self) -> None:
                log.append("stopped")

        async with Graph() as graph:
            await graph.acreate(Thing)
            assert ["started"] == log
            await graph.aadd(Thing, name="late")
            assert isinstance(graph["late"], Thing)
            assert ["started"] * 2 == log
        assert ["started"] * 2 + ["stopped"] * 2 == log

    run(main)


def test_a_failed_acreate_rolls_back_itself_only(run: Run[Any]) -> None:
    """In a running graph an async start that fails takes back what its verb brought in, and nothing else."""

    async def main() -> None:
        log: list[str] = []

        @resource
        class Bad:
            async def start(self) -> None:
                raise OSError("no")

            async def stop(self) -> None:
                log.append("rolled back")

        async def good() -> AsyncIterator[int]:
            yield 1
            log.append("good left")

        async with Graph() as graph:
            await graph.acreate(good)
            with pytest.raises(StartError) as caught:
                await graph.acreate(Bad)
            assert [OSError] == [type(error) for error in caught.value.exceptions]
            assert ["rolled back"] == log
            assert "Bad" not in graph
            assert 1 == graph["good"]
        assert ["rolled back", "good left"] == log

    run(main)


def test_aenter_prefers_the_async_half(run: Run[Any]) -> None:
    """Of an object that can be entered either way `aenter` uses ``async with``; `enter` uses ``with``."""

    class Session:
        def __enter__(self) -> str:
            raise TypeError("use async with instead")

        def __exit__(self, *what: object) -> None:
            raise AssertionError

        async def __aenter__(self) -> str:
            return "async"

        async def __aexit__(self, *what: object) -> None:
            left.append(what)

    left: list[Any] = []

    async def main() -> None:
        graph = Graph()
        assert "async" == await graph.aenter(Session())
        assert (await graph.ateardown()).ok
        assert [(None, None, None)] == left

    run(main)


def test_aenter_takes_sync_context_managers(run: Run[Any]) -> None:
    """They are entered and left on threads, never on the loop's."""

    async def main() -> None:
        threads: list[int] = []

        @contextlib.contextmanager
        def manager() -> Iterator[str]:
            threads.append(threading.get_ident())
            yield "sync"
            threads.append(threading.get_ident())

        async with Graph() as graph:
            assert "sync" == await graph.aenter(manager())
        assert 2 == len(threads)
        assert threading.get_ident() not in threads

    run(main)


def test_a_context_manager_gets_the_bodys_outcome(run: Run[Any]) -> None:
    """An async one is told what the body raised, never a sibling's error; a true return is noted, and no more."""

    class Manager:
        async def __aenter__(self) -> None: ...

        async def __aexit__(self, *what: object) -> bool:
            told.append(what[1])
            return True

    class Sibling:
        async def stop(self) -> None:
            raise OSError("sibling")

    told: list[Any] = []

    async def main() -> None:
        body = KeyError("body")
        graph = Graph()
        with pytest.raises(KeyError) as caught:
            async with graph:
                await graph.aenter(Manager(), name="manager")
                await graph.aadd(Sibling(), stop="stop", depends_on=["manager"])
                raise body
        assert caught.value is body
        assert [] == told, "it is poisoned by its sibling"
        graph = Graph()
        with pytest.raises(KeyError):
            async with graph:
                await graph.aenter(Manager(), name="manager")
                await graph.aadd(Sibling(), stop="stop", depends_on=[order_only("manager")])
                raise body
        assert [body] == told
        assert graph.report is not None
        assert any("manager" in note for note in graph.report.notes)

    run(main)


def test_enter_and_create_in_sync_code(gate: Gate) -> None:
    """Sync verbs take async context managers and generators too, on the private loop."""
    log: list[str] = []

    @contextlib.asynccontextmanager
    async def context() -> AsyncIterator[str]:
        log.append("entered")
        yield "context"
        log.append("left")

    async def generator() -> AsyncIterator[str]:
        log.append("up")
        yield "generator"
        log.append("down")

    graph = Graph()
    assert "context" == graph.enter(context(), name="context")
    assert "generator" == graph.create(generator, depends_on=["context"])
    graph.start()
    assert graph.teardown().ok
    assert ["entered", "up", "down", "left"] == log


@pytest.mark.parametrize("times", [0, 2])
def test_an_async_generator_yields_once(through: Through, times: int) -> None:
    """One that yields twice, or not at all, is an error that says so."""

    async def generator() -> AsyncIterator[int]:
        for number in range(times):
            yield number

    graph = Graph(generator)
    if times == 0:
        with pytest.raises(StartError) as caught:
            through(graph)
        assert "yielded nothing" in str(caught.value.exceptions[0])
    else:
        report = through(graph)
        assert {"generator": "failed"} == fates(report)
        assert "yielded twice" in str(report.outcomes["generator"].error)


def test_a_generator_is_never_thrown_into(run: Run[Any]) -> None:
    """Async generators too are resumed with next, whatever the body raised."""
    seen: list[Any] = []

    async def generator() -> AsyncIterator[int]:
        try:
            yield 1
            seen.append("resumed")
        except BaseException as why:
            seen.append(why)
            raise

    async def main() -> None:
        with pytest.raises(ValueError):
            async with Graph(generator):
                raise ValueError("body")

    run(main)
    assert ["resumed"] == seen


def test_a_failed_async_stop_poisons(through: Through) -> None:
    """What a failed async dependent uses is poisoned and never resumed, whatever the mixture; neighbours go on."""
    log: list[str] = []

    @resource
    async def base() -> AsyncIterator[int]:
        yield 1
        log.append("base left")

    @resource(depends_on=[base])
    class Middle:
        def stop(self) -> None:
            log.append("middle stopped")

    @resource(depends_on=[Middle])
    class Bad:
        async def stop(self) -> None:
            raise OSError("no")

    @resource
    async def neighbour() -> AsyncIterator[int]:
        yield 1
        log.append("neighbour left")

    report = through(Graph(Bad, neighbour))
    assert {"base": "poisoned", "Middle": "poisoned", "Bad": "failed", "neighbour": "released"} == fates(report)
    assert ("Bad",) == report.outcomes["base"].causes
    assert ["neighbour left"] == log


def test_a_failed_async_start_is_torn_down(through: Through) -> None:
    """The first failed start halts; what is up is torn down, the rest is skipped."""
    log: list[str] = []

    @resource
    async def base() -> AsyncIterator[int]:
        yield 1
        log.append("base left")

    @resource(depends_on=[base])
    async def bad() -> AsyncIterator[int]:
        raises(OSError("no"))()
        yield 1

    @resource(depends_on=[bad])
    async def top() -> AsyncIterator[int]:
        log.append("never")
        yield 1

    with pytest.raises(StartError) as caught:
        through(Graph(top))
    report = caught.value.report
    assert report is not None
    assert {"base": "released", "bad": "skipped", "top": "skipped"} == fates(report)
    assert "OSError" in str(report.outcomes["bad"].start_error)
    assert ["base left"] == log


def test_a_failed_async_start_hook_is_stopped_once(through: Through) -> None:
    """A start hook that raised is followed by its stop; with ``atomic_start`` it is not."""
    log: list[str] = []

    @resource(name="half")
    class Half:
        async def start(self) -> None:
            raise OSError("no")

        async def stop(self) -> None:
            log.append("half stopped")

    @resource(name="atomic", atomic_start=True)
    class Atomic:
        async def start(self) -> None:
            raise OSError("no")

        async def stop(self) -> None:
            log.append("atomic stopped")

    with pytest.raises(StartError):
        through(Graph(Half))
    with pytest.raises(StartError):
        through(Graph(Atomic))
    assert ["half stopped"] == log


def test_independent_async_starts_are_parallel(run: Run[Any]) -> None:
    """Independent resources start and stop at the same time: each waits for the other."""

    async def main() -> None:
        up, down = asyncio.Barrier(3), asyncio.Barrier(3)

        def make() -> Callable[[], AsyncIterator[int]]:
            async def member() -> AsyncIterator[int]:
                await up.wait()
                yield 1
                await down.wait()

            return member

        graph = Graph(start_timeout=5, stop_timeout=5)
        for _ in range(3):
            graph.add(resource(make()))
        await graph.astart()
        assert (await graph.ateardown()).ok

    run(main)


def test_sync_and_async_hooks_run_side_by_side(run: Run[Any]) -> None:
    """A sync hook on a thread and an async one on the loop wait for each other: neither blocks the other."""

    async def main() -> None:
        thread, done = threading.Event(), asyncio.Event()
        loop = asyncio.get_running_loop()

        @resource
        class Sync:
            def stop(self) -> None:
                assert thread.wait(20)
                loop.call_soon_threadsafe(done.set)

        @resource
        class Async:
            async def stop(self) -> None:
                thread.set()
                await done.wait()

        graph = Graph(Sync, Async, workers=1)
        await graph.astart()
        assert (await graph.ateardown()).ok

    run(main)


def test_async_hooks_do_not_take_workers(run: Run[Any]) -> None:
    """``workers`` bounds the worker lane; a hundred async hooks run at once beside one worker."""

    async def main() -> None:
        barrier = asyncio.Barrier(100)

        @resource(stop_timeout=10)
        class Member:
            async def stop(self) -> None:
                await barrier.wait()

        graph = Graph(workers=1)
        for number in range(100):
            graph.add(Member(), name=f"m{number}")
        await graph.astart()
        assert (await graph.ateardown()).ok

    run(main)


def test_verbs_within_async_hooks(run: Run[Any]) -> None:
    """An async start hook may bring in more: the verb joins the walk, and is torn down with the rest."""

    async def main() -> None:
        log: list[str] = []

        async def helper() -> AsyncIterator[str]:
            log.append("helper up")
            yield "helper"
            log.append("helper down")

        @resource
        class Owner:
            async def start(self) -> None:
                assert "helper" == await graph.acreate(helper)

            async def stop(self) -> None:
                log.append("owner down")

        graph = Graph(Owner)
        await within(graph.astart())
        assert ["helper up"] == log
        assert (await within(graph.ateardown())).ok
        assert {"helper up", "helper down", "owner down"} == set(log)

    run(main)


def test_sync_verbs_within_sync_hooks_of_an_async_graph(run: Run[Any]) -> None:
    """A sync hook on a thread may use the sync verbs; async resources of the graph then live on the graph's loop."""

    async def main() -> None:
        loops: list[Any] = []

        async def helper() -> AsyncIterator[str]:
            loops.append(asyncio.get_running_loop())
            yield "helper"
            loops.append(asyncio.get_running_loop())

        @resource
        class Owner:
            def start(self) -> None:
                assert "helper" == graph.create(helper)

        graph = Graph(Owner)
        await within(graph.astart())
        assert (await within(graph.ateardown())).ok
        assert [asyncio.get_running_loop()] * 2 == loops

    run(main)


def test_two_who_start_and_two_who_tear_down(run: Run[Any]) -> None:
    """Concurrent `astart` and `ateardown`, also from threads, are one start and one teardown with one report."""

    async def main() -> None:
        log: list[str] = []

        async def member() -> AsyncIterator[int]:
            log.append("up")
            await turns()
            yield 1
            log.append("down")
            await turns()

        graph = Graph(member)
        await asyncio.gather(graph.astart(), graph.astart())
        first = asyncio.ensure_future(graph.ateardown())
        await asyncio.sleep(0)
        reports = await asyncio.gather(graph.ateardown(), first, in_thread(graph.teardown))
        assert ["up", "down"] == log
        assert 1 == len(set(map(id, reports)))
        assert await graph.ateardown() is reports[0]

    run(main)


def test_override_by_an_async_fake(through: Through) -> None:
    """A fake with async hooks may stand for a sync resource."""
    log: list[str] = []

    @resource
    class Db:
        def __init__(self) -> None:
            raise AssertionError

    class Fake:
        async def stop(self) -> None:
            log.append("fake stopped")

    graph = Graph(Db)
    graph.override(Db, Fake(), stop="stop")
    assert through(graph).ok
    assert ["fake stopped"] == log


def test_base_exceptions_of_async_factories(through: Through) -> None:
    """A factory that raises SystemExit fails its start, and no more than that."""

    async def factory() -> int:
        raises(SystemExit(4))()
        return 1

    with pytest.raises(StartError) as caught:
        through(Graph(resource(stop=None)(factory)))
    assert isinstance(caught.value.exceptions[0].__cause__, SystemExit)


def test_a_graph_inside_an_async_resource(through: Through) -> None:
    """A resource may open a graph of its own and close it when it is left."""
    log: list[str] = []

    @resource
    async def member() -> AsyncIterator[int]:
        yield 1
        await asyncio.sleep(0)
        log.append("member left")

    @resource
    async def inner() -> AsyncIterator[Graph]:
        async with Graph(member, name="inner") as graph:
            yield graph

    @resource(depends_on=[inner])
    class Top:
        async def stop(self) -> None:
            log.append("top stopped")

    graph = Graph(Top)
    assert through(graph, lambda: log.append(graph["inner"].state)).ok
    assert ["running", "top stopped", "member left"] == log


def test_started_in_one_world_and_torn_down_in_the_other() -> None:
    """A graph started by sync verbs may be torn down by async ones: the hooks run on its private loop, which then ends."""
    loops: list[asyncio.AbstractEventLoop] = []

    async def generator() -> AsyncIterator[int]:
        loops.append(asyncio.get_running_loop())
        yield 1
        loops.append(asyncio.get_running_loop())

    graph = Graph(resource(generator))
    graph.start()

    async def main() -> None:
        assert (await within(graph.ateardown())).ok
        assert asyncio.get_running_loop() not in loops

    asyncio.run(main())
    assert loops[0] is loops[1]
    until(loops[0].is_closed)


@pytest.mark.parametrize("form", ["generator", "context"])
def test_sync_forms_on_the_loop_lane(run: Run[Any], form: str) -> None:
    """With ``lane="loop"`` a sync generator or context manager is entered and left in one task and one Context."""

    async def main() -> None:
        variable: ContextVar[int] = ContextVar("variable")
        tasks: list[Any] = []

        def generator() -> Iterator[int]:
            token = variable.set(1)
            tasks.append(asyncio.current_task())
            yield 1
            tasks.append(asyncio.current_task())
            variable.reset(token)

        graph = Graph()
        if form == "generator":
            graph.add(resource(generator), lane="loop")
        else:
            await graph.aenter(contextlib.contextmanager(generator)(), lane="loop")
        await graph.astart()
        assert (await graph.ateardown()).ok
        assert tasks[0] is tasks[1] is not None

    run(main)
