"""Start: dependencies first, and what is left when it fails."""

# mypy: disable-error-code="func-returns-value, unreachable"
# actions are tuples of calls, done for their effect
from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import pytest

from lifegraph import (
    Event,
    Graph,
    GraphClosingError,
    GraphStateError,
    HookEnded,
    HookError,
    HookInterrupted,
    HookTimeout,
    StartError,
    resource,
)
from tests.graph.world import PATIENCE, Elsewhere, World, fates, raises, until

BASE_EXCEPTIONS = [KeyboardInterrupt("k"), SystemExit(3), GeneratorExit("g"), asyncio.CancelledError("c")]


class Db:
    """Something provided by a factory."""


def failing_start(graph: Graph) -> StartError:
    """Start it, which must fail."""
    with pytest.raises(StartError) as caught:
        graph.start()
    assert caught.value.report is graph.report
    assert "closed" == graph.state
    return caught.value


def test_dependencies_start_first_and_in_parallel(world: World) -> None:
    """Independent ones are in their hooks at once; a dependent begins when all it needs are up."""
    together = threading.Barrier(3)
    graph = Graph(
        world.kind("top", ["a", "b", "c"]),
        *[world.kind(name, ["base"], start=lambda: together.wait(PATIENCE)) for name in "abc"],
        world.kind("base"),
    )
    graph.start()
    assert "running" == graph.state
    assert "base" == world.names("start")[0]
    assert "top" == world.names("start")[-1]
    for name in "abc":
        assert world.place("started", "base") < world.place("made", name) < world.place("start", name)
        assert world.place("started", name) < world.place("made", "top")
    graph.teardown()
    assert "top" == world.names("stop")[0]
    assert "base" == world.names("stop")[-1]


@pytest.mark.parametrize("error", [OSError("x"), *BASE_EXCEPTIONS], ids=lambda e: type(e).__name__)
def test_a_start_hook_that_raised_is_followed_by_its_stop(world: World, error: BaseException) -> None:
    """It may be half started: its stop is called once, before that of what it uses; the rest never began."""
    error = failing_start(
        Graph(world.kind("base"), world.kind("bad", ["base"], start=raises(error)), world.kind("never", ["bad"]))
    )
    report = error.report
    assert {"base": "released", "bad": "released", "never": "skipped"} == fates(report)
    assert ["bad", "base"] == world.names("stop")
    assert ["base", "bad"] == world.names("start")
    assert "never" not in world.names("made")
    assert report.ok
    assert 2 == report.exit_code
    assert report.outcomes["bad"].start_error
    assert report.outcomes["bad"].error is None
    assert report.outcomes["never"].start_error is None


@pytest.mark.parametrize("error", [OSError("x"), *BASE_EXCEPTIONS], ids=lambda e: type(e).__name__)
def test_the_original_error_is_a_member(world: World, error: BaseException) -> None:
    """The group carries the very exception, or a HookInterrupted of it, with a note that names the resource."""
    group = failing_start(Graph(world.kind("bad", start=raises(error))))
    (member,) = group.exceptions
    assert member is error or (isinstance(member, HookInterrupted) and member.__cause__ is error)
    assert any("'bad'" in note for note in member.__notes__)


def test_atomic_start_holds_nothing(world: World) -> None:
    """With atomic_start its stop is not called, and it is skipped."""
    report = failing_start(
        Graph(world.kind("base"), world.kind("bad", ["base"], start=raises(OSError()), atomic_start=True))
    ).report
    assert {"base": "released", "bad": "skipped"} == fates(report)
    assert ["base"] == world.names("stop")
    assert report.outcomes["bad"].start_error


