"""The text tree."""

from __future__ import annotations

import random
import re
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifegraph.view import scene, to_text
from lifegraph.view.labels import cells
from tests.view.samples import (
    NASTY,
    Fate,
    Graph,
    Outcome,
    Report,
    golden,
    graph,
    named,
    rolled_back,
    tiers,
    tiers_report,
)

ANSI = re.compile(r"\x1b\[[0-9;]*m")


@pytest.mark.parametrize(
    ("name", "painted"),
    [
        ("plain.txt", to_text(scene(tiers()))),
        ("poisoned.txt", to_text(scene(tiers(), tiers_report()))),
        ("poisoned-ascii-60.txt", to_text(scene(tiers(), tiers_report()), unicode=False, width=60)),
        ("poisoned-color.txt", to_text(scene(tiers(), tiers_report()), color=True)),
        ("rolled-back.txt", to_text(scene(tiers(), rolled_back()))),
        ("focus-reduced.txt", to_text(scene(tiers(), tiers_report(), reduce=True, focus="PrimaryTier"))),
        ("nasty.txt", to_text(scene(named(NASTY, [(a, a + 1) for a in range(0, len(NASTY) - 1, 2)])))),
    ],
)
def test_trees_look_as_agreed(name: str, painted: str) -> None:
    """The tree is what the golden file shows."""
    golden(name, painted)


def test_small_words() -> None:
    """An empty graph, a lone resource and a good end each have their sentence."""
    assert "names: no resources\n" == to_text(scene(named([])))
    assert "names: 1 resource\n\na\n" == to_text(scene(named(["a"])))
    ended = scene(named(["a"]), Report(True, 0.25, {"a": Fate.released}))
    assert "names: ok after 0.25 s: 1 released\n\n✓ a  released\n" == to_text(ended)


def test_a_shared_resource_is_expanded_once() -> None:
    """A ladder of diamonds has a line for each edge, not for each of its paths."""
    rungs = 200
    edges = [(3 * i, 3 * i + side) for i in range(rungs) for side in (1, 2)]
    edges += [(3 * i + side, 3 * i + 3) for i in range(rungs) for side in (1, 2)]
    text = to_text(scene(named([f"r{index}" for index in range(3 * rungs + 1)], edges)))
    assert 1 + len(edges) + 1 <= len(text.splitlines()) <= 1 + len(edges) + 5
    assert rungs == text.count("see above")


@pytest.mark.parametrize("width", [None, 40])
def test_a_long_chain_goes_on_flat(width: int | None) -> None:
    """Indentation ends, depth is told in brackets, and the text grows with the chain only."""
    count = 100_000
    chain = named([f"r{index}" for index in range(count)], [(index, index + 1) for index in range(count - 1)])
    lines = to_text(scene(chain), width=width).splitlines()
    assert count + 5 == len(lines)
    assert lines[count + 1].endswith(f"(99999) r{count - 1}")
    assert max(map(len, lines)) < 110


def test_ten_thousand_nodes_take_a_line_an_edge() -> None:
    """A big graph is painted without exploding."""
    chance = random.Random(1)
    pairs = sorted({(a, chance.randrange(a + 1, 10_000)) for a in range(9_999) for _ in range(3)})
    lines = to_text(scene(named([f"r{index}" for index in range(10_000)], pairs))).splitlines()
    assert len(pairs) < len(lines) < len(pairs) + 10_000


def test_nothing_is_lost_on_a_cycle() -> None:
    """A graph with a cycle is drawn whole: no resource and no edge is missing."""
    text = to_text(scene(named(["a", "b", "c", "d"], [(0, 1), (1, 0), (2, 2), (3, 0)])))
    around = ["    └── b  ↺ on a cycle", "        └── a  ↺ on a cycle  ↑ see above"]
    assert ["d", "└── a", *around, "c", "└── c  ↺ on a cycle  ↑ see above"] == text.splitlines()[2:8]
    assert "↺ none of these could stop first" in text


def test_many_lines_of_error_are_counted() -> None:
    """A long error shows its beginning and how much more there is."""
    report = Report(False, 1.0, {"a": Fate.failed}, {"a": Outcome("\n".join("12345678"), "E")})
    text = to_text(scene(named(["a"]), report))
    assert "      5\n      and 3 more lines\n" in text


def test_a_failed_start_is_told() -> None:
    """Where a start failed the line below says so, though nothing is left to release."""
    report = Report(True, 0.1, {"a": Fate.skipped}, {"a": Outcome(start_error="OSError: x")})
    assert "start failed: OSError: x" in to_text(scene(named(["a"]), report))


@pytest.mark.parametrize(("error", "said"), [("OSError: x", "start failed"), (None, "start called off")])
def test_the_first_line_says_that_the_start_did_not_end_well(error: str | None, said: str) -> None:
    """A clean roll-back is not told as a plain ok; one that left something is told as both."""
    source, outcomes = named(["a"]), {"a": Outcome(start_error=error)}
    clean = Report(True, 0.1, {"a": Fate.skipped}, outcomes, start_failed=True)
    line = f"names: {said}; all that was up is released after 0.10 s: 1 skipped\n"
    assert to_text(scene(source, clean)).startswith(line)
    held = Report(False, 0.1, {"a": Fate.timed_out}, outcomes, start_failed=True)
    assert to_text(scene(source, held)).startswith(f"names: {said}, and NOT ok after 0.10 s: 1 timed out\n")


def test_colours_add_nothing_but_colours() -> None:
    """Without its colour sequences a coloured tree is the plain one."""
    for drawn, width in product((scene(tiers(), tiers_report()), scene(tiers(), rolled_back())), (None, 50)):
        assert to_text(drawn, width=width) == ANSI.sub("", to_text(drawn, color=True, width=width))


@st.composite
def anything(draw: st.DrawFn) -> tuple[Graph, Report]:
    """Any names, some edges, any fates."""
    names = draw(st.lists(st.text(st.characters(), max_size=12) | st.sampled_from(NASTY), unique=True, max_size=8))
    pairs = draw(st.sets(st.tuples(st.integers(0, 7), st.integers(0, 7)), max_size=12))
    fates = draw(st.lists(st.sampled_from(Fate), min_size=len(names), max_size=len(names)))
    error = st.none() | st.text(st.characters(), max_size=30)
    outcomes = {name: Outcome(draw(error), draw(error), tuple(names[:2]), 1.0, draw(error)) for name in names}
    source = named(names, sorted((a, b) for a, b in pairs if a < b < len(names)), title=draw(st.text()))
    return source, Report(False, 1.0, dict(zip(names, fates, strict=True)), outcomes)


@given(anything(), st.booleans(), st.booleans(), st.none() | st.integers(0, 100))
def test_no_name_breaks_a_line(drawn: tuple[Graph, Report], unicode: bool, color: bool, width: int | None) -> None:
    """Whatever names and errors are, lines are printable, keep to the width and can be encoded."""
    text = ANSI.sub("", to_text(scene(*drawn), unicode=unicode, color=color, width=width))
    lines = text.split("\n")
    assert all(line.isprintable() for line in lines)
    assert "" == lines[-1]
    text.encode("utf-8" if unicode else "ascii")
    if width is not None:
        assert all(cells(line) <= max(width, 20) for line in lines)


def test_a_legend_says_what_indentation_means() -> None:
    """The legend explains the direction, and only the signs that occur."""
    text = to_text(scene(graph({"a": "b", "b": ""})))
    assert text.endswith("\n\ndependent → dependency: each stands above what it depends on, and stops before it\n")
    assert "├┄┄ only ordered    ┝━━ carried poison" in to_text(scene(tiers(), tiers_report()))
