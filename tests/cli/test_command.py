"""The command line: what it prints, where, and with which exit code."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lifegraph import Graph, Report
from lifegraph.cli import main
from tests.conftest import Child

APP = """
from threading import Event
from lifegraph import Graph, StartEnded, resource

@resource
class Memory:
    def close(self): ...

@resource(stop_timeout=0.2)
class Disk:
    def __init__(self, memory: Memory): ...
    def stop(self): Event().wait()

@resource
class Peer:
    def __init__(self, memory: Memory): ...
    def stop(self): ...

class Inside:
    graph = Graph(Peer, name="inside")

graph = Graph(Disk, Peer, name="app", grace=5)
fine = Graph(Peer, name="fine", grace=60)
number = 3

def make():
    return Graph(Peer, name="made")

def broken():
    raise OSError("no disk")

def faulty():
    @resource
    class Lost:
        def __init__(self, nowhere: Event): ...
        def close(self): ...
    return Graph(Lost)

def ends_itself(graph):
    graph.observe(lambda event: graph.request_teardown() if isinstance(event, StartEnded) else None)
    return graph

@resource(lane="caller")
class Window:
    def close(self): ...

window = Graph(Window)
hangs = ends_itself(Graph(Disk, Peer, name="hangs"))
ends = ends_itself(Graph(Peer, name="ends"))
"""

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with the module app, from which it is imported as a user would have it."""
    (tmp_path / "app.py").write_text(APP, encoding="utf-8")
    (tmp_path / "sick.py").write_text("import nothing_of_the_kind\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield tmp_path
    for name in ("app", "sick"):
        sys.modules.pop(name, None)


@pytest.fixture
def lifegraph(app: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs a command; gives its exit code, what it printed, and what it said on stderr."""

    def run(*arguments: str) -> tuple[int, str, str]:
        code = main(arguments)
        said = capsys.readouterr()
        return code, said.out, said.err

    return run


def reports(app: Path) -> tuple[str, str]:
    """Two files with reports: one in which Disk failed, and one in which all went well."""
    sys.path.insert(0, "")
    from app import fine, graph  # type: ignore[import-not-found]  # the module in that folder

    assert isinstance(graph, Graph)
    graph.what_if(hang=["Disk"]).save("bad.json")
    fine.what_if().save("good.json")
    return "bad.json", "good.json"


def test_check_compares_the_worst_case_with_the_grace(lifegraph: Run) -> None:
    """A grace that is too short fails, with what to do; one that suffices does not; none is no fault."""
    code, out, err = lifegraph("check", "app:graph")
    assert (2, 1) == (code, len(err.splitlines()))
    assert "app: 3 resources, 2 dependencies, no faults\n" in out
    assert "worst case    20.0 s, along Peer, Memory\n" in out
    assert "if it fails   Disk -> Memory\n" in out
    assert "longer than the grace of 5.00 s" in err
    assert (0, "") == lifegraph("check", "app:fine")[::2]
    assert (0, "") == lifegraph("check", "app:make")[::2]
    assert 0 == lifegraph("check", "app:graph", "--grace", "30")[0]
    assert 2 == lifegraph("check", "app:fine", "--grace", "1")[0]


def test_check_warns_of_limits_that_cannot_be_kept(lifegraph: Run) -> None:
    """Hooks on the caller's thread are named; that alone is no fault."""
    code, _, err = lifegraph("check", "app:window")
    assert 0 == code
    assert "no limit can be kept for Window" in err


def test_show_draws_a_graph(lifegraph: Run, app: Path) -> None:
    """In every format, on stdout or into a file, by its ending or as asked."""
    assert lifegraph("show", "app:graph")[1].startswith("app: 3 resources, 2 dependencies\n")
    assert "made: 2 resources" in lifegraph("show", "app:make")[1]
    assert "inside: 2 resources" in lifegraph("show", "app:Inside.graph")[1]
    begins = {
        "tree": "app: ",
        "dot": "digraph",
        "mermaid": "flowchart",
        "svg": "<svg",
        "html": "<!doctype",
        "json": "{",
    }
    for form, beginning in begins.items():
        code, out, err = lifegraph("show", "app:graph", "--format", form)
        assert (0, "", beginning) == (code, err, out[: len(beginning)])
        file = app / f"picture.{form}"
        assert (0, "", "") == lifegraph("show", "app:graph", "--format", form, "-o", str(file))
        assert file.read_text(encoding="utf-8").rstrip() == out.rstrip()
    assert 0 == lifegraph("show", "app:graph", "-o", "by_ending.svg")[0]
    assert (app / "by_ending.svg").read_text(encoding="utf-8").startswith("<svg")
    assert "2 of 3 resources shown" in lifegraph("show", "app:graph", "--focus", "Disk")[1]


def test_show_and_what_if_suppose_faults(lifegraph: Run) -> None:
    """The forecast is drawn; without a fault, what-if ranks."""
    code, out, err = lifegraph("what-if", "app:graph", "--hang", "Disk")
    assert (0, "") == (code, err)
    assert out.startswith("app: forecast: 1 timed out, 1 poisoned, 1 released\n")
    assert out == lifegraph("show", "app:graph", "--hang", "Disk")[1]
    assert json.loads(lifegraph("what-if", "app:graph", "--fail", "Disk", "--format", "json")[1])["forecast"]
    code, out, err = lifegraph("what-if", "app:graph")
    assert (0, "") == (code, err)
    assert ["      1  Disk -> Memory", "      1  Peer -> Memory"] == out.splitlines()[1:3]


def test_reports_are_explained_shown_and_compared(lifegraph: Run, app: Path) -> None:
    """explain speaks of what is held, or of whom it is asked; show draws it; diff tells what changed."""
    bad, good = reports(app)
    code, out, err = lifegraph("explain", bad)
    assert (0, "") == (code, err)
    assert 2 == out.count("cannot release")
    assert "cannot release Memory (app.py:5): poisoned\n  because  Disk timed out" in out
    assert lifegraph("explain", bad, "Peer")[1].startswith("Peer (app.py:14): released")
    assert "all released" in lifegraph("explain", good)[1]
    assert "1 timed out, 1 poisoned, 1 released" in lifegraph("show", bad)[1]
    assert Report.from_json(lifegraph("show", bad, "--format", "json")[1]).poisoned == ("Memory",)
    code, out, err = lifegraph("diff", good, bad)
    assert (0, "") == (code, err)
    assert [
        "graph: fine -> app",
        "verdict: ok -> 2 not released",
        "+ Disk: timed out",
        "~ Memory: released -> poisoned, because of Disk",
    ] == out.splitlines()
    assert (0, "no difference\n", "") == lifegraph("diff", bad, bad)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["show", "app"], "'app' names no graph: write it as module:graph"),
        (["show", "app:grap"], "app has no 'grap'; did you mean 'graph'?"),
        (["show", "app:number"], "app:number is no graph but of type int"),
        (["show", "app:broken"], "app:broken() made no graph: OSError: no disk (app.py:"),
        (["check", "app:faulty"], "nowhere"),
        (["show", "gone:graph"], "there is no module 'gone' here"),
        (["show", "sick:graph"], "cannot import sick: ModuleNotFoundError: No module named 'nothing_of_the_kind'"),
        (["show", "app:graph", "--fail", "Dsk"], "did you mean 'Disk'?"),
        (["show", "app:graph", "--focus", "Pear"], "app has no resource named 'Pear'; did you mean 'Peer'?"),
        (["show", "app:graph", "-o", "x.png"], "no picture ends in '.png'"),
        (["show", "app:graph", "-o", "nowhere/x.svg"], "cannot write nowhere/x.svg: No such file or directory"),
        (["explain", "none.json"], "cannot read none.json: No such file or directory"),
        (["explain", "app.py"], "app.py is no report"),
        (["run", "app:graph", "--report", "nowhere/r.json"], "there is no folder to write it into"),
        (["run", "app:graph", "--fail", "Disk"], "unrecognized arguments"),
        (["check", "app:graph", "--grace", "-1"], "a grace is 0 seconds or more"),
        ([], "the following arguments are required: VERB"),
    ],
)
def test_wrong_use_is_one_paragraph(lifegraph: Run, arguments: list[str], says: str) -> None:
    """What is wrong stands on stderr, without a traceback, and the exit code is 2."""
    code, out, err = lifegraph(*arguments)
    assert (2, "") == (code, out)
    assert says in err
    assert "Traceback" not in err
    assert "\n\n" not in err


