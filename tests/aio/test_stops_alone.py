"""Stops that need no task kept for them: they share one, and none notices another."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextvars import ContextVar
from typing import Any

import pytest

from lifegraph import Graph, resource
from tests.aio.looping import Gate, Through, passing
from tests.graph.world import fates

Stop = Callable[[], Coroutine[Any, Any, object]]

VARIABLE: ContextVar[str] = ContextVar("VARIABLE", default="unset")


class Closes:
    """A live object with an async stop, which does as it is told."""

    def __init__(self, stop: Stop) -> None:
        self.stop = stop


def graph_of(stops: dict[str, Stop], **options: Any) -> Graph:
    """A graph of these, all independent."""
    graph = Graph(stop_timeout=30)
    for name, stop in stops.items():
        graph.add(Closes(stop), name=name, stop="stop", **options)
    return graph


def test_each_has_a_context_of_its_own(through: Through) -> None:
    """What one sets, before or after it waits, no other sees."""
    seen: list[str] = []

    def stop(name: str, *, waits: bool) -> Stop:
        async def run() -> None:
            seen.append(VARIABLE.get())
            VARIABLE.set(name)
            if waits:
                await asyncio.sleep(0)
            seen.append(VARIABLE.get())

        return run

    names = [f"n{n}" for n in range(12)]
    assert through(graph_of({name: stop(name, waits=n % 3 == 0) for n, name in enumerate(names)})).ok
    assert sorted([*names, *["unset"] * len(names)]) == sorted(seen)


def test_one_that_waits_keeps_its_task(through: Through) -> None:
    """From its first step to its last it is in one task, which nobody else has after it began to wait."""
    tasks: dict[str, list[Any]] = {}

    def stop(name: str) -> Stop:
        async def run() -> None:
            seen = tasks.setdefault(name, [])
            for _ in range(3):
                seen.append(asyncio.current_task())
                await asyncio.sleep(0)
            seen.append(asyncio.current_task())

        return run

    assert through(graph_of({f"n{n}": stop(f"n{n}") for n in range(10)})).ok
    assert all(1 == len(set(map(id, seen))) and None not in seen for seen in tasks.values())
    assert 10 == len({id(seen[0]) for seen in tasks.values()})


def test_a_timeout_inside_one(through: Through) -> None:
    """`asyncio.timeout` in one ends that one, where it is, and no neighbour."""
    ended: list[str] = []

    async def times_out() -> None:
        async with asyncio.timeout(0.01):
            await asyncio.get_running_loop().create_future()

    async def waits_longer() -> None:
        await passing(0.05)
        ended.append("longer")

    async def at_once() -> None:
        ended.append("at once")

    report = through(graph_of({"late": times_out, "longer": waits_longer, **dict.fromkeys("abc", at_once)}))
    assert {"late": "failed", "longer": "released"} | dict.fromkeys("abc", "released") == fates(report)
    assert "TimeoutError" == report.outcomes["late"].error_type
    assert ["at once"] * 3 + ["longer"] == ended


@pytest.mark.parametrize(
    "error", [OSError("o"), KeyboardInterrupt("k"), SystemExit(3), asyncio.CancelledError("c"), GeneratorExit("g")],
    ids=lambda error: type(error).__name__,
)  # fmt: skip
@pytest.mark.parametrize("waits", [False, True])
def test_whatever_one_raises(through: Through, error: BaseException, waits: bool) -> None:
    """It fails that one only."""

    async def breaks() -> None:
        if waits:
            await asyncio.sleep(0)
        raise error

    async def fine() -> None: ...

    report = through(graph_of({"a": fine, "bad": breaks, "b": fine, "c": fine}))
    assert {"a": "released", "bad": "failed", "b": "released", "c": "released"} == fates(report)
    assert type(error).__name__ == report.outcomes["bad"].error_type


def test_one_that_cancels_the_task_it_is_in(through: Through) -> None:
    """It may return before that comes to anything: no other stop is cancelled in its place."""

    async def cancels() -> None:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()

    async def waits() -> None:
        await asyncio.sleep(0)
        await passing(0.001)

    stops: dict[str, Stop] = {f"{kind}{n}": stop for n in range(5) for kind, stop in (("c", cancels), ("w", waits))}
    report = through(graph_of(stops))
    assert set(fates(report).values()) == {"released"}


def test_one_that_hangs(through: Through, gate: Gate) -> None:
    """It times out, with its stack, and what it uses is poisoned; the others are released."""

    @resource
    class Base:
        async def stop(self) -> None: ...

    @resource(depends_on=[Base], stop_timeout=0.1)
    class Hangs:
        async def stop(self) -> None:
            await gate.hang()

    async def fine() -> None:
        await asyncio.sleep(0)

    graph = Graph(Hangs)
    for n in range(5):
        graph.add(Closes(fine), name=f"fine{n}", stop="stop")
    report = through(graph)
    assert {"Base": "poisoned", "Hangs": "timed_out"} | {f"fine{n}": "released" for n in range(5)} == fates(report)
    assert "gate.hang()" in (report.outcomes["Hangs"].stack or "")
