"""What a start and a teardown share: whose turn it is, on which lane, until when, and what came of it.

A driver holds the only key. It calls `open`, then `take` (or empties `errands`, what goes to other lanes),
runs `act` without the key, brings the answer with `answer`, and calls `tick` when `alarm` is due.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from array import array
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from contextvars import Context
from dataclasses import replace
from heapq import heappop, heappush
from typing import Any, ClassVar, Final, Protocol

from ..errors import HookTimeout, InternalError, short
from ..events import AnswerLate, Event, HookBegan, HookEnded, NoteTaken, StillWaiting
from ..plan import Plan
from ..report import Detail
from ..spec import Spec, seconds_of
from ..walk import State, Walk
from .failure import Failure, signed
from .lives import Lives

__all__ = ["Herald", "Run", "hook_of", "is_awaitable"]

_INF: Final = float("inf")
_PATIENCE: Final = 5.0  # seconds after which a run says what it waits for, and between two such lines
_LOW: Final = 0xFFFF_FFFF
_RUNNING: Final = int(State.RUNNING)


class Herald(Protocol):
    """Whoever passes events on, without ever blocking or raising."""

    quiet: bool  # nobody listens to what goes well

    def tell(self, event: Event) -> None:
        """Pass on what happened."""
        ...


class Run(ABC):
    """One walk over the members ``nodes`` of a graph, numbered ``0 .. n-1`` in here."""

    hook: ClassVar[str]

    def __init__(
        self, plan: Plan, nodes: list[int], lives: Lives, walk: Walk, *,
        ranks: Sequence[int], limits: Sequence[float | None], herald: Herald,
    ) -> None:  # fmt: skip
        lives.reach()
        self.plan = plan
        self.nodes = nodes
        self.lives = lives
        self.walk = walk
        self.ready: list[int] = []  # a heap of what workers may do: urgency above number, in one int
        self.errands: deque[tuple[str, int]] = deque()  # what goes to other lanes
        self.lost: list[int] = []  # given up where they hang; the driver looks where, and empties it
        self.trash: list[object] = []  # released objects, for the driver to drop without the key
        self.errors: dict[int, Exception] = {}
        self.internal: InternalError | None = None  # a bug of ours, which ended the run
        self.details: dict[int, Detail] = {}
        self.notes: list[str] = []
        self.began = array("d", [-1.0]) * len(nodes)
        self.ended = array("d", [-1.0]) * len(nodes)
        self.opened = 0.0
        self.closed = 0.0
        self.specs: list[Spec] = [lives.model.spec(node) for node in nodes]
        self._limits = limits
        self._ranks = ranks
        self._herald = herald
        self._awaited: dict[int, Any] = {}  # what a hook returned and its loop is to await
        self._courses: dict[int, list[str]] = {}  # whose own hook is over or given up, and whom others judge
        self._say_at = _INF
        self.alarm = _INF  # when `tick` is due, at the earliest: `begin` lowers it, and `tick` makes it exact

    # What a driver asks ----------------------------------------------------------------------------------

    def open(self, now: float) -> None:
        """The run begins."""
        self.opened = now
        self._say_at = now + _PATIENCE
        self.walk.open()
        self._sort_out(now)
        self.alarm = min(self.alarm, self._say_at, self.walk.end)

    def take(self, now: float) -> int:
        """The most urgent thing a worker may do, begun now; -1 when there is none."""
        while self.ready:
            node = heappop(self.ready) & _LOW
            if self.begin(node, now):
                return node
        return -1

    def begin(self, node: int, now: float) -> bool:
        """``node`` is acted on from now, or goes on to be. False when it was cut or given up meanwhile."""
        if self.internal is not None:
            return False
        if self.began[node] >= 0:
            return node in self.walk.acting
        deadline = now + seconds_of(self._limit(node, now) if self.specs[node].hooks.lane != "caller" else None)
        if not self.walk.begin(node, deadline):
            return False
        self.alarm = min(self.alarm, deadline)
        self.began[node] = now - self.opened
        if not self._herald.quiet:
            self._herald.tell(HookBegan(self.plan.title, now, self.name(node), self.hook))
        return True

    def act(self, node: int) -> object:
        """Run the user's code for ``node``; what it returns goes into `answer`. May raise anything."""
        if self._awaited and node in self._awaited:
            return self._awaited.pop(node)
        return self._act(node)

    def discard(self, node: int) -> None:
        """What a hook of ``node`` returned can be awaited by nobody."""
        awaitable = self._awaited.pop(node, None)
        if inspect.iscoroutine(awaitable):
            awaitable.close()  # it has not begun

    def is_alone(self, node: int) -> bool:
        """Whether this step of ``node`` has nothing on its loop to go with: no start before it, nothing entered."""
        return False

    def context(self, node: int, base: Context) -> Context:
        """The context in which `act` runs: a copy of the caller's."""
        return base.copy()

    def answer(
        self, node: int, failure: Failure | None, now: float, value: object = None, *, awaited: bool = False
    ) -> None:
        """`act` has returned ``value``, or raised. ``awaited``: it was awaited already, if it had to be."""
        walk = self.walk
        if walk.states[node] != _RUNNING or node in self._courses or self.internal is not None:
            self._answered_late(node, failure, now, value)
            return
        if failure is None and self._goes_on(node, value, awaited=awaited):
            self._send(node)
            return
        self.ended[node] = now - self.opened
        if failure is not None or not self._herald.quiet:
            self._tell_ended(node, self.hook, self.ended[node] - self.began[node], failure, now)
        if failure is None:
            if not self._pursue(node, "returned", now):
                self._succeeded(node)
                walk.done(node)
        else:
            self.errors[node] = self._signed(node, failure.error)
            self._failed(node, failure)
            if not self._pursue(node, "raised", now):
                walk.failed(node)
        if walk.go or walk.news or walk.over:
            self._sort_out(now)

    def tick(self, now: float) -> None:
        """Time has passed."""
        if now >= self._say_at:
            self._say_at = now + _PATIENCE
            pending = tuple(map(self.name, self.walk.acting))
            if pending:
                self._herald.tell(StillWaiting(self.plan.title, now, now - self.opened, pending))
        if now >= self.walk.end:
            self.hurry(now)
            return
        self.walk.tick(now)
        self._sort_out(now)
        self.alarm = _INF if self.walk.over else min(self.walk.next_deadline, self._say_at)

    def halt(self, now: float) -> None:
        """Nothing more begins; what runs may finish."""
        self.walk.halt()
        self._sort_out(now)

    def hurry(self, now: float) -> None:
        """The end is now."""
        how = (
            "was given up in a hurry after" if now < self.walk.end else "was given up, for the grace had run out, after"
        )
        for node in list(self.walk.acting):
            self._give_up(node, now, how)
        self.walk.hurry()
        self._sort_out(now)

    def call_off(self, end: float | None, now: float) -> None:
        """A teardown of all was asked for, whose grace ends at ``end``."""
        if end is not None:
            self.walk.end = min(self.walk.end, end)
            self.alarm = min(self.alarm, end)
        if now >= self.walk.end:
            self.hurry(now)

    def interrupt(self, now: float) -> None:
        """The caller was interrupted: be over soon."""
        self.hurry(now)

    @property
    def over(self) -> bool:
        """Every member is settled, or never will be."""
        return self.walk.over or self.internal is not None

    @property
    def settled(self) -> int:
        """How many members are settled."""
        return self.walk.settled

    @property
    def raised(self) -> list[Exception]:
        """All errors, a bug of ours first."""
        return [*((self.internal,) if self.internal is not None else ()), *self.errors.values()]

    @property
    def culprits(self) -> str:
        """The names of what raised, for people."""
        return ", ".join(map(self.name, self.errors)) or "an internal error"

    def node_of(self, number: int) -> int:
        """The member, as numbered in here, for which ``number`` is called."""
        return number

    def name(self, node: int) -> str:
        """What it is called in its graph."""
        return self.lives.model.names[self.nodes[node]]

    def hangs_at(self, node: int, stack: str) -> None:
        """Where a hook that was given up hangs, as the driver found it."""
        self._note_detail(node, stack=stack)

    def time_left(self, node: int, now: float) -> float:
        """Seconds until the limit of what runs for ``node``, or the end of the run; at least 0."""
        return max(0.0, self.walk.deadline(node) - now)

    def close(self, now: float) -> None:
        """Every member is settled: sum up."""
        self.closed = now

    def break_off(self, why: Failure, now: float) -> None:
        """A bug of ours: the run is over; `close` puts on the safe side whatever is unsettled. Raises nothing."""
        text = f"internal error, please report: {why.kind}: {why.text}\n{why.trace}"
        if self.internal is None:
            self.internal = InternalError(text)
            self.internal.__cause__ = why.error
        self.notes.append(text)
        with suppress(Exception):  # the bug may be there
            self._herald.tell(NoteTaken(self.plan.title, now, text))

    # What a start or a teardown decides ------------------------------------------------------------------

    @abstractmethod
    def _act(self, node: int) -> object:
        """The user's code for the step at which ``node`` is."""

    @abstractmethod
    def _lane(self, node: int) -> str:
        """The lane of that step."""

    @abstractmethod
    def _succeeded(self, node: int) -> None:
        """What it means that ``node`` has acted."""

    @abstractmethod
    def _failed(self, node: int, failure: Failure) -> None:
        """What it means that ``node`` has raised."""

    @abstractmethod
    def _hangs(self, node: int) -> None:
        """What it means that ``node`` was given up."""

    @abstractmethod
    def _unasked(self, state: State, node: int, now: float) -> None:
        """What it means that ``node`` was settled without having acted."""

    def _goes_on(self, node: int, value: object, *, awaited: bool) -> bool:
        """Whether another step of ``node`` follows on what this one returned."""
        if not awaited and is_awaitable(value):
            self._awaited[node] = value
            return True
        return False

    def _turn(self, node: int, now: float) -> bool:
        """Whether ``node`` needs user code at its turn; False when it has been answered here, or waits."""
        return True

    def _limit(self, node: int, now: float) -> float | None:
        """How many seconds ``node`` has, beginning now."""
        return self._limits[node]

    def _pursue(self, node: int, said: str, now: float) -> bool:
        """Whether it is left open what became of ``node``, which ``returned``, ``raised`` or is ``late``."""
        return False

    # Inside ----------------------------------------------------------------------------------------------

    def _sort_out(self, now: float) -> None:
        """Send what may act to its lane, and see to what was settled unasked, until nothing is left."""
        walk = self.walk
        while walk.go or walk.news:
            news, walk.news = walk.news, []
            for state, node in news:
                if state is State.RUNNING:
                    self._give_up(node, now, "still ran after")
                    if not self._pursue(node, "late", now):
                        self.walk.failed(node)
                elif state is not State.FAILED:
                    self._unasked(state, node, now)
            go, walk.go = walk.go, []
            for node in go:
                if self._turn(node, now):
                    self._send(node)

    def _send(self, node: int) -> None:
        lane = "loop" if node in self._awaited else self._lane(node)
        if lane == "worker":
            heappush(self.ready, -self._ranks[node] << 32 | node)
        else:
            self.errands.append((lane, node))

    def _give_up(self, node: int, now: float, how: str) -> None:
        seconds = now - self.opened - self.began[node]
        text = f"{self._called(node)} {how} {seconds:.3g} s"
        self.ended[node] = now - self.opened
        self.errors[node] = self._signed(node, HookTimeout(text))
        self._note_detail(node, error=text, error_type="HookTimeout")
        self.lost.append(node)
        self._hangs(node)
        self._tell_given_up(node, self.hook, seconds, text, now)

    def _called(self, node: int) -> str:
        """What runs for ``node``, as people would call it."""
        hook = getattr(self.specs[node].hooks, self.hook)
        return f"{hook}()" if isinstance(hook, str) else f"its {self.hook}"

    def _answered_late(self, node: int, failure: Failure | None, now: float, value: object) -> None:
        if not self.over:
            self._note_detail(node, late=True)
        self._tell_late(node, self.hook, now - self.opened - self.began[node], failure, now, value)

    def _tell_late(
        self, node: int, hook: str, seconds: float, failure: Failure | None, now: float, value: object
    ) -> None:
        if inspect.iscoroutine(value):
            value.close()  # too late to be awaited; it has not begun
        name, how = self.name(node), "ended with an error" if failure else "ended"
        self.notes.append(f"{name}: {hook} {how} after {seconds:.3g} s, too late")
        error = f"{failure.kind}: {failure.text}" if failure else None
        self._herald.tell(AnswerLate(self.plan.title, now, name, hook, seconds, error))

    def _tell_ended(self, node: int, hook: str, seconds: float, failure: Failure | None, now: float) -> None:
        error, kind = (failure.text, failure.kind) if failure else (None, None)
        self._herald.tell(HookEnded(self.plan.title, now, self.name(node), hook, seconds, error, kind))

    def _tell_given_up(self, node: int, hook: str, seconds: float, text: str, now: float) -> None:
        self._herald.tell(
            HookEnded(self.plan.title, now, self.name(node), hook, seconds, text, "HookTimeout", timed_out=True)
        )

    def _note(self, text: str, now: float) -> None:
        self.notes.append(text)
        self._herald.tell(NoteTaken(self.plan.title, now, text))

    def _note_detail(self, node: int, **told: object) -> None:
        self.details[node] = replace(self.details.get(node, Detail()), **told)  # type: ignore[arg-type]  # its own fields

    def _signed(self, node: int, error: BaseException) -> Exception:
        note = f"resource {self.name(node)!r} of graph {self.plan.title!r}"
        if where := self.specs[node].where:
            note += f" ({short(where)})"
        return signed(error, note, f"{self._called(node)} of {self.name(node)}")


def is_awaitable(value: object) -> bool:
    """Whether a hook returned something to be awaited."""
    return value is not None and hasattr(type(value), "__await__")


def hook_of(thing: object, hook: str | Callable[[Any], object]) -> object:
    """Call the hook of an object."""
    return getattr(thing, hook)() if isinstance(hook, str) else hook(thing)
