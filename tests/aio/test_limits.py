"""Limits mean "wait, give up, poison": nobody is cancelled, nobody is waited for, and where it hangs is told."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest

from lifegraph import Fate, Graph, StartError, resource
from tests.aio.conftest import Run, run_child
from tests.aio.looping import Gate, Through, eventually, passing, turns, within
from tests.conftest import Child
from tests.graph.world import Elsewhere, fates, raises, until

LIMIT = 0.1
PROMPT = 2.0  # seconds; a generous bound for what takes LIMIT


def test_a_hung_async_stop_is_given_up(through: Through, gate: Gate) -> None:
    """It is timed out at its limit and poisons what it uses; the rest is released, and nobody is cancelled."""
    log: list[str] = []

    @resource
    async def base() -> AsyncIterator[int]:
        yield 1
        log.append("base left")

    @resource(depends_on=[base], stop_timeout=LIMIT)
    class Hangs:
        async def stop(self) -> None:
            try:
                await gate.hang()
            except BaseException as why:
                log.append(repr(why))
                raise

    @resource
    async def neighbour() -> AsyncIterator[int]:
        yield 1
        log.append("neighbour left")

    report = through(Graph(Hangs, neighbour))
    assert {"base": "poisoned", "Hangs": "timed_out", "neighbour": "released"} == fates(report)
    assert ["neighbour left"] == log
    assert LIMIT <= report.seconds < PROMPT
    assert ("Hangs",) == report.outcomes["base"].causes


@pytest.mark.parametrize("depth", [0, 1])
def test_a_hung_sync_stop_is_given_up(through: Through, gate: Gate, depth: int) -> None:
    """A hung thread is given up at its limit, whether it is the first hook of a teardown or a later one."""

    @resource(stop_timeout=LIMIT)
    class Hangs:
        def stop(self) -> None:
            gate.block()

    @resource(depends_on=[Hangs])
    class Above:
        def stop(self) -> None:
            if depth:
                threading.Event().wait(0.02)  # long enough for whoever waits to settle down to it

    graph = Graph(Above if depth else Hangs)
    report = through(graph)
    assert Fate.TIMED_OUT == report.fates["Hangs"]
    assert LIMIT <= report.seconds < PROMPT


def test_a_hung_sync_start_is_given_up(through: Through, gate: Gate) -> None:
    """The same of a constructor on a thread."""

    @resource(start_timeout=LIMIT)
    class Hangs:
        def __init__(self) -> None:
            gate.block()

    began = time.monotonic()
    with pytest.raises(StartError) as caught:
        through(Graph(Hangs))
    assert LIMIT <= time.monotonic() - began < PROMPT
    assert caught.value.report is not None
    assert {"Hangs": "timed_out"} == fates(caught.value.report)


@pytest.mark.parametrize("form", ["hook", "generator", "factory", "context"])
def test_a_hung_async_start_is_given_up(through: Through, gate: Gate, form: str) -> None:
    """A start that still runs at its limit is timed out and poisons what it depends on; no stop is called."""
    log: list[str] = []

    @resource
    async def base() -> AsyncIterator[int]:
        yield 1
        log.append("base left")

    class Hook:
        async def start(self) -> None:
            await gate.hang()

        async def stop(self) -> None:
            log.append("stop")

    async def generator() -> AsyncIterator[int]:
        await gate.hang()
        yield 1
        log.append("left")

    async def factory() -> int:
        await gate.hang()
        return 1

    class Context:
        async def __aenter__(self) -> None:
            await gate.hang()

        async def __aexit__(self, *what: object) -> None:
            log.append("left")

    graph = Graph(base)
    options: dict[str, Any] = {"start_timeout": LIMIT, "depends_on": [base], "name": "top"}

    async def main() -> None:
        try:
            await graph.astart()
            with pytest.raises(StartError) as caught:
                match form:
                    case "hook":
                        await graph.acreate(resource(Hook), **options)
                    case "generator":
                        await graph.acreate(generator, **options)
                    case "factory":
                        await graph.acreate(factory, stop=None, **options)
                    case "context":
                        await graph.aenter(Context(), **options)
            assert "top" in str(caught.value)
            report = await graph.ateardown()
            assert {"base": "poisoned", "top": "timed_out"} == fates(report)
            assert [] == log
        finally:
            gate.open()
            await turns()

    def sync() -> None:
        graph.start()
        with pytest.raises(StartError):
            match form:
                case "hook":
                    graph.create(resource(Hook), **options)
                case "generator":
                    graph.create(generator, **options)
                case "factory":
                    graph.create(factory, stop=None, **options)
                case "context":
                    graph.enter(Context(), **options)
        report = graph.teardown()
        assert {"base": "poisoned", "top": "timed_out"} == fates(report)
        assert [] == log

    through.do(sync, main)


@pytest.mark.parametrize("form", ["hook", "callable", "generator", "context", "start"])
def test_the_stack_goes_to_the_innermost_await(through: Through, gate: Gate, form: str) -> None:
    """The report of a timed-out async hook shows where it hangs: from the user's first frame to the innermost await."""

    async def innermost() -> None:
        await gate.hang()  # the innermost line

    async def between() -> None:
        await innermost()

    class Hook:
        async def stop(self) -> None:
            await between()

    class Start:
        async def start(self) -> None:
            await between()

    async def generator() -> AsyncIterator[int]:
        yield 1
        await between()

    @contextlib.asynccontextmanager
    async def context() -> AsyncIterator[int]:
        yield 1
        await between()

    graph = Graph(stop_timeout=LIMIT, start_timeout=LIMIT)
    match form:
        case "hook":
            graph.add(Hook(), name="it", stop="stop")
        case "callable":
            graph.add(object(), name="it", stop=lambda _: between())
        case "generator":
            graph.add(resource(generator), name="it")
        case "start":
            graph.add(Start(), name="it", start="start", stop=None)
        case "context":
            if through.is_async:

                async def main() -> Any:
                    await graph.aenter(context(), name="it")
                    try:
                        return await graph.ateardown()
                    finally:
                        gate.open()
                        await turns()

                report = through.do(graph.teardown, main)
            else:
                graph.enter(context(), name="it")
                report = graph.teardown()
    if form == "start":
        with pytest.raises(StartError) as caught:
            through(graph)
        report = caught.value.report
    elif form != "context":
        report = through(graph)
    stack = report.outcomes["it"].stack
    assert Fate.TIMED_OUT == report.fates["it"]
    assert stack is not None
    assert "the innermost line" in stack
    assert "in between" in stack
    assert "in innermost" in stack
    if form in ("hook", "generator", "context", "start"):
        assert f"in {'stop' if form == 'hook' else form}\n" in stack
    assert "lifegraph/drive" not in stack


