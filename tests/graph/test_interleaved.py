"""Two verbs at once: the second comes at every line of the first in turn, and nothing is lost."""

# mypy: disable-error-code="func-returns-value, unreachable"
# actions are tuples of calls, done for their effect
from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import lifegraph
from lifegraph import Graph, GraphClosingError, LifegraphError, Report, StartError
from tests.graph.world import PATIENCE, Elsewhere, World

OURS = str(Path(lifegraph.__file__).parent)
BRIEF = 0.01
"""Seconds given to the second verb at that line; where it has to wait for the first, it goes on after it."""

STEP = 3
"""Every so many lines are tried, from an offset that differs for each case."""


class At:
    """Runs ``first`` on a thread, and ``second`` on another when the first comes to its line number ``line``."""

    def __init__(self, line: int, first: Callable[[], Any], second: Callable[[], Any]) -> None:
        self.line, self.second = line, second
        self.count = 0
        self.other: Elsewhere[Any] | None = None
        self.one = Elsewhere(lambda: self._traced(first))
        assert self.one.is_over(), f"stuck with the other at line {line}"
        if self.other is not None:
            assert self.other.is_over(), f"the other is stuck from line {line} on"

    def _traced(self, action: Callable[[], Any]) -> Any:
        sys.settrace(self._trace)
        try:
            return action()
        finally:
            sys.settrace(None)

    def _trace(self, frame: FrameType, event: str, _: object) -> Any:
        if not frame.f_code.co_filename.startswith(OURS):
            return None
        if event == "line":
            self.count += 1
            if self.count == self.line:
                self.other = Elsewhere(self.second)
                self.other.is_over(within=BRIEF)
        return self._trace


@contextmanager
def managed(world: World, name: str) -> Iterator[str]:
    """A context manager that records."""
    world.log.append(("made", name))
    world.log.append(("start", name))
    yield name
    world.log.append(("stop", name))


def verbs(world: World, graph: Graph) -> dict[str, Callable[[], Any]]:
    """Verbs that bring "late" in."""
    live = world.kind("late", ["base"])
    return {
        "create": lambda: graph.create(world.kind("late", ["base"])),
        "add a class": lambda: graph.add(world.kind("late", ["base"])),
        "add an object": lambda: graph.add(live()),
        "enter": lambda: graph.enter(managed(world, "late"), name="late", depends_on=["base"]),
    }


def check(world: World, graph: Graph, report: Report, one: Elsewhere[Any]) -> None:
    """All that was started is stopped, once, in order; the verb told how it went."""
    assert graph.report is report
    if one.error is not None:
        assert isinstance(one.error, LifegraphError), repr(one.error)
    started, stopped = world.names("start"), world.names("stop")
    assert sorted(started) == sorted(stopped), world.log
    assert len(set(stopped)) == len(stopped)
    if "late" in stopped:
        assert stopped.index("late") < stopped.index("base")
    if one.error is None and "late" in started:
        assert "released" == report.fates["late"]
    assert report.ok
    assert "closed" == graph.state


@pytest.mark.parametrize("verb", ["create", "add a class", "add an object", "enter"])
@pytest.mark.parametrize("state", ["running", "new"])
def test_a_teardown_at_every_line_of_what_brings_members_in(verb: str, state: str) -> None:
    """Whatever line it has come to, a member is either never started, or stopped before the teardown is over."""
    line = 1
    while True:
        world = World()
        graph = Graph()
        graph.create(world.kind("base", hooks="stop"))
        world.log.append(("start", "base"))
        if state == "running":
            graph.start()
        at = At(line, verbs(world, graph)[verb], graph.teardown)
        if at.other is None:
            graph.teardown()
            break
        if state == "new" and verb in ("create", "add a class", "add an object"):  # its start hook waits for start()
            assert "late" not in world.names("start")
        check(world, graph, at.other.result(), at.one)
        line += STEP
    assert line > 50, "it was hardly tried"


def test_a_teardown_at_every_line_of_a_start() -> None:
    """The same for a start: what it started is stopped; start returns, or tells of the teardown."""
    line = 2
    while True:
        world = World()
        graph = Graph(world.kind("base"), world.kind("top", ["base"]))
        at = At(line, graph.start, graph.teardown)
        if at.other is None:
            graph.teardown()
            break
        check(world, graph, at.other.result(), at.one)
        if at.one.error is not None:
            assert isinstance(at.one.error, GraphClosingError | StartError)
        line += STEP
    assert line > 50


def test_a_teardown_at_every_line_of_a_teardown() -> None:
    """The same for a second teardown: one report, every stop once."""
    line = 1
    while True:
        world = World()
        graph = Graph(world.kind("base"), world.kind("top", ["base"]))
        graph.start()
        at = At(line, graph.teardown, graph.teardown)
        if at.other is None:
            break
        assert at.one.result() is at.other.result() is graph.report
        check(world, graph, at.one.result(), at.one)
        line += STEP
    assert line > 50


def test_a_start_at_every_line_of_a_start() -> None:
    """Two starts at once start everything once, and both return when it is up."""
    line = 3
    while True:
        world = World()
        graph = Graph(world.kind("base"), world.kind("top", ["base"]))
        up: list[list[str]] = []
        at = At(line, graph.start, lambda: (graph.start(), up.append(world.names("started"))))
        assert ["base", "top"] == world.names("started")
        if at.other is not None:
            at.one.result()
            at.other.result()
            assert [["base", "top"]] == up
        graph.teardown()
        if at.other is None:
            break
        line += STEP
    assert line > 50


def test_a_create_at_every_line_of_a_create() -> None:
    """Two creates at once give two members."""
    line = 1
    while True:
        world = World()
        graph = Graph(world.kind("base"))
        graph.start()
        kind, other = world.kind("one", ["base"]), world.kind("two", ["base"])
        at = At(line, lambda: graph.create(kind), lambda: graph.create(other))
        if at.other is None:
            graph.teardown()
            break
        assert at.one.result() is graph["one"]
        assert at.other.result() is graph["two"]
        report = graph.teardown()
        assert {"released"} == set(report.fates.values())
        assert {"base", "one", "two"} == set(report.fates)
        assert ["base"] == world.names("stop")[2:]
        line += STEP
    assert line > 50


def test_a_teardown_at_every_line_of_a_failing_create() -> None:
    """A create that fails while the graph is torn down is rolled back once."""
    line = 1
    while True:
        world = World()
        graph = Graph(world.kind("base"))
        graph.start()

        def fail() -> None:
            raise OSError("late")

        at = At(line, lambda: graph.create(world.kind("late", ["base"], start=fail)), graph.teardown)
        if at.other is None:
            graph.teardown()
            break
        assert isinstance(at.one.error, LifegraphError), repr(at.one.error)
        check(world, graph, at.other.result(), at.one)
        line += 1
    assert line > 50


def test_an_interrupted_wait_loses_nothing() -> None:
    """Waiting threads and the one that works see the same end."""
    world, entered, go_on = World(), threading.Event(), threading.Event()
    graph = Graph(world.kind("a", stop=lambda: (entered.set(), go_on.wait(PATIENCE))))
    graph.start()
    first = Elsewhere(graph.teardown)
    assert entered.wait(PATIENCE)
    rest = [Elsewhere(graph.teardown) for _ in range(5)]
    go_on.set()
    assert {id(first.result())} == {id(each.result()) for each in rest}
