"""What proves that a resource has stopped: every answer of stop, is_stopped and kill together."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from lifegraph import Graph, HookError, HookInterrupted, HookTimeout, TeardownError
from tests.evidence.stage import SHORT, Stage
from tests.graph.world import fates

ABSENT = None
STOPS: tuple[Any, ...] = ("ok", "raises", "hangs")
KILLS: tuple[Any, ...] = (ABSENT, "ok", "raises", "hangs")
LOOKS: tuple[Any, ...] = (ABSENT, True, False, "raises", "hangs", [False, True], ["raises", True], ["hangs", True])


def proven(stop: Any, look: Any, kill: Any) -> tuple[bool, bool]:
    """By the rule alone: whether it is proven stopped, and whether by its kill."""
    first, again = (look[0], look[1]) if isinstance(look, list) else (look, look)
    if (stop == "ok") if look is ABSENT else (first is True):
        return True, False
    by_kill = kill == "ok" and (again is ABSENT or again is True)
    return by_kill, by_kill


def calls(stop: Any, look: Any, kill: Any) -> list[str]:
    """By the rule alone: the hooks that are called, in order."""
    first = look[0] if isinstance(look, list) else look
    called = ["stop"] + ["is_stopped"] * (look is not ABSENT)
    if (stop == "ok") if look is ABSENT else (first is True):
        return called
    called += ["kill"] * (kill is not ABSENT)
    return called + ["is_stopped"] * (kill == "ok" and look is not ABSENT)


def cases() -> dict[str, tuple[Any, Any, Any]]:
    """All of them, by a name."""
    return {
        f"{stop}/{look}/{kill}": (stop, look, kill)
        for stop, look, kill in itertools.product(STOPS, LOOKS, KILLS)
        if kill in (ABSENT, "ok") or not isinstance(look, list)  # whether a kill that failed is looked after is open
    }


def whole_table(stage: Stage) -> Graph:
    """Every case in one graph, each with something below it."""
    graph = Graph(workers=400)
    for name, (stop, look, kill) in cases().items():
        hooks: dict[str, Any] = {"stop": stop}
        hooks |= {} if look is ABSENT else {"is_stopped": look}
        hooks |= {} if kill is ABSENT else {"kill": kill}
        stage.way.add(graph, stage.kind(f"under {name}"))
        stage.way.add(graph, stage.kind(name, [f"under {name}"], **hooks))
    return graph


def test_the_whole_table(any_stage: Stage) -> None:
    """Fates, forced, hooks called, and what is below: each case by the rule alone."""
    stage, graph = any_stage, whole_table(any_stage)
    stage.way.start(graph)
    report = stage.way.teardown(graph)
    told = fates(report)
    seen = {name: (told[name], name in report.forced, stage.called(name), told[f"under {name}"]) for name in cases()}
    wanted = {}
    for name, (stop, look, kill) in cases().items():
        is_proven, forced = proven(stop, look, kill)
        fate = "released" if is_proven else "timed_out" if stop == "hangs" else "failed"
        wanted[name] = (fate, forced, calls(stop, look, kill), "released" if is_proven else "poisoned")
    assert wanted == seen
    assert not report.ok
    assert 3 == report.exit_code


def test_errors_stay_in_the_outcome(stage: Stage) -> None:
    """What evidence released keeps the error of its stop, and is ok; nothing is raised for it."""
    graph = stage.up(
        stage.kind("base"),
        stage.kind("looked at", ["base"], stop=ValueError("half way"), is_stopped=True),
        stage.kind("killed", ["base"], stop=ValueError("half way"), kill="ok"),
        stage.kind("hung", ["base"], stop="hangs", is_stopped=True),
        stage.kind("hung and killed", ["base"], stop="hangs", kill="ok"),
    )
    report = stage.way.teardown(graph)
    assert {"released"} == set(fates(report).values())
    assert report.ok
    assert 0 == report.exit_code
    report.raise_for_failures()
    for name in ("looked at", "killed"):
        assert ("half way", "ValueError") == (report.outcomes[name].error, report.outcomes[name].error_type)
    for name in ("hung", "hung and killed"):
        assert "HookTimeout" == report.outcomes[name].error_type
    assert {"killed", "hung and killed"} == set(report.forced)
    assert [name for name in report.fates if report.outcomes[name].forced] == [
        name for name in report.fates if name in report.forced
    ]
    assert graph.state == "closed"


def test_with_raises_nothing_for_what_evidence_released(sync_stage: Stage) -> None:
    """A stop that raised and was then proven by is_stopped is no failure of a ``with``."""
    with Graph(sync_stage.kind("a", stop="raises", is_stopped=True)) as graph:
        pass
    assert graph.report is not None
    assert graph.report.ok


def test_a_denied_stop_is_a_hook_error(sync_stage: Stage) -> None:
    """A stop that returned and that is_stopped denied stands among the members, with a note that names it."""
    with pytest.raises(TeardownError) as caught, Graph(sync_stage.kind("liar", is_stopped=False)):
        pass
    (member,) = caught.value.exceptions
    assert type(member) is HookError
    assert any("liar" in note for note in member.__notes__)
    outcome = caught.value.report.outcomes["liar"]
    assert ("failed", "HookError") == (outcome.fate, outcome.error_type)
    assert "is_stopped" in (outcome.error or "")


def test_members_are_the_errors_of_the_stop(sync_stage: Stage) -> None:
    """Not those of the evidence: the stop's own error, or its timeout, stays the member."""
    error = KeyError("mine")
    graph = Graph(
        sync_stage.kind("raised", stop=error, is_stopped=RuntimeError("cannot look"), kill=OSError("cannot kill")),
        sync_stage.kind("hung", stop="hangs", kill=OSError("cannot kill")),
    )
    with pytest.raises(TeardownError) as caught, graph:
        pass
    assert {error.__class__, HookTimeout} == {type(member) for member in caught.value.exceptions}
    assert any(member is error for member in caught.value.exceptions)


