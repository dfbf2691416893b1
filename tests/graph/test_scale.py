"""Large graphs: nothing recurses, nothing grows faster than the graph."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from lifegraph import CycleError, Graph
from tests.graph.world import World, fates, raises


class Link:
    """A cheap resource that counts its stops."""

    __slots__ = ()
    stops = 0

    def close(self) -> None:
        Link.stops += 1


def build(count: int, shape: str) -> Graph:
    """A graph of live objects."""
    graph = Graph(name=shape)
    links = [Link() for _ in range(count)]
    for n, link in enumerate(links):
        match shape:
            case "chain":
                needs: list[Any] = [links[n - 1]] if n else []
            case "fan in":  # all depend on the first
                needs = [links[0]] if n else []
            case _:
                needs = []
        graph.add(link, stop="close", name=str(n), depends_on=needs)
    if shape == "fan out":  # the last depends on all
        graph.add(Link(), stop="close", name="all", depends_on=links)
    return graph


def live(graph: Graph, count: int) -> None:
    """Plan, start and tear down, with everything stopped once."""
    assert count == len(graph.plan())
    before = Link.stops
    graph.start()
    report = graph.teardown()
    assert report.ok
    assert count == len(report.released) == Link.stops - before


@pytest.mark.parametrize("shape", ["chain", "fan in", "fan out", "apart"])
def test_a_hundred_thousand(shape: str) -> None:
    """A chain, fans both ways, and as many alone."""
    count = 100_000
    live(build(count, shape), count + (shape == "fan out"))


@pytest.mark.slow
def test_a_chain_of_a_million() -> None:
    """A million deep, within the usual recursion limit."""
    assert sys.getrecursionlimit() <= 3000
    live(build(1_000_000, "chain"), 1_000_000)


def test_a_chain_that_breaks_far_up(world: World) -> None:
    """A hundred thousand are poisoned by one, and any of them can be explained and forecast."""
    graph = build(100_000, "chain")
    graph.add(world.kind("bad", ["99999"], stop=raises(OSError())))
    assert 100_000 == len(graph.what_if(fail=["bad"]).poisoned)
    graph.start()
    report = graph.teardown()
    assert 100_000 == len(report.poisoned)
    outcome = report.outcomes["0"]
    assert ("bad",) == outcome.causes
    assert 100_001 == len(outcome.paths[0])
    assert "bad" in report.explain("0")
    assert {"failed"} == {fate for name, fate in fates(report).items() if name == "bad"}


def test_a_long_cycle(world: World) -> None:
    """A cycle through a hundred thousand is found, and drawn short."""
    graph = build(100_000, "chain")
    with pytest.raises(CycleError) as caught:
        graph.depend("0", "99999")
    assert len(str(caught.value)) < 10_000
    graph.teardown(grace=0)


def test_deep_chains_of_classes(world: World) -> None:
    """Classes that pull each other in, two thousand deep, need no recursion."""
    below: list[Any] = []
    for n in range(2000):
        below = [world.kind(f"r{n}", below, hooks="stop")]
    graph = Graph(*below)
    graph.start()
    assert graph.teardown().ok
    assert [f"r{n}" for n in reversed(range(2000))] == world.names("stop")
