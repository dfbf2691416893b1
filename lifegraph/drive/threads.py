"""Runs user code on threads. Whoever holds an answer brings the run on, and goes on with what it freed.

There is one key to a run, and nobody waits for it: who finds it taken leaves a letter in the mail, and whoever
holds the key looks at the mail again after putting it down. The caller of a verb only waits.
"""

from __future__ import annotations

import sys
import threading
import traceback
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import copy_context
from pathlib import Path
from time import monotonic, sleep
from types import FrameType
from typing import Final, TypeAlias

from ..run import Failure, Run
from .pool import alarms, here, pool

__all__ = ["Dedicated", "Threads", "acting"]

_BRISK: Final = 20e-6  # seconds: hooks shorter than this on average are not worth a second thread
_NAP: Final = 0.001  # seconds between two looks whether they still are so short
_PROMPT: Final = 0.005  # seconds that a run may take before it needs an alarm
_INF: Final = float("inf")

Letter: TypeAlias = Callable[[float], None] | tuple[int, Failure | None]

_acting: dict[int, tuple[Threads, int]] = {}  # thread -> what it runs


def acting() -> tuple[Threads, int] | None:
    """The driver, and the number in its run, whose user code the current thread runs now."""
    return _acting.get(here())


class Dedicated:
    """One thread for all hooks of one resource."""

    def __init__(self) -> None:
        self._tasks: deque[Callable[[], None]] = deque()
        self._bell = threading.Semaphore(0)
        self._ended = False
        pool.engage(self._live)

    def do(self, task: Callable[[], None]) -> None:
        """Do this after what was asked before."""
        self._tasks.append(task)
        self._bell.release()

    def end(self) -> None:
        """Give the thread back, after what was asked before."""
        self.do(self._end)

    def _live(self) -> None:
        while not self._ended:
            self._bell.acquire()
            self._tasks.popleft()()

    def _end(self) -> None:
        self._ended = True


