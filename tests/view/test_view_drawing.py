"""The one door to all painters: methods, files, terminals and notebooks."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lifegraph import Graph, Report, resource
from lifegraph.view import ENDINGS, form_of, printed, scene, to_json, to_trace
from tests.conftest import ROOT
from tests.test_reference import table
from tests.view.samples import Fate, Outcome, golden, named, tiers, tiers_report
from tests.view.samples import Report as Told


@resource
class Memory:
    """What others use."""

    def close(self) -> None:
        """Close it."""


@resource
class Disk:
    """It uses memory."""

    def __init__(self, memory: Memory) -> None: ...

    def stop(self) -> None:
        """Stop it."""


@pytest.fixture
def graph() -> Graph:
    """A graph of two."""
    return Graph(Disk, name="two")


@pytest.fixture
def report(graph: Graph) -> Report:
    """What became of it."""
    graph.start()
    return graph.teardown()


def test_every_ending_is_a_picture(graph: Graph, report: Report, tmp_path: Path) -> None:
    """save writes what the method of that form gives; the page lists the endings."""
    said = {ending: row[0] for ending, row in table("pictures", "ending").items()}
    assert ENDINGS == said
    methods = {"tree": "to_text", "trace": "to_trace"}
    for drawn in (graph, graph.plan(), report):
        for ending, form in ENDINGS.items():
            path = tmp_path / f"x{ending}"
            if form == "trace" and drawn is not report:
                with pytest.raises(ValueError, match="only a report has times"):
                    drawn.save(path)
                continue
            drawn.save(path)
            assert getattr(drawn, methods.get(form, f"to_{form}"))() == path.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["x", "x.png", ".svg.", "x.svg.gz"])
def test_an_unknown_ending_is_refused(graph: Graph, name: str, tmp_path: Path) -> None:
    """A name whose ending means nothing is refused with those that do, and no file is made."""
    with pytest.raises(ValueError, match=r"these do: \.txt, "):
        graph.save(tmp_path / name)
    assert [] == list(tmp_path.iterdir())
    assert "svg" == form_of("A.SVG")


def test_a_report_overlays_a_graph(graph: Graph, report: Report) -> None:
    """Each painter of the graph takes the report; the report draws its own."""
    for name in ("to_text", "to_dot", "to_mermaid", "to_svg", "to_html"):
        assert getattr(graph, name)(report) == getattr(report, name)()
        assert "released" in getattr(report, name)()
    assert Report.from_json(report.to_json()) == report
    assert ["Disk"] == [row["name"] for row in json.loads(report.to_json(focus="Disk"))["resources"][:1]]


def test_json_tells_all() -> None:
    """The scene as JSON is what the golden file shows; names stand as they are."""
    golden("poisoned.json", to_json(scene(tiers(), tiers_report())) + "\n")
    names = ["\ud800", "</script>", "a\nb"]
    assert names == [row["name"] for row in json.loads(to_json(scene(named(names))))["resources"]]


def test_a_trace_has_a_bar_for_each_attempt() -> None:
    """Bars do not overlap within a line, what was not attempted is a mark, and the critical path is told."""
    outcomes = {f"r{at}": Outcome(seconds=0.5, began=0.2 * at, ended=0.2 * at + 0.5) for at in range(6)}
    fates = dict.fromkeys(outcomes, Fate.released) | {"r6": Fate.poisoned, "r5": Fate.failed}
    outcomes["r6"] = Outcome(causes=("r5",))
    told = Told(False, 1.5, fates, outcomes, critical_path=("r0", "r5"))
    drawn = scene(named([f"r{at}" for at in range(7)]), told)
    trace = to_trace(drawn)
    golden("run.trace.json", trace + "\n")
    events = [event for event in json.loads(trace)["traceEvents"] if event["ph"] == "X"]
    assert 6 == len(events)
    for one in events:
        for other in events:
            if one is not other and one["tid"] == other["tid"]:
                assert one["ts"] + one["dur"] <= other["ts"] or other["ts"] + other["dur"] <= one["ts"]
    assert ["r0", "r5"] == [event["name"] for event in events if event["args"].get("critical")]


class Stream(io.StringIO):
    """A stream of any encoding, a terminal or not."""

    def __init__(self, encoding: str, terminal: bool) -> None:
        super().__init__()
        self._told = encoding, terminal

    @property
    def encoding(self) -> str:  # type: ignore[override]  # the text is not encoded, only asked about
        return self._told[0]

    def isatty(self) -> bool:
        return self._told[1]


def test_a_terminal_gets_colours_and_its_width(monkeypatch: pytest.MonkeyPatch) -> None:
    """Colours only where there are any, signs only where they can be written, lines as wide as they may be."""
    drawn = scene(tiers(), tiers_report())
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    for columns in (60, 200):
        monkeypatch.setenv("COLUMNS", str(columns))
        text = printed(drawn, Stream("utf-8", terminal=True))
        assert "\x1b[31m" in text
        monkeypatch.setenv("NO_COLOR", "1")
        plain = printed(drawn, Stream("utf-8", terminal=True))
        monkeypatch.delenv("NO_COLOR")
        assert "\x1b" not in plain
        assert max(map(len, plain.splitlines())) <= columns
    assert "\x1b" not in printed(drawn, Stream("utf-8", terminal=False))
    assert printed(drawn, Stream("ascii", terminal=False)).isascii()
    assert printed(drawn, Stream("latin-1", terminal=True)).isascii()


def test_show_prints(graph: Graph, capsys: pytest.CaptureFixture[str]) -> None:
    """Without a notebook, show prints the tree."""
    graph.show(focus="Disk")
    assert graph.to_text(focus="Disk") == capsys.readouterr().out


def test_show_in_a_notebook_draws(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a notebook, show displays the picture, and so does the object itself."""
    shown: list[tuple[dict[str, Any], bool]] = []
    display = SimpleNamespace(display=lambda data, raw: shown.append((data, raw)))
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: SimpleNamespace(kernel=1)))
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    graph.show()
    [(data, raw)] = shown
    assert raw
    assert data == graph._repr_mimebundle_()
    assert {"text/plain", "image/svg+xml"} == set(data)
    assert data["image/svg+xml"].startswith("<svg")


def test_a_notebook_is_not_flooded() -> None:
    """Hundreds of resources are shown as text only."""
    many = Graph(*(resource(type(f"R{at}", (), {"close": lambda self: None})) for at in range(301)))
    assert {"text/plain"} == set(many._repr_mimebundle_())


def test_every_script_and_style_is_shipped() -> None:
    """The files of the page lie beside the painter, and every one of them is used."""
    from lifegraph.view import html

    folder = Path(html.__file__).parent / "page"
    assert {*html._SCRIPTS, "page.css"} == {path.name for path in folder.iterdir()}
    assert (ROOT / "docs" / "reference" / "pictures.md").exists()


def test_networkx_gets_the_same_graph(graph: Graph) -> None:
    """Nodes, edges, their direction and what they carry."""
    found = graph.to_networkx()
    assert ["Disk", "Memory"] == list(found)
    assert [("Disk", "Memory", {"uses": True})] == list(found.edges(data=True))
    assert "two" == found.name
    assert 10 == found.nodes["Disk"]["stop_timeout"]