def test_errors_of_evidence_are_not_lost(stage: Stage) -> None:
    """What kill and is_stopped raised is told in the report."""
    _, report = stage.life(
        stage.kind("a", stop="raises", kill=OSError("the kill's trouble")),
        stage.kind("b", is_stopped=OSError("the look's trouble")),
        stage.kind("c", stop="raises", kill="hangs"),
    )
    assert {"a": "failed", "b": "failed", "c": "failed"} == fates(report)
    told = report.to_text() + "\n".join(report.notes) + "".join(report.explain(name) for name in "abc")
    assert "the kill's trouble" in told
    assert "the look's trouble" in told
    assert "kill" in report.explain("c")


@pytest.mark.parametrize("interrupt", [KeyboardInterrupt(), SystemExit(4), GeneratorExit()], ids=repr)
@pytest.mark.parametrize("hook", ["kill", "is_stopped"])
def test_no_interrupt_of_evidence_is_proof(sync_stage: Stage, hook: str, interrupt: BaseException) -> None:
    """Whatever comes out of them but an answer proves nothing, and the rest goes on."""
    bad: dict[str, Any] = {hook: interrupt}
    _, report = sync_stage.life(
        sync_stage.kind("base"), sync_stage.kind("bad", ["base"], stop="raises", **bad), sync_stage.kind("beside")
    )
    assert {"base": "poisoned", "bad": "failed", "beside": "released"} == fates(report)


def test_an_interrupted_stop_can_be_proven(sync_stage: Stage) -> None:
    """A stop that raised a BaseException is released where is_stopped says so, else its member is HookInterrupted."""
    _, report = sync_stage.life(sync_stage.kind("a", stop=SystemExit(3), is_stopped=True))
    assert {"a": "released"} == fates(report)
    with pytest.raises(TeardownError) as caught, Graph(sync_stage.kind("b", stop=SystemExit(3), is_stopped=False)):
        pass
    (member,) = caught.value.exceptions
    assert isinstance(member, HookInterrupted)


class Unsure:
    """Cannot be asked whether it is true."""

    def __bool__(self) -> bool:
        raise ValueError("ambiguous")


