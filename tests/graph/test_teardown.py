"""Teardown: dependents first, everything that can be released, and nothing that may be in use."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from lifegraph import (
    Fate,
    Graph,
    GraphClosingError,
    HookInterrupted,
    ReentrantTeardownError,
    Report,
    StartError,
    TeardownError,
    order_only,
    quarantine,
)
from tests.graph.world import PATIENCE, Elsewhere, World, fates, raises, whole_life

BASE_EXCEPTIONS = [KeyboardInterrupt("k"), SystemExit(3), GeneratorExit("g"), asyncio.CancelledError("c")]


class OddNotes(Exception):
    """An error of which nothing can be noted."""

    def add_note(self, note: str, /) -> None:
        raise RuntimeError("no notes, please")


class OddNoteList(Exception):
    """An error whose notes are no list."""

    def __init__(self) -> None:
        super().__init__("odd")
        self.__notes__ = "not a list"  # type: ignore[assignment]  # that is the point


class OddText(Exception):
    """An error that cannot be told."""

    def __str__(self) -> str:
        raise ValueError("no text, please")


class OddExit(Exception):
    """An error that ends its reader."""

    def __str__(self) -> str:
        raise SystemExit(1)


@pytest.mark.parametrize("error", [OSError("o"), *BASE_EXCEPTIONS], ids=lambda e: type(e).__name__)
def test_a_failed_stop_poisons_what_it_uses_and_nothing_else(world: World, error: BaseException) -> None:
    """Whatever a stop raises, below it nothing is stopped, and all else is."""
    graph, report = whole_life(
        world.kind("bottom"),
        world.kind("below", ["bottom"]),
        world.kind("bad", ["below"], stop=raises(error)),
        world.kind("above", ["bad"]),
        world.kind("beside", ["bottom"]),
        world.kind("alone"),
    )
    assert {
        "bottom": "poisoned",
        "below": "poisoned",
        "bad": "failed",
        "above": "released",
        "beside": "released",
        "alone": "released",
    } == fates(report)
    assert {"bad", "above", "beside", "alone"} == set(world.names("stop"))
    assert ("bad",) == report.outcomes["bottom"].causes == report.outcomes["below"].causes
    assert (("bad", "below", "bottom"),) == report.outcomes["bottom"].paths
    assert type(error).__name__ == report.outcomes["bad"].error_type
    assert "closed" == graph.state


@pytest.mark.parametrize("error", BASE_EXCEPTIONS, ids=lambda e: type(e).__name__)
def test_what_is_no_exception_stands_as_interrupted(world: World, error: BaseException) -> None:
    """In the group it is a HookInterrupted that has the original as its cause and names its resource."""
    with pytest.raises(TeardownError) as caught, Graph(world.kind("bad", stop=raises(error))):
        pass
    (member,) = caught.value.exceptions
    assert isinstance(member, HookInterrupted)
    assert error is member.__cause__
    assert any("'bad'" in note for note in member.__notes__)


@pytest.mark.parametrize("odd", [OddNotes, OddNoteList, OddText, OddExit])
def test_an_odd_error_is_a_failure_like_any_other(world: World, odd: type[Exception]) -> None:
    """An error that cannot be noted or told fails its own resource only."""
    graph = Graph(world.kind("below"), world.kind("odd", ["below"], stop=raises(odd())), world.kind("alone"))
    graph.start()
    report = graph.teardown(grace=5)
    assert {"below": "poisoned", "odd": "failed", "alone": "released"} == fates(report)
    assert odd.__name__ == report.outcomes["odd"].error_type
    assert ("odd",) == report.outcomes["below"].causes


def test_order_only_edges_order_and_carry_no_poison(world: World) -> None:
    """Over an order-only edge the dependent ends first, and its failure poisons nothing."""
    hanging = world.kind("api", [order_only("metrics")], stop=raises(OSError()))
    _, report = whole_life(world.kind("metrics"), hanging)
    assert {"metrics": "released", "api": "failed"} == fates(report)
    assert world.place("stop", "api") < world.place("stop", "metrics")


def test_order_only_edges_wait_for_what_hangs(world: World) -> None:
    """What hangs is waited for until its limit, over order-only edges, too."""
    _, report = whole_life(
        world.kind("metrics"), world.kind("api", [order_only("metrics")], stop=world.hang, stop_timeout=0.1)
    )
    assert {"metrics": "released", "api": "timed_out"} == fates(report)
    assert report.outcomes["metrics"].began is not None
    assert report.outcomes["api"].ended is not None
    assert report.outcomes["api"].ended <= report.outcomes["metrics"].began


def test_poison_goes_round_an_order_only_edge(world: World) -> None:
    """A resource that is reached over uses as well is poisoned, whatever orders it besides."""
    _, report = whole_life(
        world.kind("base"),
        world.kind("middle", ["base"]),
        world.kind("top", ["middle", order_only("base")], stop=raises(OSError())),
    )
    assert {"base": "poisoned", "middle": "poisoned", "top": "failed"} == fates(report)


def test_all_causes_are_named(world: World) -> None:
    """A resource poisoned twice names both roots, with a path each, and no other."""
    _, report = whole_life(
        world.kind("base"),
        world.kind("left", ["base"], stop=raises(OSError())),
        world.kind("right", ["base"], stop=raises(OSError())),
        world.kind("innocent", ["base"]),
    )
    assert {"left", "right"} == set(report.outcomes["base"].causes)
    assert {("left", "base"), ("right", "base")} == set(report.outcomes["base"].paths)
    assert "poisoned" == fates(report)["base"]


def test_a_hook_less_resource_is_released_at_its_turn_only(world: World) -> None:
    """Nothing to stop is released when its turn comes, and poisoned like any other."""
    _, report = whole_life(
        world.kind("base", hooks="start"),
        world.kind("bad", ["base"], stop=raises(OSError())),
        world.kind("calm", hooks=""),
    )
    assert {"base": "poisoned", "bad": "failed", "calm": "released"} == fates(report)


def test_hidden_dependencies_pass_poison_through_hook_less_ones(world: World) -> None:
    """A resource without a stop hook in the middle passes poison on."""
    _, report = whole_life(
        world.kind("base"),
        world.kind("middle", ["base"], hooks=""),
        world.kind("bad", ["middle"], stop=raises(OSError())),
    )
    assert {"base": "poisoned", "middle": "poisoned", "bad": "failed"} == fates(report)


def test_independent_hangs_run_side_by_side(world: World) -> None:
    """Stops that are independent are inside their hooks at the same time."""
    together = threading.Barrier(4)
    _, report = whole_life(*[world.kind(f"r{n}", stop=lambda: together.wait(PATIENCE)) for n in range(4)])
    assert {"released"} == set(fates(report).values())


def test_no_resource_waits_for_a_level(world: World) -> None:
    """A chain beside a slow resource goes on down while that still runs."""
    below_stopped = threading.Event()
    _, report = whole_life(
        world.kind("below", stop=below_stopped.set),
        world.kind("above", ["below"]),
        world.kind("slow", stop=lambda: below_stopped.wait(PATIENCE) or pytest.fail("waited for a level")),
    )
    assert {"released"} == set(fates(report).values())


def test_a_hung_stop_does_not_hold_up_the_33rd(world: World) -> None:
    """Threads lost to hung hooks are replaced: with all workers lost, the others are still stopped."""
    hung = [world.kind(f"hung{n}", stop=world.hang, stop_timeout=0.1) for n in range(4)]
    _, report = whole_life(*hung, *[world.kind(f"fine{n}", stop_timeout=0.05) for n in range(8)], workers=4)
    assert {f"fine{n}" for n in range(8)} == set(report.released)
    assert {f"hung{n}" for n in range(4)} == set(report.timed_out)


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_no_more_hooks_than_workers_run_at_once(world: World, workers: int) -> None:
    """At no time are more hooks running than there are workers."""
    lock, inside, most = threading.Lock(), [0], [0]

    def hook() -> None:
        with lock:
            inside[0] += 1
            most[0] = max(most[0], inside[0])
        threading.Event().wait(0.005)
        with lock:
            inside[0] -= 1

    whole_life(*[world.kind(f"r{n}", start=hook, stop=hook) for n in range(12)], workers=workers)
    assert 1 <= most[0] <= workers


def test_teardown_happens_once(world: World) -> None:
    """A second teardown returns the first report and stops nothing again."""
    graph, report = whole_life(world.kind("a"), world.kind("b", ["a"], stop=raises(OSError())))
    assert report is graph.teardown() is graph.teardown(grace=0) is graph.report
    assert ["b"] == world.names("stop")


def test_concurrent_teardowns_get_the_same_report(world: World) -> None:
    """Of eight threads that ask at once each gets the one report, and every stop is called once."""
    entered = threading.Event()
    graph = Graph(world.kind("a", stop=lambda: entered.wait(PATIENCE)), world.kind("b", ["a"]))
    graph.start()
    together = threading.Barrier(8)

    def ask() -> Report:
        together.wait(PATIENCE)
        return graph.teardown()

    asking = [Elsewhere(ask) for _ in range(8)]
    entered.set()
    assert 1 == len({id(each.result()) for each in asking})
    assert ["b", "a"] == world.names("stop")


def test_a_concurrent_teardown_gets_the_finished_report(world: World) -> None:
    """While observers still are told, a second caller waits, too: there is one report, with all its notes."""
    told, go_on = threading.Event(), threading.Event()

    def broken(event: object) -> None:
        if type(event).__name__ == "TeardownEnded":
            told.set()
            go_on.wait(PATIENCE)
        raise ValueError("broken")

    graph = Graph(world.kind("a"), observers=[broken])
    graph.start()
    first = Elsewhere(graph.teardown)
    assert told.wait(PATIENCE)
    second = Elsewhere(graph.teardown)
    second.is_over(within=0.2)
    go_on.set()
    assert first.result() is second.result() is graph.report
    assert any("broken" in note for note in second.result().notes)


@pytest.mark.parametrize("hook", ["start", "stop"])
def test_a_hook_cannot_wait_for_its_own_teardown(world: World, hook: str) -> None:
    """Teardown out of a hook is refused at once, by an error that names the way out."""
    errors: list[BaseException] = []

    def ask() -> None:
        try:
            graph.teardown()
        except ReentrantTeardownError as why:
            errors.append(why)

    hooks: dict[str, Any] = {hook: ask}
    graph = Graph(world.kind("a", **hooks), name="mine")
    graph.start()
    assert "released" == fates(graph.teardown())["a"]
    (error,) = errors
    assert "request_teardown" in str(error)
    assert "mine" in str(error)


def test_a_hook_may_tear_down_another_graph(world: World) -> None:
    """Only its own graph is out of a hook's reach."""
    other = Graph(world.kind("other"))
    other.start()
    _, report = whole_life(world.kind("a", stop=other.teardown))
    assert {"a": "released"} == fates(report)
    assert {"other": "released"} == fates(other.report)


