"""Events, errors and the quarantine, as type checkers see them."""

from __future__ import annotations

from typing import assert_never, assert_type

from lifegraph import (
    AnswerLate,
    DeclarationError,
    Edge,
    Event,
    Fate,
    Fault,
    Graph,
    Held,
    HookBegan,
    HookEnded,
    InternalError,
    LifegraphError,
    NoteTaken,
    Options,
    ReportError,
    ResourceSettled,
    StartBegan,
    StartEnded,
    StillWaiting,
    TeardownBegan,
    TeardownEnded,
    quarantine,
)


def line(event: Event) -> str:
    """Every event is one of these: a consumer can be checked to handle all."""
    match event:
        case StartBegan() | TeardownBegan():
            assert_type(event.resources, int)
        case StartEnded() | TeardownEnded():
            assert_type(event.ok, bool)
        case HookBegan() | HookEnded() | AnswerLate():
            assert_type(event.hook, str)
        case ResourceSettled():
            assert_type(event.fate, Fate)
        case NoteTaken():
            assert_type(event.note, str)
        case StillWaiting():
            assert_type(event.pending, tuple[str, ...])
        case _:
            assert_never(event)
    return f"{event.at} {event.graph}"


def observed() -> Graph:
    """An observer takes an event."""
    return Graph(observers=[line, print])


def held() -> list[int | None]:
    """What is held is told with its bytes."""
    assert_type(quarantine(), tuple[Held, ...])
    return [each.bytes for each in quarantine()]


def faults(error: DeclarationError) -> list[str]:
    """All faults are in one error."""
    assert_type(error.faults, tuple[Fault, ...])
    return [fault.text for fault in error.faults]


def edges(graph: Graph) -> list[str]:
    """A plan tells its edges."""
    assert_type(graph.plan().edges, tuple[Edge, ...])
    return [edge.dependency for edge in graph.plan().edges if edge.uses]


def options() -> Options:
    """Options are typed, and all optional."""
    return {"stop": "close", "stop_timeout": None}


errors: list[type[LifegraphError]] = [InternalError, ReportError]
