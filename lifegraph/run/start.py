"""A start: dependencies first. The first failure halts it; what is up is the teardown's."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import Context
from typing import Any, ClassVar

from ..errors import HookError
from ..model import GRAPH
from ..parameters import signature
from ..plan import Plan
from ..report import Detail
from ..spec import Form, Spec
from ..walk import State, Walk
from .engine import Failure, Herald, Run, hook_of
from .lives import Leaving, Lives, Phase

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
            ranks=plan.ranks(up=True), limits=plan.start_limits, herald=herald,
        )  # fmt: skip
        self._graph = graph
        self._hooks = hooks
        self._made = bytearray(len(nodes))
        self._contexts: dict[int, Context] = {}
        self._hung: set[int] = set()

    @property
    def ok(self) -> bool:
        """Everything that was to come up is up."""
        return not self.walk.cut and not self.errors

    def interrupt(self, now: float) -> None:
        """First: nothing more begins. Then: what is starting is given up."""
        if self.walk.cut:
            self.hurry(now)
        else:
            self.halt(now)

    def context(self, node: int, base: Context) -> Context:
        """A copy of the caller's; what is entered keeps its own for leaving."""
        context = base.copy()
        if self.specs[node].form.leaves:
            self._contexts[node] = context
        return context

    def act(self, node: int) -> object:
        """Construct ``node`` where that is due, and run its start hook."""
        spec, member, lives = self.specs[node], self.nodes[node], self.lives
        if lives.phases[member] == Phase.DECLARED:
            lives.things[member] = self._construct(node, spec)
            self._made[node] = 1
        if spec.hooks.start is None or not self._hooks:
            return None
        return hook_of(spec, lives.things[member], spec.hooks.start)()

    def _succeeded(self, node: int) -> None:
        member = self.nodes[node]
        waits = self.specs[node].hooks.start is not None and not self._hooks
        self.lives.model.recognise(member, self.lives.things[member])
        self.lives.move(member, Phase.MADE if waits else Phase.UP)

    def _failed(self, node: int, failure: Failure) -> None:
        member, spec = self.nodes[node], self.specs[node]
        self._note_detail(node, start_error=f"{failure.kind}: {failure.text}", stack=failure.trace)
        if self._made[node] or self.lives.phases[member] == Phase.MADE:
            if spec.hooks.atomic_start:
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

    def _unasked(self, state: State, node: int) -> None:
        """What was never begun has nothing to record."""

    def _called(self, node: int) -> str:
        spec = self.specs[node]
        if self._made[node] or self.lives.phases[self.nodes[node]] == Phase.MADE:
            return super()._called(node)
        return "entering it" if spec.form in (Form.CONTEXT, Form.ASYNC_CONTEXT) else "constructing it"

    def hung(self, node: int) -> bool:
        """Whether its start was given up where it hangs."""
        return node in self._hung

    def start_details(self) -> dict[int, Detail]:
        """By member: what the report of the roll-back says of the start."""
        return {self.nodes[node]: detail for node, detail in self.details.items()}

    # Constructing ----------------------------------------------------------------------------------------

    def _construct(self, node: int, spec: Spec) -> object:
        member = self.nodes[node]
        if spec.form is Form.CONTEXT:
            return self._enter(node, spec.target)
        made = self._call(member, spec)
        if spec.form is Form.GENERATOR:
            return self._first(node, spec, made)
        return made

    def _call(self, member: int, spec: Spec) -> Any:
        fillings = self.lives.model.fillings.get(member, ())
        kwargs = spec.kwargs or {}
        if not fillings:
            return spec.target(*spec.args, **kwargs)
        filled: dict[str, object] = {}
        for parameter, members, many in fillings:
            values = [self._graph if m == GRAPH else self.lives.things[m] for m in members]
            filled[parameter] = many(values) if many else values[0] if values else None
        known = signature(spec.target)
        if known is None:
            return spec.target(*spec.args, **kwargs, **filled)
        bound = known.bind_partial(*spec.args, **kwargs)
        bound.arguments.update(filled)
        return spec.target(*bound.args, **bound.kwargs)

    def _enter(self, node: int, cm: Any) -> object:
        kind = type(cm)
        entered = kind.__enter__(cm)

        def leave(body: BaseException | None) -> object:
            told = (None, None, None) if body is None else (type(body), body, body.__traceback__)
            return kind.__exit__(cm, *told)

        self._leave_by(node, cm, leave)
        return entered

    def _first(self, node: int, spec: Spec, generator: Any) -> object:
        try:
            provided = next(generator)
        except StopIteration:
            raise HookError(f"{spec.label} yielded nothing: a generator resource yields exactly once") from None

        def leave(_: BaseException | None) -> None:
            try:
                next(generator)
            except StopIteration:
                return
            raise HookError(f"{spec.label} yielded twice: a generator resource yields exactly once")

        self._leave_by(node, generator, leave)
        return provided

    def _leave_by(self, node: int, what: object, leave: Callable[[BaseException | None], object]) -> None:
        self.lives.leavings[self.nodes[node]] = Leaving(what, leave, self._contexts[node])