def test_a_late_async_answer_is_noted_and_no_more(run: Run[Any], gate: Gate) -> None:
    """A stop that ends after its limit, while the teardown still runs, stays timed out; it is marked late."""

    async def main() -> None:
        late, end = asyncio.Event(), asyncio.Event()

        @resource
        class Base:
            async def stop(self) -> None:
                raise AssertionError

        @resource(depends_on=[Base], stop_timeout=LIMIT)
        class Late:
            async def stop(self) -> None:
                await late.wait()
                asyncio.get_running_loop().call_soon(end.set)

        @resource
        class Long:
            async def stop(self) -> None:
                await end.wait()

        def see(event: Any) -> None:
            if type(event).__name__ == "HookEnded" and event.resource == "Late" and event.timed_out:
                loop.call_soon_threadsafe(late.set)

        loop = asyncio.get_running_loop()
        graph = Graph(Late, Long, observers=[see])
        await graph.astart()
        report = await within(graph.ateardown())
        assert {"Base": "poisoned", "Late": "timed_out", "Long": "released"} == fates(report)
        assert report.outcomes["Late"].late
        assert any("Late" in note and "late" in note for note in report.notes)

    run(main)


def test_what_an_async_factory_returns_late_is_held(run: Run[Any]) -> None:
    """What comes after its start was given up goes into quarantine: it is not stopped, and not finalized."""

    async def main() -> None:
        log: list[str] = []
        go = asyncio.Event()

        class Thing:
            def __del__(self) -> None:
                log.append("finalized")

        async def factory() -> Thing:
            await go.wait()
            return Thing()

        async def generator() -> AsyncIterator[int]:
            try:
                await go.wait()
                yield 1
            finally:
                log.append("generator left")

        graph = Graph(start_timeout=LIMIT)
        graph.add(resource(stop=lambda _: log.append("stopped"))(factory))
        graph.add(resource(generator))
        with pytest.raises(StartError):
            await graph.astart()
        go.set()
        await turns()
        import gc

        gc.collect()
        assert [] == log

    run(main)


