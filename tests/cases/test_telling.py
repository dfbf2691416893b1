"""What is told: reports, and pictures whose names break nothing."""

from __future__ import annotations

import itertools
import json
import logging
import re
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifegraph import CycleError, Graph, Report
from tests.graph.world import World, raises, whole_life


def test_a_report_says_who_hung_and_whom_that_hit(world: World) -> None:
    """Text and JSON list each resource with outcome, times, error and, for the poisoned ones, because of whom.

    https://github.com/wocommunity/wonder/pull/1017
    """
    _, report = whole_life(
        world.kind("a", stop=lambda: threading.Event().wait(0.1)),
        world.kind("b", ["base"], stop=world.hang, stop_timeout=0.3),
        world.kind("base"),
        world.kind("c", stop=raises(OSError("disk full"))),
    )
    told = {row["name"]: row for row in json.loads(report.to_json())["resources"]}
    assert ("released", "timed_out", "poisoned", "failed") == tuple(
        told[name]["fate"] for name in ("a", "b", "base", "c")
    )
    assert ["b"] == told["base"]["because"]
    assert ("disk full", "OSError") == (told["c"]["error"], told["c"]["error_type"])
    assert 0.1 <= told["a"]["ended"] - told["a"]["began"] < 0.3 <= told["b"]["ended"] - told["b"]["began"]
    text = report.to_text()
    for word in ("a", "b", "base", "c", "timed out", "poisoned, because of b", "OSError", "disk full", "released in"):
        assert word in text
    assert "b" in report.explain("base")
    assert "b -> base" in report.explain("base")
    assert re.search(r"0\.3\d* s", report.explain("b"))
    again = Report.from_json(report.to_json())
    assert text == again.to_text()


@pytest.mark.slow
def test_a_long_wait_says_what_it_waits_for(world: World, caplog: pytest.LogCaptureFixture) -> None:
    """While a teardown waits long, a line of the log names what is pending.

    https://github.com/systemd/systemd/issues/633
    """
    with caplog.at_level(logging.WARNING, "lifegraph"):
        whole_life(world.kind("quick"), world.kind("slow", stop=world.hang, stop_timeout=7))
    waiting = [record.getMessage() for record in caplog.records if "waiting" in record.getMessage()]
    assert waiting
    assert all("slow" in line and "quick" not in line for line in waiting)


@given(st.integers(1, 6), st.permutations(range(13)))
def test_a_cycle_is_refused_before_anything_starts(size: int, order: list[int]) -> None:
    """Wherever it hides among others, the cycle and nobody else is named, when the graph is built.

    https://github.com/networkx/networkx/issues/1342
    """
    world = World()
    kinds = [world.kind(f"r{n}", [f"r{(n + 1) % size}"] if n < size else ["r0"] if n % 2 else []) for n in range(13)]
    with pytest.raises(CycleError) as caught:
        Graph(*[kinds[n] for n in order])
    drawn = re.search(r"cycle: (.*)", str(caught.value))
    assert drawn
    ring = drawn[1].split(" -> ")
    assert ring[0] == ring[-1]
    assert {f"r{n}" for n in range(size)} == set(ring)
    assert size + 1 == len(ring)
    for a, b in itertools.pairwise(ring):
        assert (int(a[1:]) + 1) % size == int(b[1:])
    assert [] == world.log


NAMES = [
    "3::3",
    "db:5432",
    "a",
    "start",
    "end",
    "pre_end",
    "END",
    'quo"te',
    "back\\slash",
    "<b>",
    "n0",
    "graph",
    "a]b",
    "ü;#",
]


def read_dot(text: str) -> tuple[set[str], set[tuple[str, str]]]:
    """The labels of the nodes of a DOT text, and its edges by them."""
    nodes = re.findall(r'^\s*(n\d+) \[label="((?:[^"\\]|\\.)*)"', text, re.MULTILINE)
    labels = {node: re.sub(r"\\(.)", r"\1", label) for node, label in nodes}
    edges = re.findall(r"^\s*(n\d+) -> (n\d+)( \[[^\]]*\])?;$", text, re.MULTILINE)
    assert text.count("->") - 1 == len(edges), "an edge that is none, but for the legend's"
    return set(labels.values()), {(labels[a], labels[b]) for a, b, _ in edges}


@pytest.mark.parametrize("first", NAMES)
def test_names_in_dot_keep_their_edges(first: str) -> None:
    """No user's text is an id, so a colon is no port: read back, nodes and edges are the same.

    https://github.com/networkx/networkx/issues/5203
    """
    world = World()
    a, b, c = [first, *[name for name in NAMES if name != first][:2]]
    graph = Graph(world.kind(a, [b, c]), world.kind(b, [c]), world.kind(c))
    assert ({a, b, c}, {(a, b), (a, c), (b, c)}) == read_dot(graph.to_dot())
    report = graph.teardown()
    assert ({a, b, c}, {(a, b), (a, c), (b, c)}) == read_dot(re.sub(r"\\n[^\"]*", "", report.to_dot()))


@pytest.mark.parametrize("form", ["dot", "mermaid"])
def test_no_name_is_an_id(form: str) -> None:
    """Ids are made up, and names stand in quotes.

    https://github.com/mermaid-js/mermaid/issues/1444
    """
    world = World()
    names = ["start", "end", "pre_end", "END"]
    graph = Graph(*[world.kind(name, names[n + 1 : n + 2]) for n, name in enumerate(names)])
    text = graph.to_dot() if form == "dot" else graph.to_mermaid()
    arrow = "->" if form == "dot" else "-->"
    drawn = re.findall(rf"^\s*(n\d+)\s*{arrow}\s*(n\d+)", text, re.MULTILINE)
    assert 3 == len(drawn), text
    for name in names:
        assert re.search(rf'n\d+\s*\W*.*"{name}\b', text), text
        assert not re.search(rf"^\s*{name}\b", text, re.MULTILINE)
