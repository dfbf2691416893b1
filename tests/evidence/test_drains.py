"""Drains: everybody is told at once that the end is near, and a stop waits for its own drain only."""

from __future__ import annotations

import threading

import pytest

from lifegraph import AnswerLate, Event, Graph, HookTimeout, StartError, TeardownError
from tests.evidence.stage import SHORT, Stage, Step
from tests.graph.world import PATIENCE, fates, until


def test_all_are_told_at_once(stage: Stage) -> None:
    """Drains run side by side, whatever depends on what."""
    together = [Step(stage) for _ in range(6)]
    kinds = [
        stage.kind(f"r{n}", [f"r{n - 1}"] if n else [], drain=step, drain_timeout=None)
        for n, step in enumerate(together)
    ]
    graph = stage.up(*kinds, workers=6)
    tearing = stage.tearing(graph)
    for step in together:
        step.reach()
    assert [] == stage.names("stop")
    for step in together:
        step.leave()
    assert {"released"} == set(fates(tearing.result()).values())
    assert [f"r{n}" for n in range(5, -1, -1)] == stage.names("stop")


def test_a_stop_waits_for_its_own_drain_only(stage: Stage) -> None:
    """What has no drain stops meanwhile, and so does one whose drain is over."""
    slow, stopped = Step(stage), threading.Event()
    graph = stage.up(
        stage.kind("slow", drain=slow, drain_timeout=None),
        stage.kind("quick", drain="ok"),
        stage.kind("plain", stop=lambda: stopped.set()),
        stage.kind("below", ["quick"]),
        name="g",
    )
    tearing = stage.tearing(graph)
    slow.reach()
    until(lambda: {"quick", "plain"} <= set(stage.names("stop over")))
    assert "slow" not in stage.names("stop")
    slow.leave()
    assert {"released"} == set(fates(tearing.result()).values())
    assert stage.place("drain over", "slow") < stage.place("stop", "slow")
    assert stage.place("drain over", "quick") < stage.place("stop", "quick")


def test_a_dependency_drains_while_its_dependent_stops(stage: Stage) -> None:
    """A dependency's slow drain does not hold up the stop of what depends on it."""
    slow = Step(stage)
    graph = stage.up(stage.kind("base", drain=slow, drain_timeout=None), stage.kind("top", ["base"]))
    tearing = stage.tearing(graph)
    slow.reach()
    until(lambda: "top" in stage.names("stop over"))
    slow.leave()
    assert {"base": "released", "top": "released"} == fates(tearing.result())


def test_a_drain_that_raises_is_noted(stage: Stage) -> None:
    """It poisons nothing, its stop is called all the same, and the note names it and its error."""
    _, report = stage.life(
        stage.kind("base"),
        stage.kind("a", ["base"], drain=OSError("no more")),
        stage.kind("b", drain=ValueError("nor this")),
    )
    assert report.ok
    assert {"base", "a", "b"} == set(report.released)
    notes = "\n".join(report.notes)
    assert all(word in notes for word in ("a", "drain", "no more", "nor this"))
    assert "no more" in report.to_json()


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(2)], ids=repr)
def test_a_drain_interrupted(sync_stage: Stage, error: BaseException) -> None:
    """A BaseException out of a drain is a note as well."""
    _, report = sync_stage.life(sync_stage.kind("a", drain=error), sync_stage.kind("b"))
    assert report.ok
    assert type(error).__name__ in "\n".join(report.notes)


def test_a_drain_that_still_runs_unproves_its_stop(stage: Stage) -> None:
    """While it runs, stop returning is no proof: timed out, and what it uses is poisoned."""
    _, report = stage.life(stage.kind("base"), stage.kind("a", ["base"], drain="hangs"), stage.kind("b"))
    assert {"base": "poisoned", "a": "timed_out", "b": "released"} == fates(report)
    assert ["drain", "stop"] == stage.called("a")
    assert ("a",) == report.outcomes["base"].causes
    assert "drain" in report.explain("a")


def test_its_member_is_a_timeout(sync_stage: Stage) -> None:
    """In the TeardownError it is a HookTimeout."""
    with pytest.raises(TeardownError) as caught, Graph(sync_stage.kind("a", drain="hangs")):
        pass
    (member,) = caught.value.exceptions
    assert isinstance(member, HookTimeout)


def test_evidence_decides_over_a_drain_that_runs(stage: Stage) -> None:
    """is_stopped that says so, or a kill, releases it nevertheless."""
    _, report = stage.life(
        stage.kind("base"),
        stage.kind("looked", ["base"], drain="hangs", is_stopped=True),
        stage.kind("killed", ["base"], drain="hangs", kill="ok"),
        stage.kind("denied", drain="hangs", is_stopped=False),
    )
    assert {"base": "released", "looked": "released", "killed": "released", "denied": "timed_out"} == fates(report)
    assert ("killed",) == report.forced


