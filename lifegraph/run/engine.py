"""What a start and a teardown share: whose turn it is, on which lane, until when, and what came of it.

A driver holds the only key. It calls `open`, then `take` (or empties `errands`, what goes to other lanes),
runs `act` without the key, brings the answer with `answer`, and calls `tick` when `alarm` is due.
"""

from __future__ import annotations

import traceback
from abc import ABC, abstractmethod
from array import array
from collections import deque
from collections.abc import Callable, Sequence
from contextvars import Context
from dataclasses import replace
from heapq import heappop, heappush
from pathlib import Path
from types import TracebackType
from typing import ClassVar, Final, NamedTuple, Protocol

from ..errors import HookInterrupted, HookTimeout, short
from ..events import AnswerLate, Event, HookBegan, HookEnded, NoteTaken, StillWaiting
from ..plan import Plan
from ..report import Detail
from ..spec import Spec
from ..walk import State, Walk
from .lives import Lives

__all__ = ["Failure", "Herald", "Run", "hook_of"]

_INF: Final = float("inf")
_PATIENCE: Final = 5.0  # seconds after which a run says what it waits for, and between two such lines
_LOW: Final = 0xFFFF_FFFF
_OURS: Final = str(Path(__file__).parents[1])


class Herald(Protocol):
    """Whoever passes events on, without ever blocking or raising."""

    quiet: bool  # nobody listens to what goes well

    def tell(self, event: Event) -> None:
        """Pass on what happened."""


class Failure(NamedTuple):
    """An exception out of user code, and its description as text."""

    error: BaseException
    text: str
    kind: str
    trace: str

    @classmethod
    def of(cls, error: BaseException) -> Failure:
        """Describe ``error``; its own ``__str__`` may fail."""
        kind = type(error).__name__
        try:
            text = str(error) or kind
        except Exception:  # noqa: BLE001 - the user's __str__
            text = f"{kind} whose str() fails"
        try:
            trace = "".join(traceback.format_exception(type(error), error, _users(error.__traceback__)))
        except Exception:  # noqa: BLE001 - the same, or its source file is odd
            trace = text
        return cls(error, text, kind, trace)


def _users(trace: TracebackType | None) -> TracebackType | None:
    """A traceback from the user's first frame on."""
    while trace is not None and trace.tb_frame.f_code.co_filename.startswith(_OURS):
        trace = trace.tb_next
    return trace