@pytest.mark.parametrize("error", [OSError("x"), *BASE_EXCEPTIONS], ids=lambda e: type(e).__name__)
def test_a_constructor_that_raised_holds_nothing(world: World, error: BaseException) -> None:
    """Neither its start nor its stop is called; what it uses is released."""
    report = failing_start(Graph(world.kind("base"), world.kind("bad", ["base"], made=raises(error)))).report
    assert {"base": "released", "bad": "skipped"} == fates(report)
    assert ["base"] == world.names("stop")
    assert ["base"] == world.names("start")
    assert report.outcomes["bad"].start_error


def test_a_generator_or_context_manager_that_raised_holds_nothing(world: World) -> None:
    """The same for what raises before its yield."""

    @resource(depends_on=["base"])
    def bad() -> Iterator[int]:
        raise OSError("before the yield")
        yield 1

    report = failing_start(Graph(world.kind("base"), bad)).report
    assert {"base": "released", "bad": "skipped"} == fates(report)

    @contextmanager
    def manager() -> Iterator[int]:
        raise OSError("before the yield")
        yield 1

    graph = Graph(world.kind("other"))
    graph.start()
    with pytest.raises(StartError):
        graph.enter(manager(), name="manager")
    assert ["other"] == list(graph)
    assert {"other": "released"} == fates(graph.teardown())


def test_a_failed_roll_back_is_told_with_the_start(world: World) -> None:
    """Where the stop after a failed start raises as well, both errors are told, and what it uses is poisoned."""
    group = failing_start(
        Graph(world.kind("base"), world.kind("bad", ["base"], start=raises(OSError("s")), stop=raises(ValueError("t"))))
    )
    assert {"base": "poisoned", "bad": "failed"} == fates(group.report)
    outcome = group.report.outcomes["bad"]
    assert "s" in (outcome.start_error or "")
    assert ("t", "ValueError") == (outcome.error, outcome.error_type)
    assert {OSError, ValueError} == {type(member) for member in group.exceptions}
    assert 3 == group.report.exit_code
    assert not group.report.ok


def test_a_start_at_its_limit_is_timed_out(world: World) -> None:
    """It may still be at work: its stop is not called, what it uses is poisoned, and what is up is stopped."""
    group = failing_start(
        Graph(
            world.kind("base"),
            world.kind("alone"),
            world.kind("slow", ["base"], start=world.hang, start_timeout=0.1),
            world.kind("never", ["slow"]),
        )
    )
    assert {"base": "poisoned", "alone": "released", "slow": "timed_out", "never": "skipped"} == fates(group.report)
    assert ["alone"] == world.names("stop")
    (member,) = group.exceptions
    assert isinstance(member, HookTimeout)
    outcome = group.report.outcomes["slow"]
    assert "0.1" in (outcome.start_error or "")
    assert "in hang" in (outcome.stack or "")
    assert "start_timeout" in group.report.explain("slow")


@pytest.mark.parametrize("late", ["returns", "raises"])
def test_a_constructor_that_ends_late_is_not_gone_on_with(world: World, late: str) -> None:
    """What was given up while it was constructed is never started, and never stopped."""
    over = threading.Event()

    def made() -> None:
        world.hang()
        if late == "raises":
            raise OSError("late")

    graph = Graph(
        world.kind("slow", made=made, start_timeout=0.1),
        observers=[lambda event: over.set() if type(event).__name__ == "AnswerLate" else None],
    )
    report = failing_start(graph).report
    assert {"slow": "timed_out"} == fates(report)
    world.gate.set()
    assert over.wait(PATIENCE)
    assert [] == world.names("start")
    assert [] == world.names("stop")
    assert {"slow": "timed_out"} == fates(graph.report)


def test_the_first_failure_halts_the_start(world: World) -> None:
    """What is starting may finish, and is stopped; nothing more begins."""
    failed, entered = threading.Event(), threading.Event()

    def slow() -> None:
        entered.set()
        assert failed.wait(PATIENCE)

    def bad() -> None:
        assert entered.wait(PATIENCE)
        raise OSError("bad")

    def told(event: Event) -> None:
        if isinstance(event, HookEnded) and event.resource == "bad":
            failed.set()

    graph = Graph(
        world.kind("slow", start=slow),
        world.kind("bad", start=bad),
        world.kind("never", ["slow"]),
        workers=2,
        observers=[told],
    )
    report = failing_start(graph).report
    assert {"slow": "released", "bad": "released", "never": "skipped"} == fates(report)
    assert "never" not in world.names("made")
    assert {"slow", "bad"} == set(world.names("stop"))


