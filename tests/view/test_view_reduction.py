"""Reduction against its definition."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

import lifegraph.view.reduction as reduction
from lifegraph.view import Kind, Scene, scene
from lifegraph.view.reduction import implied
from tests.view.samples import Graph

Pairs = set[tuple[int, int]]


@st.composite
def mixed_graphs(draw: st.DrawFn) -> Graph:
    """Acyclic graphs with both kinds of edge, declared in any order."""
    count = draw(st.integers(1, 9))
    places = draw(st.permutations(range(count)))
    kinds = draw(st.lists(st.integers(0, 3), min_size=count * count, max_size=count * count))
    lists: tuple[list[list[int]], list[list[int]]] = ([[] for _ in places], [[] for _ in places])
    for upper in range(count):
        for lower in range(upper + 1, count):
            kind = kinds[upper * count + lower]
            if kind < 2:
                lists[kind][places[upper]].append(places[lower])
    return Graph("any", [str(index) for index in range(count)], lists[0], lists[1], [""] * count)


def reach(count: int, pairs: Pairs) -> Pairs:
    """Every pair that a path connects."""
    found = set(pairs)
    for middle in range(count):
        found |= {(a, d) for a, b in found if b == middle for c, d in found if c == middle}
    return found


def pairs_of(drawn: Scene, *kinds: Kind) -> Pairs:
    """The edges of some kinds."""
    return {(edge.dependent, edge.dependency) for edge in drawn.edges if edge.kind in kinds}


@given(mixed_graphs())
def test_reduction_keeps_all_meaning_and_no_more(graph: Graph) -> None:
    """What poisons and what orders stays the same, and without any further edge it would not."""
    count, whole, fewer = len(graph.names), scene(graph), scene(graph, reduce=True)
    for kinds in ((Kind.USE,), (Kind.USE, Kind.ORDER_ONLY)):
        assert reach(count, pairs_of(whole, *kinds)) == reach(count, pairs_of(fewer, *kinds))
    for kind, kinds in ((Kind.USE, (Kind.USE,)), (Kind.ORDER_ONLY, (Kind.USE, Kind.ORDER_ONLY))):
        kept = pairs_of(fewer, *kinds)
        for pair in pairs_of(fewer, kind):
            assert pair not in reach(count, kept - {pair})
    assert set(fewer.edges) <= set(whole.edges)
    assert len(whole.edges) == len(fewer.edges) + fewer.hidden


def test_many_passes_find_what_one_finds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory bounds the bits of one pass; the answer does not depend on it."""
    chance = random.Random(7)
    below = [sorted({chance.randrange(a + 1, 901) for _ in range(4)}) for a in range(900)] + [[]]
    once = implied(below)
    assert once
    monkeypatch.setattr(reduction, "_BITS", 1)
    assert once == implied(below)


def test_a_cycle_is_left_alone() -> None:
    """Nothing on a cycle or above one is called implied, and nothing hangs."""
    assert set() == implied([[1, 2], [2], [0]])
    assert {(3, 5)} == implied([[1], [0], [0, 1], [4, 5], [5], []])


def test_ten_thousand_nodes_are_reduced() -> None:
    """A big graph with thirty thousand edges is no trouble, nor is a long chain."""
    chance = random.Random(3)
    below = [sorted({chance.randrange(a + 1, min(a + 300, 10_000)) for _ in range(3)}) for a in range(9_999)] + [[]]
    assert implied(below)
    assert set() == implied([[index + 1] for index in range(100_000)] + [[]])