def test_a_report_has_no_faults_to_suppose(lifegraph: Run, app: Path) -> None:
    """--fail on a report is refused, and a name it does not know, too."""
    bad, _ = reports(app)
    assert "suppose faults of a graph" in lifegraph("show", bad, "--fail", "Disk")[2]
    assert "knows no 'Dsk'" in lifegraph("explain", bad, "Dsk")[2]


def test_help_is_no_error(lifegraph: Run) -> None:
    """--help says all verbs, and exits with 0."""
    code, out, err = lifegraph("--help")
    assert (0, "") == (code, err)
    assert all(verb in out for verb in ("check", "show", "what-if", "run", "explain", "diff"))


COMMAND = "import sys; from lifegraph.cli import main; sys.exit(main(sys.argv[1:]))"


def test_run_ends_with_the_report(app: Path, child: Child) -> None:
    """run writes the report, shows what happens, and exits with 3 although a hook hangs, with 0 where all is released."""
    env = {"PYTHONIOENCODING": "utf-8"}
    program = f"import os; os.chdir({str(app)!r}); {COMMAND}"
    ran = child.run(program, "run", "app:hangs", "--live", "--report", "r.json", check=False, env=env)
    assert 3 == ran.returncode
    assert "" == ran.stdout
    assert "Traceback" not in ran.stderr
    assert "tearing down 3 resources" in ran.stderr
    assert "☣ Memory  poisoned" in ran.stderr
    assert ("Memory",) == Report.from_json((app / "r.json").read_text(encoding="utf-8")).poisoned
    ran = child.run(program, "run", "app:ends", "--report", "r.json", env=env)
    assert ("", "") == (ran.stdout, ran.stderr)
    assert Report.from_json((app / "r.json").read_text(encoding="utf-8")).ok


