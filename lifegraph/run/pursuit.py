"""The pursuit of evidence: what is asked after a stop, and what follows, as the table in `proof` has it."""

from __future__ import annotations

from abc import abstractmethod
from typing import Final

from ..errors import HookError, HookTimeout
from ..events import Fate
from ..spec import seconds_of
from .beside import Beside
from .proof import COLUMNS, Verdict, next_step

__all__ = ["Pursuit"]

_INF: Final = float("inf")


class Pursuit(Beside):
    """A run that releases on evidence only."""

    def _limit(self, node: int, now: float) -> float | None:
        limit, hooks = super()._limit(node, now), self.specs[node].hooks
        left = self.walk.end - now
        if left == _INF or (hooks.kill is None and hooks.is_stopped is None):
            return limit
        wanted = 0.0 if hooks.kill is None else seconds_of(hooks.kill_timeout)
        if hooks.is_stopped is not None:  # asked again after a kill
            wanted += seconds_of(hooks.is_stopped_timeout) * (1 if hooks.kill is None else 2)
        room = max(left - wanted, left / 2)
        return room if limit is None else min(limit, room)

    def _pursue(self, node: int, said: str, now: float) -> bool:
        hooks = self.specs[node].hooks
        if said == "returned" and node in self._draining:
            said = "draining"
        elif hooks.is_stopped is None and (hooks.kill is None or said == "returned"):
            return False
        self.walk.begin(node)
        self._courses[node] = [said]
        self._follow(node, now)
        return True

    def _testify(self, node: int, said: str, now: float) -> None:
        self._courses[node].append(said)
        self._follow(node, now)

    def _follow(self, node: int, now: float) -> None:
        """Call what the table has next, or give the verdict."""
        course, hooks = self._courses[node], self.specs[node].hooks
        known = self.lives.things[self.nodes[node]] is not None
        while not isinstance(step := next_step(*course), Verdict):
            role = COLUMNS[step]
            if known and getattr(hooks, role) is not None:
                self._call(node, role, now, now)
                return
            course.append("absent")
        del self._courses[node]
        self.ended[node] = now - self.opened
        if step.fate is Fate.RELEASED:
            self.errors.pop(node, None)
            if step.forced:
                self._note_detail(node, forced=True)
            self._succeeded(node)
            self.walk.done(node)
        else:
            self._unproven(node, step.fate, course)
            self.walk.failed(node)

    def hurry(self, now: float) -> None:
        """The end is now: no evidence is sought any more."""
        for number, call in [each for each in self._calls.items() if each[1].role in COLUMNS]:
            self._drop(number, call, now)
        super().hurry(now)

    def _give_up(self, node: int, now: float, how: str) -> None:
        """In a hurry; what its stop did decides, where that is over."""
        course = self._courses.pop(node, None)
        if course is None:
            super()._give_up(node, now, how)
            return
        self.ended[node] = now - self.opened
        fate = Fate.FAILED if course[0] in ("returned", "raised") else Fate.TIMED_OUT
        self._unproven(node, fate, [*course, "hurry"])

    def _unproven(self, node: int, fate: Fate, course: list[str]) -> None:
        """No evidence has come that ``node`` has stopped."""
        self._not_proven(node, fate)
        if node in self.errors:
            return
        if course[0] == "draining":
            error: Exception = HookTimeout(f"{self._called(node)} returned while its drain still ran")
        else:
            says = {"false": "said no", "raised": "raised", "late": "gave no answer in time"}
            last = says.get(course[-1], "could not be asked, for want of time")
            error = HookError(f"{self._called(node)} returned, but its is_stopped {last}")
        self.errors[node] = self._signed(node, error)
        self._note_detail(node, error=str(error), error_type=type(error).__name__)

    @abstractmethod
    def _not_proven(self, node: int, fate: Fate) -> None:
        """What it means that evidence was sought for ``node`` and did not come."""
