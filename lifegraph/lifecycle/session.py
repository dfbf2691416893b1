"""A graph as a program: start, main, teardown, exit code."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from time import monotonic
from typing import Any

from ..drive.latch import Latch
from ..drive.pool import loop_here, pool
from ..drive.steps import on_loop, on_thread
from ..errors import DeclarationError, GraphClosingError, GraphStateError, StartError
from ..quarantine import quarantine
from ..run import is_awaitable
from ..signals import Signals
from .lifecycle import Lifecycle
from .saying import exit_status, leave, say, told

__all__ = ["Session", "heard", "listening", "run"]


class Session:
    """One stretch in which a body runs on a graph, and may be asked to end: by a signal, or by a request."""

    def __init__(self, life: Lifecycle) -> None:
        self.life = life
        self.asked = Latch()
        self.error: BaseException | None = None  # what ended the body
        self.start_failed = False
        self._asked_at: float | None = None
        self._cancel: Callable[[], None] | None = None
        self.signals = Signals(life.title, self._ask_by_signal, self._hurry)

    def open(self) -> None:
        """Listen from now on; raises `GraphStateError` off the main thread."""
        self.signals.install()
        self.life.session = self

    def close(self) -> None:
        """Listen no longer."""
        self.life.session = None
        self.signals.restore()

    @property
    def since(self) -> float | None:
        """When the end was asked for, if it was."""
        return self.signals.at if self._asked_at is None else self._asked_at

    @property
    def was_asked(self) -> bool:
        """Whether the end was asked for, be it that nobody has acted on it yet."""
        return self.since is not None

    def ask(self) -> None:
        """Have the body end and the teardown begin; never waits for either."""
        if self._asked_at is None:
            self._asked_at = monotonic() if self.signals.at is None else self.signals.at
        self.life.ask(self._asked_at)
        self.asked.open()
        if self._cancel is not None:
            self._cancel()
        else:
            with suppress(RuntimeError):
                pool.engage(self.signals.end_body)

    def body_is_task(self) -> None:
        """The body is the task that runs here: it ends by being cancelled."""
        loop = loop_here()
        task = sys.modules["asyncio"].current_task()
        self._cancel = lambda: _call_soon(loop, task.cancel)
        if self.asked.is_open:
            self._cancel()

    def body_ended(self) -> None:
        """The body is over: nothing of it is to be ended any more."""
        self._cancel = _nothing
        self.signals.__exit__()

    def _ask_by_signal(self) -> None:
        self.ask()

    def _hurry(self) -> None:
        self.life.hurry()
        report = self.life.wait_closed(1.0)
        held = ", ".join(report.held) if report is not None else "the teardown is not over"
        say(f"lifegraph: graph {self.life.title!r} was hurried; not released: {held or 'nothing'}")

    # One whole life --------------------------------------------------------------------------------------

    def live(self, graph: object, main: Callable[[Any], object] | None) -> None:
        """Start, run a sync ``main`` (or wait to be asked), and tear down."""
        if self._started(self.life.up):
            try:
                if main is None:
                    self.asked.wait()
                else:
                    with self.signals:
                        got = main(graph)
                    if is_awaitable(got) and not self.life.inert:
                        self._have_awaited(got)
            except BaseException as why:  # noqa: BLE001 - whatever main raises, the teardown follows
                self.error = why
        if self.life.state != "closed" and not self.life.inert:
            on_thread(self.life.teardown(None, self._own_error(), since=self.since))

    def _have_awaited(self, main: Any) -> None:
        """A ``main`` that hid its being async is awaited on the loop of the graph's resources."""
        from ..drive.loop import begin_on  # noqa: PLC0415 - loads asyncio, which only async users need

        over, struck = Latch(), list[KeyboardInterrupt]()
        with self.life.lent_loop() as loop:
            cancel = self._cancel = begin_on(loop, self._guarded(lambda: main), over.open)
            if self.asked.is_open:
                cancel()
            while not over.is_open:
                try:
                    over.wait()
                except KeyboardInterrupt as why:  # main gave the signals to somebody else
                    struck.append(why)
                    cancel()
        if inspect.iscoroutine(main):
            main.close()  # where it was cancelled before it began
        if struck:
            raise struck[0]

    async def alive(self, graph: object, main: Callable[[Any], Any]) -> None:
        """The same for an async ``main``, on the loop that runs here."""
        try:
            await self.life.aup()
            up = True
        except (DeclarationError, StartError, GraphClosingError) as why:
            up = self._start_failed(why)
        if up:
            loop = loop_here()
            task = loop.create_task(self._guarded(lambda: main(graph)))
            self._cancel = lambda: _call_soon(loop, task.cancel)
            if self.asked.is_open:
                task.cancel()
            try:
                await task
            except BaseException as why:  # noqa: BLE001 - cancelled before it began
                self.error = why
        if self.life.state != "closed" and not self.life.inert:
            await on_loop(self.life.teardown(None, self._own_error(), awaited=True, since=self.since))

    async def _guarded(self, main: Callable[[], Any]) -> None:
        """Await what ``main`` returns; what it raises must not get to the loop, which a SystemExit would end."""
        try:
            await main()
        except BaseException as why:  # noqa: BLE001 - the same
            self.error = why

    def end_early(self) -> None:
        """The end was asked for before the beginning: wait for it."""
        self._asked_at = monotonic()
        self.life.wait_closed(-1)

    def exit_code(self, signal_exit: int) -> int:
        """What the process is to exit with; says on stderr what went wrong."""
        report, error = self.life.report, self._own_error()
        code = signal_exit if self.was_asked else 0
        if self.life.request_error is not None:
            say(told(self.life.request_error))
            code = 1
        if isinstance(error, SystemExit):
            code = exit_status(error)
        elif error is not None:
            say(told(error))
            code = 1
        if self.start_failed:
            code = 2
        if report is not None and not report.ok:
            say(report.to_text())
            code = 3
        return code

    def _started(self, start: Callable[[], None]) -> bool:
        try:
            start()
        except (DeclarationError, StartError, GraphClosingError) as why:
            return self._start_failed(why)
        return True

    def _start_failed(self, why: Exception) -> bool:
        if not isinstance(why, GraphClosingError):
            self.start_failed = True
            say(str(why) if isinstance(why, DeclarationError) else told(why))
        return False

    def _own_error(self) -> BaseException | None:
        """What main raised by itself; not the end that was asked of it."""
        ended = type(self.error).__name__ in ("KeyboardInterrupt", "CancelledError")
        return None if ended and self.was_asked else self.error