def test_a_reader_that_has_seen_enough(app: Path, child: Child) -> None:
    """A closed pipe is no error: nothing is said, and nothing is raised at exit."""
    program = f"import os; os.chdir({str(app)!r}); r, w = os.pipe(); os.close(r); os.dup2(w, 1); {COMMAND}"
    ran = child.run(program, "show", "app:graph", "--format", "html", check=False)
    assert "" == ran.stderr


def test_an_ascii_terminal(app: Path, child: Child) -> None:
    """Where stdout has no Unicode the tree is drawn in ASCII."""
    program = f"import os; os.chdir({str(app)!r}); {COMMAND}"
    ran = child.run(program, "show", "app:graph", env={"PYTHONIOENCODING": "ascii"})
    assert "`-- Memory" in ran.stdout
    assert ran.stdout.isascii()


def test_python_m(app: Path, child: Child) -> None:
    """`python -m lifegraph` is the same command."""
    program = "import os, runpy, sys; os.chdir(sys.argv.pop(1)); runpy.run_module('lifegraph', run_name='__main__')"
    ran = child.run(program, str(app), "show", "app:fine", env={"PYTHONIOENCODING": "utf-8"})
    assert ran.stdout.startswith("fine: 2 resources, 1 dependency\n")
    assert 2 == child.run(program, str(app), "show", "app", check=False).returncode
