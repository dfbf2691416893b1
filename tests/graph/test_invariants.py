"""The invariants of a teardown, on random graphs with random faults, checked from what the hooks saw."""

from __future__ import annotations

import math
import random
import threading
import time
from dataclasses import dataclass, field
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from lifegraph import Graph, GraphClosingError, Report, StartError, resource
from tests.graph.test_plan import Shape, needs, shapes
from tests.graph.world import World, fates

FAULTS = ("fine", "fine", "fine", "raises", "hangs", "slow", "interrupts")


@dataclass
class Run:
    """One random life: what each resource does, and what was seen of it."""

    shape: Shape
    starts: list[str]
    stops: list[str]
    grace: float | None
    workers: int
    lanes: list[str]
    world: World = field(default_factory=World)
    report: Report | None = None
    began: float = 0.0
    ended: float = 0.0

    def hook(self, what: str) -> Any:
        """A hook that does so."""

        def act() -> None:
            match what:
                case "raises":
                    raise OSError("made to")
                case "interrupts":
                    raise KeyboardInterrupt
                case "hangs":
                    self.world.hang()
                case "slow":
                    threading.Event().wait(0.01)

        return act

    def live(self) -> None:
        """Start, tear down, and let go what hangs."""
        size = self.shape[0]
        kinds = [
            self.world.kind(
                f"r{n}",
                needs(self.shape, n),
                start=self.hook(self.starts[n]),
                stop=self.hook(self.stops[n]),
                start_timeout=0.05 if self.starts[n] == "hangs" else 10,
                stop_timeout=0.05 if self.stops[n] == "hangs" else 10,
                lane=self.lanes[n],
            )
            for n in range(size)
        ]
        graph = Graph(*kinds, workers=self.workers, grace=self.grace)
        try:
            graph.start()
        except StartError as error:
            self.report = error.report
        self.began = time.monotonic()
        self.report = graph.teardown()
        self.ended = time.monotonic()
        self.seen = list(self.world.log)
        self.world.gate.set()

    def above(self, node: int, *, uses: bool) -> set[int]:
        """All transitive dependents; only over use edges where ``uses``."""
        found: set[int] = set()
        work = [node]
        while work:
            below = work.pop()
            for (dependent, dependency), kind in self.shape[1].items():
                if dependency == below and (kind or not uses) and dependent not in found:
                    found.add(dependent)
                    work.append(dependent)
        return found

    def first(self, word: str, node: int) -> float:
        """When it happened, as a place; infinity when it did not."""
        return self.seen.index((word, f"r{node}")) if (word, f"r{node}") in self.seen else math.inf

    def check(self) -> None:
        """The invariants 1 to 5."""
        assert self.report is not None
        size, told = self.shape[0], fates(self.report)
        assert {f"r{n}" for n in range(size)} == set(told)
        unproven = {n for n in range(size) if told[f"r{n}"] in ("failed", "timed_out", "abandoned")}
        for n in range(size):
            fate, stopped = told[f"r{n}"], self.first("stop", n)
            assert self.seen.count(("stop", f"r{n}")) <= 1, "stopped twice"
            attempted = stopped < math.inf
            outcome = self.report.outcomes[f"r{n}"]
            if attempted:  # 1: safety
                for user in self.above(n, uses=True):
                    assert told[f"r{user}"] in ("released", "skipped"), f"r{n} stopped under r{user}"
                    if self.first("stop", user) < math.inf:
                        assert self.first("stopped", user) < stopped or self.starts[user] == "raises"
                for (dependent, dependency), _ in self.shape[1].items():  # 2: order
                    if (
                        dependency == n
                        and self.first("stop", dependent) < math.inf
                        and self.stops[dependent] in ("fine", "slow")
                    ):
                        assert self.first("stopped", dependent) < stopped
            if fate == "poisoned":  # 3: isolation
                users = self.above(n, uses=True) & unproven
                assert users, "poisoned by nobody"
                assert {f"r{user}" for user in users} >= set(outcome.causes) != set()
                assert not attempted
            else:
                assert () == outcome.causes
                if fate in ("released", "failed"):
                    assert not (self.above(n, uses=True) & unproven)
            # 4: exactly once
            if fate in ("abandoned", "skipped"):
                assert not attempted or self.starts[n] == "atomic"
            if fate == "failed":
                assert attempted
            if fate == "released":
                assert attempted
            if fate == "skipped":
                assert self.first("start", n) == math.inf
            if fate == "timed_out":
                assert attempted or self.starts[n] == "hangs"
        # 5: liveness
        if self.grace is not None:
            assert self.ended - self.began < self.grace + 1.5
        assert self.ended - self.began < 0.05 * size + 5


