"""What happened, as plain data: fates, causes, times, exit code. Strings and numbers only."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import cached_property

from .. import view
from ..errors import HookError, TeardownError
from ..events import Fate
from ..plan import Plan, fate_of
from ..walk import State
from . import as_json, telling
from .causes import Causes
from .outcome import FATES, NO_DETAIL, Detail, Lease, Outcome

__all__ = ["Report", "supposed"]


@dataclass(frozen=True)
class Report(view.Drawn):
    """How a teardown went. Plain data: picklable, immutable, safe from any thread; it holds no live object."""

    plan: Plan
    codes: Sequence[int]  # one for each resource: an index into the fates in declared order
    began: Sequence[float]  # seconds since the teardown began; negative when nothing was attempted
    ended: Sequence[float]
    details: Mapping[int, Detail] = field(default_factory=dict)
    seconds: float = 0.0
    notes: tuple[str, ...] = ()
    leases: tuple[Lease, ...] = ()
    attested: tuple[str, ...] = ()
    start_failed: bool = False
    forecast: bool = False

    # What became of it -----------------------------------------------------------------------------------

    @property
    def ok(self) -> bool:
        """All that was up is proven stopped."""
        return not any(FATES[code].held for code in self.codes)

    @property
    def exit_code(self) -> int:
        """3 when something was not released, else 2 when a start failed, else 0."""
        return 3 if not self.ok else 2 if self.start_failed else 0

    @property
    def fates(self) -> Mapping[str, Fate]:
        """The fate of each resource."""
        return self._fates

    @cached_property
    def _fates(self) -> Mapping[str, Fate]:
        return {name: FATES[code] for name, code in zip(self.plan.names, self.codes, strict=True)}

    @property
    def outcomes(self) -> Mapping[str, Outcome]:
        """The outcome of each resource, made when it is read."""
        return _Outcomes(self)

    def _named(self, fate: Fate) -> tuple[str, ...]:
        code = FATES.index(fate)
        return tuple(self.plan.names[node] for node in self.plan.sequence if self.codes[node] == code)

    @property
    def released(self) -> tuple[str, ...]:
        """Names of what is proven stopped, in the plan's order, as all of these."""
        return self._named(Fate.RELEASED)

    @property
    def failed(self) -> tuple[str, ...]:
        """Names of what failed to stop."""
        return self._named(Fate.FAILED)

    @property
    def timed_out(self) -> tuple[str, ...]:
        """Names of what still ran at its limit, or when given up in a hurry."""
        return self._named(Fate.TIMED_OUT)

    @property
    def poisoned(self) -> tuple[str, ...]:
        """Names of what was not attempted since something that uses it is not proven stopped."""
        return self._named(Fate.POISONED)

    @property
    def abandoned(self) -> tuple[str, ...]:
        """Names of what was not attempted for want of time."""
        return self._named(Fate.ABANDONED)

    @property
    def skipped(self) -> tuple[str, ...]:
        """Names of what was never up and holds nothing."""
        return self._named(Fate.SKIPPED)

    @property
    def forced(self) -> tuple[str, ...]:
        """Names of what was released by its kill."""
        return tuple(self.plan.names[n] for n in self.plan.sequence if self.details.get(n, NO_DETAIL).forced)

    @property
    def held(self) -> tuple[str, ...]:
        """Names of everything that was not released."""
        return tuple(self.plan.names[node] for node in self.plan.sequence if FATES[self.codes[node]].held)

    @property
    def critical_path(self) -> tuple[str, ...]:
        """The chain of resources that decided how long it took, as measured, dependents first."""
        return self._critical_path

    @cached_property
    def _critical_path(self) -> tuple[str, ...]:
        blocker: dict[int, int] = {}
        last = -1
        for node in self.plan.sequence:
            if self.ended[node] < 0:
                continue
            if last < 0 or self.ended[node] > self.ended[last]:
                last = node
            for dependency in self.plan.dependencies(node):
                if dependency not in blocker or self.ended[node] > self.ended[blocker[dependency]]:
                    blocker[dependency] = node
        path = []
        while last >= 0:
            path.append(self.plan.names[last])
            last = blocker.get(last, -1)
        return tuple(reversed(path))

    # Why -------------------------------------------------------------------------------------------------

    @property
    def causes(self) -> Causes:
        """Root causes and paths, by number."""
        return self._causes

    @cached_property
    def _causes(self) -> Causes:
        return Causes(self.plan, [FATES[code] for code in self.codes], self.attested)

    def explain(self, name: str) -> str:
        """A paragraph for people on how ``name`` ended, and why. Raises KeyError for a name it does not have."""
        return telling.explain(self, self.outcomes[name])

    @property
    def headline(self) -> str:
        """One line: how it went."""
        return telling.headline(self)

    def reason(self, node: int) -> str:
        """In one line, why the resource with this number is not released."""
        if causes := self.causes.of.get(node):
            return f"poisoned because of {telling.all_of([self.plan.names[cause] for cause in causes])}"
        return f"{FATES[self.codes[node]].replace('_', ' ')}: {self.details.get(node, NO_DETAIL).error}"

    def raise_for_failures(self) -> None:
        """Raise a `TeardownError` of `HookError` rebuilt from text, unless all is released."""
        if not self.ok:
            errors = [HookError(telling.ended(self.outcomes[n])) for n, fate in self.fates.items() if fate.unproven]
            raise TeardownError(self.headline, errors, self)

    # Out and in ------------------------------------------------------------------------------------------

    @property
    def title(self) -> str:
        """The name of the graph."""
        return self.plan.title

    def to_json(self, report: view.Reported | None = None, *, reduce: bool = False, focus: str | None = None) -> str:
        """All of it as JSON, with a schema number, which `from_json` reads; with arguments, only what is drawn then."""
        if report is None and not reduce and focus is None:
            return as_json.dumped(self)
        return super().to_json(report, reduce=reduce, focus=focus)

    def to_trace(self) -> str:
        """The run as Chrome trace events in JSON, for Perfetto and the like."""
        return self._trace()

    @classmethod
    def from_json(cls, text: str | bytes) -> Report:
        """The report that `to_json` wrote. Raises `ReportError` for anything else; runs no code from the text."""
        return cls(**as_json.loaded(text))

    def _forms(self) -> Mapping[str, Callable[[], str]]:
        return {**super()._forms(), "json": self.to_json, "trace": self.to_trace}

    def __str__(self) -> str:
        return self.to_text()

    def _drawn(self) -> tuple[view.Drawable, view.Reported]:
        return self.plan, self

    def outcome_of(self, node: int) -> Outcome:
        """The outcome of the resource with this number."""
        plan, detail = self.plan, self.details.get(node, NO_DETAIL)
        began, ended = (seconds if seconds >= 0 else None for seconds in (self.began[node], self.ended[node]))
        causes = self.causes.of.get(node, ())
        return Outcome(
            name=plan.names[node], generation=detail.generation, fate=FATES[self.codes[node]], error=detail.error,
            error_type=detail.error_type, start_error=detail.start_error,
            causes=tuple(plan.names[cause] for cause in causes),
            paths=tuple(self.causes.path(cause, node) for cause in causes), began=began, ended=ended,
            seconds=ended - began if ended is not None and began is not None else None, late=detail.late,
            stack=detail.stack, declared_at=plan.where[node], forced=detail.forced,
        )  # fmt: skip


def supposed(plan: Plan, failing: AbstractSet[int], hanging: AbstractSet[int], helped: Sequence[str]) -> Report:
    """The forecast for these resources failing and hanging; ``helped`` names those whose kill might help."""
    states = plan.forecast(failing | hanging)
    fates = [FATES.index(fate_of(state)) for state in State]
    codes = states.translate(bytes(fates) + bytes(256 - len(fates)))
    details = {}
    for node in failing | hanging:
        if states[node] == State.FAILED:
            codes[node] = FATES.index(fate_of(states[node], late=node in hanging))
            error = "supposed to hang" if node in hanging else "supposed to fail"
            details[node] = Detail(error=error, error_type="HookTimeout" if node in hanging else "HookError")
    never = array("d", [-1.0]) * len(plan)
    notes = tuple(f"{name}: its kill might help" for name in helped)
    return Report(plan, bytes(codes), never, never, details, notes=notes, forecast=True)


class _Outcomes(Mapping[str, Outcome]):
    def __init__(self, report: Report) -> None:
        self._report = report

    def __getitem__(self, name: str) -> Outcome:
        return self._report.outcome_of(self._report.plan.ids[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self._report.plan.names)

    def __len__(self) -> int:
        return len(self._report.plan.names)