def test_a_coroutine_that_comes_late_is_no_noise(run: Run[Any], gate: Gate, recwarn: pytest.WarningsRecorder) -> None:
    """A sync hook that returns a coroutine after its limit: it is not awaited, and nothing complains about that."""

    async def main() -> None:
        ended = asyncio.Event()

        class Late:
            def stop(self) -> Any:
                gate.block()
                return self.work()

            async def work(self) -> None:
                raise AssertionError

        def see(event: Any) -> None:
            if type(event).__name__ == "AnswerLate":
                loop.call_soon_threadsafe(ended.set)

        loop = asyncio.get_running_loop()
        graph = Graph(observers=[see])
        graph.add(Late(), stop="stop", stop_timeout=LIMIT)
        await graph.astart()
        report = await within(graph.ateardown())
        assert {"Late": "timed_out"} == fates(report)
        gate.open()
        await within(ended.wait())
        import gc

        gc.collect()

    run(main)
    assert [] == [str(warning.message) for warning in recwarn if "never awaited" in str(warning.message)]


def test_a_hung_thread_does_not_delay_the_loop(run: Run[Any], gate: Gate) -> None:
    """While sync hooks hang on threads the loop turns, and other resources of the graph are released."""

    async def main() -> None:
        class Hangs:
            def stop(self) -> None:
                gate.block()

        @resource
        async def neighbour() -> AsyncIterator[int]:
            yield 1
            await turns(50)

        graph = Graph(neighbour, stop_timeout=0.3)
        for number in range(40):
            graph.add(Hangs(), name=f"h{number}", stop="stop")
        await graph.astart()
        teardown = asyncio.ensure_future(graph.ateardown())
        longest, before = 0.0, time.monotonic()
        while not teardown.done():
            await passing(0.005)
            now = time.monotonic()
            longest, before = max(longest, now - before), now
        report = teardown.result()
        assert 40 == len(report.timed_out)
        assert ("neighbour",) == report.released
        assert longest < 0.25, "the loop stood still"

    run(main)


def test_an_async_hook_that_swallows_cancellation(run: Run[Any], gate: Gate) -> None:
    """It cannot hold up a teardown, since limits cancel nobody; cancelling the teardown is no matter to it either."""

    async def main() -> None:
        cancelled: list[str] = []

        @resource(stop_timeout=LIMIT)
        class Stubborn:
            async def stop(self) -> None:
                while not gate.thread.is_set():
                    try:
                        await gate.hang()
                    except asyncio.CancelledError:
                        cancelled.append("stop")

        graph = Graph(Stubborn)
        await graph.astart()
        report = await within(graph.ateardown())
        assert {"Stubborn": "timed_out"} == fates(report)
        assert [] == cancelled

    run(main)


ENDS = [KeyboardInterrupt(), SystemExit(3), asyncio.CancelledError("x"), GeneratorExit(), BaseException("base")]


@pytest.mark.parametrize("error", ENDS, ids=[type(error).__name__ for error in ENDS])
@pytest.mark.parametrize("form", ["hook", "late in a hook", "generator", "context", "lane", "sync"])
def test_a_base_exception_ends_only_its_hook(through: Through, error: BaseException, form: str) -> None:
    """Whatever an async stop raises, it failed; what it uses is poisoned, neighbours are released, the loop goes on."""
    log: list[str] = []

    class Hook:
        async def stop(self) -> None:
            raise type(error)(*error.args)

    class Late:
        async def stop(self) -> None:
            await asyncio.sleep(0)
            raise type(error)(*error.args)

    class Sync:
        def stop(self) -> None:
            raise type(error)(*error.args)

    async def generator() -> AsyncIterator[int]:
        yield 1
        raise type(error)(*error.args)

    class Context:
        async def __aenter__(self) -> None: ...

        async def __aexit__(self, *what: object) -> None:
            await asyncio.sleep(0)
            raise type(error)(*error.args)

    async def wraps() -> AsyncIterator[int]:
        async with Context():
            yield 1

    @resource
    async def base() -> AsyncIterator[int]:
        yield 1
        log.append("base left")

    @resource
    async def neighbour() -> AsyncIterator[int]:
        yield 1
        await turns()
        log.append("neighbour left")

    graph = Graph(base, neighbour)
    options: dict[str, Any] = {"name": "bad", "depends_on": [base]}
    match form:
        case "hook":
            graph.add(Hook(), stop="stop", **options)
        case "late in a hook":
            graph.add(Late(), stop="stop", **options)
        case "generator":
            graph.add(resource(generator), **options)
        case "lane":
            graph.add(Sync(), stop="stop", lane="loop", **options)
        case "sync":
            graph.add(Sync(), stop="stop", **options)
        case "context":
            graph.add(resource(wraps), **options)
    report = through(graph)
    assert {"base": "poisoned", "neighbour": "released", "bad": "failed"} == fates(report)
    assert type(error).__name__ == report.outcomes["bad"].error_type
    assert ["neighbour left"] == log


