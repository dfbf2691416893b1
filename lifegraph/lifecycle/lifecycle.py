"""The life of one graph: how all of it comes up and goes down.

Verbs are `Steps`, written once for threads and loops; the lock is not held over a ``yield``.
"""

from __future__ import annotations

from functools import partial
from time import monotonic

from ..drive.latch import Latch
from ..drive.pool import callers_loop, pool
from ..drive.steps import Steps, on_loop, on_thread
from ..drive.threads import Driver
from ..errors import (
    GraphStateError,
    ReentrantTeardownError,
    StartError,
    message,
    short,
)
from ..events import StartBegan, StartEnded
from ..report import Report
from ..run import Phase, Start, Teardown
from .ending import Ending
from .ground import State

__all__ = ["Lifecycle"]


class Lifecycle(Ending):
    """A graph's life as a whole. Every method is safe from any thread."""

    # Up --------------------------------------------------------------------------------------------------

    def up(self) -> None:
        """Start, from a thread. An interrupt too late to call the start off has it torn down all the same."""
        on_thread(self.start(), undo=partial(self.teardown, None, None))

    async def aup(self) -> None:
        """The same from a coroutine."""
        await on_loop(self.start(awaited=True), undo=partial(self.teardown, None, None, awaited=True))

    def start(self, *, awaited: bool = False) -> Steps[bool]:
        """Bring everything up, or tear everything down again. True when it was this call that did."""
        while True:
            with self.mutex:
                self.check_open("start")
                if self.state is State.RUNNING:
                    return False
                if self.own_hook() is not None:
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
            return (yield from self._say_start_failed())
        assert self._start is not None
        run, driver = self._start
        interrupt = yield driver
        with self.mutex:
            if run.ok and interrupt is None and self._requested is None:
                self.state = State.RUNNING
                self._started.open()
                return True
            since, grace = self._requested or (monotonic(), self.grace)
            self._prior, self.state = run.start_details(), State.CLOSING
        try:
            back = yield from self._tear_down(grace, None, since)
            if run.raised:
                text = f"graph {self.title!r} did not start, because of {run.culprits}"
                self._start_error = text, self._start_errors(run, back)
        finally:
            self._started.open()
        if (interrupt := interrupt or self._interrupt) is not None:
            raise interrupt
        return (yield from self._say_start_failed())

    def _begin_start(self, *, awaited: bool) -> tuple[Start, Driver]:
        self.model.seal()
        self.check_world("start", map(self.model.spec, self.model.nodes()), awaited=awaited)
        self.model.base = len(self.model.specs)
        self.lives.reach()
        if awaited:
            self.lives.home = callers_loop()
        plan, nodes = self.freeze([n for n in self.model.nodes() if self.lives.phase(n) is not Phase.UP])
        self._check_ground(nodes, "start", joins=False)
        self.herald.listen()
        run = Start(plan, nodes, self.lives, graph=self._graph, herald=self.herald)
        driver = Driver(run, self.workers, self._lanes, lambda: self._tell_started(run))
        if not self.herald.quiet:
            self.herald.tell(StartBegan(self.title, monotonic(), len(nodes)))
        self.state = State.STARTING
        return run, driver

    def _tell_started(self, run: Start) -> None:
        if not self.herald.quiet or not run.ok:
            self.herald.tell(StartEnded(self.title, run.closed, run.closed - run.opened, run.ok))

    def _say_start_failed(self) -> Steps[bool]:
        if self._start_error is not None:
            text, errors = self._start_error
            raise StartError(text, errors, self.report)
        if self.state is not State.RUNNING:
            yield from self._say_closing("start")
        return False

    # Down ------------------------------------------------------------------------------------------------

    def teardown(
        self, grace: float | None, body: BaseException | None, *, awaited: bool = False, since: float | None = None
    ) -> Steps[Report]:
        """Stop everything, once; every caller gets the same report. The grace counts from ``since``, or from now."""
        if self.own_hook() is not None:
            raise ReentrantTeardownError(message(
                f"a hook of graph {self.title!r} ({short(self.where)}) asked for its own teardown",
                why="the teardown would wait for that very hook",
                hint="graph.request_teardown() asks and returns at once"))  # fmt: skip
        with self.mutex:
            grace = self.grace if grace is None else grace
            since, mine = since or monotonic(), False
            if self.state in (State.NEW, State.RUNNING):
                self.check_world("teardown", map(self.model.spec, self.model.nodes()), awaited=awaited)
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
        return self._reported()

    def _reported(self) -> Report:
        """The report of the teardown; raises the bug of ours that left none."""
        if self.report is None:
            assert self._broken is not None
            raise self._broken
        return self.report

    def _tear_down(self, grace: float | None, body: BaseException | None, since: float) -> Steps[Teardown]:
        """The door is closed: call off what is coming, and take the rest down."""
        end = None if grace is None else since + grace
        self._interrupt = None
        for latch, driver in list(self._coming.items()):
            driver.send(partial(driver.run.call_off, end))
            yield from self._patiently(latch)
        with self.mutex:
            try:
                run = self._begin_teardown(grace, body, since)
            except Exception as why:
                raise self._break_down(why) from why
            driver = self._down = Driver(run, self.workers, self._lanes, lambda: self._end(run))
            if self._hurried:
                driver.send(run.hurry)
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

    def ask(self, since: float) -> None:
        """A teardown is wanted: call a start off. What is running is ended by its body, or by who asks."""
        with self.mutex:
            if self.state is State.STARTING and self._requested is None and self._start is not None:
                self._requested = since, self.grace
                run, driver = self._start
                driver.send(partial(run.call_off, None if self.grace is None else since + self.grace))

    def hurry(self) -> None:
        """Bring the end of what goes on forward to now."""
        with self.mutex:
            self._hurried = True
            drivers = [
                *self._coming.values(),
                *([self._start[1]] if self.state is State.STARTING and self._start else ()),
            ]
            for driver in [*drivers, *([self._down] if self._down is not None else ())]:
                driver.send(driver.run.hurry)

    def request(self, error: BaseException | None) -> None:
        """Ask for the teardown, and return at once."""
        if error is not None:
            self.request_error = self.request_error or error
        if self.session is not None:
            self.session.ask()
            return
        self.asked_alone = self.asked_alone or self.state is not State.CLOSED
        self.ask(monotonic())
        pool.engage(self._tear_down_alone)

    def _tear_down_alone(self) -> None:
        on_thread(self.teardown(None, None))
