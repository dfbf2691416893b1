"""The tables of docs/reference/ say what the code says, and the programs in README.md and docs/ print what they say.

A program is a block marked ``python`` right before one marked ``text app.py``: saved as app.py and run by itself, it
must have printed that. Times in it may differ.
"""

from __future__ import annotations

import ast
import inspect
import logging
import re
import shutil
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import get_args

import pytest

import lifegraph
from lifegraph import Event, Fate, Graph, LifegraphError, Options, log, resource
from lifegraph.events import (
    AnswerLate,
    HookBegan,
    HookEnded,
    NoteTaken,
    ResourceSettled,
    StartBegan,
    StartEnded,
    StillWaiting,
    TeardownBegan,
    TeardownEnded,
)
from lifegraph.spec import Hooks
from lifegraph.spec.values import LANES, ROLES
from tests.conftest import ROOT, Child
from tests.test_docs import PAGES, blocks

TIMES = re.compile(r"(?:<|&lt;|\b)\d[\d.,]*(?= (?:ms|s)\b)")  # "after 5.00 s", "<1 ms"


def programs() -> Iterator[tuple[str, str, str]]:
    """Where each program stands, its text, and what it prints."""
    for page in PAGES:
        before = None
        for block in blocks(page.read_text(encoding="utf-8")):
            if block.info == "text app.py":
                assert before is not None, f"{page}:{block.line}: no program before it"
                assert before.info == "python", f"{page}:{before.line}: not marked python alone"
                yield f"{page.relative_to(ROOT)}:{before.line}", before.text, block.text
            before = block


PROGRAMS = [pytest.param(text, prints, id=where) for where, text, prints in programs()]


@pytest.mark.parametrize(("text", "prints"), PROGRAMS)
def test_a_program_prints_what_its_page_says(text: str, prints: str, child: Child, tmp_path: Path) -> None:
    """Each program, run by itself, prints what stands below it."""
    (tmp_path / "app.py").write_text(text, encoding="utf-8")
    start = (
        f"import os, runpy; os.chdir({str(tmp_path)!r}); runpy.run_path({str(tmp_path / 'app.py')!r}, {{}}, '__main__')"
    )
    printed = child.run(start, env={"PYTHONIOENCODING": "utf-8"}).stdout.replace(f"{tmp_path}/", "")
    assert timeless(prints) == timeless(printed)


def timeless(text: str) -> str:
    """The text without its times, and without the blanks at its end."""
    return "\n".join(line.rstrip() for line in TIMES.sub("#", text).strip().splitlines()).replace("# ms", "# s")


@pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz is not installed here")
def test_the_picture_is_what_its_script_draws(child: Child) -> None:
    """The picture in README.md says what the script behind it draws today, times and places apart."""
    script = str(ROOT / "docs" / "make_picture.py")
    drawn = child.run(f"import runpy; print(runpy.run_path({script!r})['picture']())").stdout
    kept = (ROOT / "docs" / "_static" / "poisoned.svg").read_text(encoding="utf-8")
    texts = [re.findall(r"<text [^>]*>([^<]+)</text>", svg) for svg in (kept, drawn)]
    assert [timeless(text) for text in texts[0]] == [timeless(text) for text in texts[1]]
    assert str(ROOT) not in kept


# ---- tables


def table(page: str, head: str) -> dict[str, list[str]]:
    """The table under that first column head: its first cells, and the rest of each row."""
    text = (ROOT / "docs" / "reference" / f"{page}.md").read_text(encoding="utf-8")
    [rows] = re.findall(rf"^\| {re.escape(head)} \|.*\n\|[-|]+\|\n((?:\|.*\n)+)", text, re.MULTILINE)
    cells = [[cell.strip() for cell in re.split(r"(?<!\\)\|", row)[1:-1]] for row in rows.splitlines()]
    return {name.strip("`"): rest for name, *rest in cells}


def code(cell: str) -> list[str]:
    """What stands in backquotes."""
    return re.findall(r"`([^`]+)`", cell)


def test_fates() -> None:
    """The table of fates has all of them, in order, with what each means for others and for its object."""
    said = [(name, row[0] == "yes", row[1] == "yes") for name, row in table("fates", "fate").items()]
    assert [(str(fate), fate.unproven, fate.held) for fate in Fate] == said


def parents(error: type) -> list[str]:
    """The names of what an error is, with private classes replaced by what they are."""
    return [
        name
        for base in error.__bases__
        for name in (parents(base) if base.__name__.startswith("_") else [base.__name__])
    ]


def test_errors() -> None:
    """The table of errors has every exported one, with its kinds."""
    exported = {name: getattr(lifegraph, name) for name in lifegraph.__all__}
    errors = {n: parents(e) for n, e in exported.items() if isinstance(e, type) and issubclass(e, LifegraphError)}
    assert errors == {name: code(row[0]) for name, row in table("errors", "error").items()}


def test_events() -> None:
    """The table of events has all of them, with the fields that not all have."""
    known = {kind.__name__: [f.name for f in fields(kind) if f.name not in ("graph", "at")] for kind in get_args(Event)}
    assert known == {name: code(row[0]) for name, row in table("events", "event").items()}
    assert all({"graph", "at"} <= {f.name for f in fields(kind)} for kind in get_args(Event))


def test_options() -> None:
    """The table of options has all of them, in order, with the defaults that are numbers or flags."""
    said = table("options", "option")
    assert list(Options.__annotations__) == list(said)
    for name, (default, _) in said.items():
        if name.endswith("_timeout"):
            assert getattr(Hooks(), name) == float(default), name
    assert str(Hooks().atomic_start) == said["atomic_start"][0].strip("`")
    assert {role for role in ROLES if said[role][0] == "by name"} == set(ROLES)


