"""Drives a run. Whoever holds an answer brings the run on, and a worker goes on with what its answer freed.

There is one key to a run, and nobody waits for it: who finds it taken leaves a letter in the mail, and whoever
holds the key looks at the mail again after putting it down. The caller of a verb only waits, on its thread or on
its loop.
"""

from __future__ import annotations

import sys
import threading
from collections import deque
from collections.abc import Callable, Generator
from contextlib import contextmanager, nullcontext, suppress
from contextvars import copy_context
from functools import partial
from time import monotonic, sleep
from typing import Any, Final, TypeAlias

from ..run import Failure, Run, is_awaitable
from . import stacks
from .caller import Caller
from .job import Job
from .lanes import Lanes
from .pool import NoThread, alarms, here, pool

__all__ = ["Driver", "Letter", "acting", "acting_for"]

_BRISK: Final = 20e-6  # seconds: hooks shorter than this on average are not worth a second thread
_NAP: Final = 0.001  # seconds between two looks whether they still are so short
_ALONE: Final = 0.0002  # seconds in which a run may end before a second thread is worth its wake-up
_PROMPT: Final = 0.005  # seconds that a run may take before it needs an alarm
_INF: Final = float("inf")
_MAIN: Final = threading.main_thread().ident

Letter: TypeAlias = Callable[[float], None] | tuple[int, Failure | None, object, bool] | Job

_acting: dict[object, tuple[Driver, int]] = {}  # thread (or host task) -> what it runs


def acting() -> tuple[Driver, int] | None:
    """The driver, and the number in its run, whose user code runs here (on this thread, or in this task) now."""
    if not _acting:
        return None
    found = _acting.get(here())
    if found is None and (asyncio := sys.modules.get("asyncio")) is not None:
        try:
            found = _acting.get(asyncio.current_task())
        except RuntimeError:  # no loop runs here
            return None
    return found


@contextmanager
def acting_for(found: tuple[Driver, int] | None) -> Generator[None, None, None]:
    """Inside, what this thread does is done for that user code, which waits for it."""
    if found is None:
        yield
        return
    _acting[here()] = found
    try:
        yield
    finally:
        del _acting[here()]


