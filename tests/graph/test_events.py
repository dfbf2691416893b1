"""Observers and the log: told of everything in order, and harmless whatever they do."""

from __future__ import annotations

import dataclasses
import io
import logging
import threading
import time
from collections import Counter
from typing import Any

import pytest

from lifegraph import (
    Event,
    Graph,
    HookBegan,
    HookEnded,
    ResourceSettled,
    StartBegan,
    StartEnded,
    StartError,
    TeardownBegan,
    TeardownEnded,
    quarantine,
)
from tests.conftest import Child
from tests.graph.world import PATIENCE, World, fates, raises, whole_life


def lived(world: World, **settings: Any) -> tuple[list[Event], Graph]:
    """The events of one life with a failure, a hang and a poisoned one."""
    events: list[Event] = []
    graph = Graph(
        world.kind("base"),
        world.kind("bad", ["base"], stop=raises(OSError("bad"))),
        world.kind("hung", stop=world.hang, stop_timeout=0.1),
        world.kind("fine", ["bad"]),
        observers=[events.append],
        name="seen",
        **settings,
    )
    graph.start()
    graph.teardown()
    return events, graph


def test_events_come_in_pairs_and_in_order(world: World) -> None:
    """Each began has its ended, in the order of what happened, and times never go back."""
    events, _ = lived(world)
    assert isinstance(events[0], StartBegan)
    assert isinstance(events[-1], TeardownEnded)
    kinds = [type(event).__name__ for event in events]
    assert kinds.index("StartEnded") + 1 == kinds.index("TeardownBegan")
    began = Counter((e.resource, e.hook) for e in events if isinstance(e, HookBegan))
    ended = Counter((e.resource, e.hook) for e in events if isinstance(e, HookEnded))
    assert began == ended
    assert {1} == set(began.values())
    for resource, hook in began:
        places = [
            n
            for n, e in enumerate(events)
            if isinstance(e, HookBegan | HookEnded) and (e.resource, e.hook) == (resource, hook)
        ]
        assert isinstance(events[places[0]], HookBegan)
    order = [e.resource for e in events if isinstance(e, HookEnded) and e.hook == "stop"]
    assert order.index("fine") < order.index("bad")
    assert all(event.graph == "seen" for event in events)


def test_times_are_on_one_clock(world: World) -> None:
    """Every event is told with its moment on the monotonic clock, and they never go back."""
    before = time.monotonic()
    events, _ = lived(world)
    moments = [event.at for event in events]
    assert sorted(moments) == moments
    assert before <= moments[0]
    assert moments[-1] <= time.monotonic()


def test_what_they_say(world: World) -> None:
    """Errors, timeouts and fates stand in them."""
    events, _ = lived(world)
    (bad,) = [e for e in events if isinstance(e, HookEnded) and e.resource == "bad" and e.hook == "stop"]
    assert ("bad", "OSError", False) == (bad.error, bad.error_type, bad.timed_out)
    (hung,) = [e for e in events if isinstance(e, HookEnded) and e.resource == "hung" and e.hook == "stop"]
    assert hung.timed_out
    assert 0.1 <= hung.seconds < 2
    assert [("base", "poisoned")] == [(e.resource, str(e.fate)) for e in events if isinstance(e, ResourceSettled)]
    (start,) = [e for e in events if isinstance(e, StartEnded)]
    assert start.ok
    (began,) = [e for e in events if isinstance(e, TeardownBegan)]
    assert (4, None) == (began.resources, began.grace)
    (ended,) = [e for e in events if isinstance(e, TeardownEnded)]
    assert not ended.ok
    assert {"base", "bad", "hung"} == set(ended.held)


def test_they_are_frozen_and_plain(world: World) -> None:
    """Nobody can change them, and they hold names and numbers only."""
    events, _ = lived(world)
    for event in events:
        with pytest.raises(dataclasses.FrozenInstanceError):
            event.graph = "other"  # type: ignore[misc]  # that is the point
        for field in dataclasses.fields(event):
            assert isinstance(getattr(event, field.name), str | int | float | tuple | None), field


def test_a_failed_start_is_told(world: World) -> None:
    """A start that failed ends not ok, and the teardown that follows is told as well."""
    events: list[Event] = []
    with pytest.raises(StartError):
        Graph(world.kind("a"), world.kind("b", ["a"], start=raises(OSError("x"))), observers=[events.append]).start()
    (ended,) = [e for e in events if isinstance(e, StartEnded)]
    assert not ended.ok
    assert [e for e in events if isinstance(e, TeardownBegan)]
    assert isinstance(events[-1], TeardownEnded)