def test_teardown_of_a_new_graph_stops_what_is_up(world: World) -> None:
    """What was created before the start is stopped; what was declared only, or not yet started, is skipped."""
    graph = Graph(world.kind("declared"))
    graph.create(world.kind("up", hooks="stop"))
    graph.create(world.kind("waiting", ["up"]))
    report = graph.teardown()
    assert {"declared": "skipped", "up": "released", "waiting": "skipped"} == fates(report)
    assert ["up"] == world.names("stop")
    assert report.ok
    assert 0 == report.exit_code


def test_teardown_of_an_empty_graph() -> None:
    """An empty graph starts, stops, and is ok."""
    graph, report = whole_life()
    assert ({}, True, 0, "closed") == (fates(report), report.ok, report.exit_code, graph.state)
    assert () == report.critical_path


def test_the_door_is_closed_during_the_teardown(world: World) -> None:
    """While stops run and afterwards, nothing can be added, and nothing is taken in by trying."""
    errors: list[str] = []

    def try_all() -> None:
        for verb in (
            lambda: graph.add(object(), stop=None),
            lambda: graph.create(world.kind("late")),
            lambda: graph.enter(threading.Lock()),
            lambda: graph.depend("a", "b"),
            lambda: graph.start(),
        ):
            with pytest.raises(GraphClosingError) as caught:
                verb()
            errors.append(type(caught.value).__name__)

    graph = Graph(world.kind("a", stop=try_all), world.kind("b"))
    graph.start()
    report = graph.teardown()
    assert {"a": "released", "b": "released"} == fates(report)
    try_all()
    assert 10 == len(errors)
    assert ["a", "b"] == list(graph)


