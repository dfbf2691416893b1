"""Limits and grace: what is over when, and what is then not released."""

# mypy: disable-error-code="func-returns-value, unreachable"
# actions are tuples of calls, done for their effect
from __future__ import annotations

import math
import threading
import time

import pytest

from lifegraph import Graph, GraphClosingError, HookTimeout, NotAttempted, StartError, TeardownError, order_only
from tests.graph.world import PATIENCE, Elsewhere, World, fates, until, whole_life

SOON = 2.0
"""Seconds within which something limited to a fraction of a second must be over on a busy machine."""


def test_a_stop_at_its_limit_is_given_up(world: World) -> None:
    """It is timed out with the stack where it hangs; it poisons; all else is released at once."""
    began = time.monotonic()
    _, report = whole_life(
        world.kind("base"), world.kind("hung", ["base"], stop=world.hang, stop_timeout=0.2), world.kind("alone")
    )
    assert 0.2 <= report.seconds <= time.monotonic() - began <= SOON
    assert {"base": "poisoned", "hung": "timed_out", "alone": "released"} == fates(report)
    outcome = report.outcomes["hung"]
    assert "HookTimeout" == outcome.error_type
    assert outcome.stack is not None
    assert "in hang" in outcome.stack
    assert "lifegraph/drive" not in outcome.stack
    assert outcome.seconds == pytest.approx(0.2, abs=SOON)
    assert report.outcomes["base"].began is report.outcomes["base"].seconds is None


def test_limits_of_the_graph_are_defaults(world: World) -> None:
    """A resource that says nothing has the graph's limits, one that does has its own."""
    graph = Graph(world.kind("a"), world.kind("b", stop_timeout=7), stop_timeout=3, start_timeout=4)
    assert {"a": 3, "b": 7} == dict(graph.plan().timeouts)


@pytest.mark.parametrize("how", ["graph", "call"])
def test_grace_ends_everything(world: World, how: str) -> None:
    """At its end what runs is timed out, what waits is poisoned or abandoned, and the teardown is over."""
    graph = Graph(
        world.kind("a"),
        world.kind("b", ["a"]),
        world.kind("hung", ["b"], stop=world.hang, stop_timeout=None),
        world.kind("x"),
        world.kind("y", ["x"], stop_timeout=0.01),
        workers=1,
        grace=0.3 if how == "graph" else 900,
    )
    graph.start()
    began = time.monotonic()
    report = graph.teardown() if how == "graph" else graph.teardown(grace=0.3)
    assert 0.3 <= time.monotonic() - began <= SOON
    assert {"a": "poisoned", "b": "poisoned", "hung": "timed_out", "x": "poisoned", "y": "abandoned"} == fates(report)
    assert ("hung",) == report.outcomes["a"].causes
    assert ("y",) == report.outcomes["x"].causes
    assert "NotAttempted" == report.outcomes["y"].error_type


def test_no_grace_left_at_all(world: World) -> None:
    """With a grace of nothing no stop is called; what uses nothing that waits is abandoned."""
    graph = Graph(world.kind("a"), world.kind("b", ["a"]), world.kind("c"))
    graph.start()
    report = graph.teardown(grace=0)
    assert {"a": "poisoned", "b": "abandoned", "c": "abandoned"} == fates(report)
    assert [] == world.names("stop")


def test_order_only_dependencies_of_what_is_abandoned_are_abandoned(world: World) -> None:
    """Where only order stood in the way, time is what was wanting."""
    graph = Graph(world.kind("a"), world.kind("b", [order_only("a")]))
    graph.start()
    report = graph.teardown(grace=0)
    assert {"a": "abandoned", "b": "abandoned"} == fates(report)


def test_members_of_the_error(world: World) -> None:
    """A timed-out one is a HookTimeout, an abandoned one a NotAttempted; poisoned ones add none."""
    with (
        pytest.raises(TeardownError) as caught,
        Graph(
            world.kind("p"),
            world.kind("hung", ["p"], stop=world.hang, stop_timeout=None),
            world.kind("late", stop_timeout=0.01),
            workers=1,
            grace=0.2,
        ),
    ):
        pass
    error = caught.value
    by_kind = {type(member): member for member in error.exceptions}
    assert {HookTimeout, NotAttempted} == set(by_kind)
    assert 2 == len(error.exceptions)
    assert any("'hung'" in note for note in by_kind[HookTimeout].__notes__)
    assert any("'late'" in note for note in by_kind[NotAttempted].__notes__)
    assert isinstance(by_kind[HookTimeout], TimeoutError)


def test_grace_counts_from_the_request_during_start(world: World) -> None:
    """A teardown asked for while a start hangs is over within its grace; start tells of the teardown."""
    entered = threading.Event()
    graph = Graph(
        world.kind("base"),
        world.kind("slow", ["base"], start=lambda: (entered.set(), world.hang()), start_timeout=None),
        world.kind("never", ["slow"]),
    )
    starting = Elsewhere(graph.start)
    assert entered.wait(PATIENCE)
    tearing = Elsewhere(lambda: graph.teardown(grace=0.3))
    over = tearing.is_over(within=SOON)
    world.gate.set()
    report = tearing.result()
    assert over, "the teardown waited for the start beyond its grace"
    assert {"base": "poisoned", "slow": "timed_out", "never": "skipped"} == fates(report)
    assert starting.is_over()
    assert starting.error is not None
    assert report is starting.error.report  # type: ignore[attr-defined]  # StartError or GraphClosingError


