"""Mermaid, read back by its own rules."""

from __future__ import annotations

import random
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifegraph.view import Scene, scene, to_mermaid
from tests.view.samples import NASTY, Fate, Outcome, Report, golden, graph, named, tiers, tiers_report

LABEL = r'"((?:[^\W_]|[ ,]|(?<=[^\W_])[-_.](?=[^\W_])|#\d+;|<br/>)*)"'
NODE = re.compile(rf"  (n\d+)(?:\[{LABEL}\]|\({LABEL}\)|\(\[{LABEL}\]\)|\{{\{{{LABEL}\}}\}}|\[/{LABEL}/\]):::[a-z]+")
EDGE = re.compile(r"  (n\d+) (-->|-\.->|==>) (n\d+)")
OURS = re.compile(
    rf"flowchart TD|  classDef [a-z]+ [a-z0-9#:, -]+|  linkStyle [\d,]+ [a-z0-9#:,-]+|  %% [\w ,:]+"
    rf"|  (?:legend|note)\[{LABEL}\]:::legend"
)


def read_back(painted: str) -> tuple[dict[str, str], list[tuple[str, str, str]]]:
    """The labels by id, and the edges; every line must be one of the few that are known."""
    nodes: dict[str, str] = {}
    edges: list[tuple[str, str, str]] = []
    assert painted.endswith("\n")
    for line in painted[:-1].split("\n"):
        if node := NODE.fullmatch(line):
            label = next(text for text in node.groups()[1:] if text is not None)
            nodes[node[1]] = re.sub(r"#(\d+);", lambda sign: chr(int(sign[1])), label.replace("<br/>", "\n"))
        elif edge := EDGE.fullmatch(line):
            edges.append((edge[1], edge[2], edge[3]))
        else:
            assert OURS.fullmatch(line), line
    assert {end for edge in edges for end in edge[::2]} <= set(nodes)
    return nodes, edges


def within_limits(painted: str) -> bool:
    """Whether Mermaid would draw it."""
    return len(painted.encode("utf-16-le")) // 2 <= 50_000 and len(read_back(painted)[1]) <= 500


def labels(drawn: Scene) -> list[str]:
    """The names as they are shown."""
    return [node.label[0] for node in drawn.nodes]


@pytest.mark.parametrize(
    ("name", "painted"),
    [
        ("plain.mmd", to_mermaid(scene(tiers()))),
        ("poisoned.mmd", to_mermaid(scene(tiers(), tiers_report()))),
        ("focus-reduced.mmd", to_mermaid(scene(tiers(), tiers_report(), reduce=True, focus="PrimaryTier"))),
        ("nasty.mmd", to_mermaid(scene(named(NASTY)))),
    ],
)
def test_charts_look_as_agreed(name: str, painted: str) -> None:
    """The text is what the golden file shows."""
    golden(name, painted)


def test_a_node_called_end_is_fine() -> None:
    """VIZ-02: words of Mermaid's own are labels only, never ids."""
    names = ["start", "end", "pre_end", "END"]
    nodes, edges = read_back(to_mermaid(scene(named(names, [(0, 1), (1, 2), (2, 3)]))))
    assert dict(zip(["n0", "n1", "n2", "n3"], names, strict=True)) == nodes
    assert [("n0", "-->", "n1"), ("n1", "-->", "n2"), ("n2", "-->", "n3")] == edges


@given(st.lists(st.text(st.characters(), max_size=12) | st.sampled_from(NASTY), unique=True, max_size=20), st.text())
def test_any_name_comes_back(names: list[str], title: str) -> None:
    """Whatever the names, every line is one of ours and each label reads as it was shown."""
    drawn = scene(named(names, [(0, index) for index in range(1, len(names))], title=title))
    painted = to_mermaid(drawn)
    painted.encode()
    assert labels(drawn) == list(read_back(painted)[0].values())


def test_kinds_and_poison_have_their_own_strokes() -> None:
    """Dotted is order only, thick is poison, and the thick ones are coloured by their numbers."""
    painted = to_mermaid(scene(tiers(), tiers_report()))
    strokes = [stroke for _, stroke, _ in read_back(painted)[1]]
    assert (5, 4, 4) == (strokes.count("-->"), strokes.count("==>"), strokes.count("-.->"))
    thick = [str(place) for place, stroke in enumerate(strokes) if stroke == "==>"]
    assert f"  linkStyle {','.join(thick)} stroke:" in painted


def test_limits_that_are_met_change_nothing() -> None:
    """Exactly 500 edges are drawn, without a word."""
    drawn = scene(named([f"r{index}" for index in range(501)], [(0, index) for index in range(1, 501)]))
    painted = to_mermaid(drawn)
    assert 500 == len(read_back(painted)[1])
    assert "note" not in painted


def test_beyond_the_limit_it_is_reduced() -> None:
    """What reduction alone can make fit loses no resource, and the chart says what is not shown."""
    count = 40
    drawn = scene(named([f"r{a}" for a in range(count)], [(a, b) for a in range(count) for b in range(a + 1, count)]))
    painted = to_mermaid(drawn)
    nodes, edges = read_back(painted)
    assert (count, count - 1) == (len(nodes), len(edges))
    assert "%% so 741 edges implied by longer paths not shown\n" in painted
    assert 'note["780 edges in ' in painted
    assert "cut" not in painted


def test_what_is_still_too_much_is_cut() -> None:
    """A big graph is cut to what fits: what went wrong first, with all edges between what is shown."""
    chance = random.Random(2)
    pairs = sorted({(a, chance.randrange(a + 1, min(a + 50, 10_000))) for a in range(9_999) for _ in range(3)})
    names = [f"resource {index}" for index in range(10_000)]
    fates = dict.fromkeys(names, Fate.released) | {names[7000]: Fate.failed}
    drawn = scene(named(names, pairs), Report(False, 1.0, fates))
    painted = to_mermaid(drawn)
    nodes, edges = read_back(painted)
    assert within_limits(painted)
    assert "n7000" in nodes
    assert 100 < len(nodes) < 10_000
    shown = re.search(r"%% and cut: ([\d,]+) of 10,000 resources shown, with what is between them\n", painted)
    assert shown is not None
    assert f"{len(nodes):,}" == shown[1]
    assert "note[" in painted
    assert edges


@pytest.mark.parametrize("sign", ["😀", "#", "日", "a"])
def test_long_labels_are_counted_as_mermaid_counts(sign: str) -> None:
    """Names of costly signs stay within the limit of characters."""
    names = [f"{index}{sign * 10_000}" for index in range(900)]
    causes = {name: Outcome(causes=tuple(names[:5])) for name in names}
    drawn = scene(named(names), Report(False, 1.0, dict.fromkeys(names, Fate.poisoned), causes))
    painted = to_mermaid(drawn)
    assert within_limits(painted)
    assert read_back(painted)[0]


def test_a_star_keeps_its_centre() -> None:
    """Neighbours follow each other, so what is cut out of a star is still a star."""
    drawn = scene(named([f"r{index}" for index in range(900)], [(index, 899) for index in range(899)]))
    nodes, edges = read_back(to_mermaid(drawn))
    assert "n899" in nodes
    assert (501, 500) == (len(nodes), len(edges))


def test_the_legend_names_what_occurs() -> None:
    """The legend explains arrows always, and dotted and thick ones where there are any."""
    assert "arrows#58; dependent to dependency" in to_mermaid(scene(graph({"a": ""})))
    assert "dotted" not in to_mermaid(scene(graph({"a": ""})))
    assert "dotted#58; only ordered<br/>thick red#58; carried poison" in to_mermaid(scene(tiers(), tiers_report()))
