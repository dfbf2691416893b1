"""Layouts: nothing overlaps, edges lead downwards, and few of them cross."""

from __future__ import annotations

import random
import re
import shutil
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifegraph.view.cycles import knotted, turned
from lifegraph.view.layout import Engine, Picture, arranged
from lifegraph.view.layout.coordinates import settled
from lifegraph.view.layout.crossings import crossings
from lifegraph.view.layout.ordering import swept
from lifegraph.view.layout.ranks import ranked
from lifegraph.view.layout.simplex import shortened

Edges = list[tuple[int, int]]
ENGINES: list[Engine] = ["layered", "broad"]


@st.composite
def dags(draw: st.DrawFn) -> tuple[int, Edges]:
    """A size, and edges that lead to higher numbers."""
    count = draw(st.integers(1, 14))
    pairs = st.tuples(st.integers(0, count - 1), st.integers(0, count - 1)).filter(lambda pair: pair[0] < pair[1])
    return count, sorted(draw(st.sets(pairs, max_size=30))) if count > 1 else []


def scattered(count: int, edges: int, seed: int, span: float = 20) -> Edges:
    """Edges of many lengths."""
    chance = random.Random(seed)
    found: set[tuple[int, int]] = set()
    while len(found) < edges:
        upper = chance.randrange(count - 1)
        found.add((upper, min(count - 1, upper + 1 + int(chance.expovariate(1 / span)))))
    return sorted(found)


def skewed(count: int, edges: int, seed: int) -> Edges:
    """A few that nearly all depend on, and wide rows."""
    chance = random.Random(seed)
    found: set[tuple[int, int]] = set()
    while len(found) < edges:
        upper, lower = chance.randrange(count), int(count * chance.random() ** 3)
        if upper > lower:
            found.add((upper, lower))
    return sorted(found)


def sized(count: int) -> list[tuple[float, float]]:
    """Boxes of different sizes."""
    return [(60.0 + 7 * (n % 9), 20.0 + 10 * (n % 3)) for n in range(count)]


def overlapping(picture: Picture, sizes: list[tuple[float, float]]) -> list[tuple[int, int]]:
    """Pairs of boxes that are not apart, found along the lines in which they stand."""
    by_left = sorted(range(len(sizes)), key=lambda n: picture.middles[n][0] - sizes[n][0] / 2)
    found, active = [], list[int]()
    for node in by_left:
        x, y = picture.middles[node]
        left = x - sizes[node][0] / 2
        active = [other for other in active if picture.middles[other][0] + sizes[other][0] / 2 > left + 0.01]
        found += [
            (o, node) for o in active if abs(picture.middles[o][1] - y) < (sizes[o][1] + sizes[node][1]) / 2 - 0.01
        ]
        active.append(node)
    return found


@pytest.mark.parametrize("engine", ENGINES)
@given(dags())
def test_boxes_are_apart_and_edges_lead_down(engine: Engine, dag: tuple[int, Edges]) -> None:
    """No two boxes overlap, all stand inside the picture, every way begins and ends at its boxes, the upper one first."""
    count, edges = dag
    sizes = sized(count)
    picture = arranged(sizes, edges, engine=engine)
    assert [] == overlapping(picture, sizes)
    for (x, y), (width, height) in zip(picture.middles, sizes, strict=True):
        assert -0.01 <= x - width / 2 <= x + width / 2 <= picture.width + 0.01
        assert -0.01 <= y - height / 2 <= y + height / 2 <= picture.height + 0.01
    for (upper, lower), way in zip(edges, picture.ways, strict=True):
        begins, ends = picture.middles[upper], picture.middles[lower]
        assert pytest.approx((begins[0], begins[1] + sizes[upper][1] / 2)) == way[:2]
        assert pytest.approx((ends[0], ends[1] - sizes[lower][1] / 2)) == way[-2:]
        assert way[1] < way[-1]
        assert 2 == len(way) % 6


@given(dags())
def test_the_same_graph_has_the_same_picture(dag: tuple[int, Edges]) -> None:
    """Nothing depends on chance."""
    assert arranged(sized(dag[0]), dag[1], engine="layered") == arranged(sized(dag[0]), dag[1], engine="layered")