def test_grace_counts_while_a_member_comes_up(world: World) -> None:
    """A create that hangs in a running graph does not hold up a teardown beyond its grace."""
    entered = threading.Event()
    graph = Graph(world.kind("base"), world.kind("alone"))
    graph.start()
    slow = world.kind("slow", ["base"], start=lambda: (entered.set(), world.hang()), start_timeout=None)
    creating = Elsewhere(lambda: graph.create(slow))
    assert entered.wait(PATIENCE)
    tearing = Elsewhere(lambda: graph.teardown(grace=0.3))
    over = tearing.is_over(within=SOON)
    world.gate.set()
    report = tearing.result()
    assert over, "the teardown waited for the create beyond its grace"
    assert "timed_out" == fates(report)["slow"]
    assert "poisoned" == fates(report)["base"]
    assert creating.is_over()
    assert creating.error is not None


def test_a_teardown_asked_for_during_start_rolls_back(world: World) -> None:
    """What is starting may finish, the rest is skipped, what is up is stopped; start raises GraphClosingError."""
    entered, go_on = threading.Event(), threading.Event()
    graph = Graph(
        world.kind("base"),
        world.kind("slow", ["base"], start=lambda: (entered.set(), go_on.wait(PATIENCE))),
        world.kind("never", ["slow"]),
    )
    starting = Elsewhere(graph.start)
    assert entered.wait(PATIENCE)
    tearing = Elsewhere(graph.teardown)
    until(lambda: refused(graph))
    go_on.set()
    report = tearing.result()
    assert {"base": "released", "slow": "released", "never": "skipped"} == fates(report)
    assert ["slow", "base"] == world.names("stop")
    assert ["base", "slow"] == world.names("start")
    assert (False, 0) == (report.start_failed, report.exit_code)  # nothing failed: it was called off
    with pytest.raises(GraphClosingError) as caught:
        starting.result()
    assert report is caught.value.report


def refused(graph: Graph) -> bool:
    """Whether the door is closed."""
    try:
        graph.depend("never", "slow")
    except GraphClosingError:
        return True
    return False


@pytest.mark.parametrize("limit", [None, 30.0])
def test_a_hook_can_ask_how_long_it_has(world: World, limit: float | None) -> None:
    """In a hook: seconds until its limit or the end of the grace, whichever is sooner."""
    told: dict[str, float] = {}
    graph = Graph(
        world.kind(
            "a",
            start=lambda: told.update(start=graph.time_left()),
            stop=lambda: told.update(stop=graph.time_left()),
            start_timeout=40,
            stop_timeout=20,
        ),
        grace=limit,
    )
    graph.start()
    graph.teardown()
    assert 30 < told["start"] <= 40
    assert 10 < told["stop"] <= 20
    sooner: list[float] = []
    graph = Graph(world.kind("b", stop=lambda: sooner.append(graph.time_left()), stop_timeout=limit), grace=5)
    graph.start()
    graph.teardown()
    assert 0 < sooner[0] <= 5


def test_no_limit_is_infinity(world: World) -> None:
    """Without limit and grace there is no end."""
    told: list[float] = []
    graph = Graph(world.kind("a", stop=lambda: told.append(graph.time_left()), stop_timeout=None))
    graph.start()
    graph.teardown()
    assert [math.inf] == told


def test_a_stop_limit_of_zero_is_a_limit(world: World) -> None:
    """A limit of zero gives up at once what hangs, and the teardown ends."""
    _, report = whole_life(world.kind("a"), world.kind("b", ["a"], stop=world.hang, stop_timeout=0))
    assert {"a": "poisoned", "b": "timed_out"} == fates(report)


def test_hundred_hangs_take_one_limit(world: World) -> None:
    """A hundred stops that hang are given up together, not one after another."""
    _, report = whole_life(*[world.kind(f"r{n}", stop=world.hang, stop_timeout=0.3) for n in range(100)], workers=200)
    assert 100 == len(report.timed_out)
    assert report.seconds < 5


@pytest.mark.parametrize("workers", [1, 2, 8])
@pytest.mark.parametrize("lane", ["worker", "dedicated"])
def test_a_limit_of_a_later_hook(world: World, workers: int, lane: str) -> None:
    """A stop that begins after others have ended has its own limit from its own beginning."""
    _, report = whole_life(
        world.kind("hung", stop=world.hang, stop_timeout=0.1, lane=lane),
        world.kind("before", ["hung"], stop=lambda: threading.Event().wait(0.05)),
        world.kind("first", ["before"], stop=lambda: threading.Event().wait(0.05)),
        workers=workers,
    )
    assert {"hung": "timed_out", "before": "released", "first": "released"} == fates(report)
    assert 0.2 <= report.seconds < SOON


def test_a_limit_of_a_later_start(world: World) -> None:
    """The same for a start."""
    graph = Graph(
        world.kind("first", start=lambda: threading.Event().wait(0.05)),
        world.kind("hung", ["first"], start=world.hang, start_timeout=0.1),
        workers=1,
    )
    began = time.monotonic()
    with pytest.raises(StartError):
        graph.start()
    assert 0.15 <= time.monotonic() - began < SOON


def test_limits_one_after_another(world: World) -> None:
    """With one worker three hangs take three limits, and no longer."""
    _, report = whole_life(*[world.kind(f"r{n}", stop=world.hang, stop_timeout=0.1) for n in range(3)], workers=1)
    assert 3 == len(report.timed_out)
    assert 0.1 <= report.seconds < SOON
