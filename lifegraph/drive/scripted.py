"""Drives a run by a script: its clock is a number, and its answers are foretold. For tests."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from typing import Final, NamedTuple

from ..run import Failure, Run

__all__ = ["Answer", "Scripted"]

_INF: Final = float("inf")


class Answer(NamedTuple):
    """What one hook will do: return, or raise ``error``, after so many seconds; infinity hangs for ever."""

    error: BaseException | None = None
    seconds: float = 0.0


class Scripted:
    """Drives one run without threads and without waiting; the user's code runs only where it is to return."""

    def __init__(self, run: Run, workers: int, script: Callable[[str], Answer]) -> None:
        self.run = run
        self.now = 0.0
        self.told: list[tuple[str, str]] = []  # every action, in order
        self._workers = workers
        self._script = script
        self._busy: dict[int, bool] = {}  # what is acted on, and whether it takes a worker's place
        self._answers: list[tuple[float, int, int, Answer]] = []

    def drive(self) -> None:
        """Bring the run to its end."""
        run = self.run
        run.open(self.now)
        while True:
            self._look_around()
            if run.over:
                break
            due = self._answers[0][0] if self._answers else _INF
            self.now = min(due, run.alarm)
            assert self.now < _INF, "the script hangs a hook without a limit"
            if due <= self.now:
                self._deliver()
            else:
                run.tick(self.now)
        run.close(self.now)
        while self._answers and self._answers[0][0] < _INF:
            self.now = self._answers[0][0]
            self._deliver()

    def _look_around(self) -> None:
        run = self.run
        for lost in run.lost:
            self._busy.pop(lost, None)
            self.told.append(("give up", run.name(lost)))
        run.lost.clear()
        run.trash.clear()
        while run.errands:
            _, number = run.errands.popleft()
            if run.begin(number, self.now):
                self._act(number, worker=False)
        while sum(self._busy.values()) < self._workers and (number := run.take(self.now)) >= 0:
            self._act(number, worker=True)

    def _act(self, number: int, *, worker: bool) -> None:
        answer = self._script(self.run.name(number))
        self.told.append(("go", self.run.name(number)))
        self._busy[number] = worker
        heappush(self._answers, (self.now + answer.seconds, len(self.told), number, answer))

    def _deliver(self) -> None:
        _, _, number, answer = heappop(self._answers)
        self._busy.pop(number, None)
        if answer.error is None:
            self.run.act(number)
        self.run.answer(number, Failure.of(answer.error) if answer.error else None, self.now)
