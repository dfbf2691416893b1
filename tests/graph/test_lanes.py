"""Lanes: on which thread a hook runs."""

# mypy: disable-error-code="func-returns-value, unreachable"
# actions are tuples of calls, done for their effect
from __future__ import annotations

import sqlite3
import threading
from typing import Any

import pytest

from lifegraph import Graph, StartError, resource
from tests.graph.world import PATIENCE, Elsewhere, World, fates, raises


class Threads:
    """Makes resources that record on which threads they are constructed, started and stopped."""

    def __init__(self) -> None:
        self.of: dict[str, list[int]] = {}
        self.daemon: dict[str, bool] = {}

    def kind(self, name: str, world: World, **options: Any) -> type[Any]:
        """One of them."""

        def here() -> None:
            self.of.setdefault(name, []).append(threading.get_ident())
            self.daemon[name] = threading.current_thread().daemon

        return world.kind(name, made=here, start=here, stop=here, **options)


def test_workers_are_daemons_and_not_the_caller(world: World) -> None:
    """By default hooks run on daemon threads of ours, never on the caller's."""
    threads = Threads()
    graph = Graph(threads.kind("a", world))
    graph.start()
    graph.teardown()
    assert threading.get_ident() not in threads.of["a"]
    assert threads.daemon["a"]


def test_dedicated_is_one_thread_for_all(world: World) -> None:
    """Construction, start and stop run on one thread, which is nobody else's, whoever asks."""
    threads = Threads()
    graph = Graph(
        threads.kind("a", world, lane="dedicated"),
        threads.kind("b", world, lane="dedicated"),
        *[threads.kind(f"w{n}", world) for n in range(5)],
    )
    Elsewhere(graph.start).result()
    Elsewhere(graph.teardown).result()
    assert 1 == len(set(threads.of["a"])) == len(set(threads.of["b"]))
    assert 3 == len(threads.of["a"])
    mine = {threads.of["a"][0], threads.of["b"][0]}
    assert 2 == len(mine)
    assert threading.get_ident() not in mine
    assert not mine & {thread for n in range(5) for thread in threads.of[f"w{n}"]}
    assert threads.daemon["a"]


@pytest.mark.parametrize("how", ["class", "generator", "create", "live"])
def test_sqlite(how: str) -> None:
    """A connection that may be used on its own thread only is opened, used and closed there."""
    uses: list[Any] = []

    @resource(lane="dedicated")
    class Connection:
        def __init__(self) -> None:
            self.connection = sqlite3.connect(":memory:")

        def start(self) -> None:
            self.connection.execute("create table t (x)")

        def stop(self) -> None:
            uses.append(self.connection.execute("select count(*) from t").fetchone()[0])
            self.connection.close()

    @resource(lane="dedicated")
    def connection() -> Any:
        made = sqlite3.connect(":memory:")
        made.execute("create table t (x)")
        yield made
        uses.append(made.execute("select count(*) from t").fetchone()[0])
        made.close()

    class Opened:
        def open(self) -> None:
            self.connection = sqlite3.connect(":memory:")

        def close(self) -> None:
            uses.append(self.connection.execute("select 0").fetchone()[0])
            self.connection.close()

    graph = Graph()
    match how:
        case "class":
            graph.add(Connection)
        case "generator":
            graph.add(connection)
        case "create":
            graph.create(Connection)
        case "live":
            graph.add(Opened(), start="open", stop="close", lane="dedicated")
    graph.start()
    report = Elsewhere(graph.teardown).result()
    assert {"released"} == set(fates(report).values()), report
    assert [0] == uses


def test_dedicated_hooks_have_limits(world: World) -> None:
    """What hangs there is given up like any other, and harms no other lane."""
    graph = Graph(
        world.kind("base"),
        world.kind("hung", ["base"], stop=world.hang, stop_timeout=0.1, lane="dedicated"),
        world.kind("other", lane="dedicated"),
    )
    graph.start()
    assert {"base": "poisoned", "hung": "timed_out", "other": "released"} == fates(graph.teardown())
    assert "in hang" in (graph.report.outcomes["hung"].stack or "")  # type: ignore[union-attr]  # there is one


def test_dedicated_threads_count_not_as_workers(world: World) -> None:
    """With one worker that is busy, a dedicated hook still runs."""
    met = threading.Barrier(2)
    graph = Graph(
        world.kind("worker", stop=lambda: met.wait(PATIENCE)),
        world.kind("dedicated", stop=lambda: met.wait(PATIENCE), lane="dedicated"),
        workers=1,
    )
    graph.start()
    assert {"released"} == set(fates(graph.teardown()).values())