@settings(max_examples=80)
@given(shapes(), st.data())
def test_the_invariants_hold(shape: Shape, data: st.DataObject) -> None:
    """Safety, order, isolation, exactly once, and an end, whatever fails, hangs or is slow, on any lane."""
    size = shape[0]
    run = Run(
        shape,
        starts=[data.draw(st.sampled_from(("fine",) * 12 + ("raises", "hangs"))) for _ in range(size)],
        stops=[data.draw(st.sampled_from(FAULTS)) for _ in range(size)],
        grace=data.draw(st.sampled_from([None, None, 0, 0.03, 5])),
        workers=data.draw(st.sampled_from([1, 2, 32])),
        lanes=[data.draw(st.sampled_from(("worker",) * 4 + ("dedicated",))) for _ in range(size)],
    )
    run.live()
    run.check()


@settings(max_examples=10)
@given(st.integers(0, 2**32))
def test_the_invariants_hold_for_larger_ones(seed: int) -> None:
    """The same for graphs of a hundred."""
    chance = random.Random(seed)
    size = 100
    edges = {
        (a, chance.randrange(a)): chance.random() < 0.8 for a in range(1, size) for _ in range(chance.randrange(3))
    }
    run = Run(
        (size, edges),
        starts=["fine"] * size,
        stops=[chance.choice(("fine",) * 15 + ("raises", "hangs", "slow", "interrupts")) for _ in range(size)],
        grace=None,
        workers=chance.choice((1, 4, 32)),
        lanes=[chance.choice(("worker",) * 9 + ("dedicated",)) for _ in range(size)],
    )
    run.live()
    run.check()


@settings(max_examples=25)
@given(shapes(largest=6), st.data())
def test_a_hurry_by_interrupt_holds_them_too(shape: Shape, data: st.DataObject) -> None:
    """An interrupt out of a caller's hook at any place: the report is complete, and safe."""
    size, _ = shape
    at = data.draw(st.integers(0, size - 1))
    run = Run(
        shape,
        starts=["fine"] * size,
        stops=["interrupts" if n == at else data.draw(st.sampled_from(FAULTS)) for n in range(size)],
        grace=None,
        workers=2,
        lanes=["caller" if n == at else "worker" for n in range(size)],
    )
    try:
        run.live()
    except KeyboardInterrupt:
        run.world.gate.set()
        return
    run.check()


def test_creating_while_it_is_torn_down() -> None:
    """Members created by several threads up to the teardown are stopped once, or were never made."""
    for _ in range(60):
        stops: dict[int, int] = {}
        lock = threading.Lock()

        class Made:
            def __init__(self) -> None:
                with lock:
                    stops[id(self)] = 0
                    kept.append(self)

            def stop(self) -> None:
                with lock:
                    stops[id(self)] += 1

        kept: list[Any] = []
        kind, base = resource(Made), World().kind("base")
        graph = Graph(base)
        graph.start()
        together = threading.Barrier(4)

        def make() -> None:
            together.wait()
            for _ in range(10):
                try:
                    graph.create(kind, depends_on=["base"])
                except GraphClosingError:
                    return

        threads = [threading.Thread(target=make) for _ in range(3)]
        for thread in threads:
            thread.start()
        together.wait()
        report = graph.teardown()
        for thread in threads:
            thread.join()
        assert {1} >= set(stops.values()), stops
        assert set(report.fates) == set(graph)
        assert len(stops) == len([name for name in report.released if name.startswith("Made")])
