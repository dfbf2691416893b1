"""SVG, read back as XML."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifegraph.view import scene, to_svg
from tests.view.samples import NASTY, golden, named, tiers, tiers_report

SVG = "{http://www.w3.org/2000/svg}"


def read_back(painted: str) -> tuple[list[str], int, ElementTree.Element]:
    """The first line of each node, how many edges there are, and the whole."""
    root = ElementTree.fromstring(painted.encode())
    groups = list(root.iter(f"{SVG}g"))
    nodes = [group for group in groups if (group.get("class") or "").startswith("node ")]
    edges = [group for group in groups if (group.get("class") or "").startswith("edge ")]
    return ["".join(next(node.iter(f"{SVG}text")).itertext()) for node in nodes], len(edges), root


@pytest.mark.parametrize(
    ("name", "painted"),
    [
        ("plain.svg", to_svg(scene(tiers()), engine="layered")),
        ("poisoned.svg", to_svg(scene(tiers(), tiers_report()), engine="layered")),
        (
            "focus-reduced.svg",
            to_svg(scene(tiers(), tiers_report(), reduce=True, focus="PrimaryTier"), engine="layered"),
        ),
        ("nasty.svg", to_svg(scene(named(NASTY)), engine="layered")),
        ("cycle.svg", to_svg(scene(named(list("abcd"), [(0, 1), (1, 2), (2, 0), (3, 0), (3, 3)])), engine="layered")),
    ],
)
def test_pictures_look_as_agreed(name: str, painted: str) -> None:
    """The text is what the golden file shows."""
    golden(name, painted)


@given(st.lists(st.text(st.characters(), max_size=12) | st.sampled_from(NASTY), unique=True, max_size=9), st.text())
def test_any_name_is_well_formed(names: list[str], title: str) -> None:
    """Whatever the names, an XML parser reads a node for each, and the edges."""
    drawn = scene(named(names, [(0, index) for index in range(1, len(names))], title=title))
    labels, edges, _ = read_back(to_svg(drawn, engine="layered"))
    assert len(names) == len(labels)
    assert max(0, len(names) - 1) == edges
    short = [node.label[0] for node in drawn.nodes if len(node.label[0]) < 15]
    assert short == [label for label in labels if label in short]


def test_it_needs_nothing_from_anywhere() -> None:
    """No script, no style sheet, no reference to anything."""
    painted = to_svg(scene(named(NASTY)), engine="layered")
    _, _, root = read_back(painted)
    assert {"svg", "title", "rect", "text", "g", "path"} >= {element.tag.removeprefix(SVG) for element in root.iter()}
    assert not [key for element in root.iter() for key in element.attrib if re.match("on|href|style|.*}href", key)]


def test_shapes_and_words_tell_the_fates() -> None:
    """Each fate has its word and its outline; poison has its own stroke, and the legend says all of them."""
    painted = to_svg(scene(tiers(), tiers_report()), engine="layered")
    for said in ("✗ failed", "◷ timed out", "⊘ abandoned", "☣ poisoned", "✓ released", "○ skipped", "only ordered"):
        assert said in painted
    assert 4 == painted.count('class="edge poison"')
    assert "arrows point from dependent to dependency" in painted


def test_cycles_are_marked() -> None:
    """Edges of a cycle have a stroke of their own, and the legend says so."""
    painted = to_svg(scene(named(["a", "b", "c"], [(0, 1), (1, 0), (2, 0)])), engine="layered")
    assert 2 == painted.count('class="edge cycle"')
    assert "lies on a cycle" in painted
