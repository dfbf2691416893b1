"""What fails, what that poisons, and that all the rest goes on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifegraph import Graph, StartError, TeardownError
from tests.graph.world import World, fates, raises, whole_life


@given(st.sets(st.integers(0, 5)), st.integers(1, 6))
def test_the_first_error_does_not_end_the_round(bad: set[int], workers: int) -> None:
    """Whichever of several fail, all others are stopped, and every error is told.

    https://github.com/samber/do/issues/42
    """
    world = World()
    kinds = [world.kind(f"r{n}", stop=raises(OSError(str(n))) if n in bad else None) for n in range(6)]
    below = world.kind("d", ["r0"]) if 0 not in bad else world.kind("d")
    graph = Graph(*kinds, below, workers=workers)
    graph.start()
    report = graph.teardown()
    assert {f"r{n}" for n in bad} == set(report.failed)
    assert {f"r{n}" for n in range(6) if n not in bad} | {"d"} == set(report.released)
    assert () == report.poisoned
    assert 7 == len(world.names("stop"))
    if bad:
        with pytest.raises(TeardownError) as caught:
            report.raise_for_failures()
        assert len(bad) == len(caught.value.exceptions)
    else:
        report.raise_for_failures()


@given(st.integers(1, 8), st.data())
def test_a_chain_is_kept_from_where_it_broke(size: int, data: st.DataObject) -> None:
    """Above the break all is released, below it nothing is stopped, in this or any later round.

    https://github.com/hashicorp/terraform/issues/28315
    """
    at = data.draw(st.integers(0, size - 1))
    world = World()
    kinds = [
        world.kind(f"r{n}", [f"r{n - 1}"] if n else [], stop=raises(OSError()) if n == at else None)
        for n in range(size)
    ]
    graph, report = whole_life(*kinds, world.kind("top", [f"r{size - 1}", "side"]), world.kind("side"))
    assert {"top", "side", *(f"r{n}" for n in range(at + 1, size))} == set(report.released)
    assert (f"r{at}",) == report.failed
    assert {f"r{n}" for n in range(at)} == set(report.poisoned)
    assert report is graph.teardown()
    assert not {f"r{n}" for n in range(at)} & set(world.names("stop"))
    assert 1 == world.names("stop").count(f"r{at}")


@pytest.mark.parametrize("hung", [(), ("io_thread_1",), ("io_thread_0",), ("io_thread_0", "io_thread_1")], ids=len)
def test_pinned_memory_outlives_the_threads_that_write_to_it(world: World, hung: tuple[str, ...]) -> None:
    """Where an I/O thread ignores its limit, neither the buffers are unregistered nor the file closed; else after it.

    https://github.com/vllm-project/vllm/pull/56425
    """

    def thread(name: str) -> object:
        return world.kind(name, ["file", "pinned"], stop=world.hang if name in hung else None, stop_timeout=0.2)

    _, report = whole_life(
        world.kind("file"),
        world.kind("pinned"),
        thread("io_thread_0"),
        thread("io_thread_1"),
        world.kind("disk_tier", ["io_thread_0", "io_thread_1"]),
    )
    assert hung == tuple(sorted(report.timed_out))
    if hung:
        assert {"file", "pinned"} == set(report.poisoned)
        assert not {"file", "pinned"} & set(world.names("stop"))
        assert hung == tuple(sorted(report.outcomes["pinned"].causes))
    else:
        for thread_name in ("io_thread_0", "io_thread_1"):
            for held in ("file", "pinned"):
                assert world.place("stopped", thread_name) < world.place("stop", held)
    assert "disk_tier" in report.released


@pytest.mark.parametrize(
    ("options", "stop", "remote", "db"),
    [
        ({}, None, "released", "released"),
        ({"atomic_start": True}, None, "skipped", "released"),
        ({}, raises(ValueError("roll-back")), "failed", "poisoned"),
    ],
    ids=["stopped", "atomic", "cannot be stopped"],
)
def test_what_had_started_is_cleaned_up(
    world: World, options: dict[str, Any], stop: Callable[[], None] | None, remote: str, db: str
) -> None:
    """After a failed start what was up is stopped in order, what never began is left alone, the error is the original.

    https://github.com/aio-libs/aiohttp/issues/4799
    """
    original = OSError("no route")
    graph = Graph(
        world.kind("metrics"),
        world.kind("db"),
        world.kind("web", ["remote"]),
        world.kind("remote", ["db"], start=raises(original), stop=stop, **options),
        workers=1,
    )
    with pytest.raises(StartError) as caught:
        graph.start()
    assert original is caught.value.exceptions[0]
    told = fates(caught.value.report)
    assert ("skipped", remote, db) == (told["web"], told["remote"], told["db"])
    assert told["metrics"] in ("released", "skipped")
    assert "web" not in world.names("made")
    assert "web" not in world.names("stop")
    assert int(remote != "skipped") == world.names("stop").count("remote")
    if remote == db == "released":
        assert world.place("stopped", "remote") < world.place("stop", "db")
    for name in world.names("stop"):
        assert name in world.names("start"), "stopped without ever having been started"


def test_a_failed_start_leaves_nothing_that_was_up(world: World) -> None:
    """Wherever in a chain the start fails, all below it is stopped, from the top down.

    https://github.com/Kludex/starlette/issues/939
    """
    for at in range(5):
        world = World()
        graph = Graph(
            *[
                world.kind(f"r{n}", [f"r{n - 1}"] if n else [], made=raises(OSError()) if n == at else None)
                for n in range(5)
            ]
        )
        with pytest.raises(StartError):
            graph.start()
        assert [f"r{n}" for n in reversed(range(at))] == world.names("stop")