@contextmanager
def listening(life: Lifecycle, listens: bool) -> Generator[Session | None, None, None]:
    """Listen to signals, if that is wanted; no longer when what is inside fails."""
    session = Session(life) if listens else None
    if session is not None:
        session.open()
    up = False
    try:
        yield session
        up = True
    finally:
        if session is not None and not up:
            session.close()


@contextmanager
def heard(session: Session | None) -> Generator[float | None, None, None]:
    """The body is over: inside is the teardown, told when it was asked for; then the signals are given back."""
    if session is not None:
        session.body_ended()
    try:
        yield session.since if session is not None else None
    finally:
        if session is not None:
            session.close()


def run(
    life: Lifecycle, graph: object, main: Callable[[Any], Any] | None, *,
    hard_exit: bool, signal_exit: int, loop_factory: Callable[[], Any] | None,
) -> int:  # fmt: skip
    """A whole program; returns the exit code, or leaves with it when something is held and ``hard_exit``."""
    if loop_here() is not None:
        raise GraphStateError(f"cannot run graph {life.title!r} here: it would block the running event loop\n"
            "  hint     async with graph, or run(main) where no loop runs yet")  # fmt: skip
    session, runner = Session(life), None
    if life.asked_alone:  # before run began: nothing is started
        session.end_early()
        return session.exit_code(signal_exit)
    life.check_open("run")
    life.make_loops_by(loop_factory)
    session.open()
    try:
        if main is not None and (inspect.iscoroutinefunction(main) or inspect.iscoroutinefunction(type(main).__call__)):
            from ..drive.loop import runner_of  # noqa: PLC0415 - loads asyncio, which only async users need

            runner = runner_of(loop_factory)
            runner.run(session.alive(graph, main))
        else:
            session.live(graph, main)
        if life.inert:
            raise session.error or GraphStateError(
                f"graph {life.title!r} is the parent's: this process was forked in main"
            )
        code = session.exit_code(signal_exit)
        if hard_exit and quarantine():
            leave(code)
    finally:
        session.close()
    if runner is not None:
        runner.close()
    return code


def _nothing() -> None:
    """There is no body to end."""


def _call_soon(loop: Any, call: Callable[[], object]) -> None:
    with suppress(RuntimeError):  # the loop is over, and the body with it
        loop.call_soon_threadsafe(call)
