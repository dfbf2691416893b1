"""What is alive of one graph: columns by member number. The vault that the quarantine keeps."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextvars import Context
from enum import IntEnum
from typing import Any, Final, NamedTuple

from ..errors import short
from ..events import Fate
from ..model import Model
from ..quarantine import confine, hold, let_go, settle
from ..report import Detail

__all__ = ["Leaving", "Lives", "Phase"]


class Phase(IntEnum):
    """Where the life of a resource stands."""

    DECLARED = 0
    MADE = 1  # constructed; its start hook has not begun
    UP = 2
    HALF = 3  # its start hook raised: it may hold something, and its stop is owed
    HUNG = 4  # its start still ran at its limit: nothing is known
    RELEASED = 5
    HELD = 6  # a teardown did not release it


_ALIVE: Final = bytes(  # by phase: it is up, or may be
    phase in (Phase.MADE, Phase.UP, Phase.HALF, Phase.HUNG, Phase.HELD) for phase in Phase
)


class Leaving(NamedTuple):
    """How a generator or a context manager is left, in the context in which it was entered."""

    what: Any
    leave: Callable[[BaseException | None], object]
    context: Context | None  # None: the one of its host task


class Lives:
    """The instances of one graph and where their lives stand. The graph's lock or its one run guards it."""

    def __init__(self, model: Model, where: str) -> None:
        self.model = model
        self.where = where
        self.things: list[Any] = []
        self.phases = bytearray()
        self.leavings: dict[int, Leaving] = {}
        self.hosts: dict[int, Any] = {}  # the host tasks of async members
        self.loops: dict[int, Any] = {}  # where async members live
        self.home: Any = None  # the loop on which the graph was started
        self.notes: list[str] = []  # what happened between a start and a teardown
        self.ended: dict[int, tuple[Fate, Detail]] = {}  # of what a teardown did not release
        self._alive = 0

    def reach(self) -> None:
        """Have a place for every member."""
        size = len(self.model.specs)
        if len(self.phases) < size or len(self.things) < size:
            self.things.extend([None] * (size - len(self.things)))
            self.phases.extend(bytes(size - len(self.phases)))

    def phase(self, node: int) -> Phase:
        """Where the life of this member stands."""
        return Phase(self.phases[node]) if node < len(self.phases) else Phase.DECLARED

    def move(self, node: int, phase: Phase) -> None:
        """The life of this member has come to ``phase``."""
        was, self.phases[node] = self.phases[node], phase
        if (change := _ALIVE[phase] - _ALIVE[was]) == 0:
            return
        self._alive += change
        if self._alive == change == 1:
            hold(self)
        elif not self._alive:
            let_go(self)

    def adopt(self, node: int, thing: object, phase: Phase) -> None:
        """A live object is this member."""
        self.reach()
        self.things[node] = thing
        self.move(node, phase)

    def release(self, node: int, phase: Phase = Phase.RELEASED) -> object:
        """Proof has come: this member is no longer held. Returns what it was, for the caller to drop."""
        thing, leaving = self.things[node], self.leavings.pop(node, None)
        self.things[node] = None
        if thing is not None:
            self.model.unrecognise(node, thing)
        self.ended.pop(node, None)
        settle(self, node, thing)
        self.move(node, phase)
        return thing, leaving

    def forget(self, nodes: Sequence[int]) -> None:
        """Let go of members that hold nothing; their numbers may come again."""
        for node in nodes:
            if node < len(self.phases):
                self.things[node], self.phases[node] = None, Phase.DECLARED
            self.loops.pop(node, None)
        self.model.forget(nodes)

    def confine(self, node: int, reason: str, ended: tuple[Fate, Detail]) -> None:
        """This member is not released, and for ever held."""
        self.move(node, Phase.HELD)
        self.ended.setdefault(node, ended)
        confine(self, node, (self.model.title, self.model.names[node], 1), reason)

    def alive(self) -> list[int]:
        """The members that are up, or may be."""
        return [node for node, phase in enumerate(self.phases) if _ALIVE[phase]]

    def is_alive(self, node: int) -> bool:
        """Whether this member is up, or may be."""
        return node < len(self.phases) and bool(_ALIVE[self.phases[node]])

    def contents(self) -> Iterator[object]:
        """Every object that must not be finalized."""
        yield from self.things
        for leaving in list(self.leavings.values()):
            yield leaving.what

    def epitaph(self) -> str | None:
        """What to say when the process ends while something is up and nobody tore it down."""
        up = [self.model.names[node] for node in self.alive() if self.phases[node] != Phase.HELD]
        if not up:
            return None
        shown = ", ".join(up[:5]) + (f" and {len(up) - 5} more" if len(up) > 5 else "")
        return (
            f"graph {self.model.title!r} ({short(self.where)}) was never torn down: {shown} still up; "
            "nothing of it was released"
        )