class Threads:
    """Drives one run to its end, with up to ``workers`` threads at once on the worker lane."""

    def __init__(self, run: Run, workers: int, dedicated: dict[int, Dedicated], then: Callable[[], None]) -> None:
        """``then`` is called once, with the key, by whichever thread brings the run to its end."""
        self.run = run
        self.finished = False
        self._workers = workers
        self._dedicated = dedicated
        self._then = then
        self._base = copy_context()
        self._key = threading.Lock()
        self._mail: deque[Letter] = deque()
        self._calls: deque[int] = deque()  # for the caller's own lane
        self._bell = threading.Lock()  # wakes the caller
        self._bell.acquire()
        self._at_work: dict[int, int] = {}  # number -> thread, of the worker lane
        self._elsewhere: dict[int, int] = {}  # the same, of the other lanes and of what waits in a verb
        self._arriving = False
        self._scouting = False
        self._alone = False  # no thread can be started: the caller does it all
        self._watched = False
        self._armed = _INF
        self._seconds = 1.0  # a moving average of how long a hook takes

    # The caller ------------------------------------------------------------------------------------------

    def drive(self) -> KeyboardInterrupt | None:
        """Bring the run to its end. A KeyboardInterrupt meanwhile is passed to it, and returned at the end."""
        interrupts: list[KeyboardInterrupt] = []
        self._mail.append(self.run.open)
        passed = 0
        while not self.finished:
            try:
                if passed < len(interrupts):
                    passed += 1
                    self._mail.append(self.run.interrupt)
                self._attend()
            except KeyboardInterrupt as why:
                interrupts.append(why)
        return interrupts[0] if interrupts else None

    def send(self, letter: Letter) -> None:
        """Have the run do something; never waits."""
        self._mail.append(letter)
        self._engage(self._read)

    @contextmanager
    def yielding(self, number: int) -> Iterator[None]:
        """Inside, ``number`` waits for something of the graph and takes no worker's place."""
        self.send(lambda _: self._step_aside(number))
        try:
            yield
        finally:
            self.send(lambda _: self._step_back(number))

    def _attend(self) -> None:
        if self._mail:
            self._engage(self._arrive)
        while not self.finished:
            if self._alone:
                self._serve()
            if self._calls:
                self._perform_here()
            elif not self._bell.acquire(timeout=-1 if self._watched or self._alone else _PROMPT):
                self._watched = True
                self.send(_nothing)  # reading the mail sets the alarm

    def _perform_here(self) -> None:
        number = self._calls.popleft()
        failure = self._perform(number)
        self.send((number, failure))
        if failure is not None and isinstance(failure.error, KeyboardInterrupt):
            raise failure.error

    # The workers -----------------------------------------------------------------------------------------

    def _engage(self, work: Callable[[], None]) -> None:
        try:
            pool.engage(work)
        except RuntimeError:  # late in the interpreter's end, or at the system's limit
            self._alone = True
            self._arriving = self._scouting = False
            self._ring()

    def _arrive(self) -> None:
        """A helper comes, and works while there is work."""
        self._mail.append(self._arrived)
        self._serve()

    def _scout(self) -> None:
        """Help only when hooks no longer are so short that one thread is best."""
        pace = _NAP / _BRISK / 4
        while self.run.ready and not self.finished:
            before = self.run.settled
            sleep(_NAP)
            if self.run.settled - before < pace:
                break
        self._mail.append(self._scouted)
        self._serve()

    def _serve(self) -> None:
        while (number := self._turn(takes=True)) >= 0:
            self._mail.append((number, self._perform(number)))

    def _read(self) -> None:
        self._turn(takes=False)

    def _turn(self, *, takes: bool) -> int:
        """Read the mail, unless somebody does so now; return what to do next, or -1."""
        number = -1
        while self._key.acquire(blocking=False):
            try:
                self._read_mail()
                if takes and number < 0:
                    number = self._take()
                helper = self._helper()
            finally:
                self._key.release()
            self.run.trash.clear()
            if helper is not None:
                self._engage(helper)
            if not self._mail:
                break
        return number

    def _perform(self, number: int) -> Failure | None:
        """Run user code. Whatever it raises is an answer, for a failed hook may end nothing but itself."""
        run, thread = self.run, here()
        outer = _acting.get(thread)
        _acting[thread] = (self, number)
        if number in self._elsewhere:
            self._elsewhere[number] = thread
        began = monotonic()
        try:
            run.context(number, self._base).run(run.act, number)
        except BaseException as why:
            return Failure.of(why)
        finally:
            self._seconds += (monotonic() - began - self._seconds) * 0.1
            if outer is None:
                del _acting[thread]
            else:
                _acting[thread] = outer
        return None

    # With the key ----------------------------------------------------------------------------------------

    def _read_mail(self) -> None:
        run, mail, now = self.run, self._mail, monotonic()
        while mail:
            letter = mail.popleft()
            try:
                if type(letter) is tuple:
                    self._answered(*letter, now)
                else:
                    letter(now)  # type: ignore[operator]  # not a tuple
            except Exception as why:  # noqa: BLE001 - a bug of ours: whatever is unsettled is then on the safe side
                run.break_off(Failure.of(why), now)
        while run.lost:
            self._look_where(run.lost.pop())
        while run.errands:
            self._send_out(*run.errands.popleft(), now)
        if run.over:
            self._finish(now)
        elif self._watched and run.alarm < self._armed:
            self._armed = run.alarm
            alarms.at(self._armed, self._ticked)

    def _answered(self, number: int, failure: Failure | None, now: float) -> None:
        self._at_work.pop(number, None)
        self._elsewhere.pop(number, None)
        self.run.answer(number, failure, now)

    def _take(self) -> int:
        if len(self._at_work) >= self._workers:
            return -1
        number = self.run.take(monotonic())
        if number >= 0:
            self._at_work[number] = here()
        return number

    def _helper(self) -> Callable[[], None] | None:
        """How one more thread should come, if one should."""
        if not self.run.ready or self._arriving or self._alone or len(self._at_work) >= self._workers:
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
        frame = sys._current_frames().get(thread) if thread else None
        if frame is not None:
            self.run.hangs_at(number, _stack(frame))

    def _send_out(self, lane: str, number: int, now: float) -> None:
        """Begin something that another lane than the workers' is to do."""
        if not self.run.begin(number, now):
            return
        self._elsewhere[number] = 0
        if lane == "caller":
            self._calls.append(number)
            self._ring()
            return
        member = self.run.nodes[number]
        if member not in self._dedicated:
            self._dedicated[member] = Dedicated()
        self._dedicated[member].do(lambda: self.send((number, self._perform(number))))

    def _ticked(self) -> None:
        """On the clock's thread, which must never run user code."""
        self.send(self._tick)

    def _tick(self, now: float) -> None:
        self._armed = _INF
        self.run.tick(now)

    def _finish(self, now: float) -> None:
        if self.finished:
            return
        self.run.close(now)
        for member in [member for member in self._dedicated if not self.run.lives.is_alive(member)]:
            self._dedicated.pop(member).end()
        self._then()
        self.finished = True
        self._ring()

    def _ring(self) -> None:
        try:
            self._bell.release()
        except RuntimeError:  # rung already
            return


def _nothing(_: float) -> None:
    """A letter that only has the mail read."""


def _stack(frame: FrameType) -> str:
    """Where a thread is, without the frames of ours below the user's code."""
    lines = traceback.StackSummary.extract(traceback.walk_stack(frame), lookup_lines=True)
    lines.reverse()
    users = [place for place, line in enumerate(lines) if not line.filename.startswith(_OURS)]
    last_own = max((place for place, line in enumerate(lines) if line.filename.startswith(_OURS)), default=-1)
    first = next((place for place in users if place > last_own), 0)
    return "".join(traceback.format_list(lines[first:])).rstrip()


_OURS: Final = str(Path(__file__).parents[1])
