"""Who may act next, and what a failure blocks.

A walk goes over the nodes ``0 .. n-1`` of a DAG. A node's turn comes when every node before it is
settled. The walk knows no clock, no thread and no I/O, and nothing of what acting means: letters go in
(`begin`, `done`, `failed`, `tick`, `halt`, `hurry`), and what to do about them comes out in two lists
which the caller empties:

* ``go``: nodes that may act now;
* ``news``: pairs of a `State` and a node which was settled without having acted, or given up; and
  ``(RUNNING, node)`` for one that still runs past its deadline (answer with `failed`, or `begin` again).

Every move there is:

    =========  ==========================================  =========
    from       when                                        to
    =========  ==========================================  =========
    WAITING    its turn; a bad node carries onto it        BLOCKED
    WAITING    its turn; it is idle                        PASSED
    WAITING    its turn; halted or hurried                 CUT
    WAITING    its turn                                    TOLD
    TOLD       `begin`                                     RUNNING
    TOLD       `halt` or `hurry`                           CUT
    RUNNING    `done`                                      DONE
    RUNNING    `failed`; or given up by `hurry`            FAILED
    =========  ==========================================  =========

PASSED, DONE, BLOCKED, FAILED and CUT are settled, and final. BLOCKED, FAILED and CUT are *bad*: they
carry onto the nodes that come next over a carrying edge. The first three rows are asked in this order.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, KeysView, Sequence
from enum import IntEnum
from typing import Final, cast

__all__ = ["BAD", "MOVES", "State", "Walk"]

_INF: Final = float("inf")


class State(IntEnum):
    """Where a node stands; everything from PASSED on is settled, everything from BLOCKED on is bad."""

    WAITING = 0
    TOLD = 1
    RUNNING = 2
    PASSED = 3
    DONE = 4
    BLOCKED = 5
    FAILED = 6
    CUT = 7

    @property
    def settled(self) -> bool:
        """Final."""
        return self >= State.PASSED


BAD: Final = frozenset({State.BLOCKED, State.FAILED, State.CUT})
MOVES: Final = frozenset(
    {
        (State.WAITING, State.BLOCKED),
        (State.WAITING, State.PASSED),
        (State.WAITING, State.CUT),
        (State.WAITING, State.TOLD),
        (State.TOLD, State.RUNNING),
        (State.TOLD, State.CUT),
        (State.RUNNING, State.DONE),
        (State.RUNNING, State.FAILED),
    }
)

# Plain ints: the hot path compares and stores these in a bytearray.
_WAITING, _TOLD, _RUNNING, _PASSED, _DONE, _BLOCKED, _FAILED, _CUT = map(int, State)


class Walk:
    """One walk over one DAG. Not thread-safe: whoever drives it holds its only key.

    ``carrying[i]`` and ``ordering[i]`` are the nodes that come after ``i``; what is bad carries over the
    former only. Nodes in ``idle`` have nothing to do and settle at their turn, also in a hurry. At ``end``
    (on the caller's clock) `tick` hurries by itself.
    """

    __slots__ = (
        "_carrying", "_cut", "_deadlines", "_idle", "_left", "_ordering", "_pending", "_tainted",
        "end", "go", "news", "states",
    )  # fmt: skip

    def __init__(
        self,
        carrying: Sequence[Iterable[int]],
        ordering: Sequence[Iterable[int]] = (),
        idle: Collection[int] = (),
        end: float = _INF,
    ) -> None:
        size = len(carrying)
        self._carrying = carrying
        self._ordering = ordering
        self._pending = [0] * size
        self._tainted = bytearray(size)
        self._idle = bytearray(size)
        self._deadlines: dict[int, float] = {}  # of what runs; the keys are exactly the running nodes
        self._cut = False
        self._left = size
        self.end = end
        self.states = bytearray(size)
        self.go: list[int] = []
        self.news: list[tuple[State, int]] = []
        for node in idle:
            self._idle[node] = 1
        pending = self._pending
        for following in (*carrying, *ordering):
            for node in following:
                pending[node] += 1

    def open(self) -> None:
        """Let the walk begin: those with nothing before them have their turn."""
        for node, pending in enumerate(self._pending):
            if not pending and self.states[node] == _WAITING and self._turn(node):
                self._spread(node)

    def begin(self, node: int, deadline: float = _INF) -> bool:
        """``node`` acts now, until ``deadline``; said again of a running one, it has a new deadline.

        False, and nothing is changed, for a node that was cut in the meantime.
        """
        state = self.states[node]
        if state == _TOLD:
            self.states[node] = _RUNNING
        elif state != _RUNNING:
            if state == _WAITING:
                raise ValueError(f"node {node} began before its turn")
            return False
        self._deadlines[node] = deadline
        return True

    def done(self, node: int) -> bool:
        """``node`` has acted. False, and nothing is changed, for one that is settled already: a late answer."""
        return self._answer(node, _DONE)

    def failed(self, node: int) -> bool:
        """``node`` has failed. False, and nothing is changed, for one that is settled already: a late answer."""
        return self._answer(node, _FAILED)

    def tick(self, now: float) -> None:
        """Time has passed: tell what runs past its deadline, once each; past the end, hurry."""
        if now >= self.end:
            self.hurry()
            return
        for node in [node for node, deadline in self._deadlines.items() if deadline <= now]:
            self._deadlines[node] = _INF
            self.news.append((State.RUNNING, node))

    def halt(self) -> None:
        """Nothing more begins; what runs may finish."""
        self._cut = True
        self.go.clear()
        for node in [node for node, state in enumerate(self.states) if state == _TOLD]:
            self._settle_unasked(node, State.CUT)

    def hurry(self) -> None:
        """The end is now: what runs is given up, and nothing more begins. Everything is settled after this."""
        self.halt()
        for node in list(self._deadlines):
            if self._deadlines.pop(node, None) is not None:
                self._settle_unasked(node, State.FAILED)

    def grow(self, before: Iterable[int], *, idle: bool = False) -> int:
        """Add a node that comes after those in ``before``, settled or not, and return it.

        For a walk whose ``carrying`` is a list of lists: it is extended in place.
        """
        node = len(self.states)
        rows = cast("list[list[int]]", self._carrying)
        rows.append([])
        self.states.append(_WAITING)
        self._tainted.append(0)
        self._idle.append(idle)
        self._pending.append(0)
        self._left += 1
        for earlier in before:
            if self.states[earlier] < _PASSED:
                rows[earlier].append(node)
                self._pending[node] += 1
            elif self.states[earlier] >= _BLOCKED:
                self._tainted[node] = 1
        if not self._pending[node] and self._turn(node):
            self._spread(node)
        return node

    @property
    def next_deadline(self) -> float:
        """When `tick` is next needed; infinity while nothing that runs has a deadline."""
        return min(self.end if self._left else _INF, min(self._deadlines.values(), default=_INF))

    @property
    def over(self) -> bool:
        """Every node is settled."""
        return not self._left

    @property
    def settled(self) -> int:
        """How many nodes are settled."""
        return len(self.states) - self._left

    @property
    def cut(self) -> bool:
        """Halted or hurried: nothing more begins."""
        return self._cut

    def state(self, node: int) -> State:
        """Where ``node`` stands."""
        return State(self.states[node])

    @property
    def acting(self) -> KeysView[int]:
        """The nodes that act now: a live view."""
        return self._deadlines.keys()

    def deadline(self, node: int) -> float:
        """Until when ``node`` may act, the end included; infinity where nothing limits it."""
        return min(self.end, self._deadlines.get(node, _INF))

    # How a settlement spreads ----------------------------------------------------------------------------

    def _answer(self, node: int, state: int) -> bool:
        if self._deadlines.pop(node, None) is None:
            if self.states[node] < _RUNNING:
                raise ValueError(f"node {node} answered before it began")
            return False
        self.states[node] = state
        self._spread(node)
        return True

    def _settle_unasked(self, node: int, state: State) -> None:
        self.states[node] = state
        self.news.append((state, node))
        self._spread(node)

    def _turn(self, node: int) -> bool:
        """The turn of ``node`` has come. True if that settles it."""
        if self._tainted[node]:
            state = State.BLOCKED
        elif self._idle[node]:
            state = State.PASSED
        elif self._cut:
            state = State.CUT
        else:
            self.states[node] = _TOLD
            self.go.append(node)
            return False
        self.states[node] = state
        self.news.append((state, node))
        return True

    def _spread(self, node: int) -> None:
        """``node`` is settled: count it off, and give a turn to each node that waited for it last."""
        pending, settled = self._pending, [node]
        while settled:
            node = settled.pop()
            self._left -= 1
            bad = self.states[node] >= _BLOCKED
            for after in self._carrying[node]:
                if bad:
                    self._tainted[after] = 1
                pending[after] -= 1
                if not pending[after] and self._turn(after):
                    settled.append(after)
            for after in self._ordering[node] if node < len(self._ordering) else ():
                pending[after] -= 1
                if not pending[after] and self._turn(after):
                    settled.append(after)
