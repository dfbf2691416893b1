"""A teardown: dependents first. What a failed one was using is poisoned, transitively, and never released."""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import Context
from typing import ClassVar, Final

from ..errors import HookError, HookTimeout, NotAttempted
from ..events import Fate, ResourceSettled
from ..plan import Plan
from ..report import Detail, Report
from ..spec import Spec
from ..walk import State, Walk
from .engine import Herald, hook_of
from .failure import Failure
from .lives import Lives, Phase
from .pursuit import Pursuit

__all__ = ["Teardown"]

_FATES: Final = tuple(Fate)
_CODES: Final = {fate: code for code, fate in enumerate(Fate)}
_INF: Final = float("inf")


class Teardown(Pursuit):
    """Stops members, and gives each of them its fate.

    ``body`` is what the body of a ``with`` raised, for context managers. ``prior`` tells, by member, of a start
    that failed and is rolled back. The grace, in seconds, counts from ``since`` (the driver's clock) or from the opening.
    """

    hook: ClassVar[str] = "stop"

    def __init__(
        self, plan: Plan, nodes: list[int], lives: Lives, *, herald: Herald,
        body: BaseException | None = None, prior: Mapping[int, Detail] | None = None, since: float | None = None,
    ) -> None:  # fmt: skip
        lives.reach()
        specs = map(lives.model.spec, nodes)
        idle = [
            node for node, (member, spec) in enumerate(zip(nodes, specs, strict=True)) if _idle(lives, member, spec)
        ]
        super().__init__(
            plan, nodes, lives, Walk(plan.uses, plan.orders, idle),
            ranks=plan.ranks(), limits=plan.stop_limits, herald=herald,
        )  # fmt: skip
        self.codes = bytearray([_CODES[Fate.SKIPPED]]) * len(nodes)
        self.report: Report | None = None
        self._prepare()
        self._body = body
        self._since = since
        self._start_failed = bool(prior)
        for node, member in enumerate(nodes):
            if prior and member in prior:
                self.details[node] = Detail(start_error=prior[member].start_error, stack=prior[member].stack)
            if member in lives.ended:
                self.details[node] = lives.ended[member][1]

    def open(self, now: float) -> None:
        """The run begins; the grace may have begun before."""
        if self.plan.grace is not None:
            self.walk.end = (now if self._since is None else self._since) + self.plan.grace
        if now < self.walk.end:
            up = [n for n, spec in enumerate(self.specs) if spec.hooks.drain is not None and self._is_up(n)]
            self._drain(up, now if self._since is None else self._since, now)
        super().open(now)
        if now >= self.walk.end:
            self.hurry(now)

    def is_alone(self, node: int) -> bool:
        """A stop that leaves nothing is the first and the last thing on its loop, unless a host task is there."""
        return not self.specs[node].form.leaves

    def context(self, node: int, base: Context) -> Context:
        """A copy of the caller's; what was entered is left in its own."""
        leaving = self.lives.leavings.get(self.nodes[node]) if self.lives.leavings and node < len(self.nodes) else None
        return super().context(node, base) if leaving is None or leaving.context is None else leaving.context

    def close(self, now: float) -> None:
        """Sum up: the report, and the quarantine of what is not released."""
        super().close(now)
        if self.internal is not None:
            self._settle_broken()
        report = Report(
            self.plan, bytes(self.codes), self.began, self.ended, self.details, now - self.opened,
            (*self.notes, *self.lives.notes), start_failed=self._start_failed,
        )  # fmt: skip
        for node, code in enumerate(self.codes):
            if _FATES[code].held:
                detail = self.details.get(node, Detail())
                self.lives.confine(self.nodes[node], report.reason(node), (_FATES[code], detail))
        self.report = report

    # The step of one -------------------------------------------------------------------------------------

    def _lane(self, node: int) -> str:
        hooks, form = self.specs[node].hooks, self.specs[node].form
        if form.leaves:
            return "loop" if form.asynchronous else hooks.lane or "worker"
        return "loop" if "stop" in hooks.loops else hooks.lane or "worker"

    def _act(self, node: int) -> object:
        member = self.nodes[node]
        leaving = self.lives.leavings.get(member) if self.lives.leavings else None
        if leaving is not None:
            return leaving.leave(self._body)
        hook = self.specs[node].hooks.stop
        return None if hook is None else hook_of(self.lives.things[member], hook)

    def _goes_on(self, node: int, value: object, *, awaited: bool) -> bool:
        if super()._goes_on(node, value, awaited=awaited):
            return True
        if value and self._body is not None and self.specs[node].form.enters:
            self.notes.append(f"{self.name(node)}: left with a true value, which suppresses nothing here")
        return False

    def _called(self, node: int) -> str:
        return "leaving it" if self.specs[node].form.leaves else super()._called(node)

    # What comes of each ----------------------------------------------------------------------------------

    def _turn(self, node: int, now: float) -> bool:
        phase = self.lives.phases[self.nodes[node]]
        if phase not in (Phase.HUNG, Phase.HELD):
            return self._may_stop(node)
        self.walk.begin(node)
        self._unproven_before(node, phase)
        if phase == Phase.HELD or not self._pursue(node, "unstarted", now):
            self.walk.failed(node)
        return False

    def _is_up(self, node: int) -> bool:
        return self.lives.phases[self.nodes[node]] == Phase.UP

    def _not_proven(self, node: int, fate: Fate) -> None:
        self.codes[node] = _CODES[fate]

    def _succeeded(self, node: int) -> None:
        self.codes[node] = _CODES[Fate.RELEASED]
        self.trash.append(self.lives.release(self.nodes[node]))

    def _failed(self, node: int, failure: Failure) -> None:
        self.codes[node] = _CODES[Fate.FAILED]
        self._note_detail(node, error=failure.text, error_type=failure.kind, stack=failure.trace)

    def _hangs(self, node: int) -> None:
        self.codes[node] = _CODES[Fate.TIMED_OUT]

    def _unasked(self, state: State, node: int, now: float) -> None:
        phase = self.lives.phases[self.nodes[node]]
        if phase in (Phase.DECLARED, Phase.RELEASED):
            return
        if phase == Phase.MADE:
            self.trash.append(self.lives.release(self.nodes[node], Phase.DECLARED))
        elif phase == Phase.HUNG or (phase == Phase.HELD and state is not State.BLOCKED):
            self._unproven_before(node, phase)
        elif state is State.PASSED:
            self._succeeded(node)
        else:
            self._not_attempted(node, Fate.POISONED if state is State.BLOCKED else Fate.ABANDONED, now)

    def _settle_broken(self) -> None:
        """A bug of ours ended the run: what is alive and has no fate is not proven stopped."""
        tainted: set[int] = set()
        for node in self.plan.sequence:
            alive = self.lives.is_alive(self.nodes[node])
            if alive and not _FATES[self.codes[node]].held:
                begun = self.began[node] >= 0
                fate = Fate.TIMED_OUT if begun else Fate.POISONED if node in tainted else Fate.ABANDONED
                self.codes[node] = _CODES[fate]
                if fate is not Fate.POISONED:
                    kind, text = ("HookTimeout", "given up") if begun else ("NotAttempted", "not attempted")
                    self._note_detail(node, error=f"{text}, because of an internal error", error_type=kind)
            if _FATES[self.codes[node]].held:
                tainted.update(self.plan.uses[node])

    def _unproven_before(self, node: int, phase: int) -> None:
        """No stop is called: its start still ran at its limit, or an earlier teardown did not release it."""
        if phase == Phase.HELD:
            fate, detail = self.lives.ended[self.nodes[node]]
            error: Exception = HookError(detail.error or "was not released before")
            self.details[node] = detail
        else:
            told = self.details[node].start_error if node in self.details else None
            fate, error = Fate.TIMED_OUT, HookTimeout(told or "its start never ended")
            self._note_detail(node, error=str(error), error_type="HookTimeout")
        self.codes[node] = _CODES[fate]
        self.errors[node] = self._signed(node, error)

    def _not_attempted(self, node: int, fate: Fate, now: float) -> None:
        self.codes[node] = _CODES[fate]
        if fate is Fate.ABANDONED:
            why = "the grace ran out" if self.walk.end < _INF else "the teardown was hurried"
            self.errors[node] = self._signed(node, NotAttempted(f"{self.name(node)}: not attempted, {why}"))
            self._note_detail(node, error=f"not attempted, {why}", error_type="NotAttempted")
        if not self._herald.quiet:
            self._herald.tell(ResourceSettled(self.plan.title, now, self.name(node), fate))
        self._salvage(node, now)


def _idle(lives: Lives, member: int, spec: Spec) -> bool:
    """Nothing is to be done for it at its turn."""
    phase = lives.phases[member]
    if phase in (Phase.UP, Phase.HALF):
        hooks = spec.hooks
        return (hooks.stop, hooks.drain, hooks.is_stopped) == (None, None, None) and member not in lives.leavings
    return phase not in (Phase.HUNG, Phase.HELD)