def test_dedicated_threads_end(world: World) -> None:
    """After the release no thread is kept for it; what is not released keeps its own."""
    threads = Threads()
    graph = Graph(threads.kind("a", world, lane="dedicated"), name="ends")
    graph.start()
    graph.teardown()
    count = threading.active_count()
    for _ in range(20):
        graph = Graph(threads.kind("a", world, lane="dedicated"))
        graph.start()
        graph.teardown()
    assert threading.active_count() <= count + 2


def test_caller_is_the_calling_thread(world: World) -> None:
    """Start hooks run on the thread that called start, stop hooks on the one that called teardown."""
    threads = Threads()
    graph = Graph(threads.kind("a", world, lane="caller"), threads.kind("b", world, depends_on=["a"]))
    starter = Elsewhere(lambda: (graph.start(), threading.get_ident())[1])
    started_on = starter.result()
    graph.teardown()
    assert [started_on, started_on, threading.get_ident()] == threads.of["a"]
    assert threading.get_ident() not in threads.of["b"]


def test_caller_of_a_roll_back(world: World) -> None:
    """The roll-back of a start stops on the thread that called start."""
    threads = Threads()
    graph = Graph(threads.kind("a", world, lane="caller"), world.kind("bad", ["a"], start=raises(OSError())))
    with pytest.raises(StartError):
        graph.start()
    assert [threading.get_ident()] * 3 == threads.of["a"]


def test_caller_of_create(world: World) -> None:
    """create constructs on the thread that called it."""
    threads = Threads()
    graph = Graph()
    graph.create(threads.kind("a", world, lane="caller"))
    graph.start()
    graph.teardown()
    assert [threading.get_ident()] * 3 == threads.of["a"]


def test_an_interrupt_out_of_a_callers_hook(world: World) -> None:
    """That hook has failed, the rest is hurried, and the interrupt is raised again at the end."""
    graph = Graph(
        world.kind("base"),
        world.kind("a", ["base"], stop=raises(KeyboardInterrupt("now")), lane="caller"),
        world.kind("hung", stop=world.hang, stop_timeout=None),
    )
    graph.start()
    with pytest.raises(KeyboardInterrupt, match="now"):
        graph.teardown()
    assert {"base": "poisoned", "a": "failed", "hung": "timed_out"} == fates(graph.report)
    assert "closed" == graph.state


def test_an_interrupt_out_of_a_callers_start(world: World) -> None:
    """In a start nothing more begins, what is up is stopped, and the interrupt is raised again at the end."""
    graph = Graph(
        world.kind("base"),
        world.kind("a", ["base"], start=raises(KeyboardInterrupt("now")), lane="caller"),
        world.kind("never", ["a"]),
    )
    with pytest.raises(KeyboardInterrupt, match="now"):
        graph.start()
    assert {"base": "released", "a": "released", "never": "skipped"} == fates(graph.report)
    assert ["a", "base"] == world.names("stop")


@pytest.mark.parametrize("error", [SystemExit(3), GeneratorExit()], ids=lambda e: type(e).__name__)
def test_other_errors_out_of_a_callers_hook(world: World, error: BaseException) -> None:
    """Any other BaseException is a failure of that hook, and ends nothing else."""
    graph = Graph(world.kind("base"), world.kind("a", ["base"], stop=raises(error), lane="caller"), world.kind("b"))
    graph.start()
    assert {"base": "poisoned", "a": "failed", "b": "released"} == fates(graph.teardown())


class TestAwaitables:
    """Hooks that return awaitables: awaited, or refused; never taken for done."""

    def test_an_async_stop_is_never_taken_for_done(self) -> None:
        """Nothing is released on the word of a coroutine that nobody ran."""
        ran: list[str] = []

        class Base:
            def close(self) -> None:
                ran.append("base")

        base = resource(Base)

        class Async:
            async def stop(self) -> None:
                ran.append("async")

        self._whole(base, Async, ran)

    def test_nor_is_what_a_callable_returns(self) -> None:
        """The same for a lambda that returns one."""
        ran: list[str] = []

        class Base:
            def close(self) -> None:
                ran.append("base")

        async def stop() -> None:
            ran.append("async")

        self._whole(resource(Base), type("Async", (), {}), ran, stop=lambda it: stop())

    @staticmethod
    def _whole(base: type[Any], kind: type[Any], ran: list[str], **options: Any) -> None:
        from lifegraph import LifegraphError

        try:
            graph = Graph(base, resource(depends_on=[base], **options)(kind))
            graph.start()
        except LifegraphError:
            return  # refused: that is safe, too
        report = graph.teardown()
        if report.fates[kind.__name__] == "released":
            assert ["async", "base"] == ran
        else:
            assert [] == ran
            assert "poisoned" == report.fates["Base"]
