"""Async resources that do nothing, against one task for each: what the loop lane costs."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from functools import partial

from lifegraph import Graph, resource

from ..measure import Contestant, Row, Scale, Spent, Stopwatch, Tally, interleave

__all__ = ["measure"]

TARGET = 0.25  # times a task in a TaskGroup


class Closes:
    """Something that only has to be closed."""

    __slots__ = ("__weakref__",)

    async def aclose(self) -> None:
        """Nothing."""


@resource
class Lives:
    """Something that is started and stopped, and so has a task of its own in between."""

    __slots__ = ("__weakref__",)

    async def start(self) -> None:
        """Nothing."""

    async def stop(self) -> None:
        """Nothing."""


def measure(scale: Scale) -> Row:
    """Ours against `TaskGroup`, with `AsyncExitStack` beside it."""
    row = Row("async", "Async no-op resources, on the loop of the main thread")
    tally: Tally = {}
    sizes = scale.sizes(1000, 10_000, 100_000)
    for size in sizes:
        contest: dict[str, Contestant] = {
            "TaskGroup": partial(_on_loop, _task_group, size),
            "AsyncExitStack": partial(_on_loop, _exit_stack, size),
            "teardown": partial(_on_loop, _teardown, size),
            "whole life": partial(_on_loop, _whole_life, size),
            "start and stop hooks, whole life": partial(_on_loop, _hosts, size),
        }
        for name, rounds in interleave(contest, scale.rounds(size)).items():
            tally.setdefault(name, {})[size] = rounds
    for ours in ("teardown", "whole life", "start and stop hooks, whole life"):
        for size in sizes:
            target = TARGET if ours == "teardown" else None
            row.cpu(f"{ours}, {size:,} / TaskGroup", tally[ours][size], tally["TaskGroup"][size], target)
    row.tally(tally)
    return row


def _on_loop(contestant: Callable[[int], Awaitable[Spent]], size: int) -> Spent:
    async def main() -> Spent:
        return await contestant(size)

    return asyncio.run(main())


async def _task_group(size: int) -> Spent:
    things = [Closes() for _ in range(size)]
    with Stopwatch() as watch:
        async with asyncio.TaskGroup() as group:
            for thing in things:
                group.create_task(thing.aclose())
    return watch.spent


async def _exit_stack(size: int) -> Spent:
    things = [Closes() for _ in range(size)]
    with Stopwatch() as watch:
        async with AsyncExitStack() as stack:
            for thing in things:
                stack.push_async_callback(thing.aclose)
    return watch.spent


async def _teardown(size: int) -> Spent:
    graph = Graph()
    for _ in range(size):
        graph.add(Closes(), stop="aclose")
    await graph.astart()
    with Stopwatch() as watch:
        report = await graph.ateardown()
    assert report.ok
    return watch.spent


async def _whole_life(size: int) -> Spent:
    things = [Closes() for _ in range(size)]
    with Stopwatch() as watch:
        graph = Graph()
        for thing in things:
            graph.add(thing, stop="aclose")
        await _live(graph)
    return watch.spent


async def _hosts(size: int) -> Spent:
    things = [Lives() for _ in range(size)]
    with Stopwatch() as watch:
        graph = Graph()
        for thing in things:
            graph.add(thing)
        await _live(graph)
    return watch.spent


async def _live(graph: Graph) -> None:
    await graph.astart()
    report = await graph.ateardown()
    assert report.ok
    assert len(report.fates) == len(graph)
