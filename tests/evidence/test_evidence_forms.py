"""Evidence of every form of resource: generators, context managers, adopted objects, every lane."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import pytest

from lifegraph import AnswerLate, Event, Graph, quarantine, resource
from tests.aio.looping import Gate
from tests.evidence.stage import SHORT, Stage, Step
from tests.graph.world import fates, until


class Value:
    """What a factory provides."""


@pytest.mark.parametrize("how", ["raises", "hangs"])
def test_generators(stage: Stage, how: str) -> None:
    """Leaving one that raised or hangs is looked after and killed; both get what it yielded."""
    got: list[tuple[str, object]] = []
    value = Value()

    def look(it: object) -> bool:
        got.append(("look", it))
        return len(got) > 2

    @resource(
        name="gen",
        depends_on=["base"],
        stop_timeout=SHORT,
        is_stopped=look,
        kill=lambda it: got.append(("kill", it)),
    )
    def gen() -> Iterator[Value]:
        yield value
        if how == "raises":
            raise OSError
        stage.gate.block()

    _, report = stage.life(stage.kind("base"), gen)
    assert {"base": "released", "gen": "released"} == fates(report)
    assert ("gen",) == report.forced
    assert [("look", value), ("kill", value), ("look", value)] == got


@pytest.mark.parametrize("how", ["raises", "hangs"])
def test_async_generators(stage: Stage, how: str) -> None:
    """The same for async ones, whose kill does not wait for the task that hangs in them."""
    tasks: list[object] = []

    async def kill(_: object) -> None:
        tasks.append(asyncio.current_task())

    @resource(name="gen", depends_on=["base"], stop_timeout=SHORT, kill=kill)
    async def gen() -> AsyncIterator[Value]:
        tasks.append(asyncio.current_task())
        yield Value()
        if how == "raises":
            raise OSError
        await stage.gate.hang()

    _, report = stage.life(stage.kind("base"), gen)
    assert {"base": "released", "gen": "released"} == fates(report)
    assert ("gen",) == report.forced
    assert 2 == len(set(map(id, tasks)))


def test_context_managers(stage: Stage) -> None:
    """Adopted ones take evidence as options."""
    calls: list[str] = []

    @contextmanager
    def sync_one() -> Iterator[int]:
        yield 1
        raise OSError

    @asynccontextmanager
    async def async_one() -> AsyncIterator[int]:
        yield 1
        raise OSError

    graph = Graph(stage.kind("base"))
    options: Any = {"kill": lambda _: calls.append("kill")}
    stage.way.start(graph)

    async def aenter() -> None:
        await graph.aenter(sync_one(), name="one", depends_on=["base"], **options)
        await graph.aenter(async_one(), name="two", depends_on=["base"], **options)
        await graph.aenter(async_one(), name="three", depends_on=["base"], is_stopped=lambda _: True)

    if stage.way.verbs_are_async:
        stage.way.beside.call(aenter())
    else:
        graph.enter(sync_one(), name="one", depends_on=["base"], **options)
        graph.enter(async_one(), name="two", depends_on=["base"], **options)
        graph.enter(async_one(), name="three", depends_on=["base"], is_stopped=lambda _: True)
    report = stage.way.teardown(graph)
    assert {"released"} == set(fates(report).values())
    assert {"one", "two"} == set(report.forced)
    assert ["kill", "kill"] == calls


def test_sync_evidence_of_async_resources_and_back(any_stage: Stage) -> None:
    """An async stop with a sync kill, and a sync stop with an async is_stopped."""
    gate = Gate()

    class One:
        async def stop(self) -> None:
            raise OSError

        def kill(self) -> None: ...

    class Two:
        def stop(self) -> None:
            raise OSError

        async def is_stopped(self) -> bool:
            return True

    class Three:
        async def stop(self) -> None:
            await gate.hang()

        def is_stopped(self) -> bool:
            return False

        async def kill(self) -> None:
            raise OSError

    graph = any_stage.up(resource(One), resource(Two), resource(stop_timeout=SHORT)(Three))
    report = any_stage.way.teardown(graph)
    gate.open()
    assert {"One": "released", "Two": "released", "Three": "timed_out"} == fates(report)
    assert ("One",) == report.forced


@pytest.mark.parametrize("lane", ["worker", "dedicated", "caller"])
def test_evidence_in_every_sync_lane(sync_stage: Stage, lane: str) -> None:
    """Wherever its stop runs, a resource is looked after and killed."""
    _, report = sync_stage.life(
        sync_stage.kind("base"),
        sync_stage.kind("looked", ["base"], stop="raises", is_stopped=True, lane=lane),
        sync_stage.kind("killed", ["base"], stop="raises", is_stopped=[False, True], kill="ok", lane=lane),
        sync_stage.kind("denied", is_stopped=False, kill="raises", lane=lane),
    )
    assert {"base": "released", "looked": "released", "killed": "released", "denied": "failed"} == fates(report)


def test_sync_hooks_on_the_loop_lane(async_stage: Stage) -> None:
    """lane="loop" runs sync hooks on the loop, evidence too or not, and it is believed."""

    class Engine:
        def stop(self) -> None:
            raise OSError

        def is_stopped(self) -> bool:
            return True

    report = async_stage.life(resource(lane="loop")(Engine))[1]
    assert {"Engine": "released"} == fates(report)


def test_a_killed_object_is_let_go(stage: Stage) -> None:
    """What kill proved is not in quarantine, and can be collected when its hung call is over."""
    events: list[Event] = []
    step = Step(stage)
    graph = Graph(
        stage.kind("killed", stop=step, stop_timeout=SHORT, kill="ok"),
        name="killed and free",
        observers=[events.append],
    )
    stage.way.start(graph)
    gone = weakref.ref(graph["killed"])
    report = stage.way.teardown(graph)
    assert report.ok
    assert [] == [held for held in quarantine() if held.graph == "killed and free"]
    step.leave()
    until(lambda: any(isinstance(event, AnswerLate) for event in events))
    assert {"killed": "released"} == fates(report)

    def collected() -> bool:
        gc.collect()
        return gone() is None

    until(collected)
    assert graph.report is report


def test_an_unproven_object_is_never_let_go(stage: Stage) -> None:
    """Though its stop returned: is_stopped denied it."""
    graph = Graph(stage.kind("base"), stage.kind("denied", ["base"], is_stopped=False), name="denied and held")
    stage.way.start(graph)
    refs = [weakref.ref(graph["base"]), weakref.ref(graph["denied"])]
    stage.way.teardown(graph)
    del graph
    gc.collect()
    assert all(ref() is not None for ref in refs)
    assert {"base", "denied"} == {held.resource for held in quarantine() if held.graph == "denied and held"}
    why, *_ = [held.reason for held in quarantine() if (held.graph, held.resource) == ("denied and held", "denied")]
    assert "is_stopped" in why


def test_evidence_says_how_it_was_released(stage: Stage) -> None:
    """explain() tells of the kill, and of the question that released it."""
    _, report = stage.life(
        stage.kind("killed", stop=OSError("stuck"), kill="ok"),
        stage.kind("looked", stop=OSError("stuck"), is_stopped=True),
        stage.kind("denied", is_stopped=False),
    )
    assert "kill" in report.explain("killed")
    assert "stuck" in report.explain("looked")
    assert "is_stopped" in report.explain("denied")
    for name in ("killed", "looked", "denied"):
        assert name in report.to_text()


def test_a_hint_for_what_has_no_kill(stage: Stage) -> None:
    """The message of a poisoned one names a larger limit, or a kill, as the cure for what hung."""
    graph, _ = stage.life(stage.kind("base"), stage.kind("hung", ["base"], stop="hangs"))
    assert graph.report is not None
    told = graph.report.explain("base")
    assert "cannot release base" in told
    assert "hung -> base" in told
    assert "kill" in told
    assert "stop_timeout" in told


def test_kill_is_tried_once_by_concurrent_teardowns(stage: Stage) -> None:
    """However many wait for the report."""
    kill = Step(stage)
    graph = stage.up(stage.kind("a", stop="raises", kill=kill))
    first = stage.tearing(graph)
    kill.reach()
    others = [stage.tearing(graph) for _ in range(3)]
    kill.leave()
    reports = [each.result() for each in (first, *others)]
    assert all(report is reports[0] for report in reports)
    assert 1 == kill.calls


def test_the_exit_code_of_what_was_killed(sync_stage: Stage) -> None:
    """All released, if by force: 0."""
    graph = Graph(sync_stage.kind("a", stop="raises", kill="ok"))
    assert 0 == graph.run(lambda _: None, hard_exit=False)
