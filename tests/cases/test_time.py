"""Stopping side by side, and within limits."""

from __future__ import annotations

import threading

import pytest

from lifegraph import Graph
from tests.graph.world import PATIENCE, World, fates, whole_life


@pytest.mark.parametrize("count", [2, 10, 32])
def test_independent_stops_take_the_time_of_one(world: World, count: int) -> None:
    """All are inside their stops at once, so their times do not add up.

    https://github.com/dotnet/runtime/issues/68036
    """
    together = threading.Barrier(count)
    _, report = whole_life(
        *[world.kind(f"r{n}", stop=lambda: together.wait(PATIENCE)) for n in range(count)], grace=PATIENCE
    )
    assert count == len(report.released)


def test_ten_times_a_third_of_a_second(world: World) -> None:
    """The very case: ten stops of 0.3 s within a limit of 1 s.

    https://github.com/dotnet/runtime/issues/68036
    """
    kinds = [world.kind(f"r{n}", stop=lambda: threading.Event().wait(0.3)) for n in range(10)]
    _, report = whole_life(*kinds, grace=1)
    assert 10 == len(report.released)
    assert 0.3 <= report.seconds < 1


def test_with_one_worker_what_was_not_reached_is_told(world: World) -> None:
    """With one worker and too little time it does not hang, and says what it did not reach.

    https://github.com/dotnet/runtime/issues/68036
    """
    kinds = [world.kind(f"r{n}", stop=lambda: threading.Event().wait(0.3)) for n in range(10)]
    _, report = whole_life(*kinds, grace=1, workers=1)
    assert 0.9 < report.seconds < 3  # the grace counts from the request, a little before
    assert 1 <= len(report.released) <= 3
    assert 1 == len(report.timed_out)
    assert 10 == len(report.released) + len(report.timed_out) + len(report.abandoned)
    assert not report.ok


@pytest.mark.parametrize("place", range(3))
def test_one_that_never_returns_holds_up_nobody_else(world: World, place: int) -> None:
    """What hangs is given up at its limit; what it uses stays, all the rest is released.

    https://github.com/hyperledger-cacti/cacti/issues/4333
    """
    names = ["a", "b", "c"]
    hung = names[place]
    graph, report = whole_life(
        world.kind("base"),
        *[
            world.kind(
                name, ["base"] if name == hung else [], stop=world.hang if name == hung else None, stop_timeout=0.2
            )
            for name in names
        ],
    )
    assert {"base": "poisoned", hung: "timed_out"} | dict.fromkeys(set(names) - {hung}, "released") == fates(report)
    assert 0.2 <= report.seconds < 2
    before = report.to_json()
    world.gate.set()
    assert before == report.to_json()
    assert report is graph.teardown()


def test_there_is_a_limit_by_default(world: World) -> None:
    """Nobody waits for ever without having said so.

    https://github.com/hyperledger-cacti/cacti/issues/4333
    """
    plan = Graph(world.kind("a")).plan()
    assert {"a": 10} == dict(plan.timeouts)
    assert plan.worst_case < 60
