"""What a graph owns, in which state it is, and what can be seen of it."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from enum import StrEnum
from time import monotonic
from typing import Any
from weakref import WeakSet

from ..drive.herald import Herald
from ..drive.lanes import Lanes
from ..drive.latch import Latch
from ..drive.pool import Mutex, callers_loop
from ..drive.threads import Driver, acting
from ..errors import GraphClosingError, GraphStateError, InternalError, PoisonedError, TeardownError, message, short
from ..events import Event
from ..model import Model
from ..plan import Plan
from ..report import Detail, Report
from ..run import Lives, Phase, Start
from ..spec import Spec

__all__ = ["Ground", "State"]


class State(StrEnum):
    """Where a graph stands."""

    NEW = "new"
    STARTING = "starting"
    RUNNING = "running"
    CLOSING = "closing"
    CLOSED = "closed"


class Ground:
    """What one graph owns. One lock guards the model and the state; it is never held while user code runs."""

    def __init__(
        self, title: str, owner: type, graph: object, where: str, *, defaults: Mapping[str, Any],
        grace: float | None, workers: int, observers: Sequence[Callable[[Event], object]],
    ) -> None:  # fmt: skip
        self.title = title
        self.where = where
        self.grace = grace
        self.workers = workers
        self.state = State.NEW
        self.mutex = Mutex()
        self.model = Model(title, owner, defaults)
        self.lives = Lives(self.model, where)
        self.herald = Herald(observers)
        self.report: Report | None = None
        self.session: Any = None  # who ends the body when the teardown is asked for
        self.request_error: BaseException | None = None
        self.asked_alone = False  # a teardown was requested while no body ran
        self._hurried = False
        self._down: Driver | None = None  # of the teardown that goes on
        self._graph = graph
        self._lanes = Lanes(self.lives)
        self._start: tuple[Start, Driver] | None = None  # while starting
        self._coming: dict[Latch, Driver] = {}  # runs that bring single members up, or undo that
        self._started = Latch()
        self._closed = Latch()
        self._start_error: tuple[str, list[Exception]] | None = None
        self._interrupt: BaseException | None = None  # of who waits for the teardown
        self.inert = False  # the copy of a living graph in a forked child
        self._broken: InternalError | None = None  # the bug of ours that left no report
        self._failures: list[Exception] = []  # of the last teardown, for its error
        self._prior: dict[int, Detail] | None = None  # of starts that failed
        self._requested: tuple[float, float | None] | None = None  # a teardown asked for during the start: when, grace

        _grounds.add(self)

    def forked(self) -> None:
        """In a forked child: what lives is the parent's. What nobody started may be started here."""
        if self.lives.alive() or self.state in (State.STARTING, State.CLOSING):
            self.inert = True
        else:
            self.mutex = Mutex()
            self.herald.forked()

    # Looking ---------------------------------------------------------------------------------------------

    def instance(self, key: object) -> object:
        """The live instance that ``key`` means."""
        with self.mutex:
            self._see()
            node = self.model.the(key)
            phase = self.lives.phase(node)
            if phase in (Phase.UP, Phase.HALF, Phase.HELD):
                return self.lives.things[node]
            why = {Phase.RELEASED: "it is released", Phase.MADE: "its start hook has not run"}.get(
                phase, "it is not up yet"
            )
            raise GraphStateError(message(f"{self.model.whom(node)} is not available in graph {self.title!r}",
                why=f"{why}; the graph is {self.state}"))  # fmt: skip

    def names(self) -> list[str]:
        """The names of all members in declared order."""
        with self.mutex:
            self._see()
            return [self.model.names[node] for node in self.model.nodes()]

    def find(self, key: object) -> list[int]:
        """The members that ``key`` may mean."""
        with self.mutex:
            self._see()
            return self.model.find(key)

    def plan(self) -> Plan:
        """The frozen plan of the whole graph; raises DeclarationError for all that is wrong."""
        with self.mutex:
            self.model.seal()
            return self.freeze(None)[0]

    def wait_closed(self, seconds: float) -> Report | None:
        """The report of the teardown, waiting so long at most."""
        return self.report if self._closed.wait(seconds) else None

    def teardown_error(self) -> TeardownError:
        """What the last teardown did not release, as an error."""
        assert self.report is not None
        return TeardownError(self.report.headline, self._failures, self.report)

    def time_left(self) -> float:
        """Seconds until the limit of the hook that runs here, or the grace; infinity where neither is."""
        found = acting()
        return math.inf if found is None else found[0].run.time_left(found[1], monotonic())

    def make_loops_by(self, factory: Callable[[], Any] | None) -> None:
        """Have the graph's own loop made by ``factory``."""
        self._lanes.factory = factory

    def lent_loop(self) -> AbstractContextManager[Any]:
        """The graph's own loop, which runs in a thread of its own, for something else beside its resources."""
        return self._lanes.lent_loop()

    # Refusing --------------------------------------------------------------------------------------------

    def check_open(self, verb: str) -> None:
        """Refuse ``verb`` once the door is closed."""
        if self.state in (State.CLOSING, State.CLOSED) or self._requested is not None:
            state = self.state if self.state is State.CLOSED else State.CLOSING
            raise GraphClosingError(message(f"cannot {verb}: graph {self.title!r} ({short(self.where)}) is {state}",
                hint="make a new Graph" if verb == "start" else "make a new Graph, or do it before the teardown"))  # fmt: skip

    def refuse_held(self, node: int, verb: str) -> None:
        """Refuse to build on what may still be in use."""
        if self.lives.phase(node) in (Phase.HELD, Phase.HUNG, Phase.HALF):
            raise PoisonedError(f"cannot {verb} {self.model.whom(node)}: it may still be in use")

    def check_world(self, verb: str, specs: Iterable[Spec], *, awaited: bool) -> None:
        """A sync verb must not block the loop it is called on, and an async one has no thread to lend to hooks."""
        if awaited and callers_loop() is None:
            raise GraphStateError(message(f"cannot a{verb} graph {self.title!r}: no asyncio event loop runs here",
                hint=f"graph.{verb}(), which needs none; trio is not supported"))  # fmt: skip
        if awaited or (self._start is not None and self._start[1].home is not None and self.state is State.STARTING):
            if lent := [spec.label for spec in specs if spec.hooks.lane == "caller"]:
                raise GraphStateError(message(f"cannot a{verb} graph {self.title!r}: {lent[0]} is on the caller's lane",
                    why="an async verb must not block its loop", hint='lane="dedicated", or the sync verb'))  # fmt: skip
        elif callers_loop() is not None and any(spec.on_loop for spec in specs):
            raise GraphStateError(message(
                f"cannot {verb} graph {self.title!r} ({short(self.where)}) here: it would block the running event loop",
                why="it has resources that live on a loop", hint=f"await graph.a{verb}(), or async with graph"))  # fmt: skip

    def own_hook(self) -> int | None:
        """The member of this graph whose hook runs here, if one does."""
        found = acting()
        if found is None or found[0].run.lives is not self.lives:
            return None
        return found[0].run.nodes[found[0].run.node_of(found[1])]

    # Inside ----------------------------------------------------------------------------------------------

    def _see(self) -> None:
        if self.state is State.NEW:
            self.model.seal(lenient=True)

    def freeze(self, nodes: Sequence[int] | None) -> tuple[Plan, list[int]]:
        """The plan of these members (None: of all), and their numbers."""
        return self.model.freeze(nodes, workers=self.workers, grace=self.grace)


_grounds: WeakSet[Ground] = WeakSet()


def _after_fork() -> None:
    for ground in list(_grounds):
        ground.forked()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
