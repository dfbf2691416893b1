"""Plans and forecasts: what will be, without touching anything."""

from __future__ import annotations

import itertools
import math
import pickle
import threading
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lifegraph import Graph, MissingDependencyError, order_only, resource
from tests.graph.world import World, fates, raises

Shape = tuple[int, dict[tuple[int, int], bool]]


@st.composite
def shapes(draw: st.DrawFn, largest: int = 9) -> Shape:
    """How many resources, and the edges among them: (dependent, dependency) -> whether it uses it."""
    size = draw(st.integers(1, largest))
    pairs = [(a, b) for a in range(size) for b in range(a)]
    chosen = draw(st.lists(st.sampled_from(pairs), unique=True, max_size=14)) if pairs else []
    return size, {pair: draw(st.booleans()) for pair in chosen}


def needs(shape: Shape, node: int) -> list[Any]:
    """What one of them depends on."""
    return [f"r{b}" if uses else order_only(f"r{b}") for (a, b), uses in sorted(shape[1].items()) if a == node]


def oracle(shape: Shape, bad: set[int]) -> dict[str, str]:
    """The fates by the rule alone: poisoned is what a failed one uses, transitively; what is poisoned does not fail."""
    size, edges = shape
    poisoned: set[int] = set()
    for node in range(size - 1, -1, -1):  # dependents have greater numbers
        for (dependent, dependency), uses in edges.items():
            if dependency == node and uses and (dependent in poisoned or dependent in bad):
                poisoned.add(node)
    return {f"r{n}": "poisoned" if n in poisoned else "failed" if n in bad else "released" for n in range(size)}


@given(shapes(), st.data())
def test_a_forecast_is_what_then_happens(shape: Shape, data: st.DataObject) -> None:
    """Fates, causes and paths of a forecast are those of a real run with these faults, and both follow the rule."""
    size, _ = shape
    failing = data.draw(st.sets(st.integers(0, size - 1), max_size=3))
    hanging = data.draw(st.sets(st.integers(0, size - 1), max_size=1))
    world = World()

    def stop(n: int) -> Any:
        return world.hang if n in hanging else raises(OSError()) if n in failing else None

    order = data.draw(st.permutations(range(size)))
    kinds = [
        world.kind(f"r{n}", needs(shape, n), stop=stop(n), stop_timeout=0.05 if n in hanging else 20) for n in order
    ]
    graph = Graph(*kinds, workers=data.draw(st.sampled_from([1, 3, 32])))
    forecast = graph.what_if(fail=[f"r{n}" for n in failing - hanging], hang=[f"r{n}" for n in hanging])
    assert [] == world.log
    graph.start()
    report = graph.teardown()
    world.gate.set()
    assert fates(forecast) == fates(report)
    expected = oracle(shape, failing | hanging)
    assert expected == {name: "failed" if fate == "timed_out" else fate for name, fate in fates(report).items()}
    for name in report.fates:
        ours, theirs = report.outcomes[name], forecast.outcomes[name]
        assert set(ours.causes) == set(theirs.causes)
        assert {(path[0], path[-1]) for path in ours.paths} == {(cause, name) for cause in ours.causes}
        for path in ours.paths:
            for above, below in itertools.pairwise(path):
                assert shape[1][int(above[1:]), int(below[1:])], "a path along what carries no poison"
    assert (forecast.ok, forecast.exit_code) == (report.ok, report.exit_code)
    assert forecast.forecast
    assert not report.forecast
    expected_stops = {name for name, fate in fates(report).items() if fate != "poisoned"}
    assert expected_stops == set(world.names("stop"))
    assert len(expected_stops) == len(world.names("stop"))


