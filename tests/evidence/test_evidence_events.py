"""What observers are told of evidence, drains and salvages: a pair for each call, in order."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from lifegraph import AnswerLate, Event, Fate, HookBegan, HookEnded, ResourceSettled, TeardownEnded
from tests.evidence.stage import HOOKS, SHORT, Stage, Step
from tests.graph.world import until


def whole_life(stage: Stage) -> list[Event]:
    """The events of a life with every hook in it, good and bad."""
    events: list[Event] = []
    graph = stage.up(
        stage.kind("base", drain="ok", salvage=OSError("full")),
        stage.kind("hung", ["base"], drain="raises", stop="hangs", is_stopped=False, kill="hangs"),
        stage.kind("killed", drain="hangs", stop=ValueError("no"), is_stopped=[False, True], kill="ok"),
        stage.kind("looked", stop="raises", is_stopped=True),
        stage.kind("denied", is_stopped=OSError("blind"), kill=OSError("immortal")),
        observers=[events.append],
    )
    stage.way.teardown(graph)
    until(lambda: bool(events) and isinstance(events[-1], TeardownEnded))
    return events


def test_every_call_is_a_pair(stage: Stage) -> None:
    """Exactly the hooks that were called have one began and one ended for each call, began first."""
    events = whole_life(stage)
    began = Counter((e.resource, e.hook) for e in events if isinstance(e, HookBegan))
    ended = Counter((e.resource, e.hook) for e in events if isinstance(e, HookEnded))
    called = Counter((name, hook) for hook, name in stage.log if hook in HOOKS)
    for pair in called:
        assert called[pair] == began[pair] == ended[pair], pair
    assert {pair for pair in began if pair[1] != "start"} == set(called)
    open_ones: Counter[tuple[str, str]] = Counter()
    for event in events:
        if isinstance(event, HookBegan):
            open_ones[event.resource, event.hook] += 1
        elif isinstance(event, HookEnded):
            open_ones[event.resource, event.hook] -= 1
            assert open_ones[event.resource, event.hook] >= 0, event
    assert not +open_ones


def test_they_say_how_it_ended(stage: Stage) -> None:
    """Errors by text and type, timeouts as such."""
    ended = {(e.resource, e.hook): e for e in whole_life(stage) if isinstance(e, HookEnded)}
    for pair in [("hung", "stop"), ("hung", "kill"), ("killed", "drain")]:
        assert ended[pair].timed_out, pair
    wanted = {
        ("base", "salvage"): ("full", "OSError"),
        ("killed", "stop"): ("no", "ValueError"),
        ("denied", "is_stopped"): ("blind", "OSError"),
        ("denied", "kill"): ("immortal", "OSError"),
        ("hung", "drain"): ("made to", "OSError"),
    }
    for pair, told in wanted.items():
        assert told == (ended[pair].error, ended[pair].error_type), pair
        assert not ended[pair].timed_out
    assert None is ended["killed", "kill"].error


def test_evidence_is_told_in_the_order_in_which_it_is_given(stage: Stage) -> None:
    """Stop, question, kill, question."""
    told = [
        (type(e).__name__, e.hook)
        for e in whole_life(stage)
        if isinstance(e, HookBegan | HookEnded) and e.resource == "killed"
    ]
    words = [hook for kind, hook in told if kind == "HookBegan" and hook not in ("start", "drain")]
    assert ["stop", "is_stopped", "kill", "is_stopped"] == words
    flat = [each for each in told if each[1] not in ("start", "drain")]
    assert all(flat[n][1] == flat[n + 1][1] for n in range(0, len(flat), 2)), flat


def test_the_poisoned_are_settled_once(stage: Stage) -> None:
    """Without an attempt, by one event; and the end names exactly what is held."""
    events = whole_life(stage)
    assert [("base", Fate.POISONED)] == [(e.resource, e.fate) for e in events if isinstance(e, ResourceSettled)]
    (end,) = [e for e in events if isinstance(e, TeardownEnded)]
    assert {"base", "hung", "denied"} == set(end.held)
    assert not end.ok
    assert all(e.at <= end.at for e in events)


@pytest.mark.parametrize("hook", ["drain", "stop", "is_stopped", "kill", "salvage"])
def test_late_answers_are_told(stage: Stage, hook: str) -> None:
    """A hook that ends after it was given up: one AnswerLate that names it, and no second ended."""
    events: list[Event] = []
    step = Step(stage)
    said: dict[str, Any] = {hook: step, f"{hook}_timeout": SHORT}
    if hook == "kill":
        said["stop"] = "raises"
    kinds = [stage.kind("a", **said)]
    if hook == "salvage":
        kinds.append(stage.kind("bad", ["a"], stop="raises"))
    graph = stage.up(*kinds, observers=[events.append])
    stage.way.teardown(graph)
    step.leave()
    until(lambda: any(isinstance(e, AnswerLate) for e in events))
    (late,) = [e for e in events if isinstance(e, AnswerLate)]
    assert ("a", hook) == (late.resource, late.hook)
    assert 1 == len([e for e in events if isinstance(e, HookEnded) and (e.resource, e.hook) == ("a", hook)])
