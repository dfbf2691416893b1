"""What type checkers know about the public names. Read by mypy and pyright (see test_typing.py), never run."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from typing import Any, assert_type

from lifegraph import (
    AmbiguousDependencyError,
    Blast,
    CycleError,
    DeclarationError,
    DuplicateNameError,
    Fate,
    Graph,
    GraphClosingError,
    GraphStateError,
    HookError,
    HookInterrupted,
    HookTimeout,
    LifegraphError,
    MissingDependencyError,
    NotAttempted,
    Outcome,
    Plan,
    PoisonedError,
    ReentrantTeardownError,
    Report,
    StartError,
    TeardownError,
    named,
    optional,
    order_only,
    resource,
)


@resource
class Metrics:
    """A resource without options."""

    def stop(self) -> None:
        """The stop hook."""


@resource(stop="shutdown", stop_timeout=5, depends_on=[order_only(Metrics), optional("tracer"), "metrics"])
class PrimaryTier:
    """A resource with options."""

    def __init__(self, size: int = 1) -> None:
        self.size = size

    def shutdown(self) -> None:
        """The stop hook."""


class Cache:
    """What the factories provide."""


@resource
def synchronous(primary: PrimaryTier) -> Iterator[Cache]:
    """A generator function is a resource."""
    yield Cache()


@resource(name="cache", stop_timeout=None)
async def asynchronous(primary: PrimaryTier) -> AsyncIterator[Cache]:
    """An asynchronous one, too."""
    yield Cache()


@resource
def plain(primary: PrimaryTier) -> Cache:
    """So is a function that returns what it provides."""
    return Cache()


@contextmanager
def managed() -> Iterator[Cache]:
    """A context manager."""
    yield Cache()


@asynccontextmanager
async def amanaged() -> AsyncIterator[Cache]:
    """An asynchronous context manager."""
    yield Cache()


def the_decorator_keeps_types(primary: PrimaryTier) -> None:
    """`@resource` returns what it got."""
    kept: type[PrimaryTier] = PrimaryTier
    assert_type(kept(size=3), PrimaryTier)
    assert_type(PrimaryTier(3).size, int)
    assert_type(synchronous(primary=primary), Iterator[Cache])
    assert_type(asynchronous(primary=primary), AsyncIterator[Cache])
    assert_type(plain(primary), Cache)
    same: Callable[[PrimaryTier], Cache] = plain
    assert_type(same(primary), Cache)
    PrimaryTier(length=3)  # type: ignore[call-arg]  # the constructor's parameters are kept
    resource(stop_timeot=3)  # type: ignore[call-overload]  # the options are known
    resource(stop_timeout="3")  # type: ignore[call-overload]  # and their types


def the_marks(graph: Graph) -> None:
    """Wrapped dependencies are accepted where bare ones are."""
    graph.add(Metrics(), depends_on=[order_only(PrimaryTier), optional(order_only("x")), optional(Metrics), "y"])
    graph.create(PrimaryTier, depends_on=[plain])
    named("nixl")


def making(graph: Graph) -> None:
    """A graph takes classes, factories, partials and instances."""
    Graph(PrimaryTier, synchronous, partial(PrimaryTier, size=3), Metrics(), name="kv", grace=None, signals=True)
    with graph as entered:
        assert_type(entered, Graph)


def looking_up(graph: Graph) -> None:
    """By class it is that class, by name anything."""
    assert_type(graph[PrimaryTier], PrimaryTier)
    assert_type(graph["x"], Any)
    assert_type("x" in graph, bool)
    assert_type(len(graph), int)
    assert_type(iter(graph), Iterator[str])


def adding(graph: Graph) -> None:
    """`add` and `create` return what comes into the graph."""
    assert_type(graph.add(Metrics()), Metrics)
    assert_type(graph.add(PrimaryTier(), name="pool", stop="shutdown"), PrimaryTier)
    assert_type(graph.create(PrimaryTier, 1), PrimaryTier)
    assert_type(graph.create(PrimaryTier, size=1, name="pool", start_timeout=None), PrimaryTier)
    assert_type(graph.create(partial(PrimaryTier, size=1)), PrimaryTier)
    assert_type(graph.create(plain), Cache)
    assert_type(graph.create(synchronous), Cache)
    assert_type(graph.create(asynchronous), Cache)


async def adding_async(graph: Graph) -> None:
    """So do their asynchronous forms."""
    assert_type(await graph.aadd(Metrics()), Metrics)
    assert_type(await graph.acreate(PrimaryTier, 1), PrimaryTier)
    assert_type(await graph.acreate(synchronous), Cache)
    assert_type(await graph.acreate(asynchronous), Cache)


def entering(graph: Graph) -> None:
    """`enter` returns what entering gives."""
    assert_type(graph.enter(managed()), Cache)
    assert_type(graph.enter(tempfile.TemporaryDirectory(), name="scratch"), str)


async def entering_async(graph: Graph) -> None:
    """`aenter` takes both kinds of context managers."""
    assert_type(await graph.aenter(managed()), Cache)
    assert_type(await graph.aenter(amanaged(), stop_timeout=3), Cache)
    async with graph as entered:
        assert_type(entered, Graph)


def ending(graph: Graph) -> None:
    """Every teardown gives a report."""
    graph.start()
    assert_type(graph.teardown(), Report)
    assert_type(graph.teardown(grace=3), Report)
    assert_type(graph.report, Report | None)
    assert_type(graph.run(), int)
    graph.request_teardown()
    graph.request_teardown(error=OSError("gone"))


async def ending_async(graph: Graph) -> None:
    """So does every asynchronous one."""
    await graph.astart()
    assert_type(await graph.ateardown(grace=3), Report)


def running(graph: Graph) -> None:
    """`run` takes a function of the graph, synchronous or not."""

    def main(graph: Graph) -> None: ...

    async def amain(graph: Graph) -> None: ...

    assert_type(graph.run(main, hard_exit=False, signal_exit=1), int)
    assert_type(graph.run(amain), int)
    typed: Callable[[Graph], Awaitable[None]] = amain
    assert_type(graph.run(typed), int)


def reading(report: Report) -> None:
    """A report is plain data."""
    assert_type(report.ok, bool)
    assert_type(report.exit_code, int)
    assert_type(report.fates, Mapping[str, Fate])
    assert_type(report.outcomes, Mapping[str, Outcome])
    assert_type(report.fates["x"], Fate)
    assert_type(report.outcomes["x"].fate, Fate)
    assert_type(report.poisoned, tuple[str, ...])
    assert_type(report.seconds, float)
    assert_type(report.explain("x"), str)
    assert_type(report.to_json(), str)
    assert_type(Report.from_json(report.to_json()), Report)
    assert_type(report.to_text(), str)
    assert_type(report.to_html(focus="x"), str)
    assert_type(report.to_trace(), str)
    report.raise_for_failures()


def planning(graph: Graph) -> None:
    """What would happen is known beforehand."""
    assert_type(graph.plan(), Plan)
    assert_type(graph.what_if(fail=["x"], hang=["y"]), Report)
    assert_type(graph.blast(), tuple[Blast, ...])
    assert_type(graph.plan().to_mermaid(), str)
    assert_type(graph.to_svg(report=graph.report, reduce=True, focus="x"), str)
    assert_type(graph.to_html(), str)
    assert_type(graph.plan().to_json(), str)
    assert_type(graph.to_networkx(), Any)
    graph.observe(print)
    graph.show()
    graph.save("x.svg")


def failing(graph: Graph) -> list[type[LifegraphError]]:
    """Errors are of our kind and of the builtin one."""
    try:
        graph.start()
    except (StartError, TeardownError) as group:
        assert_type(group.exceptions, tuple[Exception | ExceptionGroup[Exception], ...])
    late: type[TimeoutError] = HookTimeout
    value: type[ValueError] = DeclarationError
    state: type[RuntimeError] = GraphStateError
    print(late, value, state)
    return [
        AmbiguousDependencyError,
        CycleError,
        DuplicateNameError,
        GraphClosingError,
        HookError,
        HookInterrupted,
        MissingDependencyError,
        NotAttempted,
        PoisonedError,
        ReentrantTeardownError,
    ]
