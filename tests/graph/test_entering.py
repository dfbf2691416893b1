"""Context managers and generators: entered and left once, in one context, with the body's outcome."""

# mypy: disable-error-code="func-returns-value, unreachable"
# actions are tuples of calls, done for their effect
from __future__ import annotations

import contextvars
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from types import TracebackType
from typing import Any, Self

import pytest

from lifegraph import Graph, GraphClosingError, StartError, TeardownError, resource
from tests.graph.world import World, fates, raises

Told = tuple[Any, Any, Any]


class Manager:
    """Records how it is left."""

    def __init__(self, *, swallows: bool = False, error: BaseException | None = None) -> None:
        self.entered = 0
        self.left: list[Told] = []
        self.swallows = swallows
        self.error = error

    def __enter__(self) -> Self:
        self.entered += 1
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> bool:
        self.left.append((kind, error, trace))
        if self.error is not None:
            raise self.error
        return self.swallows


def test_entered_now_left_at_its_turn(world: World) -> None:
    """enter returns what __enter__ does; what depends on it stops before it is left."""
    manager = Manager()
    graph = Graph()
    assert manager is graph.enter(manager, name="m")
    assert (1, []) == (manager.entered, manager.left)
    graph.add(world.kind("user", ["m"], stop=lambda: world.log.append(("left", str(len(manager.left))))))
    with graph:
        assert manager is graph["m"]
    assert ("left", "0") in world.log
    assert [(None, None, None)] == manager.left
    assert {"m": "released", "user": "released"} == fates(graph.report)


def test_the_value_may_be_anything() -> None:
    """Also None, also a value of another class; the name finds it."""

    @contextmanager
    def yields(value: object) -> Iterator[object]:
        yield value

    graph, thing = Graph(), object()
    assert None is graph.enter(yields(None), name="none")
    assert thing is graph.enter(yields(thing), name="thing")
    assert thing is graph["thing"]
    report = graph.teardown()
    assert ("none", "thing") == tuple(sorted(report.released))


def test_it_gets_the_outcome_of_the_body() -> None:
    """An error of the body is told, with its traceback; it is raised whatever the manager returns."""
    manager, quiet = Manager(swallows=True), Manager()
    error = ValueError("body")
    with pytest.raises(ValueError, match="body") as caught, Graph() as graph:
        graph.enter(manager, name="loud")
        graph.enter(quiet, name="quiet")
        raise error
    assert error is caught.value
    for each in (manager, quiet):
        ((kind, told, trace),) = each.left
        assert (ValueError, error) == (kind, told)
        assert isinstance(trace, TracebackType)
    assert graph.report is not None
    assert graph.report.ok
    (note,) = graph.report.notes
    assert "loud" in note


def test_a_manager_that_swallows_nothing_is_not_noted() -> None:
    """A true return without an error to suppress is noted no more than a false one."""
    with Graph() as graph:
        graph.enter(Manager(), name="m")
    assert graph.report is not None
    assert () == graph.report.notes


def test_it_never_gets_the_error_of_a_sibling(world: World) -> None:
    """What another's stop raised is not its affair."""
    above, below = Manager(), Manager()
    graph = Graph()
    graph.enter(below, name="below")
    graph.create(world.kind("bad", ["below"], stop=raises(OSError("bad")), hooks="stop"))
    graph.enter(above, name="above", depends_on=["below"])
    side = Manager()
    graph.enter(side, name="side")
    graph.start()
    report = graph.teardown()
    assert {"below": "poisoned", "bad": "failed", "above": "released", "side": "released"} == fates(report)
    assert [(None, None, None)] == above.left == side.left
    assert [] == below.left


@pytest.mark.parametrize("error", [OSError("x"), KeyboardInterrupt(), SystemExit(1)], ids=lambda e: type(e).__name__)
def test_one_that_raises_is_failed(error: BaseException) -> None:
    """An __exit__ that raises is a failed stop; also when it raises the body's own error again."""
    manager = Manager(error=error)
    graph = Graph()
    graph.enter(Manager(), name="below")
    graph.enter(manager, name="m", depends_on=["below"])
    report = graph.teardown()
    assert {"below": "poisoned", "m": "failed"} == fates(report)
    assert 1 == len(manager.left)


def test_raising_the_errors_of_the_body_again() -> None:
    """A generator-based manager that lets the body's error pass has done its part: it is released."""
    after: list[str] = []

    @contextmanager
    def transaction() -> Iterator[str]:
        try:
            yield "t"
        except ValueError:
            after.append("rolled back")
            raise
        else:
            after.append("committed")

    with pytest.raises(ValueError, match="body"), Graph() as graph:
        graph.enter(transaction(), name="t")
        raise ValueError("body")
    assert ["rolled back"] == after
    assert {"t": "released"} == fates(graph.report)


def test_an_exit_stack_is_a_context_manager() -> None:
    """Others' managers work as well."""
    stack = ExitStack()
    left: list[int] = []
    graph = Graph()
    assert stack is graph.enter(stack)
    stack.callback(left.append, 1)
    assert ["ExitStack"] == list(graph)
    graph.teardown()
    assert [1] == left