def test_observers_are_called_in_order_on_a_thread_of_their_own(world: World) -> None:
    """Each event goes to the first, then to the second; never on the caller's or a hook's thread."""
    told: list[tuple[int, Event]] = []
    threads: set[int] = set()
    hooks: set[int] = set()

    def observer(number: int) -> Any:
        def tell(event: Event) -> None:
            told.append((number, event))
            threads.add(threading.get_ident())

        return tell

    graph = Graph(world.kind("a", start=lambda: hooks.add(threading.get_ident())), observers=[observer(1), observer(2)])
    graph.start()
    graph.teardown()
    assert [1, 2] * (len(told) // 2) == [number for number, _ in told]
    assert all(a is b for (_, a), (_, b) in zip(told[::2], told[1::2], strict=True))
    assert threading.get_ident() not in threads


@pytest.mark.parametrize(
    "error", [ValueError("v"), KeyboardInterrupt(), SystemExit(3), GeneratorExit()], ids=lambda e: type(e).__name__
)
def test_a_broken_observer_stops_nothing(world: World, error: BaseException) -> None:
    """What it raises becomes a note; the others are told, and everything is released."""
    events: list[Event] = []

    def broken(_: Event) -> None:
        raise error

    _, report = whole_life(world.kind("a"), world.kind("b", ["a"]), observers=[broken, events.append])
    assert {"a": "released", "b": "released"} == fates(report)
    assert report.ok
    (note,) = report.notes
    assert "broken" in note
    assert type(error).__name__ in note
    assert isinstance(events[-1], TeardownEnded)


def test_an_observer_whose_error_cannot_be_told(world: World) -> None:
    """Not even an error that fails to be text stops it from being told of the rest."""

    class Odd(Exception):
        def __str__(self) -> str:
            raise SystemExit(1)

    events: list[Event] = []

    def broken(_: Event) -> None:
        raise Odd

    _, report = whole_life(world.kind("a"), observers=[broken, events.append])
    assert report.ok
    assert isinstance(events[-1], TeardownEnded)


def test_a_hung_observer_costs_a_second(world: World) -> None:
    """The teardown waits at most one second for it; the untold events are counted."""
    began = time.monotonic()
    _, report = whole_life(world.kind("a"), world.kind("b"), observers=[lambda _: world.hang()])
    assert 1 <= time.monotonic() - began < 3
    assert report.ok
    assert report.seconds < 0.9
    (note,) = report.notes
    assert any(character.isdigit() for character in note.replace("1 s", ""))
    assert "untold" in note


def test_a_slow_observer_is_told_everything(world: World) -> None:
    """Hooks do not wait for it, and the report comes after all is told, within a second."""
    events: list[Event] = []

    def slow(event: Event) -> None:
        threading.Event().wait(0.02)
        events.append(event)

    _, report = whole_life(world.kind("a"), world.kind("b"), observers=[slow])
    assert isinstance(events[-1], TeardownEnded)
    assert () == report.notes


def test_an_observer_may_ask_the_graph(world: World) -> None:
    """It may look, and even ask for the teardown, without a deadlock."""
    asked: list[object] = []

    def curious(event: Event) -> None:
        asked.extend((graph.state, list(graph), len(graph.plan())))
        if isinstance(event, TeardownEnded):
            asked.append(graph.teardown())

    graph = Graph(world.kind("a"), observers=[curious])
    graph.start()
    began = time.monotonic()
    report = graph.teardown()
    assert time.monotonic() - began < 3
    assert report.ok
    assert asked


class TestLog:
    """structlog around the stdlib logger `lifegraph`."""

    def test_a_good_life_is_silent(self, child: Child) -> None:
        """Without any configuration nothing is printed for what goes well."""
        done = child.run(
            "from lifegraph import Graph, resource\n"
            "@resource\nclass A:\n    def close(self): pass\n"
            "with Graph(A): pass\n"
        )
        assert ("", "") == (done.stdout, done.stderr)

    def test_failures_go_to_stderr(self, child: Child) -> None:
        """Without any configuration a failure is a warning on stderr, nothing is ever on stdout."""
        done = child.run(
            "from lifegraph import Graph, resource\n"
            "@resource\nclass A:\n    def close(self): raise OSError('boom')\n"
            "g = Graph(A); g.start(); g.teardown()\n"
        )
        assert "" == done.stdout
        assert "boom" in done.stderr
        assert "resource=A" in done.stderr

    def test_nothing_is_configured(self, child: Child) -> None:
        """Neither logging nor structlog is touched."""
        child.run(
            "import logging, structlog\n"
            "before = structlog.get_config(), logging.root.handlers[:], logging.root.level\n"
            "from lifegraph import Graph, resource\n"
            "@resource\nclass A:\n    def close(self): raise OSError('boom')\n"
            "g = Graph(A); g.start(); g.teardown()\n"
            "assert before == (structlog.get_config(), logging.root.handlers[:], logging.root.level)\n"
            "log = logging.getLogger('lifegraph')\n"
            "assert (log.handlers, log.level, log.propagate) == ([], 0, True)\n"
        )

    def test_consequences_are_summed_up(self, world: World, caplog: pytest.LogCaptureFixture) -> None:
        """At the default level each root has its line, and all that it poisoned one together, however many these are."""
        chain = [world.kind(f"r{n}", [f"r{n + 1}"]) for n in range(500)]
        with caplog.at_level(logging.WARNING, "lifegraph"):
            _, report = whole_life(
                *chain,
                world.kind("r500"),
                world.kind("top", ["r0"], stop=raises(OSError("x"))),
                world.kind("other", ["r0"], stop=raises(OSError("y"))),
            )
        assert 501 == len(report.poisoned)
        lines = [record.getMessage() for record in caplog.records]
        assert 3 == len(lines)
        assert all(any(f"resource={root} " in line for line in lines[:2]) for root in ("other", "top"))
        assert "and 491 more" in lines[2]

    def test_lines_have_keys_and_values(self, world: World, caplog: pytest.LogCaptureFixture) -> None:
        """At DEBUG everything is there, with the names as values; at the default level only what went wrong."""
        with caplog.at_level(logging.DEBUG, "lifegraph"):
            lived(world)
        text = "\n".join(record.getMessage() for record in caplog.records)
        for word in ("resource=bad", "hook=stop", "graph=seen", "error_type=OSError"):
            assert word in text
        assert {"lifegraph"} == {record.name for record in caplog.records}
        caplog.clear()
        with caplog.at_level(logging.WARNING, "lifegraph"):
            whole_life(world.kind("quiet"))
        assert [] == caplog.records

    @pytest.mark.parametrize(
        "error", [ValueError("v"), KeyboardInterrupt(), SystemExit(1)], ids=lambda e: type(e).__name__
    )
    def test_a_handler_that_raises(self, world: World, error: BaseException) -> None:
        """What a log call raises is swallowed, whatever it is; the observers are told of the rest."""
        events: list[Event] = []

        class Broken(logging.Handler):
            def handle(self, record: logging.LogRecord) -> bool:
                raise error

        handler, logger = Broken(), logging.getLogger("lifegraph")
        logger.addHandler(handler)
        try:
            _, report = whole_life(
                world.kind("a"), world.kind("b", stop=raises(OSError("x"))), observers=[events.append]
            )
        finally:
            logger.removeHandler(handler)
        assert {"a": "released", "b": "failed"} == fates(report)
        assert isinstance(events[-1], TeardownEnded)

    def test_names_with_lines_stay_on_one(self, world: World) -> None:
        """A name with line breaks makes no second line."""
        stream = io.StringIO()
        handler, logger = logging.StreamHandler(stream), logging.getLogger("lifegraph")
        logger.addHandler(handler)
        try:
            whole_life(world.kind("a\nCRITICAL forged", stop=raises(OSError("x\ny"))))
        finally:
            logger.removeHandler(handler)
        assert not any(line.startswith("CRITICAL") for line in stream.getvalue().splitlines())


def test_quarantine_lists_what_is_held(world: World) -> None:
    """Why, since when, and how many bytes; an nbytes that fails is none."""
    before = time.time()

    class Big:
        nbytes = 123

        def close(self) -> None: ...

    class Odd:
        @property
        def nbytes(self) -> int:
            raise OSError("gone")

        def close(self) -> None: ...

    graph = Graph(name="listed")
    big, odd = graph.add(Big(), stop="close"), graph.add(Odd(), stop="close")
    graph.add(world.kind("user", [big, odd], stop=raises(OSError("because"))))
    graph.start()
    graph.teardown()
    held = {each.resource: each for each in quarantine() if each.graph == "listed"}
    assert {"Big": 123, "Odd": None, "user": None} == {name: each.bytes for name, each in held.items()}
    assert "user" in held["Big"].reason
    assert "because" in held["user"].reason
    assert all(before <= each.since <= time.time() for each in held.values())
    assert {1} == {each.generation for each in held.values()}


def test_pending_observers_do_not_leak(world: World) -> None:
    """Letting a hung observer go tells it the rest, and harms nobody."""
    events: list[Event] = []

    def observer(event: Event) -> None:
        world.hang()
        events.append(event)

    whole_life(world.kind("a"), observers=[observer])
    world.gate.set()
    end = time.monotonic() + PATIENCE
    while not events or not isinstance(events[-1], TeardownEnded):
        assert time.monotonic() < end
        threading.Event().wait(0.001)