def test_all_starts_that_failed_are_told(world: World) -> None:
    """Two that fail at the same time both stand in the group."""
    together = threading.Barrier(2)

    def bad() -> None:
        together.wait(PATIENCE)
        raise OSError("bad")

    group = failing_start(Graph(world.kind("a", start=bad), world.kind("b", start=bad)))
    assert 2 == len(group.exceptions)
    assert all(group.report.outcomes[name].start_error for name in "ab")


def test_starting_twice_starts_once(world: World) -> None:
    """A second start of a running graph does nothing, and concurrent ones wait for the one."""
    go_on = threading.Event()
    graph = Graph(world.kind("a", start=lambda: go_on.wait(PATIENCE)))
    starting = [Elsewhere(graph.start) for _ in range(4)]
    until(lambda: graph.state == "starting")
    go_on.set()
    for each in starting:
        each.result()
    graph.start()
    assert ["a"] == world.names("start")
    graph.teardown()


def test_everybody_who_waits_for_a_failed_start_is_told(world: World) -> None:
    """A second caller of a start that fails gets a StartError with the same report."""
    go_on = threading.Event()

    def bad() -> None:
        go_on.wait(PATIENCE)
        raise OSError("bad")

    graph = Graph(world.kind("a", start=bad))
    starting = [Elsewhere(graph.start) for _ in range(3)]
    until(lambda: graph.state == "starting")
    threading.Event().wait(0.05)  # gives the others the chance to wait; any order must do
    go_on.set()
    for each in starting:
        assert each.is_over()
    assert {"StartError"} == {type(each.error).__name__ for each in starting}
    assert all(each.error.report is graph.report for each in starting)  # type: ignore[union-attr]  # told above


def test_with_start_body_teardown(world: World) -> None:
    """In `with` the graph is up, afterwards it is down; the errors of each phase are its own."""
    with Graph(world.kind("a")) as graph:
        assert "running" == graph.state
        assert ["a"] == world.names("start")
        assert [] == world.names("stop")
    assert "closed" == graph.state
    assert ["a"] == world.names("stop")
    with pytest.raises(StartError), Graph(world.kind("b", start=raises(OSError()))):
        pytest.fail("the body of a graph that did not start")


def test_a_hook_cannot_wait_for_its_own_start(world: World) -> None:
    """Start out of a start hook raises GraphStateError at once."""
    errors: list[Exception] = []

    def ask() -> None:
        try:
            graph.start()
        except GraphStateError as why:
            errors.append(why)

    graph = Graph(world.kind("a", start=ask))
    graph.start()
    graph.teardown()
    assert 1 == len(errors)
    assert not isinstance(errors[0], GraphClosingError)


def test_what_was_created_before_the_start_starts_with_the_rest(world: World) -> None:
    """A start hook of what create made waits for start; it is not constructed again."""
    graph = Graph()
    made = graph.create(world.kind("a"))
    assert [("made", "a")] == world.log
    graph.start()
    assert made is graph["a"]
    assert ["a"] == world.names("start") == world.names("made")
    assert {"a": "released"} == fates(graph.teardown())


def test_a_member_whose_start_never_began_is_skipped(world: World) -> None:
    """What create constructed but whose hook never ran is not stopped."""
    graph = Graph()
    graph.create(world.kind("waiting"))
    graph.add(world.kind("bad", start=raises(OSError())))
    graph.depend("waiting", "bad")
    report = failing_start(graph).report
    assert {"waiting": "skipped", "bad": "released"} == fates(report)
    assert ["bad"] == world.names("stop")