@given(dags())
def test_ranks_are_feasible_and_short(dag: tuple[int, Edges]) -> None:
    """Every edge leads at least one row down, and the simplex makes edges no longer."""
    count, edges = dag
    below: list[list[int]] = [[] for _ in range(count)]
    above: list[list[int]] = [[] for _ in range(count)]
    for upper, lower in edges:
        below[upper].append(lower)
        above[lower].append(upper)
    quick = ranked(below, above)
    best = shortened(quick, edges, 200)
    lengths = [[rank[lower] - rank[upper] for upper, lower in edges] for rank in (quick, best)]
    assert all(length >= 1 for each in lengths for length in each)
    assert sum(lengths[1]) <= sum(lengths[0])


def test_the_shortest_edges_are_found() -> None:
    """A node between two long chains stands where its edges are shortest: what takes several exchanges."""
    edges = [(0, 1), (1, 2), (2, 3), (4, 3), (5, 4), (0, 6), (6, 3), (7, 6), (7, 4)]
    best = shortened([0, 1, 2, 3, 1, 0, 1, 0], edges, 100)
    least = min(
        sum(rank[b] - rank[a] for a, b in edges)
        for rank in _all_ranks(8, 4)
        if all(rank[b] > rank[a] for a, b in edges)
    )
    assert least == sum(best[b] - best[a] for a, b in edges)


def _all_ranks(count: int, rows: int) -> list[list[int]]:
    found: list[list[int]] = [[]]
    for _ in range(count):
        found = [[*each, row] for each in found for row in range(rows)]
    return found


@given(st.lists(st.tuples(st.floats(-50, 50), st.floats(0.1, 5), st.floats(1, 20)), min_size=1, max_size=9))
def test_settling_keeps_order_and_distance(items: list[tuple[float, float, float]]) -> None:
    """Places keep their distances, and what is free to stand where it wants stands there."""
    wants, weights, steps = (list(column) for column in zip(*items, strict=True))
    offset = [sum(steps[:at]) for at in range(len(steps))]
    places = settled(wants, weights, offset)
    for at in range(len(places) - 1):
        assert places[at + 1] - places[at] >= offset[at + 1] - offset[at] - 1e-6
    far = [1000.0 * at for at in range(len(wants))]
    assert far == pytest.approx(settled(far, weights, offset))


@given(st.lists(st.lists(st.integers(0, 9), max_size=4), max_size=8))
def test_crossings_are_counted_as_they_are(heads: list[list[int]]) -> None:
    """The count is that of all pairs of edges, one by one."""
    ends = [(tail, head) for tail, places in enumerate(heads) for head in places]
    pairs = [(a, b) for a in ends for b in ends if a[0] < b[0] and a[1] > b[1]]
    assert len(pairs) == crossings(heads)


def crossed_by_dot(count: int, edges: Edges) -> int:
    """What `dot` says of its own crossings."""
    text = "\n".join([*(f"{n};" for n in range(count)), *(f"{a} -> {b};" for a, b in edges)])
    ran = subprocess.run(
        ["dot", "-v", "-Tplain"], input=f"digraph {{ {text} }}", capture_output=True, text=True, timeout=60, check=True
    )
    return int(re.findall(r"mincross \S+ (\d+) crossings", ran.stderr)[-1])


@pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz (the program dot) is not installed")
@pytest.mark.parametrize(
    "edges",
    [scattered(200, 260, 1, 30), scattered(200, 400, 2), scattered(200, 300, 7, 4), skewed(200, 400, 5)],
    ids=["sparse", "medium", "long", "skewed"],
)
def test_few_edges_cross(edges: Edges) -> None:
    """At 200 nodes there are at most one and a half times the crossings of `dot`."""
    picture = arranged([(120.0, 36.0)] * 200, edges, engine="layered")
    assert picture.crossings is not None
    assert picture.crossings <= 1.5 * crossed_by_dot(200, edges)