@given(shapes())
def test_a_plan_says_the_edges_in_order(shape: Shape) -> None:
    """Order and levels respect every edge, the edges are those declared, and every name is there once."""
    world, (size, edges) = World(), shape
    plan = Graph(*[world.kind(f"r{n}", needs(shape, n)) for n in range(size)]).plan()
    names = [f"r{n}" for n in range(size)]
    assert sorted(names) == sorted(plan.order)
    assert sorted(names) == sorted(name for level in plan.levels for name in level)
    level_of = {name: number for number, level in enumerate(plan.levels) for name in level}
    for (a, b), _ in edges.items():
        assert plan.order.index(f"r{a}") < plan.order.index(f"r{b}")
        assert level_of[f"r{a}"] < level_of[f"r{b}"]
    assert {(f"r{a}", f"r{b}", uses) for (a, b), uses in edges.items()} == {tuple(edge) for edge in plan.edges}
    assert size == len(plan)
    assert plan == pickle.loads(pickle.dumps(plan))


@given(shapes(), st.data())
def test_the_critical_path_and_the_worst_case(shape: Shape, data: st.DataObject) -> None:
    """The path with the greatest sum of limits; the worst case is no less, and no more than all limits in a row."""
    world, (size, edges) = World(), shape
    limits = [data.draw(st.sampled_from([0.5, 1, 2, 7])) for _ in range(size)]
    workers = data.draw(st.sampled_from([1, 2, 32]))
    graph = Graph(*[world.kind(f"r{n}", needs(shape, n), stop_timeout=limits[n]) for n in range(size)], workers=workers)
    plan = graph.plan()
    longest = [0.0] * size
    for n in range(size):
        longest[n] = limits[n] + max((longest[b] for (a, b) in edges if a == n), default=0)
    path = [int(name[1:]) for name in plan.critical_path]
    assert max(longest) == pytest.approx(sum(limits[n] for n in path))
    assert all((a, b) in edges for a, b in itertools.pairwise(path))
    assert plan.worst_case >= max(longest) - 1e-6
    assert plan.worst_case >= sum(limits) / workers - 1e-6
    if workers == 1:
        assert plan.worst_case == pytest.approx(sum(limits), rel=0.01) or plan.worst_case > sum(limits)


def test_a_worst_case_bounds_what_happens(world: World) -> None:
    """A teardown in which everything takes its whole limit ends within it."""
    hung = [world.kind(f"r{n}", stop=world.hang, stop_timeout=0.1) for n in range(6)]
    graph = Graph(*hung, workers=2)
    bound = graph.plan().worst_case
    graph.start()
    report = graph.teardown()
    assert 6 == len(report.timed_out)
    assert report.seconds <= bound + 0.5


def test_worst_cases_without_end(world: World) -> None:
    """Without a limit it is infinite, unless there is a grace."""
    assert math.inf == Graph(world.kind("a", stop_timeout=None)).plan().worst_case
    assert 5 == Graph(world.kind("a", stop_timeout=None), grace=5).plan().worst_case
    assert 0 == Graph().plan().worst_case


def test_timeouts(world: World) -> None:
    """The stop limit of each."""
    plan = Graph(world.kind("a", stop_timeout=3), world.kind("b"), world.kind("c", stop_timeout=None)).plan()
    assert {"a": 3, "b": 10, "c": None} == dict(plan.timeouts)


def test_a_plan_is_frozen(world: World) -> None:
    """It cannot be changed, and does not change with its graph."""
    graph = Graph(world.kind("a"))
    plan = graph.plan()
    graph.add(world.kind("b"))
    assert ("a",) == plan.order
    with pytest.raises(AttributeError):
        plan.names = ()  # type: ignore[misc]  # that is the point


