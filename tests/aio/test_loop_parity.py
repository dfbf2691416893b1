"""Threads, loops, a script and the forecast tell the same of one scenario: fates, causes, and who was told what."""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lifegraph import Fate, Graph, Report, StartError, order_only, resource
from lifegraph.drive.scripted import Answer, Scripted
from lifegraph.run import Start, Teardown
from tests.aio.looping import Gate, eventually, has, run_on, turns
from tests.graph.world import until

STOPS = ("ok", "ok", "ok", "ok", "raise", "base", "hang", "late")
STARTS = ("raise", "base", "hang")
FORMS = ("sync", "async", "returns", "generator", "async generator")
BASES = (SystemExit, KeyboardInterrupt, GeneratorExit, asyncio.CancelledError)
LIMIT = 0.02  # seconds, and only for what hangs: the rest has no limit, however slow the machine


@dataclass(frozen=True)
class Node:
    """One resource of a scenario."""

    form: str
    stop: str
    dependencies: tuple[tuple[int, bool], ...]


@dataclass(frozen=True)
class Scenario:
    """Resources in declared order, and which start fails, and how, if one does."""

    nodes: tuple[Node, ...]
    failing: int | None = None
    start: str = "ok"

    @property
    def free(self) -> set[int]:
        """All that come up though one start fails: what does not depend on it."""
        if self.failing is None:
            return set(range(len(self.nodes)))
        hit = {self.failing}
        for number, node in enumerate(self.nodes):
            if any(dependency in hit for dependency, _ in node.dependencies):
                hit.add(number)
        return set(range(len(self.nodes))) - hit


def made_up(draw: random.Random) -> Scenario:
    """A scenario by chance."""
    nodes = tuple(
        Node(
            draw.choice(FORMS),
            draw.choice(STOPS),
            tuple((d, draw.random() < 0.75) for d in range(number) if draw.random() < 0.35),
        )
        for number in range(draw.randint(1, 9))
    )
    if draw.random() < 0.3:
        return Scenario(nodes, draw.randrange(len(nodes)), draw.choice(STARTS))
    return Scenario(nodes)


@dataclass
class Stage:
    """Where a scenario is played: who was told what, and where everything that hangs hangs."""

    scenario: Scenario
    plain: bool = False  # all forms as their sync ones, for the script
    gate: Gate = field(default_factory=Gate)
    told: list[tuple[str, str]] = field(default_factory=list)
    up: set[int] = field(default_factory=set)
    late: dict[int, threading.Event] = field(default_factory=dict)

    def ready(self) -> bool:
        """Whether all that can come up beside the failing start is up."""
        return self.scenario.free <= self.up

    def error(self, number: int, how: str) -> BaseException:
        """What is raised."""
        return OSError("told to") if how == "raise" else BASES[number % len(BASES)]("told to")

    def enter(self, number: int) -> None:
        """A start, on a thread."""
        self.told.append(("start", f"n{number}"))
        if number == self.scenario.failing:
            until(self.ready)
            if self.scenario.start == "hang":
                self.gate.block()
            else:
                raise self.error(number, self.scenario.start)
        self.up.add(number)

    async def aenter(self, number: int) -> None:
        """A start, on a loop."""
        self.told.append(("start", f"n{number}"))
        await asyncio.sleep(0)
        if number == self.scenario.failing:
            await eventually(self.ready)
            if self.scenario.start == "hang":
                await self.gate.hang()
            else:
                raise self.error(number, self.scenario.start)
        self.up.add(number)

    def leave(self, number: int) -> None:
        """A stop, on a thread."""
        how = self.scenario.nodes[number].stop
        self.told.append(("stop", f"n{number}"))
        if how in ("raise", "base"):
            raise self.error(number, how)
        if how == "hang":
            self.gate.block()
        elif how == "late":
            self.late[number].wait(30)

    async def aleave(self, number: int) -> None:
        """A stop, on a loop."""
        how = self.scenario.nodes[number].stop
        self.told.append(("stop", f"n{number}"))
        await asyncio.sleep(0)
        if how in ("raise", "base"):
            raise self.error(number, how)
        if how == "hang":
            await self.gate.hang()
        elif how == "late":
            await eventually(self.late[number].is_set)

    def observe(self, event: Any) -> None:
        """Let what is late end as soon as it was given up."""
        given_up = type(event).__name__ == "HookEnded" and event.hook == "stop" and event.timed_out
        if given_up and (number := int(event.resource[1:])) in self.late:
            self.late[number].set()

    def target(self, number: int) -> Any:
        """What is added for one node."""
        form, stage = self.scenario.nodes[number].form, self
        if self.plain:
            form = "generator" if "generator" in form else "sync"

        class Sync:
            def start(self) -> Any:
                stage.enter(number)

            def stop(self) -> Any:
                stage.leave(number)

        class Async:
            async def start(self) -> None:
                await stage.aenter(number)

            async def stop(self) -> None:
                await stage.aleave(number)

        class Returns:
            def start(self) -> Any:
                return stage.aenter(number)

            def stop(self) -> Any:
                return stage.aleave(number)

        def generator() -> Iterator[int]:
            stage.enter(number)
            yield number
            stage.leave(number)

        async def async_generator() -> AsyncIterator[int]:
            await stage.aenter(number)
            yield number
            await stage.aleave(number)

        if self.plain and form == "sync":
            return resource(Sync)()  # there already: what the script has fail is the hook
        return resource(
            {
                "sync": Sync,
                "async": Async,
                "returns": Returns,
                "generator": generator,
                "async generator": async_generator,
            }[form]
        )

    def graph(self) -> Graph:
        """The graph of the scenario."""
        scenario = self.scenario
        graph = Graph(name="parity", stop_timeout=None, start_timeout=None, observers=[self.observe])
        for number, node in enumerate(scenario.nodes):
            options: dict[str, Any] = {}
            if node.stop in ("hang", "late"):
                options["stop_timeout"] = LIMIT
            if node.stop == "late":
                self.late[number] = threading.Event()
            if number == scenario.failing and scenario.start == "hang":
                options["start_timeout"] = 0.25  # all the others come up within it
            edges = [f"n{d}" if used else order_only(f"n{d}") for d, used in node.dependencies]
            graph.add(self.target(number), name=f"n{number}", depends_on=edges, **options)
        return graph

    def close(self) -> None:
        """Let everything go."""
        self.gate.open()
        for event in self.late.values():
            event.set()

    def played(self, report: Report | None, told: list[tuple[str, str]] | None = None) -> dict[str, Any]:
        """What must be the same."""
        assert report is not None
        told = self.told if told is None else told
        return {
            "fates": {name: str(fate) for name, fate in report.fates.items()},
            "causes": {name: tuple(sorted(outcome.causes)) for name, outcome in report.outcomes.items()},
            "stopped": sorted(name for word, name in told if word == "stop"),
            "ok": report.ok,
        }