@pytest.mark.parametrize("answer", ["ok", 0, "", Unsure()], ids=["None", "0", "empty", "raises"])
def test_answers_that_are_not_true(stage: Stage, answer: Any) -> None:
    """An is_stopped that says nothing, or what is false, or what cannot be asked, is no proof."""
    _, report = stage.life(stage.kind("base"), stage.kind("a", ["base"], is_stopped=answer))
    assert {"base": "poisoned", "a": "failed"} == fates(report)


def test_hooks_given_as_callables_get_the_object(stage: Stage) -> None:
    """kill= and is_stopped= of an adopted object, by name and as callables."""
    got: list[tuple[str, object]] = []

    class Engine:
        def close(self) -> None:
            raise OSError("stuck")

        def destroy(self) -> None:
            got.append(("destroy", self))

    def look(it: object) -> bool:
        got.append(("look", it))
        return True

    one, two = Engine(), Engine()
    graph = Graph()
    stage.way.add(graph, one, name="one", stop="close", kill="destroy")
    stage.way.add(graph, two, name="two", stop="close", is_stopped=look)
    stage.way.start(graph)
    report = stage.way.teardown(graph)
    assert {"one": "released", "two": "released"} == fates(report)
    assert {("destroy", id(one)), ("look", id(two))} == {(word, id(it)) for word, it in got}
    assert ("one",) == report.forced


def test_kill_gets_a_limit_of_its_own(stage: Stage) -> None:
    """kill_timeout and is_stopped_timeout bound their own hooks and nothing else."""
    _, report = stage.life(
        stage.kind("a", stop="raises", kill="hangs", kill_timeout=SHORT, stop_timeout=None),
        stage.kind("b", is_stopped="hangs", is_stopped_timeout=SHORT, stop_timeout=None),
    )
    assert {"a": "failed", "b": "failed"} == fates(report)
    assert report.seconds < 10


def test_evidence_is_only_asked_of_what_was_attempted(stage: Stage) -> None:
    """What is poisoned, skipped or abandoned is neither asked nor killed."""
    _, report = stage.life(stage.kind("base", is_stopped=True, kill="ok"), stage.kind("bad", ["base"], stop="raises"))
    assert {"base": "poisoned", "bad": "failed"} == fates(report)
    assert [] == stage.called("base")
    graph = stage.up(stage.kind("late", is_stopped=True, kill="ok"))
    assert {"late": "abandoned"} == fates(stage.way.teardown(graph, grace=0))
    assert [] == stage.called("late")


def test_a_life_rolled_back_has_the_same_evidence(stage: Stage) -> None:
    """The stop after a start hook that raised is decided by evidence as any other."""
    from lifegraph import StartError

    graph = Graph(
        stage.kind("base"),
        stage.kind("looked", ["base"], start="raises", stop="raises", is_stopped=True),
    )
    with pytest.raises(StartError) as caught:
        stage.way.start(graph)
    assert {"base": "released", "looked": "released"} == fates(caught.value.report)
    assert 2 == caught.value.report.exit_code
    graph = Graph(stage.kind("base"), stage.kind("killed", ["base"], start="raises", stop="raises", kill="ok"))
    with pytest.raises(StartError) as caught:
        stage.way.start(graph)
    assert ("killed",) == caught.value.report.forced


def test_a_start_that_hangs_is_proven_by_kill_only(stage: Stage) -> None:
    """While the call runs no stop is called, and is_stopped alone proves nothing; kill does."""
    from lifegraph import StartError

    graph = Graph(
        stage.kind("base"),
        stage.kind("looked", ["base"], start="hangs", is_stopped=True),
    )
    with pytest.raises(StartError) as caught:
        stage.way.start(graph)
    assert {"base": "poisoned", "looked": "timed_out"} == fates(caught.value.report)
    graph = Graph(stage.kind("base"), stage.kind("killed", ["base"], start="hangs", kill="ok"))
    with pytest.raises(StartError) as caught:
        stage.way.start(graph)
    assert {"base": "released", "killed": "released"} == fates(caught.value.report)
    assert ("killed",) == caught.value.report.forced
    assert "stop" not in stage.called("looked") + stage.called("killed")