def test_what_ends_late_changes_nothing_in_the_report(world: World) -> None:
    """A stop that returns after it was given up leaves the report as it was, and its resource in quarantine."""
    over = threading.Event()
    graph = Graph(
        world.kind("base"),
        world.kind("late", ["base"], stop=world.hang, stop_timeout=0.1),
        name="late one",
        observers=[lambda event: over.set() if type(event).__name__ == "AnswerLate" else None],
    )
    graph.start()
    report = graph.teardown()
    before = report.to_json()
    world.gate.set()
    assert over.wait(PATIENCE)
    assert before == report.to_json()
    assert report is graph.teardown()
    assert {"late", "base"} == {held.resource for held in quarantine() if held.graph == "late one"}
    assert ["late"] == world.names("stop")


class TestMembersThatCameLate:
    """A member whose start failed in a running graph, and could not be rolled back, stays what it is."""

    def test_failed(self, world: World) -> None:
        """Its stop failed in the roll-back: it is not stopped again, and what it uses is poisoned."""
        graph = Graph(world.kind("base"))
        graph.start()
        with pytest.raises(StartError) as caught:
            graph.create(world.kind("late", ["base"], start=raises(OSError("s")), stop=raises(OSError("t"))))
        assert {"late": "failed"} == fates(caught.value.report)
        assert {"late": "failed", "base": "poisoned"} == fates(graph.teardown())
        assert ["late"] == world.names("stop")

    def test_timed_out(self, world: World) -> None:
        """Its start still runs: nothing tells that it has stopped using what it uses."""
        graph = Graph(world.kind("base"))
        graph.start()
        with pytest.raises(StartError) as caught:
            graph.create(world.kind("late", ["base"], start=world.hang, start_timeout=0.1))
        assert {"late": "timed_out"} == fates(caught.value.report)
        report = graph.teardown()
        assert {"late": "timed_out", "base": "poisoned"} == fates(report)
        assert ("late",) == report.outcomes["base"].causes
        assert [] == world.names("stop")

    def test_released(self, world: World) -> None:
        """One that was rolled back is forgotten, and holds up nothing."""
        graph = Graph(world.kind("base"))
        graph.start()
        with pytest.raises(StartError):
            graph.create(world.kind("late", ["base"], start=raises(OSError("s"))))
        assert ["base"] == list(graph)
        assert {"base": "released"} == fates(graph.teardown())
        assert ["late", "base"] == world.names("stop")


def test_a_failed_resource_is_told_as_failed_in_all_ways(world: World) -> None:
    """The report's tuples, fates and flags say the same."""
    _, report = whole_life(world.kind("a"), world.kind("b", ["a"], stop=raises(OSError())), world.kind("c"))
    assert (("c",), ("b",), (), ("a",), (), ()) == (
        report.released,
        report.failed,
        report.timed_out,
        report.poisoned,
        report.abandoned,
        report.skipped,
    )
    assert not report.ok
    assert 3 == report.exit_code
    assert {Fate.POISONED, Fate.FAILED, Fate.RELEASED} == set(report.fates.values())