@pytest.mark.parametrize("error", ENDS, ids=[type(error).__name__ for error in ENDS])
@pytest.mark.parametrize("form", ["hook", "generator", "factory"])
def test_a_base_exception_of_a_start(through: Through, error: BaseException, form: str) -> None:
    """The same of a start: `StartError`, and what was up is released."""
    log: list[str] = []

    @resource
    async def base() -> AsyncIterator[int]:
        yield 1
        log.append("base left")

    @resource(depends_on=[base], name="bad")
    class Hook:
        async def start(self) -> None:
            await asyncio.sleep(0)
            raise type(error)(*error.args)

    @resource(depends_on=[base], name="bad")
    async def generator() -> AsyncIterator[int]:
        raises(type(error)(*error.args))()
        yield 1

    @resource(depends_on=[base], name="bad", stop=None)
    async def factory() -> int:
        raise type(error)(*error.args)

    with pytest.raises(StartError) as caught:
        through(Graph({"hook": Hook, "generator": generator, "factory": factory}[form]))
    assert caught.value.report is not None
    assert "released" == fates(caught.value.report)["base"]
    assert ["base left"] == log


def test_the_grace_bounds_an_async_teardown(run: Run[Any], gate: Gate) -> None:
    """At its end what runs is timed out, and what waits is abandoned or poisoned."""

    async def main() -> None:
        @resource
        class Below:
            async def stop(self) -> None:
                raise AssertionError

        @resource(depends_on=[Below])
        class Hangs:
            async def stop(self) -> None:
                await gate.hang()

        graph = Graph(Hangs, stop_timeout=None)
        await graph.astart()
        report = await within(graph.ateardown(grace=LIMIT))
        assert {"Below": "poisoned", "Hangs": "timed_out"} == fates(report)
        assert report.seconds < PROMPT

    run(main)


def test_time_left_in_async_hooks(through: Through) -> None:
    """An async hook can ask how long it has: until its own limit or the grace, whichever is sooner."""
    seen: dict[str, float] = {}

    @resource(stop_timeout=50, start_timeout=40)
    class Asks:
        async def start(self) -> None:
            seen["start"] = graph.time_left()

        async def stop(self) -> None:
            await asyncio.sleep(0)
            seen["stop"] = graph.time_left()

    graph = Graph(Asks)
    through(graph)
    assert 30 < seen["start"] <= 40
    assert 40 < seen["stop"] <= 50


def test_a_hook_that_blocks_the_private_loop(gate: Gate) -> None:
    """On the private loop an async hook that never awaits times out like any other, and the rest goes on."""
    log: list[str] = []

    @resource
    class Base:
        def stop(self) -> None:
            log.append("base stopped")

    @resource(stop_timeout=LIMIT, depends_on=[Base])
    class Blocks:
        async def stop(self) -> None:
            gate.block()

    @resource
    class Sync:
        def stop(self) -> None:
            log.append("sync stopped")

    graph = Graph(Blocks, Sync)
    graph.start()
    report = Elsewhere(graph.teardown).result()
    assert {"Base": "poisoned", "Blocks": "timed_out", "Sync": "released"} == fates(report)
    assert ["sync stopped"] == log
    assert report.seconds < PROMPT
    stack = report.outcomes["Blocks"].stack
    assert stack is not None
    assert "gate.block()" in stack


def test_others_on_a_blocked_private_loop_time_out(gate: Gate) -> None:
    """What lives on a private loop that is blocked times out at its own limit; nothing waits for ever."""

    @resource(stop_timeout=LIMIT)
    class Blocks:
        async def stop(self) -> None:
            gate.block()

    @resource(stop_timeout=LIMIT)
    async def other() -> AsyncIterator[int]:
        yield 1
        await asyncio.sleep(0)

    graph = Graph(Blocks, other)
    graph.start()
    report = Elsewhere(graph.teardown).result()
    assert "timed_out" == fates(report)["Blocks"]
    assert fates(report)["other"] in ("released", "timed_out")
    assert report.seconds < PROMPT