def test_one_that_cannot_be_entered() -> None:
    """It is StartError, nothing is left, and it is not left behind."""

    class Bad(Manager):
        def __enter__(self) -> Any:
            raise OSError("shut")

    bad, graph = Bad(), Graph()
    with pytest.raises(StartError) as caught:
        graph.enter(bad, name="bad")
    assert isinstance(caught.value.exceptions[0], OSError)
    assert [] == bad.left
    assert [] == list(graph)
    graph.teardown()
    with pytest.raises(GraphClosingError):
        graph.enter(Manager())


def test_special_methods_are_looked_up_on_the_class() -> None:
    """As the with statement does it."""

    class Sly(Manager):
        def __init__(self) -> None:
            super().__init__()
            self.__dict__["__enter__"] = self.__dict__["__exit__"] = lambda *_: pytest.fail("the instance's")

    manager, graph = Sly(), Graph()
    assert manager is graph.enter(manager)
    graph.teardown()
    assert 1 == len(manager.left)


class TestContexts:
    """contextvars: one context for entering and leaving; copies of the caller's for other hooks."""

    var: contextvars.ContextVar[str] = contextvars.ContextVar("var", default="nothing")

    def test_a_token_can_be_reset(self) -> None:
        """What a generator or manager sets when entered it can reset when left, on whatever thread that is."""
        var, seen = self.var, []

        @resource
        def sets() -> Iterator[str]:
            token = var.set("mine")
            yield "x"
            seen.append((var.get(), threading.get_ident()))
            var.reset(token)

        @contextmanager
        def manager() -> Iterator[str]:
            token = var.set("manager's")
            yield "y"
            seen.append((var.get(), threading.get_ident()))
            var.reset(token)

        graph = Graph(sets)
        graph.start()
        graph.enter(manager(), name="manager")
        report = graph.teardown()
        assert ("manager", "sets") == tuple(sorted(report.released)), report
        assert {"mine", "manager's"} == {value for value, _ in seen}
        assert "nothing" == var.get()

    def test_hooks_see_the_callers_values(self, world: World) -> None:
        """Start hooks see what the caller of start has set, stop hooks what the caller of teardown has."""
        var, seen = self.var, []
        kind = world.kind(
            "a",
            made=lambda: seen.append(var.get()),
            start=lambda: seen.append(var.get()),
            stop=lambda: (seen.append(var.get()), var.set("changed")),
        )
        graph = Graph(kind, world.kind("b", [kind], stop=lambda: seen.append(var.get())))
        contextvars.copy_context().run(lambda: (var.set("start"), graph.start()))
        contextvars.copy_context().run(lambda: (var.set("stop"), graph.teardown()))
        assert ["start", "start", "stop", "stop"] == seen
        assert "nothing" == var.get()

    def test_two_generators_do_not_share_one(self) -> None:
        """What one sets the other does not see."""
        var, seen = self.var, []

        def make(name: str) -> Any:
            def sets() -> Iterator[str]:
                seen.append(var.get())
                token = var.set(name)
                yield name
                seen.append(var.get())
                var.reset(token)

            return resource(name=name)(sets)

        with Graph(*map(make, "abc")):
            pass
        assert ["nothing"] * 3 == sorted(seen, key=lambda v: v != "nothing")[:3]
        assert {"a", "b", "c"} == set(seen[3:])


class TestBody:
    """with graph: what is raised when the body or the teardown failed, or both."""

    def test_the_body_comes_first(self, world: World) -> None:
        """A body that raised keeps its exception; a note tells of what was not released."""
        error = KeyError("body")
        with pytest.raises(KeyError) as caught, Graph(world.kind("a", stop=raises(OSError("x"))), name="mine"):
            raise error
        assert error is caught.value
        (note,) = error.__notes__
        assert "mine" in note
        assert "a" in note

    @pytest.mark.parametrize(
        "error", [KeyboardInterrupt(), SystemExit(3), GeneratorExit()], ids=lambda e: type(e).__name__
    )
    def test_whatever_it_raised(self, world: World, error: BaseException) -> None:
        """Also when it is no Exception; without a note where all was released."""
        with pytest.raises(type(error)) as caught, Graph(world.kind("a")) as graph:
            raise error
        assert error is caught.value
        assert not hasattr(error, "__notes__")
        assert graph.report is not None
        assert graph.report.ok

    def test_a_body_with_an_odd_error(self, world: World) -> None:
        """An error of the body on which no note can be made is still the one that is raised."""

        class Odd(Exception):
            def add_note(self, note: str, /) -> None:
                raise RuntimeError("no notes")

        error = Odd()
        with pytest.raises(Odd) as caught, Graph(world.kind("a", stop=raises(OSError("x")))):
            raise error
        assert error is caught.value

    def test_the_teardown_alone(self, world: World) -> None:
        """A good body after which something was not released: TeardownError with the report."""
        with pytest.raises(TeardownError) as caught, Graph(world.kind("a", stop=raises(OSError("x")))) as graph:
            pass
        assert graph.report is caught.value.report

    def test_a_teardown_in_the_body(self, world: World) -> None:
        """One that was made in the body already is not made again; its failures are raised all the same."""
        with pytest.raises(TeardownError), Graph(world.kind("a", stop=raises(OSError("x")))) as graph:
            graph.teardown()
        assert ["a"] == world.names("stop")
        with Graph(world.kind("b")) as graph:
            graph.teardown()
        assert ["a", "b"] == world.names("stop")
