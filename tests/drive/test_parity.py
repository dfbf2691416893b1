"""One walk for everything: a forecast, a script and real threads give the same fates for the same causes."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from hypothesis import given, settings
from hypothesis import strategies as st

from lifegraph import Fate, Graph, Report, order_only
from lifegraph.drive.scripted import Answer, Scripted
from lifegraph.run import Teardown

BEHAVIOURS = ("ok", "ok", "ok", "raise", "base", "hang")
LIMIT = 0.05


class Thing:
    """A resource that does as it is told."""

    def __init__(self, behaviour: str, gate: threading.Event) -> None:
        self.behaviour = behaviour
        self.gate = gate

    def stop(self) -> None:
        """Return, raise, or hang until the gate opens."""
        match self.behaviour:
            case "raise":
                raise OSError("told to")
            case "base":
                raise SystemExit("told to")
            case "hang":
                self.gate.wait()


@st.composite
def scenarios(draw: st.DrawFn) -> list[tuple[str, list[tuple[int, bool]]]]:
    """Resources in declared order: behaviour, and dependencies among the earlier ones with whether they are used."""
    size = draw(st.integers(1, 9))
    return [
        (
            draw(st.sampled_from(BEHAVIOURS)),
            [(d, draw(st.booleans()) or draw(st.booleans())) for d in range(node) if draw(st.integers(0, 2)) == 0],
        )
        for node in range(size)
    ]


@contextmanager
def built(scenario: list[tuple[str, list[tuple[int, bool]]]]) -> Iterator[Graph]:
    """The graph of a scenario, with its hanging hooks let go at the end."""
    gate = threading.Event()
    graph = Graph(stop_timeout=LIMIT, name="parity")
    for node, (behaviour, dependencies) in enumerate(scenario):
        edges = [f"n{d}" if used else order_only(f"n{d}") for d, used in dependencies]
        limit = LIMIT if behaviour == "hang" else 60  # on a busy machine the others may be slow, and are no less sound
        graph.add(Thing(behaviour, gate), name=f"n{node}", stop="stop", stop_timeout=limit, depends_on=edges)
    try:
        yield graph
    finally:
        gate.set()


def seen(report: Report) -> dict[str, tuple[Fate, tuple[str, ...]]]:
    """What must be the same however a teardown is driven."""
    return {name: (outcome.fate, tuple(sorted(outcome.causes))) for name, outcome in report.outcomes.items()}


def scripted(graph: Graph, behaviours: dict[str, str]) -> tuple[Report, list[tuple[str, str]]]:
    """Tear a graph down by script."""
    answers = {
        "ok": Answer(),
        "raise": Answer(OSError("told to")),
        "base": Answer(SystemExit("told to")),
        "hang": Answer(seconds=float("inf")),
    }
    life = graph._life
    plan, nodes = life.model.freeze(workers=3, grace=None)
    run = Teardown(plan, nodes, life.lives, herald=life.herald)
    driver = Scripted(run, 3, lambda name: answers[behaviours[name]])
    driver.drive()
    assert run.report is not None
    return run.report, driver.told


@given(scenarios())
@settings(max_examples=150, deadline=None)
def test_forecast_script_and_threads_agree(scenario: list[tuple[str, list[tuple[int, bool]]]]) -> None:
    """Whatever fails or hangs, wherever it stands: the forecast is the run, and the script is the run."""
    behaviours = {f"n{node}": behaviour for node, (behaviour, _) in enumerate(scenario)}
    with built(scenario) as graph, built(scenario) as twin:
        forecast = graph.what_if(
            fail=[n for n, b in behaviours.items() if b in ("raise", "base")],
            hang=[n for n, b in behaviours.items() if b == "hang"],
        )
        by_script, told = scripted(twin, behaviours)
        really = graph.teardown()
    assert seen(forecast) == seen(really) == seen(by_script)
    gone = [name for verb, name in told if verb == "go"]
    attempted = {name for name, fate in really.fates.items() if fate is not Fate.POISONED}
    assert sorted(gone) == sorted(attempted), "each is told to go once, or never"
    assert {name for verb, name in told if verb == "give up"} == set(really.timed_out)


def test_a_late_answer_changes_nothing() -> None:
    """What ends after its limit is noted; its fate, and what it poisoned, stay."""
    scenario: list[tuple[str, list[tuple[int, bool]]]] = [("ok", []), ("ok", [(0, True)])]
    with built(scenario) as twin:
        life = twin._life
        plan, nodes = life.model.freeze(workers=1, grace=None)
        run = Teardown(plan, nodes, life.lives, herald=life.herald)
        Scripted(run, 1, lambda name: Answer(seconds=200.0 if name == "n1" else 0.0)).drive()
    assert run.report is not None
    assert {"n0": Fate.POISONED, "n1": Fate.TIMED_OUT} == dict(run.report.fates)
    assert [True] == ["n1: stop ended after 200 s, too late" in note for note in run.notes]