class Driver:
    """Brings one run to its end, with up to ``workers`` threads at once on the worker lane."""

    def __init__(self, run: Run, workers: int, lanes: Lanes, then: Callable[[], None] | None = None) -> None:
        """``then`` is called once, with the key, by whichever thread brings the run to its end."""
        self.run = run
        self.finished = False
        self._workers = workers
        self._lanes = lanes
        self._then = then
        self._base = copy_context()
        self.home: Any = None  # the caller's loop, where it has one
        self._key = threading.Lock()
        self._mail: deque[Letter] = deque()
        self._calls: deque[int] = deque()  # for the caller's own lane
        self._beside: deque[int] = deque()  # for whatever thread comes: it takes no worker's place
        self._jobs: dict[int, Job] = {}  # the same on loops
        self._passed_on: BaseException | None = None  # an interrupt that the run knows of
        self._bell = threading.Lock()  # wakes the caller on a thread
        self._bell.acquire()
        self._wake: Callable[[], None] = self._ring
        self._at_work: dict[int, int] = {}  # number -> thread, of the worker lane
        self._elsewhere: dict[int, int] = {}  # the same, of the other lanes and of what waits in a verb
        self._solo = True  # the first thread may get it all done before a second would be there
        self._arriving = False
        self._scouting = False
        self._alone = False  # no thread can be started: the caller does it all
        self._summoned = False  # a thread comes to read what was said on the main one
        self._watched = False
        self._armed = _INF
        self._seconds = 1.0  # a moving average of how long a hook takes

    # The caller ------------------------------------------------------------------------------------------

    def wait_on_thread(self, caller: Caller[Any] | None) -> BaseException | None:
        """Bring the run to its end. An interrupt of ``caller`` is passed to it, and returned at the end."""
        if caller is None:
            return self._wait(None)
        self.home = caller.loop
        struck: list[BaseException] = []

        def hear(why: BaseException) -> None:
            struck.append(why)
            self._nudge()
            self.send(self.run.interrupt)

        caller.on_interrupt(hear)
        interrupt = self._wait(caller)
        caller.on_interrupt(None)
        return interrupt or (struck[0] if struck else None)

    def _wait(self, caller: Caller[Any] | None) -> BaseException | None:
        interrupts: list[BaseException] = []
        self._mail.append(self.run.open)
        passed = 0
        while not self.finished:
            try:
                if passed < len(interrupts):
                    passed += 1
                    self._mail.append(self.run.interrupt)
                self._attend(caller)
            except KeyboardInterrupt as why:
                interrupts.append(why)
                passed += why is self._passed_on
        return interrupts[0] if interrupts else None

    async def awaited(self) -> BaseException | None:
        """The same from a coroutine, for a cancellation: the caller's loop is the loop of its resources."""
        from . import loop  # noqa: PLC0415 - loads asyncio, which only async users need

        waiter = loop.Waiter()
        self.home, self._wake = waiter.loop, waiter.wake
        self._watched, self._solo = True, False
        cancelled: BaseException | None = None
        shielded = loop.forever_cancelled()
        self._mail.append(self.run.open)
        self._read()
        while not self.finished:
            if self._alone:
                self._help_out()
                self._serve()
            try:
                with loop.shield() if shielded else nullcontext():
                    await waiter.wait()
            except loop.CancelledError as why:
                cancelled, shielded = cancelled or why, True
                self._mail.append(self.run.interrupt)
                self._read()
        return cancelled

    def send(self, letter: Letter) -> None:
        """Have the run do something; never waits."""
        self._mail.append(letter)
        self._engage(self._read)

    @contextmanager
    def yielding(self, number: int) -> Generator[None, None, None]:
        """Inside, ``number`` waits for something of the graph and takes no worker's place."""
        self.send(lambda _: self._step_aside(number))
        try:
            yield
        finally:
            self.send(lambda _: self._step_back(number))

    def _attend(self, caller: Caller[Any] | None) -> None:
        if self._mail:
            self._engage(self._arrive)
        while not self.finished:
            if self._alone:
                self._help_out()
                self._serve()
            if self._calls and caller is not None:
                caller.lend(self._perform_here)
            elif self._calls:
                self._perform_here()
            elif self._solo and not self._alone:
                self._solo = self._bell.acquire(True, _ALONE)
                if not self._solo and self.run.ready:
                    self.send(_nothing)  # reading the mail wakes a helper
            elif not self._bell.acquire(True, -1 if self._watched or self._alone else _PROMPT):
                self._watched = True
                self.send(_nothing)  # and sets the alarm

    def _perform_here(self) -> None:
        answer = self._perform(self._calls.popleft())
        failure = answer[1]
        if failure is None or not isinstance(failure.error, KeyboardInterrupt):
            self.send(answer)
            return
        self._passed_on = failure.error
        self._mail.extend((answer, self.run.interrupt))  # at once: nothing may begin between the two
        raise failure.error

    # The workers -----------------------------------------------------------------------------------------

    def _engage(self, work: Callable[[], None]) -> None:
        try:
            pool.engage(work)
        except RuntimeError:  # late in the interpreter's end, or at the system's limit
            self._alone = True
            self._arriving = self._scouting = False
            self._wake()

    def _arrive(self) -> None:
        """A helper comes, and works while there is work."""
        self._mail.append(self._arrived)
        self._serve()

    def _scout(self) -> None:
        """Help only when hooks no longer are so short that one thread is best."""
        pace = _NAP / _BRISK / 4
        while self.run.ready and not self.finished:
            before = self.run.settled
            sleep(_NAP)  # looking less often than hooks end is the point: more threads would only be in the way
            if self.run.settled - before < pace:
                break
        self._mail.append(self._scouted)
        self._serve()

    def _serve(self) -> None:
        while (number := self._turn(takes=True)) >= 0:
            self._mail.append(self._perform(number))

    def _help_out(self) -> None:
        """Do what is to be done beside the workers; another thread comes at once if there is more."""
        while self._beside:
            try:
                number = self._beside.popleft()
            except IndexError:  # another thread was there first
                return
            if self._beside and not self._alone:
                self._engage(self._help_out)
            self._mail.append(self._perform(number))
            self._read()

    def _read(self) -> None:
        self._turn(takes=False)

    def _turn(self, *, takes: bool) -> int:
        """Read the mail, unless somebody does so now; return what to do next, or -1."""
        number = -1
        while self._key.acquire(False):
            helper = None
            try:
                self._read_mail()
                if takes and number < 0:
                    number = self._take()
                helper = self._helper()
                self._keep_time()
            except Exception as why:  # noqa: BLE001 - a bug of ours: whatever is unsettled is then on the safe side
                number = -1
                self._break_off(why)
            finally:
                self._key.release()
            self.run.trash.clear()
            if helper is not None:
                self._engage(helper)
            if not self._mail:
                break
        return number

    def _perform(self, number: int) -> tuple[int, Failure | None, object, bool]:
        """Run user code on this thread."""
        run, thread = self.run, here()
        outer = _acting.get(thread)
        _acting[thread] = (self, number)
        if number in self._elsewhere:
            self._elsewhere[number] = thread
        began = monotonic()
        try:
            value = run.context(number, self._base).run(run.act, number)
        except BaseException as why:  # noqa: BLE001 - whatever it raises is an answer: a failed hook ends only itself
            return number, Failure.of(why), None, False
        finally:
            self._seconds += (monotonic() - began - self._seconds) * 0.1
            if outer is None:
                del _acting[thread]
            else:
                _acting[thread] = outer
        return number, None, value, False

    async def on_loop(self, job: Job, task: Any) -> None:
        """Run user code in ``task``, which runs it."""
        _acting[task] = (self, job.number)
        try:
            job.value = self.run.act(job.number)
            if is_awaitable(job.value):
                job.doing = job.value
                job.value = await job.value
        except BaseException as why:  # the same, for the loop lane
            if job.has_value:  # the code had come to its end: it struck us
                self._say(job)
                raise
            job.failure = Failure.of(why)
        finally:
            job.doing = None
            del _acting[task]
        self._say(job)

    def lost(self, job: Job, why: BaseException) -> None:
        """An interrupt struck us on the way to the answer."""
        if not job.has_value:
            job.failure = job.failure or Failure.of(why)
        self._say(job)

    def _say(self, job: Job) -> None:
        """The answer; the first one counts. On the main thread an interrupt may strike, so the run goes on elsewhere."""
        self._mail.append(job)
        if here() != _MAIN:
            self._read()
        elif not self._summoned:
            self._summoned = True
            self._engage(self._come)

    def _nudge(self) -> None:
        """Make up for what an interrupt may have kept from being told."""
        self._summoned = False
        self._lanes.nudge()

    def _come(self) -> None:
        self._summoned = False
        self._read()

    # With the key ----------------------------------------------------------------------------------------

    def _read_mail(self) -> None:
        run, mail, now = self.run, self._mail, monotonic()
        while mail:
            letter = mail.popleft()
            if isinstance(letter, tuple):
                number, failure, value, awaited = letter
                self._at_work.pop(number, None)
                self._elsewhere.pop(number, None)
                run.answer(number, failure, now, value, awaited=awaited)
            elif isinstance(letter, Job):
                self._hear(letter, now)
            else:
                letter(now)
        while run.lost:
            self._look_where(run.lost.pop())
        while run.errands:  # after all of the mail, which may call them off
            self._send_out(*run.errands.popleft(), now)
        if run.over:
            self._finish(now)

    def _hear(self, job: Job, now: float) -> None:
        if not job.heard:
            job.heard = True
            self._elsewhere.pop(job.number, None)
            self._jobs.pop(job.number, None)
            value = None if job.failure else job.value
            self.run.answer(job.number, job.failure, now, value, awaited=True)

    def _keep_time(self) -> None:
        """Have the run ticked when that is due; after every beginning, for each brings a deadline."""
        if self._watched and not self.finished and (due := self.run.alarm) < self._armed:
            self._armed = due
            with suppress(NoThread):  # there is no limit where no thread can be started
                alarms.at(due, self._ticked)

    def _take(self) -> int:
        if len(self._at_work) >= self._workers:
            return -1
        number = self.run.take(monotonic())
        if number >= 0:
            self._at_work[number] = here()
        return number

    def _helper(self) -> Callable[[], None] | None:
        """How one more thread should come, if one should."""
        if not self.run.ready or self._arriving or self._solo or self._alone or len(self._at_work) >= self._workers:
            return None
        if self._seconds < _BRISK and self._at_work:
            if self._scouting:
                return None
            self._scouting = True
            return self._scout
        self._arriving = True
        return self._arrive

    def _arrived(self, _: float) -> None:
        self._arriving = False

    def _scouted(self, _: float) -> None:
        self._scouting = False
        self._seconds = 1.0

    def _step_aside(self, number: int) -> None:
        if number in self._at_work:
            self._elsewhere[number] = self._at_work.pop(number)

    def _step_back(self, number: int) -> None:
        if number in self._elsewhere:
            self._at_work[number] = self._elsewhere.pop(number)

    def _look_where(self, number: int) -> None:
        """``number`` was given up: its thread no longer counts; see where it hangs."""
        thread = self._at_work.pop(number, None) or self._elsewhere.pop(number, None)
        job = self._jobs.pop(number, None)
        if number < len(self.run.nodes):
            stack = self._lanes.where(self.run.nodes[number])
        else:
            stack = stacks.of_awaitable(job.doing) if job is not None else None
        stack = stack or (stacks.of_thread(thread) if thread else None)
        if stack is not None:
            self.run.hangs_at(number, stack)

    def _send_out(self, lane: str, number: int, now: float) -> None:
        """Begin something that another lane than the workers' is to do."""
        if not self.run.begin(number, now):
            return
        self._elsewhere[number] = 0
        member = self.run.nodes[self.run.node_of(number)]
        if lane == "beside":
            self._beside.append(number)
            self._engage(self._help_out)
        elif lane == "caller":
            self._calls.append(number)
            self._wake()
        elif lane == "dedicated":
            self._lanes.dedicated(member).do(lambda: self.send(self._perform(number)))
        else:
            self._send_to_loop(number, member, beside=lane == "loop beside")

    def _send_to_loop(self, number: int, member: int, *, beside: bool) -> None:
        job = Job(self, number)
        try:
            if beside:
                self._jobs[number] = job
                self._lanes.beside(member, job, self.home, self._base)
            else:
                self._lanes.on_loop(member, job, self.home, self._base, alone=self.run.is_alone(number))
        except Exception as why:  # noqa: BLE001 - its loop is gone, which is this hook's failure and nobody else's
            self.run.discard(number)
            self._mail.append((number, Failure.of(why), None, False))

    def _ticked(self) -> None:
        """On the clock's thread, which must never run user code."""
        self.send(self._tick)

    def _tick(self, now: float) -> None:
        self._armed = _INF
        self._nudge()
        self.run.tick(now)

    def _finish(self, now: float) -> None:
        if self.finished:
            return
        for last in (partial(self._lanes.tidy, self.run.nodes), partial(self.run.close, now), self._then):
            try:
                if last is not None:
                    last()
            except Exception as why:  # noqa: BLE001 - a bug of ours: nobody must wait for ever because of it
                self.run.break_off(Failure.of(why), now)
        self.finished = True
        self._wake()

    def _break_off(self, why: Exception) -> None:
        """A bug of ours: what is unsettled is then on the safe side, and whoever waits is told."""
        now = monotonic()
        self.run.break_off(Failure.of(why), now)
        self._finish(now)

    def _ring(self) -> None:
        try:
            self._bell.release()
        except RuntimeError:  # rung already
            return


def _nothing(_: float) -> None:
    """A letter that only has the mail read."""
