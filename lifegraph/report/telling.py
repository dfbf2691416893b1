"""A report in words: what, whom, why, along which path, in what state, and the cure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..errors import message, short
from ..events import Fate
from .outcome import Outcome
from .told import Told

__all__ = ["all_of", "ended", "explain", "headline"]


def headline(report: Told) -> str:
    """One line: how it went."""
    graph, held = f"graph {report.plan.title!r}", report.held
    if held:
        roots = [name for name, fate in report.fates.items() if fate.unproven]
        return f"{graph}: {len(held)} of {len(report.plan)} resources not released, because of {all_of(roots)}"
    if report.start_failed:
        return f"{graph}: did not start; all that was up is released"
    return f"{graph}: all released in {report.seconds:.3g} s"


def explain(report: Told, outcome: Outcome) -> str:
    """A paragraph on how one resource ended, and why."""
    whom = _whom(outcome)
    if outcome.fate is Fate.POISONED:
        are = "is" if len(outcome.causes) == 1 else "are"
        return message(f"cannot release {whom}: poisoned",
            because=[ended(report.outcomes[cause]) for cause in outcome.causes],
            path=[" -> ".join(path) for path in outcome.paths],
            state=f"quarantined; kept as it is until {all_of(outcome.causes)} {are} proven stopped or the process ends",
            hint=_hint(report.outcomes, outcome.causes))  # fmt: skip
    if outcome.fate.unproven:
        return message(f"cannot release {whom}: {outcome.fate.replace('_', ' ')}, {outcome.error}",
            poisons=all_of([n for n in report.poisoned if outcome.name in report.outcomes[n].causes]) or None,
            start=outcome.start_error, state="quarantined until it is proven stopped or the process ends",
            hint=_hint(report.outcomes, (outcome.name,)), where=outcome.stack)  # fmt: skip
    if outcome.fate is Fate.SKIPPED:
        return message(f"{whom}: skipped, it was never up and holds nothing", start=outcome.start_error)
    took = f" after {outcome.seconds:.3g} s" if outcome.seconds is not None else ""
    forced = ", by its kill" if outcome.forced else ""
    return message(f"{whom}: released{took}{forced}", start=outcome.start_error, error=outcome.error)


def ended(outcome: Outcome) -> str:
    """One line on how one resource ended."""
    where = f" ({short(outcome.declared_at)})" if outcome.declared_at else ""
    return f"{outcome.name} {outcome.fate.replace('_', ' ')}: {outcome.error or 'not proven stopped'}{where}"


def all_of(names: Sequence[str]) -> str:
    """Names as a sentence has them."""
    shown = [*names[:5], f"{len(names) - 5} more"] if len(names) > 6 else list(names)
    return ", ".join(shown[:-1]) + " and " + shown[-1] if len(shown) > 1 else "".join(shown)


def _whom(outcome: Outcome) -> str:
    return f"{outcome.name} ({short(outcome.declared_at)})" if outcome.declared_at else outcome.name


def _hint(outcomes: Mapping[str, Outcome], causes: Sequence[str]) -> str:
    late = [name for name in causes if outcomes[name].fate is Fate.TIMED_OUT]
    if late:
        limit = "stop_timeout" if all(outcomes[name].start_error is None for name in late) else "start_timeout"
        return f"give {all_of(late)} a larger {limit}, or a kill() that ends its use"
    if any(outcomes[name].fate is Fate.ABANDONED for name in causes):
        return "a larger grace, or smaller stop_timeouts"
    return f"mend the stop of {all_of(causes)}, or have a kill() or is_stopped() that proves its end"