def test_ten_thousand_are_ordered_and_apart() -> None:
    """A wide and skewed graph of thousands is laid out without overlap, and most crossings are gone."""
    count = 10_000
    edges = skewed(count, 30_000, 2)
    sizes = sized(count)
    picture = arranged(sizes, edges)
    assert picture.width < 4 * picture.height < 16 * picture.width
    assert [] == overlapping(picture, sizes)
    below: list[list[int]] = [[] for _ in range(count)]
    above: list[list[int]] = [[] for _ in range(count)]
    for upper, lower in edges:
        below[upper].append(lower)
        above[lower].append(upper)
    rank = ranked(below, above)
    by_chance: list[list[int]] = [[] for _ in range(max(rank) + 1)]
    for node in random.Random(3).sample(range(count), count):
        by_chance[rank[node]].append(node)
    rows = swept(rank, below, above, 8)
    assert 4 * _near_crossings(rows, rank, below) < _near_crossings(by_chance, rank, below)


def _near_crossings(rows: list[list[int]], rank: list[int], below: list[list[int]]) -> int:
    """The crossings of edges between neighbouring rows."""
    place = {node: at for row in rows for at, node in enumerate(row)}
    return sum(
        crossings([[place[lower] for lower in below[node] if rank[lower] == rank[node] + 1] for node in row])
        for row in rows
    )


@pytest.mark.parametrize("engine", ENGINES)
def test_a_long_chain_is_no_trouble(engine: Engine) -> None:
    """Nothing recurses."""
    picture = arranged([(50.0, 20.0)] * 20_000, [(n, n + 1) for n in range(19_999)], engine=engine)
    assert 19_999 == picture.rows[-1]


def test_lone_nodes_stand_in_lines_below() -> None:
    """What has no edges widens no row: it stands below, in declared order."""
    picture = arranged([(60.0, 20.0)] * 50, [(0, 1)], engine="layered")
    assert all(picture.middles[n][1] > picture.middles[1][1] for n in range(2, 50))
    assert sorted(range(2, 50), key=lambda n: (picture.middles[n][1], picture.middles[n][0])) == list(range(2, 50))


def test_nothing_at_all() -> None:
    """An empty graph has an empty picture."""
    assert (0.0, 0.0) == (arranged([], []).width, arranged([], []).height)


def test_graphviz_that_fails_is_done_without(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where `dot` is missing or broken the layout is our own."""
    ours = arranged([(60.0, 20.0)] * 3, [(0, 1), (1, 2)], engine="layered")
    for program in (None, "/bin/false", "/bin/echo"):
        monkeypatch.setattr("shutil.which", lambda _, program=program: program)
        assert ours == arranged([(60.0, 20.0)] * 3, [(0, 1), (1, 2)])


@pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz (the program dot) is not installed")
@given(dags())
def test_graphviz_is_understood(dag: tuple[int, Edges]) -> None:
    """The places and ways of `dot` are read back: boxes apart, and each way between its boxes."""
    count, edges = dag
    sizes = sized(count)
    picture = arranged(sizes, edges, engine="dot")
    assert [] == overlapping(picture, [(w - 1, h - 1) for w, h in sizes])
    for (upper, lower), way in zip(edges, picture.ways, strict=True):
        for node, (x, y) in ((upper, way[:2]), (lower, way[-2:])):
            assert abs(picture.middles[node][0] - x) <= sizes[node][0] / 2 + 2
            assert abs(picture.middles[node][1] - y) <= sizes[node][1] / 2 + 2


def cyclic(count: int, edges: Edges) -> list[list[int]]:
    """Adjacency lists."""
    below: list[list[int]] = [[] for _ in range(count)]
    for upper, lower in edges:
        below[upper].append(lower)
    return below


@given(st.integers(1, 7).flatmap(lambda n: st.tuples(st.just(n), st.sets(st.tuples(*[st.integers(0, n - 1)] * 2)))))
def test_cycles_are_found_and_opened(graph: tuple[int, set[tuple[int, int]]]) -> None:
    """An edge is knotted if and only if its end leads back to its beginning; without the turned ones nothing is."""
    count, edges = graph
    below = cyclic(count, sorted(edges))
    reach = {(a, b) for a in range(count) for b in below[a]} | {(a, a) for a in range(count)}
    for _ in range(count):
        reach |= {(a, d) for a, b in reach for c, d in reach if b == c}
    assert {(a, b) for a, b in edges if (b, a) in reach} == knotted(below)
    back = turned(below)
    assert back <= knotted(below)
    assert set() == knotted(cyclic(count, sorted(edges - back)))
