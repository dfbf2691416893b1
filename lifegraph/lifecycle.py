"""The life of one graph: its states, and which run a verb makes. The face above it only speaks.

Verbs are `Steps`, written once for threads and loops. One lock guards the model and the state; it is held neither
while user code runs nor over a ``yield``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from enum import StrEnum
from functools import partial
from time import monotonic
from typing import Any, NoReturn

from .drive.herald import Herald
from .drive.lanes import Lanes
from .drive.pool import Latch, Mutex, loop_here, pool
from .drive.steps import Steps
from .drive.threads import Driver, acting
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
        self._lanes = Lanes(self.lives)
        self._start: tuple[Start, Driver] | None = None  # while starting
        self._coming: dict[Latch, Driver] = {}  # runs that bring single members up, or undo that
        self._started = Latch()
        self._closed = Latch()
        self._start_error: tuple[str, list[Exception]] | None = None
        self._failures: list[Exception] = []  # of the last teardown, for its error
        self._prior: dict[int, Detail] | None = None  # of starts that failed
        self._requested: tuple[float, float | None] | None = None  # a teardown asked for during the start: when, grace

    # Coming in -------------------------------------------------------------------------------------------

    def found(self, specs: Sequence[Spec], faults: list[Fault]) -> None:
        """Take the first members in, all or none; adds what is wrong to ``faults``."""
        with self.mutex:
            nodes = [self.model.enlist(spec, faults, alone=False) for spec in specs]
            try:
                self.model.seal(lenient=True)
            except DeclarationError as error:
                faults += error.faults
            if not faults:
                for node in nodes:
                    self._adopt(node)

    def admit(self, spec: Spec, verb: str, *, at_once: bool, awaited: bool = False) -> Steps[int]:
        """Take a member in, and have it up as the state asks; ``at_once`` constructs it in a new graph too."""
        with self.mutex:
            self.check_open(verb)
            nodes = self._enlist(spec, verb, at_once=at_once, awaited=awaited)
            if (self.state is State.NEW and not at_once) or all(self.lives.phase(n) is Phase.UP for n in nodes):
                return nodes[0]
            if awaited and self.lives.home is None and self.state is not State.STARTING:
                self.lives.home = loop_here()
            joined = self._join(nodes) if self.state is State.STARTING else None
            coming = self._bring(nodes) if joined is None else None
        if joined is not None:
            yield from self._wait_joined(joined, nodes, verb)
        elif coming is not None:
            yield from self._wait_for(coming, nodes, verb)
        return nodes[0]

    def check_open(self, verb: str) -> None:
        """Refuse ``verb`` once the door is closed."""
        if self.state in (State.CLOSING, State.CLOSED) or self._requested is not None:
            state = self.state if self.state is State.CLOSED else State.CLOSING
            raise GraphClosingError(message(f"cannot {verb}: graph {self.title!r} ({short(self.where)}) is {state}",
                hint="make a new Graph, or do it before the teardown"))  # fmt: skip

    def refuse_held(self, node: int, verb: str) -> None:
        """Refuse to build on what may still be in use."""
        if self.lives.phase(node) in (Phase.HELD, Phase.HUNG, Phase.HALF):
            raise PoisonedError(f"cannot {verb} {self.model.whom(node)}: it may still be in use")

    def override(self, key: object, spec: Spec) -> None:
        """Use ``spec`` wherever ``key`` is asked for."""
        if self.state is not State.NEW:
            raise GraphStateError(f"cannot override in graph {self.title!r}: it is {self.state}, and no longer new")
        found = self.model.find(key)
        if any(self.lives.is_alive(node) and self.model.spec(node).form is not Form.LIVE for node in found):
            raise GraphStateError(f"cannot override {self.model.whom(found[0])}: it is up already")
        node = self.model.override(key, spec)
        if node is not None:
            self.lives.reach()
            if self.lives.is_alive(node):
                self.lives.release(node, Phase.DECLARED)
            self._adopt(node)

    def _enlist(self, spec: Spec, verb: str, *, at_once: bool, awaited: bool) -> list[int]:
        """The numbers of all that this brings in, with their edges checked; nothing is taken in when it cannot be."""
        faults: list[Fault] = []
        new = self.state is State.NEW
        before = len(self.model.specs)
        node = self.model.enlist(spec, faults, alone=at_once)
        try:
            if faults:
                raise DeclarationError.of(faults)
            if new and not at_once:
                if spec.wishes:
                    self.model.seal(lenient=True, whole=False)
                self._adopt(node)
                return [node]
            self.model.seal(lenient=new)
            if self.model.wants(node):
                self.model.seal()
            nodes = [node] if new else list(range(before, len(self.model.specs)))
            self._check_ground(nodes, verb, joins=self.state is State.STARTING)
            self._check_world(verb, map(self.model.spec, nodes), awaited=awaited)
        except (DeclarationError, GraphStateError):
            self.lives.forget([node, *(range(before, len(self.model.specs)) if not new else ())])
            raise
        if not new:
            self.model.base = len(self.model.specs)
        for each in nodes:
            self._adopt(each)
        return nodes

    def _adopt(self, node: int) -> None:
        spec = self.model.spec(node)
        if spec.form is Form.LIVE:
            self.lives.adopt(node, spec.target, Phase.UP if spec.hooks.start is None else Phase.MADE)
            if (loop := loop_here()) is not None:
                self.lives.loops[node] = loop

    def _check_ground(self, nodes: Sequence[int], verb: str, *, joins: bool) -> None:
        """What these depend on is up (or, when they join a start, will be), and none of it is held."""
        own = self._own_hook()
        for node in nodes:
            for dependency in (*self.model.uses[node], *self.model.orders[node]):
                if dependency in nodes:
                    continue
                self.refuse_held(dependency, f"{verb} {self.model.names[node]} on")
                if not joins and self.lives.phase(dependency) is not Phase.UP:
                    raise GraphStateError(message(
                        f"cannot {verb} {self.model.names[node]}: {self.model.whom(dependency)} is not up",
                        hint="graph.start() first, or hand the class in: Graph(...) builds it in order"))  # fmt: skip
            if joins and own is not None and self.model.path(node, own):
                raise GraphStateError(message(
                    f"cannot {verb} {self.model.names[node]} in a start hook of {self.model.names[own]}",
                    why="it depends on the very resource that is starting"))  # fmt: skip

    def _bring(self, nodes: list[int]) -> Latch:
        """Make the run that brings these up; its latch opens when it, and its undoing, are over."""
        plan, _ = self._freeze(nodes)
        hooks = self.state is not State.NEW
        run = Start(plan, nodes, self.lives, graph=self._graph, herald=self.herald, hooks=hooks)
        latch = Latch()
        self._coming[latch] = Driver(run, self.workers, self._lanes)
        return latch

    def _wait_for(self, latch: Latch, nodes: list[int], verb: str) -> Steps[None]:
        driver = self._coming[latch]
        run, back = driver.run, None
        assert isinstance(run, Start)
        try:
            with self._aside():
                interrupt = yield driver
            with self.mutex:
                closing = self.state is State.CLOSING
                if closing:  # the teardown of all takes down what came of it
                    self._prior = {**(self._prior or {}), **run.start_details()} if run.errors else self._prior
                elif not run.ok or interrupt is not None:
                    back = self._undo(run, nodes, latch)
            if back is not None:
                interrupt = (yield self._coming[latch]) or interrupt
        finally:
            with self.mutex:
                del self._coming[latch]
            latch.open()
        if closing:
            yield from self._say_closing(verb)
        if back is not None:
            self._say_undone(run, back, nodes, interrupt)

    def _undo(self, run: Start, nodes: list[int], latch: Latch) -> Teardown:
        """Take down again what one verb brought in, and nothing else."""
        plan, _ = self._freeze(nodes)
        back = Teardown(plan, nodes, self.lives, herald=self.herald, prior=run.start_details())
        self._coming[latch] = Driver(back, self.workers, self._lanes)
        return back

    def _say_undone(self, run: Start, back: Teardown, nodes: list[int], interrupt: BaseException | None) -> NoReturn:
        failed = ", ".join(run.name(node) for node in run.errors)
        with self.mutex:
            errors = self._start_errors(run, back)
            self.lives.forget([node for node in nodes if not self.lives.is_alive(node)])
        if interrupt is not None:
            raise interrupt
        raise StartError(f"{failed} of graph {self.title!r} did not start", errors, back.report)

    def _join(self, nodes: list[int]) -> tuple[Start, Latch]:
        assert self._start is not None
        run, driver = self._start
        latch = Latch()
        self.lives.reach()
        driver.send(lambda now: run.join(nodes, latch.open, now))
        return run, latch

    def _wait_joined(self, joined: tuple[Start, Latch], nodes: list[int], verb: str) -> Steps[None]:
        run, latch = joined
        with self._aside():
            yield latch
        if all(self.lives.phase(node) is Phase.UP for node in nodes):
            return
        if errors := run.error_of(nodes):
            raise StartError(f"{self.model.names[nodes[0]]} of graph {self.title!r} did not start", errors)
        if not run.ok or self._own_hook() is not None:
            raise GraphClosingError(f"cannot {verb}: the start of graph {self.title!r} was called off")
        yield self._started  # the start was over before the letter came
        with self.mutex:
            self.check_open(verb)
            coming = self._bring(nodes)
        yield from self._wait_for(coming, nodes, verb)

    def _aside(self) -> Any:
        """While a hook of this graph waits in a verb, it takes no worker's place."""
        found = acting()
        return found[0].yielding(found[1]) if found is not None else nullcontext()

    # The whole graph up ----------------------------------------------------------------------------------

    def start(self, *, awaited: bool = False) -> Steps[None]:
        """Bring everything up, or tear everything down again."""
        while True:
            with self.mutex:
                self.check_open("start")
                if self.state is State.RUNNING:
                    return
                if self._own_hook() is not None:
                    raise GraphStateError(f"a hook of graph {self.title!r} asked for the start that waits for it")
                mine = self.state is State.NEW
                others = [] if not mine else list(self._coming)
                if mine and not others:
                    self._start = self._begin_start(awaited=awaited)
            if not others:
                break
            yield others[0]  # what is just being created is up, or undone, first
        if not mine:
            yield self._started
            yield from self._say_start_failed()
            return
        assert self._start is not None
        run, driver = self._start
        interrupt = yield driver
        with self.mutex:
            if run.ok and interrupt is None and self._requested is None:
                self.state = State.RUNNING
                self._started.open()
                return
            since, grace = self._requested or (monotonic(), self.grace)
            self._prior = run.start_details()
            failed = ", ".join(run.name(node) for node in run.errors)
            self.state = State.CLOSING
        back = yield from self._tear_down(grace, None, since)
        if run.errors:
            text = f"graph {self.title!r} did not start, because of {failed}"
            self._start_error = text, self._start_errors(run, back)
        self._started.open()
        if (interrupt := interrupt or self._interrupt) is not None:
            raise interrupt
        yield from self._say_start_failed()

    def _begin_start(self, *, awaited: bool) -> tuple[Start, Driver]:
        self.model.seal()
        self._check_world("start", map(self.model.spec, self.model.nodes()), awaited=awaited)
        self.model.base = len(self.model.specs)
        self.lives.reach()
        if awaited:
            self.lives.home = loop_here()
        plan, nodes = self._freeze(None)
        self.herald.listen()
        run = Start(plan, nodes, self.lives, graph=self._graph, herald=self.herald)
        driver = Driver(run, self.workers, self._lanes, lambda: self._tell_started(run))
        self.state = State.STARTING
        if not self.herald.quiet:
            self.herald.tell(StartBegan(self.title, monotonic(), len(nodes)))
        return run, driver

    def _tell_started(self, run: Start) -> None:
        if not self.herald.quiet or not run.ok:
            self.herald.tell(StartEnded(self.title, run.closed, run.closed - run.opened, run.ok))

    def _say_start_failed(self) -> Steps[None]:
        if self._start_error is not None:
            text, errors = self._start_error
            raise StartError(text, errors, self.report)
        if self.state is not State.RUNNING:
            yield from self._say_closing("start")

    def _say_closing(self, verb: str) -> Steps[None]:
        """Say that a teardown came first; not before it is over, unless one of its own hooks asks."""
        if self._own_hook() is None:
            yield self._closed
        error = GraphClosingError(f"cannot {verb}: the teardown of graph {self.title!r} was asked for meanwhile")
        error.report = self.report
        raise error

    def _start_errors(self, run: Start, back: Teardown) -> list[Exception]:
        """What the start raised, and what its roll-back raised on top."""
        hung = {run.nodes[node] for node in run.errors if run.hung(node)}
        return [*run.errors.values(), *(e for node, e in sorted(back.errors.items()) if back.nodes[node] not in hung)]

    # The whole graph down --------------------------------------------------------------------------------

    _interrupt: BaseException | None = None

    def teardown(self, grace: float | None, body: BaseException | None, *, awaited: bool = False) -> Steps[Report]:
        """Stop everything, once; every caller gets the same report."""
        if self._own_hook() is not None:
            raise ReentrantTeardownError(message(
                f"a hook of graph {self.title!r} ({short(self.where)}) asked for its own teardown",
                why="the teardown would wait for that very hook",
                hint="graph.request_teardown() asks and returns at once"))  # fmt: skip
        with self.mutex:
            grace = self.grace if grace is None else grace
            since, mine = monotonic(), False
            if self.state in (State.NEW, State.RUNNING):
                self._check_world("teardown", map(self.model.spec, self.model.nodes()), awaited=awaited)
                self.state, mine = State.CLOSING, True
            elif self.state is State.STARTING and self._requested is None and self._start is not None:
                self._requested = since, grace
                run, driver = self._start
                end = None if grace is None else since + grace
                driver.send(partial(run.call_off, end))
        if mine:
            yield from self._tear_down(grace, body, since)
            if self._interrupt is not None:
                raise self._interrupt
        else:
            yield self._closed
        assert self.report is not None
        return self.report

    def _tear_down(self, grace: float | None, body: BaseException | None, since: float) -> Steps[Teardown]:
        """The door is closed: call off what is coming, and take the rest down."""
        end = None if grace is None else since + grace
        self._interrupt = None
        for latch, driver in list(self._coming.items()):
            driver.send(partial(driver.run.call_off, end))
            yield from self._patiently(latch)
        with self.mutex:
            run = self._begin_teardown(grace, body, since)
            driver = Driver(run, self.workers, self._lanes, lambda: self._end(run))
        self._interrupt = (yield driver) or self._interrupt
        yield from self._patiently(self._closed)
        return run

    def _patiently(self, latch: Latch) -> Steps[None]:
        """Wait for what is bounded, and remember an interrupt meanwhile."""
        while not latch.is_open:
            try:
                yield latch
            except BaseException as why:  # noqa: BLE001 - raised again at the end
                self._interrupt = self._interrupt or why

    def _begin_teardown(self, grace: float | None, body: BaseException | None, since: float) -> Teardown:
        try:
            self.model.seal(lenient=True)
            some = None
        except DeclarationError as error:  # no whole plan can be made; what is alive is checked as it came in
            some = self.lives.alive()
            self.herald.tell(NoteTaken(self.title, since, f"torn down as it was declared, with faults: {error}"))
        self.herald.listen()
        plan, nodes = self._freeze(some)
        plan = replace(plan, grace=grace)
        if not self.herald.quiet:
            self.herald.tell(TeardownBegan(self.title, since, len(nodes), grace))
        return Teardown(plan, nodes, self.lives, herald=self.herald, body=body, prior=self._prior, since=since)

    def _end(self, run: Teardown) -> None:
        """The teardown is over; on the thread that brought it there, which must not wait for observers."""
        report = run.report
        assert report is not None
        if not self.herald.quiet or not report.ok:
            self.herald.tell(TeardownEnded(self.title, run.closed, report.seconds, report.ok, report.held))
        self._failures = [error for _, error in sorted(run.errors.items())]
        if not self.herald.idle:
            try:
                pool.engage(lambda: self._conclude(report, self.herald.finish()))
                return
            except RuntimeError:  # no thread can be started any more
                pass
        self._conclude(report, ())

    def _conclude(self, report: Report, notes: tuple[str, ...]) -> None:
        self.report = replace(report, notes=report.notes + notes) if notes else report
        self.state = State.CLOSED
        self._closed.open()

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
            return self._freeze(None)[0]

    def time_left(self) -> float:
        """Seconds until the limit of the hook that runs here, or the grace; infinity where neither is."""
        found = acting()
        return math.inf if found is None else found[0].run.time_left(found[1], monotonic())

    # Inside ----------------------------------------------------------------------------------------------

    def _see(self) -> None:
        if self.state is State.NEW:
            self.model.seal(lenient=True)

    def _freeze(self, nodes: Sequence[int] | None) -> tuple[Plan, list[int]]:
        return self.model.freeze(nodes, workers=self.workers, grace=self.grace)

    def _own_hook(self) -> int | None:
        """The member of this graph whose hook runs here, if one does."""
        found = acting()
        if found is None or found[0].run.lives is not self.lives:
            return None
        return found[0].run.nodes[found[1]]

    def _check_world(self, verb: str, specs: Iterable[Spec], *, awaited: bool) -> None:
        """A sync verb must not block the loop it is called on, and an async one has no thread to lend to hooks."""
        if awaited or (self._start is not None and self._start[1].home is not None and self.state is State.STARTING):
            if lent := [spec.label for spec in specs if spec.hooks.lane == "caller"]:
                raise GraphStateError(message(f"cannot a{verb} graph {self.title!r}: {lent[0]} is on the caller's lane",
                    why="an async verb must not block its loop", hint='lane="dedicated", or the sync verb'))  # fmt: skip
        elif loop_here() is not None and any(spec.on_loop for spec in specs):
            raise GraphStateError(message(
                f"cannot {verb} graph {self.title!r} ({short(self.where)}) here: it would block the running event loop",
                why="it has resources that live on a loop", hint=f"await graph.a{verb}(), or async with graph"))  # fmt: skip
