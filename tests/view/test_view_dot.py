"""DOT, read back by Graphviz where it is installed."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lifegraph.view import Scene, scene, to_dot
from tests.view.samples import NASTY, golden, named, tiers, tiers_report

needs_dot = pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz (the program dot) is not installed")


def read_back(painted: str) -> tuple[list[str], list[tuple[str, str]]]:
    """The labels of the nodes, in order, and the edges by label, as Graphviz understands them."""
    ran = subprocess.run(["dot", "-Tdot_json"], input=painted.encode(), capture_output=True, timeout=60, check=True)
    assert b"" == ran.stderr
    drawn: dict[str, Any] = json.loads(ran.stdout)
    # Graphviz keeps backslash escapes and entities in its labels and resolves them when it draws.
    labels = [html.unescape(node["label"].replace("\\\\", "\\")) for node in drawn.get("objects", [])]
    assert [f"n{index}" for index in range(len(labels))] == [node["name"] for node in drawn.get("objects", [])]
    return labels, [(labels[edge["tail"]], labels[edge["head"]]) for edge in drawn.get("edges", [])]


def expected(drawn: Scene) -> tuple[list[str], list[tuple[str, str]]]:
    """The labels and edges a scene has."""
    labels = [node.label[0] for node in drawn.nodes]
    return labels, [(labels[edge.dependent], labels[edge.dependency]) for edge in drawn.edges]


@pytest.mark.parametrize(
    ("name", "painted"),
    [
        ("plain.dot", to_dot(scene(tiers()))),
        ("poisoned.dot", to_dot(scene(tiers(), tiers_report()))),
        ("focus-reduced.dot", to_dot(scene(tiers(), tiers_report(), reduce=True, focus="PrimaryTier"))),
        ("nasty.dot", to_dot(scene(named(NASTY)))),
    ],
)
def test_dot_looks_as_agreed(name: str, painted: str) -> None:
    """The text is what the golden file shows."""
    golden(name, painted)


@needs_dot
def test_a_colon_is_no_port() -> None:
    """VIZ-01: names with colons come back whole, and edges point where they should."""
    drawn = scene(named(["3::3", "db:5432", "a"], [(0, 1), (1, 2), (0, 2)]))
    edges = [("3::3", "db:5432"), ("3::3", "a"), ("db:5432", "a")]
    assert (["3::3", "db:5432", "a"], edges) == read_back(to_dot(drawn))


@needs_dot
def test_nasty_names_come_back() -> None:
    """Every name of a nasty collection is read back as it was shown."""
    drawn = scene(named(NASTY, [(index, index + 1) for index in range(len(NASTY) - 1)]))
    assert expected(drawn) == read_back(to_dot(drawn))


@needs_dot
@settings(max_examples=25, deadline=None)
@given(st.lists(st.text(st.characters(), max_size=12), unique=True, min_size=1, max_size=30), st.text())
def test_any_name_comes_back(names: list[str], title: str) -> None:
    """Whatever the names, Graphviz reads the nodes and edges that were written, without a warning."""
    drawn = scene(named(names, [(0, index) for index in range(1, len(names))], title=title))
    assert expected(drawn) == read_back(to_dot(drawn))


@needs_dot
def test_a_report_is_valid_dot() -> None:
    """Fates, errors and styles are read without a warning."""
    labels, edges = read_back(to_dot(scene(tiers(), tiers_report())))
    assert (10, 13) == (len(labels), len(edges))
    assert 'NixlTier\\n✗ failed after <1 ms\\nOSError: link "a\\b" is down' == labels[3]


@given(st.lists(st.text(st.characters(), max_size=12) | st.sampled_from(NASTY), unique=True, max_size=9), st.text())
def test_strings_stay_inside_their_quotes(names: list[str], title: str) -> None:
    """Without its quoted strings a drawing is made of our own words only, one statement a line."""
    painted = to_dot(scene(named(names), None))
    bare = re.sub(r'"(?:[^"\\\n]|\\.)*"', "S", painted)
    assert re.fullmatch(r"[\w\s\[\]{}=,;.>-]*", bare)
    assert len(names) == len(
        re.findall(r"^  n\d+ \[label=S, fillcolor=S, color=S, fontcolor=S\];$", bare, re.MULTILINE)
    )


def test_ten_thousand_nodes_are_written() -> None:
    """A big graph has a line for every node and edge."""
    drawn = scene(named([f"r{index}" for index in range(10_000)], [(index // 3, index) for index in range(1, 10_000)]))
    assert 9_999 == to_dot(drawn).count(" -> n")
