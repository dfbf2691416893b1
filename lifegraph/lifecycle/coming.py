"""How single members come in: declared, built at once, joining a start, or started in a running graph."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any, NoReturn

from ..drive.latch import Latch
from ..drive.pool import callers_loop
from ..drive.steps import Steps
from ..drive.threads import Driver, acting
from ..errors import DeclarationError, Fault, GraphClosingError, GraphStateError, StartError, message
from ..run import Phase, Start, Teardown
from ..spec import Form, Spec
from .ground import Ground, State

__all__ = ["Coming"]


class Coming(Ground):
    """Taking members in, all checked before any side effect; what fails is undone, and nothing else."""

    def found(self, specs: Sequence[Spec], faults: list[Fault]) -> None:
        """Take the first members in, all or none; adds what is wrong to ``faults``."""
        with self.mutex:
            nodes = [self.model.enlist(spec, faults, alone=False) for spec in specs]
            try:
                self.model.seal(lenient=True)
            except DeclarationError as error:
                faults += error.faults
            if not faults:
                for node in nodes:
                    self._adopt(node)

    def admit(self, spec: Spec, verb: str, *, at_once: bool, awaited: bool = False) -> Steps[int]:
        """Take a member in, and have it up as the state asks; ``at_once`` constructs it in a new graph too."""
        with self.mutex:
            self.check_open(verb)
            nodes = self._enlist(spec, verb, at_once=at_once, awaited=awaited)
            if (self.state is State.NEW and not at_once) or all(self.lives.phase(n) is Phase.UP for n in nodes):
                return nodes[0]
            if awaited and self.lives.home is None and self.state is not State.STARTING:
                self.lives.home = callers_loop()
            joined = self._join(nodes) if self.state is State.STARTING else None
            coming = self._bring(nodes) if joined is None else None
        if joined is not None:
            yield from self._wait_joined(joined, nodes, verb)
        elif coming is not None:
            yield from self._wait_for(coming, nodes, verb)
        return nodes[0]

    def override(self, key: object, spec: Spec) -> None:
        """Use ``spec`` wherever ``key`` is asked for."""
        if self.state is not State.NEW:
            raise GraphStateError(f"cannot override in graph {self.title!r}: it is {self.state}, and no longer new")
        found = self.model.find(key)
        if any(self.lives.is_alive(node) and self.model.spec(node).form is not Form.LIVE for node in found):
            raise GraphStateError(f"cannot override {self.model.whom(found[0])}: it is up already")
        node = self.model.override(key, spec)
        if node is not None:
            self.lives.reach()
            if self.lives.is_alive(node):
                self.lives.release(node, Phase.DECLARED)
            self._adopt(node)

    def _enlist(self, spec: Spec, verb: str, *, at_once: bool, awaited: bool) -> list[int]:
        """The numbers of all that this brings in, with their edges checked; nothing is taken in when it cannot be."""
        faults: list[Fault] = []
        new = self.state is State.NEW
        before = len(self.model.specs)
        node = self.model.enlist(spec, faults, alone=at_once)
        try:
            if faults:
                raise DeclarationError.of(faults)
            if new and not at_once:
                if spec.wishes and self.model.unresolved:
                    self.model.seal(lenient=True, whole=False)
                self._adopt(node)
                return [node]
            self.model.seal(lenient=new)
            if self.model.wants(node):
                self.model.seal()
            nodes = [node] if new else list(range(before, len(self.model.specs)))
            self._check_ground(nodes, verb, joins=self.state is State.STARTING)
            self.check_world(verb, map(self.model.spec, nodes), awaited=awaited)
        except (DeclarationError, GraphStateError):
            self.lives.forget([node, *(range(before, len(self.model.specs)) if not new else ())])
            raise
        if not new:
            self.model.base = len(self.model.specs)
        for each in nodes:
            self._adopt(each)
        return nodes

    def _adopt(self, node: int) -> None:
        spec = self.model.spec(node)
        if spec.form is Form.LIVE:
            self.lives.adopt(node, spec.target, Phase.UP if spec.hooks.start is None else Phase.MADE)
            if (loop := callers_loop()) is not None:
                self.lives.loops[node] = loop

    def _check_ground(self, nodes: Sequence[int], verb: str, *, joins: bool) -> None:
        """What these depend on is up (or, when they join a start, will be), and none of it is held."""
        own = self.own_hook()
        for node in nodes:
            for dependency in (*self.model.uses[node], *self.model.orders[node]):
                if dependency in nodes:
                    continue
                self.refuse_held(dependency, f"{verb} {self.model.names[node]} on")
                if not joins and self.lives.phase(dependency) is not Phase.UP:
                    raise GraphStateError(message(
                        f"cannot {verb} {self.model.names[node]}: {self.model.whom(dependency)} is not up",
                        hint="graph.start() first, or hand the class in: Graph(...) builds it in order"))  # fmt: skip
            if joins and own is not None and self.model.path(node, own):
                raise GraphStateError(message(
                    f"cannot {verb} {self.model.names[node]} in a start hook of {self.model.names[own]}",
                    why="it depends on the very resource that is starting"))  # fmt: skip

    def _bring(self, nodes: list[int]) -> Latch:
        """Make the run that brings these up; its latch opens when it, and its undoing, are over."""
        plan, _ = self.freeze(nodes)
        hooks = self.state is not State.NEW
        run = Start(plan, nodes, self.lives, graph=self._graph, herald=self.herald, hooks=hooks)
        latch = Latch()
        self._coming[latch] = Driver(run, self.workers, self._lanes)
        return latch

    def _wait_for(self, latch: Latch, nodes: list[int], verb: str) -> Steps[None]:
        driver = self._coming[latch]
        run, back = driver.run, None
        assert isinstance(run, Start)
        try:
            with self._aside():
                interrupt = yield driver
            with self.mutex:
                closing = self.state is State.CLOSING
                if closing:  # the teardown of all takes down what came of it
                    self._prior = {**(self._prior or {}), **run.start_details()} if run.raised else self._prior
                elif not run.ok or interrupt is not None:
                    back = self._undo(run, nodes, latch)
            if back is not None:
                interrupt = (yield self._coming[latch]) or interrupt
        finally:
            with self.mutex:
                del self._coming[latch]
            latch.open()
        if closing:
            yield from self._say_closing(verb)
        if back is not None:
            self._say_undone(run, back, nodes, interrupt)

    def _undo(self, run: Start, nodes: list[int], latch: Latch) -> Teardown:
        """Take down again what one verb brought in, and nothing else."""
        plan, _ = self.freeze(nodes)
        back = Teardown(plan, nodes, self.lives, herald=self.herald, prior=run.start_details())
        self._coming[latch] = Driver(back, self.workers, self._lanes)
        return back

    def _say_undone(self, run: Start, back: Teardown, nodes: list[int], interrupt: BaseException | None) -> NoReturn:
        culprits = run.culprits
        with self.mutex:
            errors = self._start_errors(run, back)
            self.lives.forget([node for node in nodes if not self.lives.is_alive(node)])
        if interrupt is not None:
            raise interrupt
        raise StartError(f"{culprits} of graph {self.title!r} did not start", errors, back.report)

    def _join(self, nodes: list[int]) -> tuple[Start, Latch]:
        assert self._start is not None
        run, driver = self._start
        latch = Latch()
        self.lives.reach()
        driver.send(lambda now: run.join(nodes, latch.open, now))
        return run, latch

    def _wait_joined(self, joined: tuple[Start, Latch], nodes: list[int], verb: str) -> Steps[None]:
        run, latch = joined
        with self._aside():
            yield latch
        if all(self.lives.phase(node) is Phase.UP for node in nodes):
            return
        if errors := run.error_of(nodes):
            raise StartError(f"{self.model.names[nodes[0]]} of graph {self.title!r} did not start", errors)
        if not run.ok or self.own_hook() is not None:
            raise GraphClosingError(f"cannot {verb}: the start of graph {self.title!r} was called off")
        yield self._started  # the start was over before the letter came
        with self.mutex:
            self.check_open(verb)
            coming = self._bring(nodes)
        yield from self._wait_for(coming, nodes, verb)

    def _aside(self) -> Any:
        """While a hook of this graph waits in a verb, it takes no worker's place."""
        found = acting()
        return found[0].yielding(found[1]) if found is not None else nullcontext()

    def _say_closing(self, verb: str) -> Steps[None]:
        """Say that a teardown came first; not before it is over, unless one of its own hooks asks."""
        if self.own_hook() is None:
            yield self._closed
        error = GraphClosingError(f"cannot {verb}: the teardown of graph {self.title!r} was asked for meanwhile")
        error.report = self.report
        raise error

    def _start_errors(self, run: Start, back: Teardown) -> list[Exception]:
        """What the start raised, and what its roll-back raised on top."""
        hung = {run.nodes[node] for node in run.errors if run.hung(node)}
        return [*run.raised, *(e for node, e in sorted(back.errors.items()) if back.nodes[node] not in hung)]
