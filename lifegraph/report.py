"""What happened, as plain data: fates, causes, times, exit code. Strings and numbers only."""

from __future__ import annotations

import json
from array import array
from collections import deque
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

from . import view
from .errors import HookError, LifegraphError, TeardownError, message, short
from .events import Fate
from .plan import Plan, fate_of
from .walk import State

__all__ = ["Detail", "Lease", "Outcome", "Report", "ReportError", "supposed"]

SCHEMA: Final = 1
_FATES: Final = tuple(Fate)


class ReportError(LifegraphError, ValueError):
    """Text that is no report of this library."""


@dataclass(frozen=True, slots=True)
class Detail:
    """What a report keeps of one resource beyond its fate and times."""

    error: str | None = None
    error_type: str | None = None
    start_error: str | None = None
    stack: str | None = None
    late: bool = False
    forced: bool = False
    generation: int = 1


_NO_DETAIL: Final = Detail()


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one resource ended.

    ``error`` and ``error_type`` are of its stop, ``start_error`` of its start; ``stack`` is where a timed-out
    hook hangs, or the traceback of the error, as text. ``causes`` names the root causes that poisoned it, with
    one of ``paths`` each, from the cause to this resource. ``began`` and ``ended`` are seconds since the
    teardown began, or None when nothing was attempted. ``late``: its hook ended after it had been given up.
    ``forced``: released by its kill.
    """

    name: str
    generation: int
    fate: Fate
    error: str | None
    error_type: str | None
    start_error: str | None
    causes: tuple[str, ...]
    paths: tuple[tuple[str, ...], ...]
    began: float | None
    ended: float | None
    seconds: float | None
    late: bool
    stack: str | None
    declared_at: str
    forced: bool


@dataclass(frozen=True, slots=True)
class Lease:
    """A borrowing that a teardown waited for; ``age`` in seconds at its end."""

    resource: str
    holder: str
    age: float
    returned: bool


@dataclass(frozen=True)
class Report:
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
        return not any(_FATES[code].held for code in self.codes)

    @property
    def exit_code(self) -> int:
        """3 when something was not released, else 2 when a start failed, else 0."""
        return 3 if not self.ok else 2 if self.start_failed else 0

    @cached_property
    def fates(self) -> Mapping[str, Fate]:
        """The fate of each resource."""
        return {name: _FATES[code] for name, code in zip(self.plan.names, self.codes, strict=True)}

    @property
    def outcomes(self) -> Mapping[str, Outcome]:
        """The outcome of each resource, made when it is read."""
        return _Outcomes(self)

    def _named(self, fate: Fate) -> tuple[str, ...]:
        code = _FATES.index(fate)
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
        return tuple(self.plan.names[n] for n in self.plan.sequence if self.details.get(n, _NO_DETAIL).forced)

    @property
    def held(self) -> tuple[str, ...]:
        """Names of everything that was not released."""
        return tuple(self.plan.names[node] for node in self.plan.sequence if _FATES[self.codes[node]].held)

    @cached_property
    def critical_path(self) -> tuple[str, ...]:
        """The chain of resources that decided how long it took, as measured, dependents first."""
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

    @cached_property
    def _causes(self) -> dict[int, tuple[int, ...]]:
        found: dict[int, tuple[int, ...]] = {}
        for node in self.plan.sequence:
            fate = _FATES[self.codes[node]]
            if fate.unproven and self.plan.names[node] not in self.attested:
                carried: tuple[int, ...] = (node,)
            else:
                carried = found.get(node, ())
            for dependency in self.plan.uses[node] if carried else ():
                known = found.get(dependency, ())
                found[dependency] = carried if not known else known + tuple(n for n in carried if n not in known)
        return {node: causes for node, causes in found.items() if _FATES[self.codes[node]] is Fate.POISONED}

    @cached_property
    def _trees(self) -> dict[int, dict[int, int]]:
        return {}

    def _path(self, cause: int, node: int) -> tuple[str, ...]:
        if cause not in self._trees:
            tree, work = {cause: -1}, deque([cause])
            while work:
                at = work.popleft()
                for dependency in self.plan.uses[at]:
                    if dependency not in tree and _FATES[self.codes[dependency]] in (Fate.POISONED, Fate.SKIPPED):
                        tree[dependency] = at
                        work.append(dependency)
            self._trees[cause] = tree
        path = []
        while node >= 0:
            path.append(self.plan.names[node])
            node = self._trees[cause][node]
        return tuple(reversed(path))

    def _outcome(self, node: int) -> Outcome:
        detail, began, ended = self.details.get(node, _NO_DETAIL), self.began[node], self.ended[node]
        causes = self._causes.get(node, ())
        return Outcome(
            self.plan.names[node], detail.generation, _FATES[self.codes[node]], detail.error, detail.error_type,
            detail.start_error, tuple(self.plan.names[cause] for cause in causes),
            tuple(self._path(cause, node) for cause in causes),
            began if began >= 0 else None, ended if ended >= 0 else None,
            ended - began if ended >= 0 <= began else None,
            detail.late, detail.stack, self.plan.where[node], detail.forced,
        )  # fmt: skip

    def explain(self, name: str) -> str:
        """A paragraph for people on how ``name`` ended, and why. Raises KeyError for a name it does not have."""
        outcome = self.outcomes[name]
        whom = f"{name} ({short(outcome.declared_at)})" if outcome.declared_at else name
        if outcome.fate is Fate.POISONED:
            return message(f"cannot release {whom}: poisoned",
                because=[self._ended(cause) for cause in outcome.causes],
                path=[" -> ".join(path) for path in outcome.paths],
                state=f"quarantined; kept as it is until {_all_of(outcome.causes)} {_is_are(outcome.causes)} proven "
                      "stopped or the process ends",
                hint=self._hint(outcome.causes))  # fmt: skip
        if outcome.fate.unproven:
            used = tuple(n for n in self.poisoned if name in self.outcomes[n].causes)
            return message(f"cannot release {whom}: {outcome.fate.replace('_', ' ')}, {outcome.error}",
                poisons=_all_of(used) if used else None, start=outcome.start_error,
                state="quarantined until it is proven stopped or the process ends",
                hint=self._hint((name,)), where=outcome.stack)  # fmt: skip
        took = f" after {outcome.seconds:.3g} s" if outcome.seconds is not None else ""
        if outcome.fate is Fate.SKIPPED:
            return message(f"{whom}: skipped, it was never up and holds nothing", start=outcome.start_error)
        return message(f"{whom}: released{took}{', by its kill' if outcome.forced else ''}",
            start=outcome.start_error, error=outcome.error)  # fmt: skip

    def reason(self, node: int) -> str:
        """In one line, why this resource is not released."""
        if causes := self._causes.get(node):
            return f"poisoned because of {_all_of([self.plan.names[cause] for cause in causes])}"
        return f"{_FATES[self.codes[node]].replace('_', ' ')}: {self.details.get(node, _NO_DETAIL).error}"

    def _ended(self, name: str) -> str:
        outcome = self.outcomes[name]
        where = f" ({short(outcome.declared_at)})" if outcome.declared_at else ""
        return f"{name} {outcome.fate.replace('_', ' ')}: {outcome.error or 'not proven stopped'}{where}"

    def _hint(self, causes: Sequence[str]) -> str:
        late = [name for name in causes if self.fates[name] is Fate.TIMED_OUT]
        if late:
            started = all(self.outcomes[name].start_error is None for name in late)
            limit = "stop_timeout" if started else "start_timeout"
            return f"give {_all_of(late)} a larger {limit}, or a kill() that truly ends the use"
        if any(self.fates[name] is Fate.ABANDONED for name in causes):
            return "a larger grace, or smaller stop_timeouts"
        return f"mend the stop of {_all_of(causes)}, or declare is_stopped() or kill() that prove its end"

    def raise_for_failures(self) -> None:
        """Raise a `TeardownError` of `HookError` rebuilt from text, unless all is released."""
        if not self.ok:
            errors = [HookError(self._ended(n)) for n, fate in self.fates.items() if fate.unproven]
            raise TeardownError(self.headline, errors, self)

    @property
    def headline(self) -> str:
        """One line: how it went."""
        held = self.held
        if not held and self.start_failed:
            return f"graph {self.plan.title!r}: did not start; all that was up is released"
        if not held:
            return f"graph {self.plan.title!r}: all released in {self.seconds:.3g} s"
        roots = [name for name, fate in self.fates.items() if fate.unproven]
        return f"graph {self.plan.title!r}: {len(held)} of {len(self.codes)} resources not released, because of {_all_of(roots)}"

    # Out and in ------------------------------------------------------------------------------------------

    @property
    def title(self) -> str:
        """The name of the graph."""
        return self.plan.title

    def to_text(self, **how: Any) -> str:
        """A tree for a terminal, the causes first; see `lifegraph.view.draw` for the options."""
        return view.draw("text", self.plan, self, **how)

    def to_dot(self, **how: Any) -> str:
        """The graph in Graphviz's language, with these fates."""
        return view.draw("dot", self.plan, self, **how)

    def to_mermaid(self, **how: Any) -> str:
        """The graph in Mermaid's language, with these fates."""
        return view.draw("mermaid", self.plan, self, **how)

    def save(self, path: str) -> None:
        """Write it as JSON, or as a picture by the ending of ``path`` (.txt, .dot, .mmd)."""
        view.save(path, {"json": self.to_json, "text": self.to_text, "dot": self.to_dot, "mermaid": self.to_mermaid})

    def to_json(self) -> str:
        """All of it as JSON, with a schema number. Causes and paths follow from the edges, and are added for readers."""
        plan = self.plan
        resources = []
        for node, name in enumerate(plan.names):
            detail = self.details.get(node, _NO_DETAIL)
            told = {
                slot: getattr(detail, slot)
                for slot in Detail.__slots__
                if getattr(detail, slot) != getattr(_NO_DETAIL, slot)
            }
            resources.append({
                "name": name, "fate": _FATES[self.codes[node]], "uses": plan.uses[node], "orders": plan.orders[node],
                "declared_at": plan.where[node], "start_timeout": plan.start_limits[node],
                "stop_timeout": plan.stop_limits[node], "began": self.began[node], "ended": self.ended[node], **told,
                **({"because": [plan.names[c] for c in self._causes[node]]} if node in self._causes else {}),
            })  # fmt: skip
        return json.dumps({
            "lifegraph": SCHEMA, "graph": plan.title, "ok": self.ok, "exit_code": self.exit_code,
            "seconds": self.seconds, "workers": plan.workers, "grace": plan.grace, "start_failed": self.start_failed,
            "forecast": self.forecast, "attested": self.attested, "notes": self.notes,
            "leases": [{slot: getattr(lease, slot) for slot in Lease.__slots__} for lease in self.leases],
            "critical_path": self.critical_path, "resources": resources,
        }, indent=1, allow_nan=False)  # fmt: skip

    @classmethod
    def from_json(cls, text: str | bytes) -> Report:
        """The report that `to_json` wrote. Raises `ReportError` for anything else; runs no code from the text."""
        try:
            data = json.loads(text)
            if not isinstance(data, dict) or data.get("lifegraph") != SCHEMA:
                found = data.get("lifegraph") if isinstance(data, dict) else None
                raise ReportError(f"not a report of schema {SCHEMA}: it says {found!r}")
            return _read(cls, data)
        except ReportError:
            raise
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as why:
            raise ReportError(f"not a report of this library: {type(why).__name__}: {why}") from why

    def __str__(self) -> str:
        return self.to_text()


