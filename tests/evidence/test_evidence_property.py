"""Random graphs with random evidence: a resource is released only on evidence, and what is below only then."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest

from lifegraph import Graph, Report, order_only
from tests.aio.looping import Beside
from tests.evidence.stage import WAYS, Stage, Way
from tests.evidence.test_truth_table import proven
from tests.graph.world import fates

Edge = tuple[int, bool]


class Case:
    """One random graph: what each resource answers, and what it depends on."""

    def __init__(self, seed: int, size: int = 12) -> None:
        chance = random.Random(seed)
        self.size = size
        self.edges: list[list[Edge]] = [
            [(b, chance.random() < 0.75) for b in range(a) if chance.random() < 2.2 / max(a, 2)] for a in range(size)
        ]
        self.answers: list[tuple[Any, Any, Any]] = [
            (
                chance.choice(("ok",) * 6 + ("raises", "raises", "hangs")),
                chance.choice((None,) * 6 + (True, True, False, [False, True], "raises", "hangs")),
                chance.choice((None, None, "ok", "raises", "hangs")),
            )
            for _ in range(size)
        ]
        for n, (stop, look, kill) in enumerate(self.answers):
            if isinstance(look, list) and kill in ("raises", "hangs"):
                self.answers[n] = (stop, False, kill)
        self.drains = [chance.choice((None,) * 5 + ("ok", "raises")) for _ in range(size)]
        self.salvages = [chance.choice((None, None, "ok", "raises")) for _ in range(size)]

    def graph(self, stage: Stage) -> Graph:
        """Its graph, not yet started."""
        graph = Graph(workers=50)
        for n, (stop, look, kill) in enumerate(self.answers):
            hooks = {"stop": stop, "is_stopped": look, "kill": kill, "drain": self.drains[n]}
            hooks["salvage"] = self.salvages[n]
            needs = [f"r{b}" if uses else order_only(f"r{b}") for b, uses in self.edges[n]]
            said = {hook: answer for hook, answer in hooks.items() if answer is not None}
            stage.way.add(graph, stage.kind(f"r{n}", needs, **said))
        return graph

    def foretold(self) -> dict[str, str]:
        """The fates by the rule alone."""
        told: dict[str, str] = {}
        for n in reversed(range(self.size)):
            users = [a for a in range(self.size) if (n, True) in self.edges[a]]
            if any(told[f"r{a}"] != "released" for a in users):
                told[f"r{n}"] = "poisoned"
                continue
            stop = self.answers[n][0]
            is_proven, _ = proven(*self.answers[n])
            told[f"r{n}"] = "released" if is_proven else "timed_out" if stop == "hangs" else "failed"
        return told

    def check(self, stage: Stage, report: Report) -> None:
        """Fates, causes, and every call in its place."""
        told = self.foretold()
        assert told == fates(report)
        last = {name: place for place, (_, name) in enumerate(stage.log)}
        for n in range(self.size):
            name, called = f"r{n}", [word for word in stage.called(f"r{n}") if word not in ("start", "drain")]
            if told[name] == "poisoned":
                assert ["salvage"] * (self.salvages[n] is not None) == called
                assert set(report.outcomes[name].causes) <= {
                    x for x, fate in told.items() if fate in ("failed", "timed_out")
                }
                assert report.outcomes[name].causes
                continue
            assert 1 == called.count("stop")
            assert called.count("kill") <= 1
            assert "salvage" not in called
            began = stage.place("stop", name)
            for a in range(self.size):
                if (n, True) in self.edges[a]:
                    assert last[f"r{a}"] < began, f"{name} stopped before r{a} was proven to have"
                elif (n, False) in self.edges[a] and told[f"r{a}"] in ("released", "failed"):
                    places = [p for p, (word, who) in enumerate(stage.log) if who == f"r{a}" and word != "salvage over"]
                    if told[f"r{a}"] == "released" and "hangs" not in self.answers[a]:
                        assert max(places) < began
        forced = {f"r{n}" for n in range(self.size) if told[f"r{n}"] == "released" and proven(*self.answers[n])[1]}
        assert forced == set(report.forced)
        assert report.ok is (set(told.values()) == {"released"})


@pytest.fixture(params=WAYS)
def stages(request: pytest.FixtureRequest) -> Iterator[Any]:
    """Makes stages, one for each graph."""
    beside, made = Beside(), list[Stage]()

    def make() -> Stage:
        made.append(Stage(Way(request.param, beside)))
        return made[-1]

    yield make
    for stage in made:
        stage.close()
    beside.close()


@pytest.mark.parametrize("seed", range(12))
def test_released_only_on_evidence(stages: Any, seed: int) -> None:
    """Fates and causes are those of the rule; nothing is told to stop before all that uses it is proven stopped."""
    stage, case = stages(), Case(seed)
    graph = case.graph(stage)
    stage.way.start(graph)
    case.check(stage, stage.way.teardown(graph))


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_released_only_on_evidence_in_hundreds(stages: Any, part: int) -> None:
    """The same of hundreds of larger graphs."""
    for seed in range(1000 + part * 60, 1060 + part * 60):
        stage, case = stages(), Case(seed, size=30)
        graph = case.graph(stage)
        stage.way.start(graph)
        try:
            case.check(stage, stage.way.teardown(graph))
        except AssertionError as why:
            why.add_note(f"seed {seed}")
            raise
        finally:
            stage.close()