def by_threads(scenario: Scenario) -> dict[str, Any]:
    """With sync verbs."""
    stage = Stage(scenario)
    try:
        graph = stage.graph()
        try:
            graph.start()
        except StartError as error:
            return stage.played(error.report)
        return stage.played(graph.teardown())
    finally:
        stage.close()


def by_loop(scenario: Scenario, kind: str = "asyncio") -> dict[str, Any]:
    """With async verbs."""
    stage = Stage(scenario)

    async def main() -> dict[str, Any]:
        try:
            graph = stage.graph()
            try:
                await graph.astart()
            except StartError as error:
                return stage.played(error.report)
            return stage.played(await graph.ateardown())
        finally:
            stage.close()
            await turns()

    return run_on(kind, main)


def by_script(scenario: Scenario) -> dict[str, Any]:
    """With foretold answers, on a clock that is a number."""
    stage = Stage(scenario, plain=True)
    graph = stage.graph()
    life = graph._life
    answers = {
        "ok": lambda _: Answer(),
        "raise": lambda n: Answer(stage.error(n, "raise")),
        "base": lambda n: Answer(stage.error(n, "base")),
        "hang": lambda _: Answer(seconds=float("inf")),
        "late": lambda _: Answer(seconds=LIMIT * 3),
    }

    def start_answer(name: str) -> Answer:
        if int(name[1:]) != scenario.failing:
            return Answer()
        found = answers[scenario.start](int(name[1:]))
        return found._replace(seconds=max(found.seconds, LIMIT / 2))  # when all the others are up

    life.model.seal()
    plan, nodes = life.model.freeze(workers=32, grace=None)
    run = Start(plan, nodes, life.lives, graph=graph, herald=life.herald)
    Scripted(run, 32, start_answer).drive()
    prior = None if run.ok else run.start_details()
    down = Teardown(plan, nodes, life.lives, herald=life.herald, prior=prior)
    stage.scenario = Scenario(tuple(Node(n.form, "ok", n.dependencies) for n in scenario.nodes))
    driver = Scripted(down, 32, lambda name: answers[scenario.nodes[int(name[1:])].stop](int(name[1:])))
    driver.drive()
    return stage.played(down.report, [("stop", name) for verb, name in driver.told if verb == "go"])


def by_forecast(scenario: Scenario) -> dict[str, Any] | None:
    """Supposed, with nothing touched; only for a teardown of what is all up."""
    if scenario.failing is not None:
        return None
    stage = Stage(scenario)
    graph = stage.graph()
    report = graph.what_if(
        fail=[f"n{n}" for n, node in enumerate(scenario.nodes) if node.stop in ("raise", "base")],
        hang=[f"n{n}" for n, node in enumerate(scenario.nodes) if node.stop in ("hang", "late")],
    )
    assert [] == stage.told
    told = [("stop", name) for name, fate in report.fates.items() if fate is not Fate.POISONED]
    return stage.played(report, told)


def compare(scenario: Scenario, kind: str) -> None:
    """All four ways."""
    threads = by_threads(scenario)
    assert threads == by_loop(scenario, kind)
    assert threads == by_script(scenario)
    assert (by_forecast(scenario) or threads) == threads


@given(st.integers(0, 2**32))
@settings(max_examples=250, deadline=None)
def test_four_ways_to_play_a_scenario(seed: int) -> None:
    """Whatever fails, hangs, is late or does not start: all ways give the same fates, causes and actions."""
    compare(made_up(random.Random(seed)), "asyncio")


@pytest.mark.slow
@pytest.mark.parametrize("part", range(8))
def test_thousands_of_scenarios(part: int) -> None:
    """The same of 2,000 scenarios, every other part of them on uvloop where it is installed."""
    kind = "uvloop" if part % 2 and has("uvloop") else "asyncio"
    for number in range(250):
        scenario = made_up(random.Random(f"{part}/{number}"))
        try:
            compare(scenario, kind)
        except AssertionError as why:
            why.add_note(f"scenario {part}/{number}: {scenario}")
            raise
