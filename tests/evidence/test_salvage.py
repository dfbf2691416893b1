"""Salvage: what is poisoned or abandoned may save its data, and that changes no fate."""

from __future__ import annotations

import threading

import pytest

from lifegraph import Graph, quarantine
from tests.evidence.stage import SHORT, Stage, Step
from tests.graph.world import PATIENCE, Elsewhere, fates


def test_the_poisoned_and_the_abandoned_run_it(stage: Stage) -> None:
    """And nobody else does: not what is released, failed or timed out."""
    graph = stage.up(
        stage.kind("base", salvage="ok"),
        stage.kind("middle", ["base"], salvage="ok"),
        stage.kind("bad", ["middle"], stop="raises", salvage="ok"),
        stage.kind("hung", stop="hangs", salvage="ok"),
        stage.kind("fine", salvage="ok"),
    )
    report = stage.way.teardown(graph)
    assert {"base", "middle"} == set(stage.names("salvage"))
    assert 2 == len(stage.names("salvage"))
    assert {"base", "middle"} == set(report.poisoned)
    graph = stage.up(stage.kind("late", salvage="ok"))
    assert {"late": "abandoned"} == fates(stage.way.teardown(graph, grace=0))
    assert "late" in stage.names("salvage")


def test_it_is_never_called_under_a_stop(stage: Stage) -> None:
    """No stop of the same resource is called before or after it."""
    stage.life(stage.kind("base", salvage="ok", kill="ok", is_stopped=True), stage.kind("bad", ["base"], stop="raises"))
    assert ["salvage"] == stage.called("base")


def test_one_that_fails_is_noted(stage: Stage) -> None:
    """Its error stands in the notes, fates stay, and others are run."""
    _, report = stage.life(
        stage.kind("one", salvage=OSError("disk full")),
        stage.kind("two", salvage="ok"),
        stage.kind("three", salvage="hangs"),
        stage.kind("bad", ["one", "two", "three"], stop="raises"),
    )
    assert {"one": "poisoned", "two": "poisoned", "three": "poisoned", "bad": "failed"} == fates(report)
    notes = "\n".join(report.notes)
    assert "one" in notes
    assert "disk full" in notes
    assert "three" in notes
    assert "salvage" in notes
    assert {"one", "two", "three"} == set(stage.names("salvage"))
    assert None is report.outcomes["one"].error


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(2)], ids=repr)
def test_one_interrupted(sync_stage: Stage, error: BaseException) -> None:
    """A BaseException out of a salvage is a note as well."""
    _, report = sync_stage.life(sync_stage.kind("base", salvage=error), sync_stage.kind("bad", ["base"], stop="raises"))
    assert {"base": "poisoned", "bad": "failed"} == fates(report)
    assert type(error).__name__ in "\n".join(report.notes)


def test_it_ignores_workers(sync_stage: Stage) -> None:
    """With one worker, all salvages run side by side."""
    together = threading.Barrier(8)
    kinds = [
        sync_stage.kind(f"r{n}", salvage=lambda: together.wait(PATIENCE), salvage_timeout=PATIENCE) for n in range(8)
    ]
    bad = sync_stage.kind("bad", [f"r{n}" for n in range(8)], stop="raises")
    _, report = sync_stage.life(*kinds, bad, workers=1)
    assert 8 == len(report.poisoned)
    assert not together.broken
    assert not [note for note in report.notes if "salvage" in note]


def test_it_has_its_time_beyond_the_grace(stage: Stage) -> None:
    """A grace of nothing leaves a salvage its whole limit; the worst case is grace and the longest of them."""
    step = Step(stage)
    graph = stage.up(stage.kind("a", salvage=step, salvage_timeout=PATIENCE))
    tearing = stage.tearing(graph, grace=0)
    step.reach()
    assert not tearing.is_over(within=0.1)
    step.leave()
    report = tearing.result()
    assert {"a": "abandoned"} == fates(report)
    assert ["salvage over"] == [hook for hook, _ in stage.log if hook == "salvage over"]


def test_many_that_hang_take_one_limit(stage: Stage) -> None:
    """They are given up together."""
    kinds = [stage.kind(f"r{n}", salvage="hangs", salvage_timeout=0.2) for n in range(40)]
    bad = stage.kind("bad", [f"r{n}" for n in range(40)], stop="raises")
    _, report = stage.life(*kinds, bad)
    assert 40 == len(report.poisoned)
    assert report.seconds < 6


def test_it_runs_in_a_hurry(sync_stage: Stage) -> None:
    """A hurried teardown still saves data: what it abandons and poisons runs its salvage."""
    entered = threading.Event()

    def hang() -> None:
        entered.set()
        sync_stage.gate.block()

    graph = sync_stage.up(
        sync_stage.kind("base", salvage="ok"),
        sync_stage.kind("waits", salvage="ok", depends_on=["base"]),
        sync_stage.kind("runs", ["waits"], stop=hang, stop_timeout=None),
        workers=2,
    )
    tearing = Elsewhere(lambda: graph.teardown(grace=0.3))
    assert entered.wait(PATIENCE)
    report = tearing.result()
    assert {"base": "poisoned", "waits": "poisoned", "runs": "timed_out"} == fates(report)
    assert {"base", "waits"} == set(sync_stage.names("salvage"))


def test_the_object_goes_to_the_quarantine(stage: Stage) -> None:
    """Saved or not, the object is held afterwards."""
    graph, _ = stage.life(
        stage.kind("base", salvage="ok"), stage.kind("bad", ["base"], stop="raises"), name="salvaged and held"
    )
    assert {"base", "bad"} == {held.resource for held in quarantine() if held.graph == "salvaged and held"}
    assert graph.report is not None


def test_a_failed_start_salvages(stage: Stage) -> None:
    """The roll-back is an ordinary teardown here too."""
    from lifegraph import StartError

    graph = Graph(stage.kind("base", salvage="ok"), stage.kind("bad", ["base"], start="raises", stop="raises"))
    with pytest.raises(StartError):
        stage.way.start(graph)
    assert ["base"] == stage.names("salvage")


def test_time_left_in_a_salvage(stage: Stage) -> None:
    """It is the salvage's own limit."""
    told: list[float] = []
    graph: Graph = stage.up(stage.kind("a", salvage=lambda: told.append(graph.time_left()), salvage_timeout=33))
    stage.way.teardown(graph, grace=0)
    assert 25 < told[0] <= 33


def test_a_salvage_that_ends_late_changes_nothing(stage: Stage) -> None:
    """Given up at its limit and ended afterwards: the report stays as it was."""
    step = Step(stage)
    graph = stage.up(stage.kind("a", salvage=step, salvage_timeout=SHORT))
    report = stage.way.teardown(graph, grace=0)
    before = report.to_json()
    step.leave()
    assert before == report.to_json()
    assert report is graph.report
