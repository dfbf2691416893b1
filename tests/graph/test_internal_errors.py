"""A bug of lifegraph itself, made on purpose: it is said, whoever waits is told, and what is unsettled is unproven."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from lifegraph import Graph, InternalError, Report, StartError, TeardownError, quarantine
from lifegraph.drive.herald import Herald
from lifegraph.drive.lanes import Lanes
from lifegraph.drive.threads import Driver
from lifegraph.model import Model
from lifegraph.run import Lives, Start, Teardown
from lifegraph.walk import Walk
from tests.graph.world import Elsewhere, World, fates, raises

EDGES = (("top", "left"), ("top", "right"), ("left", "base"), ("right", "base"))

BUGS: tuple[tuple[type[Any], str], ...] = (
    (Walk, "open"),
    (Walk, "begin"),
    (Walk, "done"),
    (Walk, "failed"),
    (Walk, "hurry"),
    (Walk, "tick"),
    (Start, "answer"),
    (Start, "_succeeded"),
    (Start, "_sort_out"),
    (Start, "take"),
    (Start, "close"),
    (Teardown, "open"),
    (Teardown, "begin"),
    (Teardown, "answer"),
    (Teardown, "_succeeded"),
    (Teardown, "_failed"),
    (Teardown, "_sort_out"),
    (Teardown, "_turn"),
    (Teardown, "_lane"),
    (Teardown, "close"),
    (Lives, "release"),
    (Lives, "confine"),
    (Lanes, "tidy"),
    (Driver, "_take"),
    (Driver, "_helper"),
    (Driver, "_look_where"),
    (Model, "freeze"),
    (Herald, "tell"),
    (Herald, "finish"),
)
WHEN = pytest.mark.parametrize("when", [1, 2, 3])
WORLDS = pytest.mark.parametrize("awaited", [False, True], ids=["threads", "loop"])


def bugged(real: Callable[..., Any], when: int, hits: list[int]) -> Callable[..., Any]:
    """``real``, until the call with that number; from then on it raises."""

    def broken(*args: Any, **kwargs: Any) -> Any:
        hits.append(1)
        if len(hits) >= when:
            raise ZeroDivisionError("broken on purpose")
        return real(*args, **kwargs)

    return broken


def lived(graph: Graph, *, awaited: bool) -> object:
    """What a whole life returned, or raised; on a thread or on a loop."""

    async def alive() -> Report:
        await graph.astart()
        return await graph.ateardown()

    def live() -> Report:
        if awaited:
            return asyncio.run(alive())
        graph.start()
        return graph.teardown()

    try:
        return Elsewhere(live).result()
    except Exception as why:
        return why


def said(graph: Graph, *outcomes: object) -> str:
    """All that was told to whoever asked."""
    texts = [*map(str, outcomes)]
    for outcome in outcomes:
        if isinstance(outcome, StartError | TeardownError):
            texts += map(str, outcome.exceptions)
    if graph.report is not None:
        texts += graph.report.notes
    return "\n".join(texts)


@WORLDS
@WHEN
@pytest.mark.parametrize(("room", "method"), BUGS, ids=[f"{room.__name__}.{method}" for room, method in BUGS])
def test_a_bug_of_ours(
    world: World, monkeypatch: pytest.MonkeyPatch, room: type[Any], method: str, when: int, awaited: bool
) -> None:
    """Wherever it strikes: every call ends, the order is kept, nothing stops twice, and nothing that is up is lost."""
    kinds = [world.kind(name, [b for a, b in EDGES if a == name]) for name in ("base", "right")]
    kinds.append(world.kind("left", ["base"], stop=raises(OSError("no answer"))))
    graph = Graph(
        *kinds, world.kind("top", ["left", "right"]), name=f"{room.__name__}.{method} {when} {awaited}", observers=[str]
    )
    hits: list[int] = []
    monkeypatch.setattr(room, method, bugged(getattr(room, method), when, hits))

    outcome = lived(graph, awaited=awaited)
    again = Elsewhere(graph.teardown)
    assert again.is_over()
    monkeypatch.undo()

    started, stops, stopped = world.names("start"), world.names("stop"), world.names("stopped")
    assert len(set(stops)) == len(stops)
    for dependent, dependency in EDGES:
        if dependency in stops and dependent in started:
            assert dependent in stopped
            assert world.place("stopped", dependent) < world.place("stop", dependency)
    held = {each.resource for each in quarantine() if each.graph == graph.name}
    if graph.report is not None:
        ended = fates(graph.report)
        assert set(stopped) >= {name for name, fate in ended.items() if fate == "released"} & set(started)
        assert not {name for name, fate in ended.items() if fate == "skipped"} & set(world.names("started"))
        assert held == set(graph.report.held)
    else:
        assert isinstance(again.error, InternalError)
        assert (room, method) == (Lives, "confine") or held >= set(world.names("started")) - set(stopped)
    if len(hits) >= when and graph.state != "new":
        assert "please report" in said(graph, outcome, again.error)
        assert "broken on purpose" in said(graph, outcome, again.error)


def test_it_is_a_member_of_the_error(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Leaving `with`, the bug stands in the TeardownError, with its cause; the one waiting for it hears the same."""
    monkeypatch.setattr(Walk, "done", bugged(Walk.done, 5, []))
    with pytest.raises(TeardownError) as caught, Graph(world.kind("a"), world.kind("b", ["a"]), world.kind("c", ["b"])):
        pass
    [bug] = [error for error in caught.value.exceptions if isinstance(error, InternalError)]
    assert isinstance(bug.__cause__, ZeroDivisionError)
    assert "please report" in str(bug)
    assert {"a": "abandoned", "b": "released", "c": "released"} == fates(caught.value.report)
