"""Evidence within the grace: a stop's limit shrinks so that kill and is_stopped still fit; a hurry skips them."""

from __future__ import annotations

import asyncio
import math
import threading
from typing import Any

import pytest

from lifegraph import Graph
from tests.aio.looping import in_thread, within
from tests.evidence.stage import Stage, Step
from tests.graph.world import PATIENCE, Elsewhere, fates

SLACK = 2.0
"""Seconds that may pass between the closing door and a first stop on a busy machine."""


def told_limit(stage: Stage, grace: float | None, **said: Any) -> float:
    """What a stop is told of its time."""
    told: list[float] = []
    graph: Graph = stage.up(stage.kind("a", stop=lambda: told.append(graph.time_left()), **said), grace=grace)
    assert {"a": "released"} == fates(stage.way.teardown(graph))
    return told[0]


@pytest.mark.parametrize(
    ("grace", "stop", "kill", "look", "least", "most"),
    [
        (None, 300, 50, 10, 300, 300),
        (1000, 300, 50, 10, 300, 300),
        (200, 300, 50, 10, 200 - 50 - 2 * 10, 200 - 50 - 10),
        (200, 300, 150, 10, 100, 100),
        (200, 300, None, 10, 100, 100),
        (200, 20, 150, 10, 20, 20),
        (200, None, 50, 10, 200 - 50 - 2 * 10, 200 - 50 - 10),
        (None, None, 50, 10, math.inf, math.inf),
    ],
)
def test_the_limit_of_a_stop_with_evidence(
    stage: Stage, grace: float | None, stop: float | None, kill: float | None, look: float, least: float, most: float
) -> None:
    """It is its own, or what the grace leaves beside kill and is_stopped, and at least half of what is left."""
    limit = told_limit(
        stage,
        grace,
        kill="ok",
        is_stopped=True,
        stop_timeout=stop,
        kill_timeout=kill,
        is_stopped_timeout=look,
    )
    assert least - SLACK <= limit <= most


def test_only_what_is_declared_takes_time(stage: Stage) -> None:
    """Without kill or is_stopped a stop has all the grace; with one of them, all but that one's limit."""
    assert 200 - SLACK <= told_limit(stage, 200, stop_timeout=None, kill_timeout=50) <= 200
    limit = told_limit(stage, 200, stop_timeout=None, is_stopped=True, is_stopped_timeout=20, kill_timeout=90)
    assert 180 - SLACK <= limit <= 180
    limit = told_limit(stage, 200, stop_timeout=None, kill="ok", kill_timeout=50, is_stopped_timeout=20)
    assert 150 - SLACK <= limit <= 150


def test_a_hung_stop_is_killed_within_the_grace(stage: Stage) -> None:
    """Though its own limit lies far beyond, the kill comes in time, and what is below still stops."""
    graph = stage.up(
        stage.kind("base"),
        stage.kind("hung", ["base"], stop="hangs", stop_timeout=None, kill="ok", kill_timeout=0.2),
    )
    report = stage.way.teardown(graph, grace=2)
    assert {"base": "released", "hung": "released"} == fates(report)
    assert ("hung",) == report.forced
    assert 0.9 <= report.seconds <= 2 + SLACK


def test_a_kill_that_hangs_ends_with_the_grace(stage: Stage) -> None:
    """Its own limit does not outlast the teardown's."""
    graph = stage.up(stage.kind("base"), stage.kind("a", ["base"], stop="raises", kill="hangs", kill_timeout=None))
    report = stage.way.teardown(graph, grace=0.3)
    assert {"base": "poisoned", "a": "failed"} == fates(report)
    assert report.seconds <= 0.3 + SLACK


def test_an_is_stopped_that_hangs_ends_with_the_grace(stage: Stage) -> None:
    """The same for the question."""
    graph = stage.up(stage.kind("a", is_stopped="hangs", is_stopped_timeout=None))
    report = stage.way.teardown(graph, grace=0.3)
    assert not report.ok
    assert report.seconds <= 0.3 + SLACK


def test_time_left_in_kill_and_is_stopped(stage: Stage) -> None:
    """Each is told its own limit."""
    told: dict[str, float] = {}

    def look() -> bool:
        told["look"] = graph.time_left()
        return "kill" in told

    def kill() -> None:
        told["kill"] = graph.time_left()

    graph = stage.up(stage.kind("a", is_stopped=look, kill=kill, kill_timeout=70, is_stopped_timeout=40))
    assert ("a",) == stage.way.teardown(graph).forced
    assert 70 - SLACK <= told["kill"] <= 70
    assert 40 - SLACK <= told["look"] <= 40


def test_a_hurry_skips_evidence_in_sync_code(sync_stage: Stage) -> None:
    """A KeyboardInterrupt gives a hung stop up, and neither asks nor kills."""
    step = Step(sync_stage)

    def interrupt() -> None:
        step.reach()
        raise KeyboardInterrupt

    graph = sync_stage.up(
        sync_stage.kind("base"),
        sync_stage.kind("hung", ["base"], stop=step, stop_timeout=None, kill="ok", is_stopped=True),
        sync_stage.kind("caller", stop=interrupt, lane="caller", kill="ok"),
    )
    with pytest.raises(KeyboardInterrupt):
        graph.teardown()
    told = fates(graph.report)
    step.leave()
    assert {"base": "poisoned", "hung": "timed_out", "caller": "failed"} == told
    assert ["stop"] == sync_stage.called("hung")