def test_a_drain_that_ends_while_its_stop_runs(stage: Stage) -> None:
    """One that ended after its limit, but before its stop returned, unproves nothing."""
    drain, stop = Step(stage), Step(stage)
    events: list[Event] = []
    graph = stage.up(
        stage.kind("base"),
        stage.kind("a", ["base"], drain=drain, drain_timeout=SHORT, stop=stop),
        observers=[events.append],
    )
    tearing = stage.tearing(graph)
    stop.reach()
    assert "a" not in stage.names("drain over")
    drain.leave()
    until(lambda: any(isinstance(event, AnswerLate) for event in events))
    stop.leave()
    assert {"base": "released", "a": "released"} == fates(tearing.result())


def test_a_drain_counts_inside_the_grace(stage: Stage) -> None:
    """A drain without limit does not outlast the grace: its resource is not attempted, and its objects stay held."""
    graph = stage.up(stage.kind("base"), stage.kind("a", ["base"], drain="hangs", drain_timeout=None))
    report = stage.way.teardown(graph, grace=0.2)
    assert report.seconds < 5
    assert "poisoned" == fates(report)["base"]
    assert fates(report)["a"] in ("abandoned", "timed_out")
    assert not report.ok


def test_only_what_is_up_is_drained(stage: Stage) -> None:
    """What a failed start left skipped is not told, and a failed start drains what is up."""
    graph = Graph(
        stage.kind("base", drain="ok"),
        stage.kind("bad", ["base"], start="raises", stop="ok"),
        stage.kind("never", ["bad"], drain="ok"),
    )
    with pytest.raises(StartError) as caught:
        stage.way.start(graph)
    assert {"base": "released", "bad": "released", "never": "skipped"} == fates(caught.value.report)
    assert ["base"] == stage.names("drain")


def test_a_poisoned_one_was_drained(stage: Stage) -> None:
    """Everything up is told at the closing door, before anybody knows who will be poisoned."""
    _, report = stage.life(stage.kind("base", drain="ok"), stage.kind("bad", ["base"], stop="raises"))
    assert "poisoned" == fates(report)["base"]
    assert ["drain"] == stage.called("base")


def test_a_drain_is_not_in_its_resources_own_lane(sync_stage: Stage) -> None:
    """A dedicated thread is not used for the drain, so one that hangs there holds up nothing of it."""
    threads: dict[str, int] = {}

    def here(word: str) -> None:
        threads[word] = threading.get_ident()

    _, report = sync_stage.life(
        sync_stage.kind(
            "a",
            start=lambda: here("start"),
            drain=lambda: here("drain"),
            stop=lambda: here("stop"),
            lane="dedicated",
        ),
        sync_stage.kind("b", drain="hangs", lane="dedicated"),
    )
    assert threads["start"] == threads["stop"] != threads["drain"]
    assert {"a": "released", "b": "timed_out"} == fates(report)
    assert ["drain", "stop"] == sync_stage.called("b")


def test_a_drain_is_not_in_the_host_task(async_stage: Stage) -> None:
    """An async resource is entered and left in one task; its drain runs in another."""
    import asyncio

    tasks: dict[str, object] = {}

    def here(word: str) -> None:
        tasks[word] = asyncio.current_task()

    async_stage.life(
        async_stage.kind("a", start=lambda: here("start"), drain=lambda: here("drain"), stop=lambda: here("stop"))
    )
    assert tasks["start"] is tasks["stop"]
    assert tasks["drain"] is not tasks["start"]


def test_a_drain_is_told_once(stage: Stage) -> None:
    """Concurrent and repeated teardowns, and a resume, tell it no second time."""
    step = Step(stage)
    graph = stage.up(stage.kind("a", drain=step, stop=["raises", "ok"]))
    first = stage.tearing(graph)
    step.reach()
    second = stage.tearing(graph)
    step.leave()
    assert first.result() is second.result()
    assert 1 == step.calls


def test_the_door_is_closed_before_drains(stage: Stage) -> None:
    """In a drain, the graph takes nothing in any more."""
    from lifegraph import GraphClosingError

    refused = threading.Event()

    def drain() -> None:
        try:
            graph.depend("a", "b")
        except GraphClosingError:
            refused.set()

    graph = stage.up(stage.kind("a", drain=drain), stage.kind("b"))
    stage.way.teardown(graph)
    assert refused.wait(PATIENCE)


def test_time_left_in_a_drain(stage: Stage) -> None:
    """It counts to the drain's limit from the closing door, or to the end of the grace."""
    told: list[float] = []
    graph: Graph = stage.up(stage.kind("a", drain=lambda: told.append(graph.time_left()), drain_timeout=30))
    stage.way.teardown(graph)
    graph2: Graph = stage.up(
        stage.kind("b", drain=lambda: told.append(graph2.time_left()), drain_timeout=300), grace=50
    )
    stage.way.teardown(graph2)
    assert 20 < told[0] <= 30
    assert 40 < told[1] <= 50
