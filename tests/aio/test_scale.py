"""Ten thousand async resources."""

from __future__ import annotations

import asyncio
import gc
import time
import weakref
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

import pytest

from lifegraph import Graph, resource
from tests.aio.conftest import Run
from tests.aio.looping import Gate, Through, turns, within

MANY = 10_000


class Counted:
    """A resource with two async hooks."""

    up = 0

    async def start(self) -> None:
        """Come up."""
        Counted.up += 1

    async def stop(self) -> None:
        """Go down."""
        Counted.up -= 1


def many(shape: str, stop_timeout: float | None = 60) -> Graph:
    """Independent, all above one, or each above the one before."""
    graph = Graph(start_timeout=60, stop_timeout=stop_timeout)
    for number in range(MANY):
        below = {"wide": [], "star": ["n0"], "chain": [f"n{number - 1}"]}[shape] if number else []
        graph.add(Counted(), name=f"n{number}", start="start", stop="stop", depends_on=below)
    return graph


@pytest.mark.parametrize("shape", ["wide", "star", "chain"])
def test_ten_thousand(through: Through, shape: str) -> None:
    """They come up and go down in seconds, whatever the shape and the world; nothing recurses."""
    Counted.up = 0
    graph = many(shape)
    seen: list[int] = []
    began = time.monotonic()
    report = through(graph, lambda: seen.append(Counted.up))
    assert [MANY] == seen
    assert 0 == Counted.up
    assert MANY == len(report.released)
    assert time.monotonic() - began < 60


def test_ten_thousand_generators(run: Run[Any]) -> None:
    """Each with a host task of its own, alive between enter and leave."""

    async def main() -> None:
        left: list[int] = []

        async def generator(number: int) -> AsyncIterator[int]:
            yield number
            left.append(number)

        graph = Graph()
        for number in range(MANY):
            graph.add(partial(generator, number), name=f"n{number}")
        await graph.astart()
        assert MANY - 1 == graph[f"n{MANY - 1}"]
        assert (await graph.ateardown()).ok
        assert list(range(MANY)) == sorted(left)

    run(main)


def test_ten_thousand_hang(run: Run[Any], gate: Gate) -> None:
    """All are given up at one limit, and the report has the stack of each."""

    async def main() -> None:
        class Hangs:
            async def stop(self) -> None:
                await gate.hang()

        graph = Graph(stop_timeout=1)
        for number in range(MANY // 10):
            graph.add(Hangs(), name=f"n{number}", stop="stop")
        await graph.astart()
        report = await within(graph.ateardown())
        assert MANY // 10 == len(report.timed_out)
        assert report.seconds < 20
        assert "gate.hang()" in str(report.outcomes["n7"].stack)

    run(main)


def test_the_loop_turns_meanwhile(run: Run[Any]) -> None:
    """While thousands come up and go down one after the other the loop stays at hand for others."""

    async def main() -> None:
        graph = many("chain")
        count = 0

        async def tick() -> None:
            nonlocal count
            while True:
                await asyncio.sleep(0)
                count += 1

        ticker = asyncio.ensure_future(tick())
        await graph.astart()
        await graph.ateardown()
        ticker.cancel()
        assert count > 100

    run(main)


def test_nothing_released_stays_in_memory(run: Run[Any]) -> None:
    """After a teardown neither the resources nor their host tasks are kept by anybody."""

    async def main() -> None:
        alive: list[weakref.ref[Any]] = []

        class Thing:
            async def start(self) -> None:
                task = asyncio.current_task()
                assert task is not None
                alive.append(weakref.ref(task))
                alive.append(weakref.ref(self))

            async def stop(self) -> None: ...

        async def whole() -> None:
            async with Graph(resource(Thing)) as graph:
                await graph.acreate(resource(Thing), name="other")

        await whole()
        await turns()
        gc.collect()
        assert 4 == len(alive)
        assert [None] * 4 == [reference() for reference in alive]

    run(main)