def supposed(plan: Plan, failing: Set[int], hanging: Set[int], helped: Sequence[str]) -> Report:
    """The forecast for these resources failing and hanging; ``helped`` names those whose kill might help."""
    states = plan.forecast(failing | hanging)
    codes = bytes(_FATES.index(fate_of(state, late=node in hanging)) for node, state in enumerate(states))
    details = {}
    for node in failing | hanging:
        if states[node] == State.FAILED:
            error = "supposed to hang" if node in hanging else "supposed to fail"
            details[node] = Detail(error=error, error_type="HookTimeout" if node in hanging else "HookError")
    never = array("d", [-1.0]) * len(plan)
    notes = tuple(f"{name}: its kill might help" for name in helped)
    return Report(plan, codes, never, never, details, notes=notes, forecast=True)


class _Outcomes(Mapping[str, Outcome]):
    def __init__(self, report: Report) -> None:
        self._report = report

    def __getitem__(self, name: str) -> Outcome:
        return self._report._outcome(self._report.plan.ids[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self._report.plan.names)

    def __len__(self) -> int:
        return len(self._report.plan.names)


def _read(kind: type[Report], data: dict[str, Any]) -> Report:
    rows = data["resources"]
    size = len(rows)
    limits = [(_limit(row["start_timeout"]), _limit(row["stop_timeout"])) for row in rows]
    plan = Plan(
        str(data["graph"]), tuple(str(row["name"]) for row in rows),
        *(tuple(tuple(_within(d, size) for d in row[key]) for row in rows) for key in ("uses", "orders")),
        tuple(str(row["declared_at"]) for row in rows), tuple(a for a, _ in limits), tuple(b for _, b in limits),
        int(data["workers"]), _limit(data["grace"]),
    )  # fmt: skip
    if len(plan.ids) != size or len(plan.sequence) != size:
        raise ReportError("not a report of this library: a name twice, or a cycle")
    details = {}
    for node, row in enumerate(rows):
        told = {slot: row[slot] for slot in Detail.__slots__ if slot in row}
        if told:
            details[node] = Detail(**told)
    codes = bytes(_FATES.index(Fate(row["fate"])) for row in rows)
    return kind(
        plan, codes, array("d", [row["began"] for row in rows]), array("d", [row["ended"] for row in rows]), details,
        float(data["seconds"]), tuple(map(str, data["notes"])), tuple(Lease(**lease) for lease in data["leases"]),
        tuple(map(str, data["attested"])), bool(data["start_failed"]), bool(data["forecast"]),
    )  # fmt: skip


def _limit(value: Any) -> float | None:
    if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
        raise ReportError(f"not a report of this library: {value!r} is no number of seconds")
    return value


def _within(value: Any, size: int) -> int:
    if not isinstance(value, int) or not 0 <= value < size:
        raise ReportError(f"not a report of this library: no resource number {value!r}")
    return value


def _all_of(names: Sequence[str]) -> str:
    shown = [*names[:5], f"{len(names) - 5} more"] if len(names) > 6 else list(names)
    return shown[0] if len(shown) == 1 else ", ".join(shown[:-1]) + " and " + shown[-1] if shown else "nothing"


def _is_are(names: Sequence[str]) -> str:
    return "is" if len(names) == 1 else "are"
