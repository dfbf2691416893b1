"""The life of one graph: its states, and which run a verb makes. The face above it only speaks.

One lock guards the model and the state; it is never held while user code runs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from time import monotonic
from typing import Any, NoReturn

from .drive.herald import Herald
from .drive.pool import Latch, Mutex
from .drive.threads import Dedicated, Threads, acting
from .errors import (
    DeclarationError,
    Fault,
    GraphClosingError,
    GraphStateError,
    PoisonedError,
    ReentrantTeardownError,
    StartError,
    TeardownError,
    message,
    short,
)
from .events import Event, NoteTaken, StartBegan, StartEnded, TeardownBegan, TeardownEnded
from .model import Model
from .plan import Plan
from .report import Detail, Report
from .run import Lives, Phase, Start, Teardown
from .spec import Form, Spec

__all__ = ["Lifecycle", "State"]


class State(StrEnum):
    """Where a graph stands."""

    NEW = "new"
    STARTING = "starting"
    RUNNING = "running"
    CLOSING = "closing"
    CLOSED = "closed"


class Lifecycle:
    """What a graph owns, and how it comes up and goes down. Every method is safe from any thread."""

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
        self._graph = graph
        self._dedicated: dict[int, Dedicated] = {}
        self._driver: Threads | None = None  # of the start that goes on
        self._coming: dict[Threads, Latch] = {}  # runs that bring single members up
        self._closed = Latch()
        self._started = Latch()
        self._failures: list[Exception] = []  # of the last teardown, for its error
        self._prior: dict[int, Detail] | None = None  # of starts that failed
        self._requested: tuple[float, float | None] | None = None  # a teardown asked for during the start

    # Coming in -------------------------------------------------------------------------------------------

    def check_open(self, verb: str) -> None:
        """Refuse ``verb`` once the door is closed."""
        if self.state in (State.CLOSING, State.CLOSED) or self._requested is not None:
            state = State.CLOSING if self.state is not State.CLOSED else self.state
            raise GraphClosingError(message(f"cannot {verb}: graph {self.title!r} ({short(self.where)}) is {state}",
                hint="make a new Graph, or do it before the teardown"))  # fmt: skip

    def enlist(self, spec: Spec, verb: str, *, alone: bool, unchecked: bool = False) -> list[int]:
        """Take a member in; returns the numbers of all that this verb brings in, with their edges checked.

        ``alone``: it is to be built at once, from a target that may be in the graph already. ``unchecked``: more
        are to come before its edges can be judged.
        """
        self.check_open(verb)
        faults: list[Fault] = []
        before = len(self.model.specs) if self.state is not State.NEW else 0
        node = self.model.enlist(spec, faults, alone=alone)
        try:
            if faults:
                raise DeclarationError.of(faults)
            if self.state is State.NEW and not alone:
                if spec.wishes and not unchecked:
                    self.model.seal(lenient=True, whole=False)
                self._adopt(node, spec)
                return [node]
            self.model.seal(lenient=self.state is State.NEW)
            if self.model.wants(node):
                self.model.seal()
            nodes = [node] if self.state is State.NEW else list(range(before, len(self.model.specs)))
            self._need_up(nodes, verb)
        except (DeclarationError, GraphStateError):
            self.model.forget([node, *range(max(before, node + 1), len(self.model.specs))])
            raise
        if self.state is not State.NEW:
            self.model.base = len(self.model.specs)
        self._adopt(node, spec)
        return nodes

    def settle_in(self, nodes: list[int], verb: str) -> None:
        """Have new members of a running graph up."""
        if not all(self.lives.phase(node) is Phase.UP for node in nodes):
            self.bring_up(nodes, verb, hooks=True)

    def override(self, key: object, spec: Spec) -> None:
        """Use ``spec`` wherever ``key`` is asked for."""
        found = self.model.find(key)
        if any(self.lives.is_alive(node) for node in found):
            raise GraphStateError(f"cannot override {self.model.whom(found[0])}: it is up already")
        node = self.model.override(key, spec)
        if node is not None:
            self._adopt(node, spec)

    def refuse_held(self, node: int, verb: str) -> None:
        """Refuse to build on what may still be in use."""
        if self.lives.phase(node) in (Phase.HELD, Phase.HUNG, Phase.HALF):
            raise PoisonedError(f"cannot {verb} {self.model.whom(node)}: it may still be in use")

    def bring_up(self, nodes: list[int], verb: str, *, hooks: bool) -> None:
        """Have these members up, with everything they need up; raises StartError and lets go of what holds nothing."""
        with self.mutex:
            if self._driver is not None and self.state is State.STARTING:
                raise GraphStateError(f"cannot {verb} while graph {self.title!r} starts")
            self._need_up(nodes, verb)
            plan, _ = self._freeze(nodes)
            run = Start(plan, nodes, self.lives, graph=self._graph, herald=self.herald, hooks=hooks)
            driver = Threads(run, self.workers, self._dedicated, lambda: None)
            latch = self._coming[driver] = Latch()
        try:
            interrupt = driver.drive()
        finally:
            with self.mutex:
                del self._coming[driver]
                closing = self.state is State.CLOSING
                if closing and not run.ok:
                    self._prior = {**(self._prior or {}), **run.start_details()}
            latch.open()
        if run.ok and interrupt is None and not closing:
            return
        if closing:
            self.closing_error(verb)
        self._roll_back(run, nodes, interrupt)

    def _roll_back(self, run: Start, nodes: list[int], interrupt: KeyboardInterrupt | None) -> NoReturn:
        plan, _ = self._freeze(nodes)
        back = Teardown(plan, nodes, self.lives, herald=self.herald, prior=run.start_details())
        interrupt = Threads(back, self.workers, self._dedicated, lambda: None).drive() or interrupt
        report = back.report
        assert report is not None
        with self.mutex:
            self.model.forget(node for node in nodes if not self.lives.is_alive(node))
        if interrupt is not None:
            raise interrupt
        names = ", ".join(run.name(node) for node in run.errors)
        raise StartError(f"{names} of graph {self.title!r} did not start", self._start_errors(run, back), report)

    # The whole graph up ----------------------------------------------------------------------------------

    def start(self) -> None:
        """Bring everything up, or tear everything down again."""
        with self.mutex:
            self.check_open("start")
            if self.state is State.RUNNING:
                return
            if self.state is State.STARTING:
                self._wait_for_start()
                return
            run, driver = self._begin_start()
        interrupt = driver.drive()
        with self.mutex:
            self._driver = None
            self._started.open()
            if run.ok and interrupt is None and self._requested is None:
                self.state = State.RUNNING
                return
            since, grace = self._requested or (None, self.grace)
            self._prior = run.start_details()
            back = self._begin_teardown(grace, None, since)
        interrupt = self._drive_down(back) or interrupt
        assert self.report is not None
        if interrupt is not None:
            raise interrupt
        if self._requested is not None and not run.errors:
            self.closing_error("go on with the start")
        names = ", ".join(run.name(node) for node in run.errors)
        raise StartError(f"graph {self.title!r} did not start, because of {names}", self._start_errors(run, back), self.report)

    def _begin_start(self) -> tuple[Start, Threads]:
        self.model.seal()
        self.model.base = len(self.model.specs)
        self.lives.reach()
        plan, nodes = self._freeze(None)
        self._need_up([node for node in nodes if self.lives.is_alive(node)], "start", among=set(nodes))
        self.herald.listen()
        run = Start(plan, nodes, self.lives, graph=self._graph, herald=self.herald)
        driver = self._driver = Threads(run, self.workers, self._dedicated, lambda: self._told_start(run))
        self.state = State.STARTING
        if not self.herald.quiet:
            self.herald.tell(StartBegan(self.title, 0.0, len(nodes)))
        return run, driver

    def _told_start(self, run: Start) -> None:
        if not self.herald.quiet or not run.ok:
            self.herald.tell(StartEnded(self.title, run.closed, run.closed - run.opened, run.ok))

    def _wait_for_start(self) -> None:
        if self._own_hook():
            raise GraphStateError(f"a hook of graph {self.title!r} asked for the start that waits for it")
        latch = self._started
        self.mutex.release()
        try:
            latch.wait()
        finally:
            self.mutex.acquire()
        if self.state is not State.RUNNING:
            self.closing_error("start")

    # The whole graph down --------------------------------------------------------------------------------

    def teardown(self, grace: float | None, body: BaseException | None) -> Report:
        """Stop everything, once; every caller gets the same report."""
        if self._own_hook():
            raise ReentrantTeardownError(message(
                f"a hook of graph {self.title!r} ({short(self.where)}) asked for its own teardown",
                why="the teardown would wait for that very hook",
                hint="graph.request_teardown() asks and returns at once"))  # fmt: skip
        with self.mutex:
            grace = self.grace if grace is None else grace
            run = None
            if self.state is State.STARTING and self._driver is not None:
                if self._requested is None:
                    self._requested = (monotonic(), grace)
                    self._driver.send(self._driver.run.halt)
            elif self.state in (State.NEW, State.STARTING, State.RUNNING):
                run = self._begin_teardown(grace, body, None)
        interrupt = self._drive_down(run) if run is not None else self._wait_for_end()
        if interrupt is not None:
            raise interrupt
        assert self.report is not None
        return self.report

    def _begin_teardown(self, grace: float | None, body: BaseException | None, since: float | None) -> Teardown:
        """Close the door. With the lock; a run follows."""
        since = monotonic() if since is None else since
        self.state = State.CLOSING
        for driver in self._coming:
            driver.send(driver.run.halt)
        waits = list(self._coming.values())
        self.mutex.release()
        try:
            for latch in waits:
                latch.wait()
        finally:
            self.mutex.acquire()
        self.herald.listen()
        plan, nodes = self._freeze(self._to_tear_down())
        plan = replace(plan, grace=grace)
        run = Teardown(plan, nodes, self.lives, herald=self.herald, body=body, prior=self._prior, since=since)
        if not self.herald.quiet:
            self.herald.tell(TeardownBegan(self.title, since, len(nodes), grace))
        return run

    def _to_tear_down(self) -> list[int] | None:
        """All members; but only those that are alive where the declarations are so wrong that no plan can be made."""
        try:
            self.model.seal(lenient=True)
        except DeclarationError as error:
            self.herald.tell(NoteTaken(self.title, monotonic(), f"torn down as it was declared, with faults: {error}"))
            return self.lives.alive()
        return None

    def _drive_down(self, run: Teardown) -> KeyboardInterrupt | None:
        interrupt = Threads(run, self.workers, self._dedicated, lambda: self._end(run)).drive()
        notes = self.herald.finish()
        if notes and self.report is not None:
            self.report = replace(self.report, notes=self.report.notes + notes)
        return interrupt

    def _end(self, run: Teardown) -> None:
        """The teardown is over; on the thread that brought it there."""
        report = run.report
        assert report is not None
        self._failures = [error for _, error in sorted(run.errors.items())]
        self.report = report
        self.state = State.CLOSED
        if not self.herald.quiet or not report.ok:
            self.herald.tell(TeardownEnded(self.title, run.closed, report.seconds, report.ok, report.held))
        self._closed.open()

    def _wait_for_end(self) -> KeyboardInterrupt | None:
        self._closed.wait()
        return None

    def teardown_error(self) -> TeardownError:
        """What the last teardown did not release, as an error."""
        assert self.report is not None
        return TeardownError(self.report.headline, self._failures, self.report)

    # Looking ---------------------------------------------------------------------------------------------

    def instance(self, key: object) -> object:
        """The live instance that ``key`` means."""
        with self.mutex:
            self._see()
            node = self.model.the(key)
            phase = self.lives.phase(node)
            if phase in (Phase.UP, Phase.HALF, Phase.HELD):
                return self.lives.things[node]
            why = {Phase.RELEASED: "it is released", Phase.MADE: "its start hook has not run"}.get(phase, "it is not up yet")
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
            return self._freeze(None)[0]

    def _see(self) -> None:
        if self.state is State.NEW:
            self.model.seal(lenient=True)

    def time_left(self) -> float:
        """Seconds until the limit of the hook that runs on this thread, or the grace; infinity where neither is."""
        found = acting()
        return math.inf if found is None else found[0].run.time_left(found[1], monotonic())

    # Inside ----------------------------------------------------------------------------------------------

    def closing_error(self, verb: str) -> NoReturn:
        """Say that a teardown came first."""
        if self.state is State.CLOSING:
            self._closed.wait()
        error = GraphClosingError(f"cannot {verb}: the teardown of graph {self.title!r} was asked for meanwhile")
        error.report = self.report
        raise error

    def _adopt(self, node: int, spec: Spec) -> None:
        if spec.form is Form.LIVE:
            self.lives.adopt(node, spec.target, Phase.UP if spec.hooks.start is None else Phase.MADE)
            self.model.built.add(node) if not spec.wishes else None

    def _need_up(self, nodes: Iterable[int], verb: str, among: Iterable[int] = ()) -> None:
        inside = {*nodes, *among}
        for node in nodes:
            for dependency in (*self.model.uses[node], *self.model.orders[node]):
                if dependency in inside:
                    continue
                whom = self.model.whom(dependency)
                self.refuse_held(dependency, f"{verb} {self.model.names[node]} on")
                if self.lives.phase(dependency) is not Phase.UP:
                    raise GraphStateError(message(f"cannot {verb} {self.model.names[node]}: {whom} is not up",
                        hint="graph.start() first, or hand the class in: Graph(...) builds it in order"))  # fmt: skip

    def _freeze(self, nodes: Sequence[int] | None) -> tuple[Plan, list[int]]:
        return self.model.freeze(nodes, workers=self.workers, grace=self.grace)

    def _own_hook(self) -> bool:
        found = acting()
        return found is not None and found[0].run.lives is self.lives

    def _start_errors(self, run: Start, back: Teardown) -> list[Exception]:
        hung = {back.name(node) for node in back.errors} & {run.name(node) for node in run.errors if run.hung(node)}
        return [*run.errors.values(), *(e for node, e in sorted(back.errors.items()) if back.name(node) not in hung)]
