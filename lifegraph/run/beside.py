"""What a teardown calls beside the stops: drains before them, evidence after, and salvages of what is not released.

None of these calls takes a worker's place, the resource's own lane or its host task, so that none of them waits
behind a hook that hangs. Each has a number of its own, above those of the members, and a limit of its own.
"""

from __future__ import annotations

from abc import abstractmethod
from itertools import count
from typing import Any, Final, NamedTuple

from ..errors import HookError
from ..events import HookBegan
from ..spec import seconds_of
from ..walk import State
from .engine import Run, hook_of, is_awaitable
from .failure import Failure
from .proof import COLUMNS

__all__ = ["Beside"]

_INF: Final = float("inf")
_BESIDE: Final = 1 << 32  # the first number of a call beside the stops


class _Call(NamedTuple):
    """One call beside the stops: for which member, which hook, since and until when."""

    node: int
    role: str
    began: float
    deadline: float


class Beside(Run):
    """A run that drains and salvages, and whose members may be asked for evidence."""

    # What a driver asks, for calls beside the stops too ---------------------------------------------------

    def _prepare(self) -> None:
        self._numbers = count(_BESIDE)
        self._calls: dict[int, _Call] = {}  # that run now
        self._gone: dict[int, _Call] = {}  # that were given up
        self._draining: dict[int, int] = {}  # who has not answered its drain, and which call that is
        self._held_back: set[int] = set()  # whose turn has come while they drain
        self._salvaging: set[int] = set()

    def node_of(self, number: int) -> int:
        """The member, as numbered in here, for which ``number`` is called."""
        if number < _BESIDE:
            return number
        return (self._calls.get(number) or self._gone[number]).node

    def begin(self, node: int, now: float) -> bool:
        """``node`` is acted on from now, or goes on to be. False when it was cut or given up meanwhile."""
        if node < _BESIDE:
            return super().begin(node, now)
        return self.internal is None and node in self._calls

    def act(self, node: int) -> object:
        """Run the user's code for ``node``; what it returns goes into `answer`. May raise anything."""
        if node < _BESIDE or node in self._awaited:
            return super().act(node)
        call = self._calls.get(node) or self._gone[node]
        return hook_of(self.lives.things[self.nodes[call.node]], getattr(self.specs[call.node].hooks, call.role))

    def time_left(self, node: int, now: float) -> float:
        """Seconds until the limit of what runs for ``node``, or the end of the run; at least 0."""
        if node < _BESIDE:
            return super().time_left(node, now)
        call = self._calls.get(node)
        if call is None:
            return 0.0
        end = _INF if call.role == "salvage" else self.walk.end
        return max(0.0, min(call.deadline, end) - now)

    def hangs_at(self, node: int, stack: str) -> None:
        """Where a hook that was given up hangs, as the driver found it."""
        member = self.node_of(node)
        if node < _BESIDE or member not in self.details or self.details[member].stack is None:
            super().hangs_at(member, stack)

    def answer(
        self, node: int, failure: Failure | None, now: float, value: object = None, *, awaited: bool = False
    ) -> None:
        """`act` has returned ``value``, or raised."""
        if node < _BESIDE:
            super().answer(node, failure, now, value, awaited=awaited)
        elif node in self._gone:
            call = self._gone[node]
            if call.role == "drain":
                self._draining.pop(call.node, None)
            self._tell_late(call.node, call.role, now - call.began, failure, now, value)
        elif failure is None and not awaited and is_awaitable(value):
            self._awaited[node] = value
            self.errands.append(("loop beside", node))
        else:
            call = self._calls.pop(node)
            if failure is None and call.role == "is_stopped":
                value, failure = _yes_or_no(value)
            if failure is not None or not self._herald.quiet:
                self._tell_ended(call.node, call.role, now - call.began, failure, now)
            said = "raised" if failure else str(value).lower() if call.role == "is_stopped" else "returned"
            self._heard(call, said, failure, now)
            self._sort_out(now)

    def tick(self, now: float) -> None:
        """Time has passed."""
        if not self.walk.over:
            super().tick(now)
        for number in [number for number, call in self._calls.items() if call.deadline <= now]:
            self._leave(number, now)
        self._sort_out(now)
        walk = _INF if self.walk.over else min(self.walk.next_deadline, self._say_at)
        self.alarm = min(walk, min((call.deadline for call in self._calls.values()), default=_INF))

    def hurry(self, now: float) -> None:
        """The end is now; salvages have their time still, unless they are hurried by themselves."""
        if self.walk.over:
            for number in [number for number, call in self._calls.items() if call.role == "salvage"]:
                self._leave(number, now)
        else:
            super().hurry(now)

    @property
    def over(self) -> bool:
        """Every member is settled and salvaged, or never will be."""
        return self.internal is not None or (self.walk.over and not self._salvaging)

    # Drains ----------------------------------------------------------------------------------------------

    def _drain(self, nodes: list[int], since: float, now: float) -> None:
        """Tell all of these at once that the end is near."""
        for node in nodes:
            self._draining[node] = self._call(node, "drain", now, since)

    def _may_stop(self, node: int) -> bool:
        """Whether ``node`` may stop now; one that drains waits for its own drain only."""
        drains = self._draining.get(node) in self._calls
        if drains:
            self._held_back.add(node)
        return not drains

    # Salvages --------------------------------------------------------------------------------------------

    def _salvage(self, node: int, now: float) -> None:
        """``node`` is not released: have its data saved, if it can."""
        if self.specs[node].hooks.salvage is not None and self.internal is None:
            self._salvaging.add(node)
            self._call(node, "salvage", now, now)

    @abstractmethod
    def _testify(self, node: int, said: str, now: float) -> None:
        """What somebody said of whether ``node`` has stopped."""

    # One call --------------------------------------------------------------------------------------------

    def _call(self, node: int, role: str, now: float, since: float) -> int:
        """Have a hook called, whose limit counts from ``since``; returns the number of the call."""
        number = next(self._numbers)
        deadline = since + seconds_of(getattr(self.specs[node].hooks, f"{role}_timeout"))
        self._calls[number] = _Call(node, role, now, deadline)
        self.alarm = min(self.alarm, deadline)
        self.errands.append(("loop beside" if role in self.specs[node].hooks.loops else "beside", number))
        if not self._herald.quiet:
            self._herald.tell(HookBegan(self.plan.title, now, self.name(node), role))
        return number

    def _heard(self, call: _Call, said: str, failure: Failure | None, now: float) -> None:
        """A call has come to its end, or is given up."""
        node, role = call.node, call.role
        if role in COLUMNS:
            if failure is not None:
                self.notes.append(f"{self.name(node)}: its {role} raised {failure.kind}: {failure.text}")
            if node in self._courses:
                self._testify(node, said, now)
            return
        if failure is not None:
            self._note(f"{self.name(node)}: its {role} raised {failure.kind}: {failure.text}", now)
        if role == "salvage":
            self._salvaging.discard(node)
        elif said != "late":
            self._draining.pop(node, None)
        if role == "drain" and node in self._held_back:
            self._held_back.discard(node)
            if self.walk.states[node] == State.TOLD:
                self._send(node)

    def _leave(self, number: int, now: float) -> None:
        """A call still runs at its limit: it is left where it hangs."""
        call = self._calls[number]
        self._drop(number, call, now)
        self._note(f"{self.name(call.node)}: its {call.role} still ran after {now - call.began:.3g} s", now)
        self._heard(call, "late", None, now)

    def _drop(self, number: int, call: _Call, now: float) -> None:
        self._gone[number] = self._calls.pop(number)
        self.lost.append(number)
        seconds = now - call.began
        self._tell_given_up(call.node, call.role, seconds, f"{call.role} still ran after {seconds:.3g} s", now)


def _yes_or_no(value: Any) -> tuple[bool, Failure | None]:
    """The answer of an is_stopped. Only a bool can be a yes: a truthy word like "running" proves nothing."""
    try:
        says = bool(value)
    except Exception as why:  # noqa: BLE001 - a value of the user's, which cannot be asked
        return False, Failure.of(why)
    if says and type(value).__name__ not in ("bool", "bool_"):  # its own, or numpy's
        return False, Failure.of(HookError(f"is_stopped returned {value!r}: it takes True or False"))
    return says, None