def test_hooks() -> None:
    """The table of hooks has all of them, found by the names it says, and says which are called."""
    said = table("options", "hook")
    assert list(ROLES) == list(said)
    called: set[str] = set()

    def hook(role: str) -> object:
        def act(_: object) -> None:
            called.add(role)
            if role == "stop":
                raise OSError("so that all that could prove it is asked")

        return act

    for names in [{"stop": name} for name in code(said["stop"][0])] + [{}]:
        kind = type("Thing", (), {names.get(role, role): hook(role) for role in ROLES})
        graph = Graph(resource(kind))
        graph.start()
        graph.teardown()
        assert {"start", "stop"} <= called
    held = resource(type("Held", (), {"salvage": hook("salvage")}))
    user = resource(depends_on=[held])(type("User", (), {"stop": hook("stop")}))
    graph = Graph(user)
    graph.start()
    graph.teardown()
    assert called == {role for role, row in said.items() if row[1] == "yes"}


def test_parameters_of_a_graph() -> None:
    """The table of the graph's parameters has all of them, with their defaults."""
    known = {p.name: p.default for p in inspect.signature(Graph).parameters.values() if p.kind is p.KEYWORD_ONLY}
    said = {name: ast.literal_eval(row[0].strip("`")) for name, row in table("options", "parameter").items()}
    assert known == said


def test_verbs() -> None:
    """The tables of the graph have every public verb and attribute, and each twin for coroutines."""
    public = {name for name in dir(Graph) if not name.startswith("_")}
    attributes = {name for name in public if isinstance(inspect.getattr_static(Graph, name), property)}
    assert attributes == set(table("graph", "attribute"))
    verbs = table("graph", "verb")
    twins = {verb: code(row[0]) for verb, row in verbs.items()}
    assert public - attributes == {*verbs, *(twin for row in twins.values() for twin in row)}
    assert all(["a" + verb] == row for verb, row in twins.items() if row)
    assert all(inspect.iscoroutinefunction(getattr(Graph, twin)) for row in twins.values() for twin in row)


def test_lanes() -> None:
    """The table of lanes has all of them, and says how many workers there are."""
    assert list(LANES) == list(table("lanes", "lane"))
    workers = inspect.signature(Graph).parameters["workers"].default
    assert f"Graph(workers={workers})" in table("lanes", "lane")["worker"][0]


SAMPLES: list[Event] = [  # at least one event of each kind, and of each line
    StartBegan("g", 0.0, 1),
    StartEnded("g", 0.0, 1.0, ok=True),
    StartEnded("g", 0.0, 1.0, ok=False),
    TeardownBegan("g", 0.0, 1, 2.0),
    TeardownEnded("g", 0.0, 1.0, ok=True, held=()),
    TeardownEnded("g", 0.0, 1.0, ok=False, held=("a",)),
    HookBegan("g", 0.0, "a", "stop"),
    HookEnded("g", 0.0, "a", "stop", 1.0),
    HookEnded("g", 0.0, "a", "stop", 1.0, "no", "OSError"),
    HookEnded("g", 0.0, "a", "stop", 1.0, "no", "HookTimeout", timed_out=True),
    ResourceSettled("g", 0.0, "a", Fate.POISONED),
    ResourceSettled("g", 0.0, "a", Fate.ABANDONED),
    AnswerLate("g", 0.0, "a", "stop", 1.0, "no"),
    NoteTaken("g", 0.0, "n"),
    StillWaiting("g", 0.0, 1.0, ("a",)),
]


def test_log(caplog: pytest.LogCaptureFixture) -> None:
    """The table of the log has every line, with its level and its fields."""
    assert set(get_args(Event)) == set(map(type, SAMPLES))
    with caplog.at_level(logging.DEBUG, "lifegraph"):
        for event in SAMPLES:
            log.write(event)
    written = {
        record.getMessage().partition("  ")[0]: [record.levelname, list(vars(record)["lifegraph"])]
        for record in caplog.records
    }
    assert written == {line: [row[0], code(row[1])] for line, row in table("log", "line").items()}


def test_a_table_that_lies_is_seen() -> None:
    """Times may differ; words, numbers and rows may not."""
    assert timeless("a after 5.00 s\n  <1 ms \n") == timeless("a after 0.1 s\n  3 ms")
    assert timeless("5 released") != timeless("6 released")
    with pytest.raises(ValueError, match="not enough values"):
        table("fates", "no such head")


def test_the_command_line() -> None:
    """The tables of the command line have every verb and option, and which verbs take it."""
    from lifegraph.cli.command import parser

    [verbs] = [action for action in parser()._actions if action.dest == "verb"]
    choices = verbs.choices
    assert isinstance(choices, dict)
    assert set(choices) == set(table("cli", "verb"))
    taken: dict[str, list[str]] = {}
    for verb, inner in choices.items():
        for action in inner._actions:
            option = next((name for name in reversed(action.option_strings) if name.startswith("--")), None)
            if option and option != "--help":
                taken.setdefault(option, []).append(verb)
    assert taken == {option: code(row[0]) for option, row in table("cli", "option").items()}


def test_marks_of_fates() -> None:
    """The table of signs has every fate, with its mark."""
    from lifegraph.view.palette import LOOKS

    assert {fate: look.mark for fate, look in LOOKS.items()} == {n: r[0] for n, r in table("pictures", "fate").items()}