class TestWhatIf:
    """Faults supposed."""

    def test_keys_of_all_kinds(self, world: World) -> None:
        """Names, classes and instances; one alone or several; an unknown one is an error."""
        kind, live = world.kind("b", ["a"]), world.kind("c", ["a"])()
        graph = Graph(world.kind("a"), kind, live)
        for key in ("b", kind):
            assert {"a": "poisoned", "b": "failed", "c": "released"} == fates(graph.what_if(fail=[key]))
        assert "failed" == fates(graph.what_if(fail=[live]))["c"]
        assert "timed_out" == fates(graph.what_if(hang="b"))["b"]
        assert {"released"} == set(fates(graph.what_if()).values())
        with pytest.raises(MissingDependencyError, match="did you mean"):
            Graph(world.kind("disk")).what_if(fail=["dsik"])
        graph.teardown()

    def test_it_touches_nothing(self, world: World) -> None:
        """Nothing is made, and the graph is as new afterwards."""
        graph = Graph(world.kind("a"), world.kind("b", ["a"]))
        graph.what_if(fail=["b"])
        graph.blast()
        graph.plan()
        assert [] == world.log
        assert "new" == graph.state
        assert graph.report is None

    def test_in_a_running_graph(self, world: World) -> None:
        """It can be asked at any time."""
        with Graph(world.kind("a"), world.kind("b", ["a"])) as graph:
            assert "poisoned" == fates(graph.what_if(fail=["b"]))["a"]
            assert [] == world.names("stop")

    def test_kills_are_noted(self, world: World) -> None:
        """Those whose kill might help are named in the notes."""
        kind = resource(stop=None, kill=lambda it: None, name="k")(type("K", (), {}))
        report = Graph(kind, world.kind("other")).what_if(hang=["k"], fail=["other"])
        (note,) = report.notes
        assert "k" in note

    def test_it_can_be_explained_and_sent(self, world: World) -> None:
        """A forecast is a report like any other."""
        from lifegraph import Report

        report = Graph(world.kind("a"), world.kind("b", ["a"])).what_if(hang=["b"])
        assert "b" in report.explain("a")
        again = Report.from_json(report.to_json())
        assert again.forecast
        assert report.fates == again.fates


class TestBlast:
    """What each failure would poison."""

    @given(shapes())
    def test_it_is_what_a_forecast_says(self, shape: Shape) -> None:
        """For every resource the names are those that what_if poisons; the largest come first."""
        world, (size, _) = World(), shape
        graph = Graph(*[world.kind(f"r{n}", needs(shape, n)) for n in range(size)])
        blasts = graph.blast()
        assert {f"r{n}" for n in range(size)} == {blast.name for blast in blasts}
        sizes = [len(blast.poisoned) for blast in blasts]
        assert sorted(sizes, reverse=True) == sizes
        for blast in blasts:
            assert graph.what_if(fail=[blast.name]).poisoned == blast.poisoned

    def test_bytes(self, world: World) -> None:
        """Bytes of what would be poisoned are summed where they are known."""

        class Region:
            def __init__(self, nbytes: int) -> None:
                self.nbytes = nbytes

        graph = Graph()
        one, two = graph.add(Region(3), stop=None), graph.add(Region(4), stop=None)
        graph.add(world.kind("user", [one, two]))
        graph.add(world.kind("other", ["user"]))
        blasts = {blast.name: blast for blast in graph.blast()}
        assert (7, 7, 0) == (blasts["user"].bytes, blasts["other"].bytes, blasts["Region"].bytes)
        assert "other" == graph.blast()[0].name
        graph.teardown()


@settings(max_examples=40)
@given(shapes(), st.data())
def test_pictures_of_any_graph(shape: Shape, data: st.DataObject) -> None:
    """Every graph and report can be drawn as text, DOT and Mermaid."""
    world, (size, _) = World(), shape
    graph = Graph(*[world.kind(f"r{n}", needs(shape, n)) for n in range(size)])
    report = graph.what_if(fail=data.draw(st.sets(st.sampled_from([f"r{n}" for n in range(size)]))))
    for drawn in (
        graph.to_text(),
        graph.to_dot(),
        graph.to_mermaid(),
        report.to_text(),
        report.to_dot(),
        report.to_mermaid(),
    ):
        assert all(f"r{n}" in drawn for n in range(size))


def test_a_plan_can_be_asked_while_it_runs(world: World) -> None:
    """From a hook, and from other threads."""
    seen: list[Any] = []
    graph = Graph(world.kind("a", stop=lambda: seen.append((graph.plan().order, threading.get_ident()))))
    graph.start()
    graph.teardown()
    assert ("a",) == seen[0][0]
