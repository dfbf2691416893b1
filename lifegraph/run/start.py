"""A start: dependencies first. The first failure halts it; what is up is the teardown's."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from contextvars import Context
from typing import Any, ClassVar

from ..plan import Plan
from ..report import Detail
from ..walk import State, Walk
from . import making
from .engine import Herald, Run, hook_of
from .failure import Failure
from .lives import Lives, Phase

__all__ = ["Start"]


class Start(Run):
    """Brings members up: constructs what is declared, then runs start hooks, unless ``hooks`` is False."""

    hook: ClassVar[str] = "start"

    def __init__(
        self, plan: Plan, nodes: list[int], lives: Lives, *, graph: object, herald: Herald, hooks: bool = True
    ) -> None:
        carrying: list[list[int]] = [[] for _ in nodes]
        for node in range(len(nodes)):
            for dependency in plan.dependencies(node):
                carrying[dependency].append(node)
        lives.reach()
        idle = [node for node, member in enumerate(nodes) if lives.phases[member] == Phase.UP]
        super().__init__(
            plan, nodes, lives, Walk(carrying, idle=idle),
            ranks=plan.ranks(up=True), limits=list(plan.start_limits), herald=herald,
        )  # fmt: skip
        self._graph = graph
        self._hooks = hooks
        self._made = bytearray(lives.phases[member] != Phase.DECLARED for member in nodes)
        self._hooked = bytearray(len(nodes))  # its start hook has begun
        self._hung: set[int] = set()
        self._contexts: dict[int, Context] = {}
        self._watched: list[tuple[set[int], Callable[[], None]]] = []

    @property
    def ok(self) -> bool:
        """Everything that was to come up is up."""
        return not self.walk.cut and not self.errors and self.internal is None

    def close(self, now: float) -> None:
        """After a bug of ours: of whatever had begun and is not up, nothing is known."""
        super().close(now)
        if self.internal is None:
            return
        for node, member in enumerate(self.nodes):
            if self.began[node] >= 0 and not self.walk.state(node).settled and self.lives.phase(member) is not Phase.UP:
                self._note_detail(node, start_error="given up, because of an internal error")
                self.lives.move(member, Phase.HUNG)
        self._tell_watchers()

    def interrupt(self, now: float) -> None:
        """First: nothing more begins. Then: what is starting is given up."""
        if self.walk.cut:
            self.hurry(now)
        else:
            self.halt(now)

    def join(self, members: list[int], then: Callable[[], None], now: float) -> None:
        """More members, dependencies first, come up in this run; ``then`` is called when they are settled or it is over."""
        if self.over:
            then()
            return
        places = {member: node for node, member in enumerate(self.nodes)}
        model, joined = self.lives.model, set[int]()
        self._ranks = list(self._ranks)
        for member in members:
            before = [places[d] for d in (*model.uses[member], *model.orders[member]) if d in places]
            spec = model.spec(member)
            self.nodes.append(member)
            self.specs.append(spec)
            self._limits.append(spec.hooks.start_timeout)  # type: ignore[attr-defined]  # a list: made so above
            self._ranks.append(0)
            for column in (self.began, self.ended):
                column.append(-1.0)
            phase = self.lives.phases[member]
            self._made.append(phase != Phase.DECLARED)
            self._hooked.append(0)
            node = places[member] = self.walk.grow(before, idle=phase == Phase.UP)
            joined.add(node)
        self._watched.append((joined, then))
        self._sort_out(now)

    def call_off(self, end: float | None, now: float) -> None:
        """A teardown was asked for: nothing more begins, and at ``end`` what is starting is given up."""
        self.halt(now)
        super().call_off(end, now)

    def context(self, node: int, base: Context) -> Context:
        """A copy of the caller's; what is entered keeps its own for leaving."""
        context = base.copy()
        if self.specs[node].form.leaves:
            self._contexts[node] = context
        return context

    def error_of(self, members: list[int]) -> list[Exception]:
        """What these members raised."""
        return [error for node, error in self.errors.items() if self.nodes[node] in members]

    def hung(self, node: int) -> bool:
        """Whether its start was given up where it hangs."""
        return node in self._hung

    def start_details(self) -> dict[int, Detail]:
        """By member: what the report of the roll-back says of the start."""
        return {self.nodes[node]: detail for node, detail in self.details.items()}

    # The steps of one ------------------------------------------------------------------------------------

    def _lane(self, node: int) -> str:
        hooks = self.specs[node].hooks
        if not self._made[node]:
            return "loop" if self.specs[node].form.asynchronous else hooks.lane or "worker"
        return "loop" if "start" in hooks.loops else hooks.lane or "worker"

    def _act(self, node: int) -> object:
        if not self._made[node]:
            made = self._make(node)
            if self.specs[node].form.asynchronous or inspect.iscoroutine(made):
                return made
            self._keep(node, made)
            if not self._hook_due(node) or self._lane(node) != (self.specs[node].hooks.lane or "worker"):
                return None
            if node not in self.walk.acting:  # given up meanwhile: what is late begins nothing more
                return None
        if not self._hook_due(node):
            return None
        self._hooked[node] = 1
        return hook_of(self.lives.things[self.nodes[node]], self.specs[node].hooks.start or "")

    def _goes_on(self, node: int, value: object, *, awaited: bool) -> bool:
        if super()._goes_on(node, value, awaited=awaited):
            return True
        if not self._made[node]:
            self._keep(node, value)
        return self._hook_due(node)

    def _hook_due(self, node: int) -> bool:
        return self._hooks and not self._hooked[node] and self.specs[node].hooks.start is not None

    def _make(self, node: int) -> Any:
        spec, member = self.specs[node], self.nodes[node]
        made, leaving = making.make(
            spec, lambda: making.filled(self.lives, self._graph, member), self._contexts.get(node)
        )
        if leaving is not None:
            self.lives.leavings[member] = leaving
        return made

    def _keep(self, node: int, thing: object) -> None:
        self.lives.things[self.nodes[node]] = thing
        self._made[node] = 1

    # What comes of each ----------------------------------------------------------------------------------

    def _succeeded(self, node: int) -> None:
        member = self.nodes[node]
        waits = not self._hooks and self.specs[node].hooks.start is not None
        self.lives.model.recognise(member, self.lives.things[member])
        self.lives.move(member, Phase.MADE if waits else Phase.UP)

    def _failed(self, node: int, failure: Failure) -> None:
        member = self.nodes[node]
        self._note_detail(node, start_error=f"{failure.kind}: {failure.text}", stack=failure.trace)
        if not self._made[node]:
            self.lives.leavings.pop(member, None)
        elif self.specs[node].hooks.atomic_start:
            self.trash.append(self.lives.release(member, Phase.DECLARED))
        else:
            self.lives.model.recognise(member, self.lives.things[member])
            self.lives.move(member, Phase.HALF)
        self.walk.halt()

    def _hangs(self, node: int) -> None:
        self._note_detail(node, start_error=self.details[node].error)
        self._hung.add(node)
        self.lives.move(self.nodes[node], Phase.HUNG)
        self.walk.halt()

    def _unasked(self, state: State, node: int, now: float) -> None:
        """What was never begun has nothing to record."""

    def _answered_late(self, node: int, failure: Failure | None, now: float, value: object) -> None:
        if failure is None and not self._made[node] and not inspect.iscoroutine(value):
            self._keep(node, value)
        super()._answered_late(node, failure, now, value)

    def answer(
        self, node: int, failure: Failure | None, now: float, value: object = None, *, awaited: bool = False
    ) -> None:
        """`act` has returned ``value``, or raised."""
        super().answer(node, failure, now, value, awaited=awaited)
        self._tell_watchers()

    def _sort_out(self, now: float) -> None:
        super()._sort_out(now)
        self._tell_watchers()

    def _tell_watchers(self) -> None:
        for watched in list(self._watched):
            if self.over or all(self.walk.state(node).settled for node in watched[0]):
                self._watched.remove(watched)
                watched[1]()

    def _called(self, node: int) -> str:
        if self._hooked[node]:
            return super()._called(node)
        return "entering it" if self.specs[node].form.enters else "constructing it"