PROMPT_END = """
import asyncio, sys, threading, time
from lifegraph import Graph, resource
mode, loop_kind = sys.argv[1:3]

class Sync:
    def stop(self): threading.Event().wait()
class Lane:
    async def stop(self): await asyncio.get_running_loop().create_future()
class Stubborn:
    async def stop(self):
        while True:
            try: await asyncio.get_running_loop().create_future()
            except BaseException: pass

@resource
class Other:
    async def stop(self): print("other stopped")

async def main():
    graph = Graph(Other, stop_timeout=0.2)
    graph.add({"sync": Sync, "async": Lane, "stubborn": Stubborn}[mode](), name="hangs", stop="stop")
    await graph.astart()
    report = await graph.ateardown()
    print(*report.timed_out, *report.released)

if loop_kind == "uvloop":
    import uvloop
    uvloop.run(main())
elif loop_kind == "anyio":
    import anyio
    anyio.run(main)
elif loop_kind == "threads":
    graph = Graph(Other, stop_timeout=0.2)
    graph.add({"sync": Sync, "async": Lane, "stubborn": Stubborn}[mode](), name="hangs", stop="stop")
    graph.start()
    report = graph.teardown()
    print(*report.timed_out, *report.released)
else:
    asyncio.run(main())
sys.exit(7)
"""


@pytest.mark.parametrize("kind", ["asyncio", "uvloop", "anyio", "threads"])
@pytest.mark.parametrize("mode", ["sync", "async", "stubborn"])
def test_what_hangs_keeps_no_process_from_ending(loop_child: Child, mode: str, kind: str) -> None:
    """Neither the end of the loop nor the end of the process waits for a hung hook; nothing is said but one line each."""
    began = time.monotonic()
    done = run_child(loop_child, PROMPT_END, mode, kind, check=False, timeout=30)
    assert 7 == done.returncode, done.stderr
    assert "other stopped\nhangs Other\n" == done.stdout
    assert time.monotonic() - began < 15
    assert "Traceback" not in done.stderr
    assert "Task was destroyed" not in done.stderr
    assert "never awaited" not in done.stderr


def test_a_dedicated_thread_with_async_hooks(through: Through, gate: Gate) -> None:
    """Sync hooks of a dedicated resource run on its thread, its async hooks on the loop; either may hang."""
    threads: list[int] = []

    @resource(lane="dedicated", stop_timeout=LIMIT)
    class Mixed:
        def __init__(self) -> None:
            threads.append(threading.get_ident())

        def start(self) -> None:
            threads.append(threading.get_ident())

        async def stop(self) -> None:
            threads.append(threading.get_ident())
            await gate.hang()

    report = through(Graph(Mixed))
    assert {"Mixed": "timed_out"} == fates(report)
    assert threads[0] == threads[1] != threads[2]


def test_a_late_async_answer_after_the_end(run: Run[Any], gate: Gate) -> None:
    """What ends after the teardown changes nothing in the report; an event tells of it."""

    async def main() -> None:
        late: list[str] = []

        @resource(stop_timeout=LIMIT)
        class Late:
            async def stop(self) -> None:
                await gate.hang()

        def see(event: Any) -> None:
            if type(event).__name__ == "AnswerLate":
                late.append(event.resource)

        graph = Graph(Late, observers=[see])
        await graph.astart()
        report = await within(graph.ateardown())
        before = report.to_text()
        gate.open()
        await eventually(lambda: bool(late))
        assert ["Late"] == late
        assert graph.report is report
        assert before == report.to_text()

    run(main)


def test_the_loop_lane_of_a_sync_hook_that_blocks(gate: Gate) -> None:
    """A sync hook on the loop lane of a private loop is limited like any other."""

    @resource(lane="loop", stop_timeout=LIMIT)
    class Blocks:
        def stop(self) -> None:
            gate.block()

    graph = Graph(Blocks)
    graph.start()
    report = Elsewhere(graph.teardown).result()
    assert {"Blocks": "timed_out"} == fates(report)
    until(gate.reached.is_set)