def test_a_hurry_skips_evidence_in_async_code(async_stage: Stage) -> None:
    """A cancelled ateardown does the same, and what still waited for its drain is abandoned."""
    stage = async_stage
    step, drain = Step(stage), Step(stage)
    graph = stage.up(
        stage.kind("hung", stop=step, stop_timeout=None, kill="ok", is_stopped=True),
        stage.kind("draining", drain=drain, drain_timeout=None, kill="ok", is_stopped=True),
    )

    async def main() -> None:
        task = asyncio.ensure_future(graph.ateardown())
        await in_thread(step.reach)
        await in_thread(drain.reach)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await within(task)

    stage.way.beside.call(main())
    told = fates(graph.report)
    step.leave()
    drain.leave()
    assert "timed_out" == told["hung"]
    assert told["draining"] in ("abandoned", "timed_out")
    assert ["stop"] == stage.called("hung")
    assert ["drain"] == stage.called("draining")


def test_a_hurry_while_a_kill_runs(async_stage: Stage) -> None:
    """The kill is given up; the stop had raised, so it failed."""
    stage = async_stage
    kill = Step(stage)
    graph = stage.up(stage.kind("base"), stage.kind("a", ["base"], stop="raises", kill=kill, kill_timeout=None))

    async def main() -> None:
        task = asyncio.ensure_future(graph.ateardown())
        await in_thread(kill.reach)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await within(task)

    stage.way.beside.call(main())
    told, forced = fates(graph.report), graph.report.forced if graph.report else ()
    kill.leave()
    assert {"base": "poisoned", "a": "failed"} == told
    assert () == forced


def test_a_late_kill_changes_nothing(stage: Stage) -> None:
    """A kill that returns after its limit is no proof any more."""
    kill = Step(stage)
    graph = stage.up(stage.kind("base"), stage.kind("a", ["base"], stop="raises", kill=kill, kill_timeout=0.05))
    report = stage.way.teardown(graph)
    kill.leave()
    assert {"base": "poisoned", "a": "failed"} == fates(report)
    assert report is stage.way.teardown(graph)
    assert {"base": "poisoned", "a": "failed"} == fates(graph.report)


def test_a_late_stop_does_not_end_its_kill(sync_stage: Stage) -> None:
    """A stop that returns after its limit, while kill runs, changes nothing: the kill's answer counts."""
    entered, left = threading.Event(), threading.Event()

    def stop() -> None:
        assert entered.wait(PATIENCE)
        left.set()

    def kill() -> None:
        entered.set()
        assert left.wait(PATIENCE)
        raise OSError("no")

    graph = sync_stage.up(
        sync_stage.kind("base"), sync_stage.kind("a", ["base"], stop=stop, stop_timeout=0.05, kill=kill)
    )
    report = Elsewhere(graph.teardown).result()
    assert {"base": "poisoned", "a": "timed_out"} == fates(report)


def test_grace_given_to_the_verb_counts_for_evidence(stage: Stage) -> None:
    """Not only the graph's own."""
    told: list[float] = []
    graph: Graph = stage.up(
        stage.kind("a", stop=lambda: told.append(graph.time_left()), stop_timeout=None, kill="ok", kill_timeout=50)
    )
    stage.way.teardown(graph, grace=200)
    assert 150 - SLACK <= told[0] <= 150


@pytest.mark.xfail(strict=True, reason="a plan's worst case counts the limits of stops only, so far")
def test_the_worst_case_counts_drains_and_evidence() -> None:
    """The plan's upper bound holds the limits of drain, stop, is_stopped twice and kill, and the shortage of workers."""
    stage_free: dict[str, Any] = {
        "stop_timeout": 10,
        "drain_timeout": 3,
        "kill_timeout": 5,
        "is_stopped_timeout": 1,
        "salvage_timeout": 0,
    }

    class Plain:
        def stop(self) -> None: ...

    class Whole(Plain):
        def drain(self) -> None: ...
        def kill(self) -> None: ...
        def is_stopped(self) -> bool:
            return True

    from lifegraph import resource

    plain, whole = resource(name="a", **stage_free)(Plain), resource(name="a", **stage_free)(Whole)
    bare = Graph(plain).plan().worst_case
    assert 10 <= bare <= 11
    one = Graph(whole).plan().worst_case
    assert 3 + 10 + 1 + 5 <= one <= 3 + 10 + 1 + 5 + 1 + 1
    second = resource(name="b", **stage_free)(type("Second", (Whole,), {}))
    assert 2 * (10 + 1 + 5) <= Graph(whole, second, workers=1).plan().worst_case


def test_what_is_over_in_time_is_within_the_worst_case(stage: Stage) -> None:
    """A chain in which everything hangs as long as it may is over before the plan's worst case."""
    kinds = [
        stage.kind(
            f"r{n}",
            [f"r{n - 1}"] if n else [],
            drain="hangs",
            stop="hangs",
            stop_timeout=0.2,
            drain_timeout=0.2,
            is_stopped=[False, True],
            kill="ok",
            kill_timeout=0.2,
        )
        for n in range(3)
    ]
    graph = stage.up(*kinds)
    worst = graph.plan().worst_case
    report = stage.way.teardown(graph)
    assert report.ok
    assert 0.6 <= report.seconds <= worst + SLACK
