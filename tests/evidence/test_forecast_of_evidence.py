"""Forecasts suppose that kill and is_stopped do not help, and say where a kill might."""

from __future__ import annotations

from tests.evidence.stage import Stage
from tests.graph.world import fates


def test_forecasts_ignore_evidence(stage: Stage) -> None:
    """The fates of a supposed fault are those without evidence, and no hook is called."""
    graph = stage.up(
        stage.kind("base", drain="ok", salvage="ok"),
        stage.kind("a", ["base"], kill="ok", is_stopped=True),
        stage.kind("b", ["base"], kill="ok"),
        stage.kind("c", kill="ok"),
    )
    stage.log.clear()
    failing, hanging = graph.what_if(fail=["a"]), graph.what_if(hang=["a"])
    assert {"base": "poisoned", "a": "failed", "b": "released", "c": "released"} == fates(failing)
    assert {"base": "poisoned", "a": "timed_out", "b": "released", "c": "released"} == fates(hanging)
    assert [] == stage.log
    assert () == failing.forced == hanging.forced
    assert {"released"} == set(fates(graph.what_if()).values())


def test_notes_name_whose_kill_might_help(stage: Stage) -> None:
    """Those that fail or hang and have a kill; nobody else."""
    graph = stage.up(
        stage.kind("base", kill="ok"),
        stage.kind("armed", ["base"], kill="ok"),
        stage.kind("unarmed", ["base"], is_stopped=True),
        stage.kind("untouched", kill="ok"),
    )
    notes = "\n".join(graph.what_if(fail=["armed", "unarmed"]).notes)
    assert "armed" in notes.split("unarmed")[0]
    assert "kill" in notes
    assert "unarmed" not in notes
    assert "untouched" not in notes
    assert "armed" in "\n".join(graph.what_if(hang=["armed"]).notes)
    assert () == graph.what_if(fail=["unarmed"]).notes
    assert () == graph.what_if().notes


def test_a_run_whose_evidence_does_not_help_is_the_forecast(stage: Stage) -> None:
    """Fates and causes agree where kill and is_stopped prove nothing."""
    graph = stage.up(
        stage.kind("base"),
        stage.kind("middle", ["base"]),
        stage.kind("a", ["middle"], stop="raises", kill="raises", is_stopped=False),
        stage.kind("b", ["base"], stop="hangs", kill="hangs", is_stopped="raises"),
        stage.kind("c", is_stopped=False),
    )
    forecast = graph.what_if(fail=["a", "c"], hang=["b"])
    report = stage.way.teardown(graph)
    assert fates(forecast) == fates(report)
    for name in report.fates:
        assert set(forecast.outcomes[name].causes) == set(report.outcomes[name].causes)