class Run(ABC):
    """One walk over the members ``nodes`` of a graph, in the plan's numbers ``0 .. n-1``."""

    hook: ClassVar[str]

    def __init__(
        self, plan: Plan, nodes: list[int], lives: Lives, walk: Walk, *,
        ranks: Sequence[int], limits: Sequence[float | None], herald: Herald,
    ) -> None:  # fmt: skip
        self.plan = plan
        self.nodes = nodes
        self.lives = lives
        self.walk = walk
        self.limits = limits
        self.ready: list[int] = []  # a heap of what workers may do: urgency above number, in one int
        self.errands: deque[tuple[str, int]] = deque()  # what goes to other lanes
        self.lost: list[int] = []  # given up where they hang; the driver looks where, and empties it
        self.trash: list[object] = []  # released objects, for the driver to drop without the key
        self.errors: dict[int, Exception] = {}
        self.details: dict[int, Detail] = {}
        self.notes: list[str] = []
        self.began = array("d", [-1.0]) * len(plan)
        self.ended = array("d", [-1.0]) * len(plan)
        self.opened = 0.0
        self.closed = 0.0
        self.specs: list[Spec] = [lives.model.spec(node) for node in nodes]
        self._ranks = ranks
        self._herald = herald
        self._say_at = _INF

    # What a driver asks ----------------------------------------------------------------------------------

    def open(self, now: float) -> None:
        """The run begins."""
        self.opened = now
        self._say_at = now + _PATIENCE
        self.walk.open()
        self._sort_out(now)

    def take(self, now: float) -> int:
        """The most urgent thing a worker may do, begun now; -1 when there is none."""
        while self.ready:
            node = heappop(self.ready) & _LOW
            if self.begin(node, now):
                return node
        return -1

    def begin(self, node: int, now: float) -> bool:
        """``node`` is acted on from now. False when it was cut meanwhile."""
        limit = self.limits[node] if self.specs[node].hooks.lane != "caller" else None
        if not self.walk.begin(node, _INF if limit is None else now + limit):
            return False
        self.began[node] = now - self.opened
        if not self._herald.quiet:
            self._herald.tell(HookBegan(self.plan.title, now, self.name(node), self.hook))
        return True

    @abstractmethod
    def act(self, node: int) -> object:
        """Run the user's code for ``node``. May raise anything."""

    def context(self, node: int, base: Context) -> Context:
        """The context in which `act` runs: a copy of the caller's."""
        return base.copy()

    def answer(self, node: int, failure: Failure | None, now: float) -> None:
        """`act` has returned, or raised."""
        on_time = node in self.walk.acting
        if not on_time:
            self._answered_late(node, failure, now)
            return
        self.ended[node] = now - self.opened
        if failure is None:
            self._succeeded(node)
            self.walk.done(node)
        else:
            self.errors[node] = self._signed(node, failure.error)
            self._failed(node, failure)
            self.walk.failed(node)
        if not self._herald.quiet or failure is not None:
            self._tell_ended(node, failure, now)
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

    def halt(self, now: float) -> None:
        """Nothing more begins; what runs may finish."""
        self.walk.halt()
        self._sort_out(now)

    def hurry(self, now: float) -> None:
        """The end is now."""
        for node in list(self.walk.acting):
            self._give_up(node, now, "given up in a hurry after")
        self.walk.hurry()
        self._sort_out(now)

    @property
    def alarm(self) -> float:
        """When `tick` is due."""
        return min(self.walk.next_deadline, _INF if self.walk.over else self._say_at)

    @property
    def over(self) -> bool:
        """Every member is settled."""
        return self.walk.over

    def name(self, node: int) -> str:
        """What it is called in its graph."""
        return self.lives.model.names[self.nodes[node]]

    @property
    def settled(self) -> int:
        """How many members are settled."""
        return self.walk.settled

    def interrupt(self, now: float) -> None:
        """The caller was interrupted: be over soon."""
        self.hurry(now)

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
        """A bug of ours: note it, and put everything unsettled on the safe side."""
        self.notes.append(f"internal error, please report: {why.kind}: {why.text}\n{why.trace}")
        self.hurry(now)

    # What a start or a teardown decides ------------------------------------------------------------------

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
    def _unasked(self, state: State, node: int) -> None:
        """What it means that ``node`` was settled without having acted."""

    def _turn(self, node: int, now: float) -> bool:
        """Whether ``node`` needs user code at its turn; False when it has been answered here."""
        return True

    # Inside ----------------------------------------------------------------------------------------------

    def _sort_out(self, now: float) -> None:
        """Send what may act to its lane, and see to what was settled unasked, until nothing is left."""
        walk = self.walk
        while walk.go or walk.news:
            news, walk.news = walk.news, []
            for state, node in news:
                if state is State.RUNNING:
                    self._give_up(node, now, "still ran after")
                    self.walk.failed(node)
                elif state is not State.FAILED:
                    self._unasked(state, node)
            go, walk.go = walk.go, []
            for node in go:
                if self._turn(node, now):
                    lane = self.specs[node].hooks.lane
                    if lane is None or lane == "worker":
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
        self._herald.tell(
            HookEnded(self.plan.title, now, self.name(node), self.hook, seconds, text, "HookTimeout", timed_out=True)
        )

    def _called(self, node: int) -> str:
        """What runs for ``node``, as people would call it."""
        hook = getattr(self.specs[node].hooks, self.hook)
        if self.specs[node].form.leaves:
            return "leaving it"
        return f"{hook}()" if isinstance(hook, str) else f"its {self.hook}"

    def _answered_late(self, node: int, failure: Failure | None, now: float) -> None:
        seconds = now - self.opened - self.began[node]
        name = self.name(node)
        if not self.over:
            self._note_detail(node, late=True)
        self.notes.append(f"{name}: {self.hook} ended {'with an error ' if failure else ''}after {seconds:.3g} s, too late")
        self._herald.tell(
            AnswerLate(self.plan.title, now, name, self.hook, seconds, failure and f"{failure.kind}: {failure.text}")
        )

    def _tell_ended(self, node: int, failure: Failure | None, now: float) -> None:
        seconds = self.ended[node] - self.began[node]
        error, kind = (failure.text, failure.kind) if failure else (None, None)
        self._herald.tell(HookEnded(self.plan.title, now, self.name(node), self.hook, seconds, error, kind))

    def _note(self, text: str, now: float) -> None:
        self.notes.append(text)
        self._herald.tell(NoteTaken(self.plan.title, now, text))

    def _note_detail(self, node: int, **told: object) -> None:
        self.details[node] = replace(self.details.get(node, Detail()), **told)  # type: ignore[arg-type]  # its own fields

    def _signed(self, node: int, error: BaseException) -> Exception:
        """``error`` as a group may carry it, with a note that names its resource."""
        if not isinstance(error, Exception):
            wrapped = HookInterrupted(f"{type(error).__name__} out of {self._called(node)} of {self.name(node)}")
            wrapped.__cause__ = error
            error = wrapped
        note = f"resource {self.name(node)!r} of graph {self.plan.title!r}"
        if where := self.specs[node].where:
            note += f" ({short(where)})"
        if note not in getattr(error, "__notes__", ()):
            error.add_note(note)
        return error


def hook_of(spec: Spec, thing: object, hook: str | Callable[[object], object]) -> Callable[[], object]:
    """The hook bound to its object."""
    if isinstance(hook, str):
        return getattr(thing, hook)  # type: ignore[no-any-return]  # checked callable at the door
    return lambda: hook(thing)