class TestGenerators:
    """A generator resource yields once, is resumed once, and never sees an error that is not its own."""

    def test_yields_nothing(self) -> None:
        """A generator that yields nothing is an error that says so, and holds nothing."""

        @resource
        def empty() -> Iterator[int]:
            yield from ()

        group = failing_start(Graph(empty))
        (member,) = group.exceptions
        assert isinstance(member, HookError)
        assert "empty" in str(member)
        assert "yielded nothing" in str(member)
        assert {"empty": "skipped"} == fates(group.report)

    def test_yields_twice(self, world: World) -> None:
        """A generator that yields twice is not proven stopped, by an error that says so."""

        @resource(depends_on=["base"])
        def twice() -> Iterator[int]:
            yield 1
            yield 2

        graph = Graph(world.kind("base"), twice)
        graph.start()
        report = graph.teardown()
        assert {"base": "poisoned", "twice": "failed"} == fates(report)
        assert "yielded twice" in (report.outcomes["twice"].error or "")

    def test_sees_no_error_of_the_body(self) -> None:
        """It is resumed with next, never with throw."""
        seen: list[BaseException | None] = []

        @resource
        def watching() -> Iterator[int]:
            try:
                yield 1
            except BaseException as why:
                seen.append(why)
                raise
            seen.append(None)

        with pytest.raises(KeyError), Graph(watching):
            raise KeyError("body")
        assert [None] == seen

    def test_a_factory_may_be_a_partial_with_arguments(self) -> None:
        """What it is given it gets, what the graph has it gets, and what it yields is the instance."""

        @resource
        def db(url: str) -> Iterator[Db]:
            made = Db()
            made.__dict__["url"] = url
            yield made

        @resource(stop=None)
        class Api:
            def __init__(self, db: Db) -> None:
                self.db = db

        with Graph(partial(db, url="here"), Api) as graph:
            assert "here" == graph[Api].db.__dict__["url"]
            assert graph[Db] is graph["db"] is graph[Api].db


class TestWhileStarting:
    """What is brought in while the graph starts joins the start, and its verb waits for it."""

    @pytest.mark.parametrize("verb", ["add", "create"])
    def test_from_another_thread(self, world: World, verb: str) -> None:
        """After the verb it is up, though the graph may still be starting."""
        entered, go_on = threading.Event(), threading.Event()
        graph = Graph(world.kind("slow", start=lambda: (entered.set(), go_on.wait(PATIENCE))))
        starting = Elsewhere(graph.start)
        assert entered.wait(PATIENCE)
        coming = Elsewhere(lambda: getattr(graph, verb)(world.kind("late")))
        coming.is_over(within=0.5)
        try:
            coming.result()
            assert ["late"] == world.names("started")
            assert isinstance(graph["late"], object)
        finally:
            go_on.set()
            starting.result()
            report = graph.teardown()
        assert {"slow": "released", "late": "released"} == fates(report)

    def test_from_a_start_hook(self, world: World) -> None:
        """A start hook may create what does not wait for it, even with one worker."""
        graph = Graph(world.kind("maker", start=lambda: graph.create(world.kind("inner"))), workers=1)
        graph.start()
        assert ["inner"] == world.names("started")[:1]
        report = graph.teardown()
        assert {"maker": "released", "inner": "released"} == fates(report)

    def test_a_hook_cannot_wait_for_itself(self, world: World) -> None:
        """What would depend on the hook's own resource is refused, and is not a member afterwards."""
        errors: list[Exception] = []

        def ask() -> None:
            try:
                graph.create(world.kind("inner", ["maker"]))
            except GraphStateError as why:
                errors.append(why)

        graph = Graph(world.kind("maker", start=ask))
        graph.start()
        assert 1 == len(errors)
        assert ["maker"] == list(graph)
        graph.teardown()
