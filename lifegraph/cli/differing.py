"""What is different between two reports, in words."""

from __future__ import annotations

from collections.abc import Iterator

from ..report import Report
from ..view.labels import clean, duration, listing, shorten, visible

__all__ = ["differences"]

_SLOWER = 0.1  # seconds, and this part of the time before, from which a difference in time is told


def differences(old: Report, new: Report) -> list[str]:
    """Lines on graph, resources, fates, errors and times; none where the two tell the same."""
    return [*_wholes(old, new), *_members(old, new), *_fates(old, new), *_edges(old, new), *_times(old, new)]


def _wholes(old: Report, new: Report) -> Iterator[str]:
    if old.title != new.title:
        yield f"graph: {_name(old.title)} -> {_name(new.title)}"
    if old.ok != new.ok:
        yield f"verdict: {_verdict(old)} -> {_verdict(new)}"


def _verdict(report: Report) -> str:
    return "ok" if report.ok else f"{len(report.held)} not released"


def _members(old: Report, new: Report) -> Iterator[str]:
    for sign, one, other in (("-", old, new), ("+", new, old)):
        for name in one.fates:
            if name not in other.fates:
                yield f"{sign} {_name(name)}: {one.fates[name].replace('_', ' ')}"


def _fates(old: Report, new: Report) -> Iterator[str]:
    for name, fate in new.fates.items():
        if name not in old.fates:
            continue
        before, after = old.outcomes[name], new.outcomes[name]
        if before.fate != fate:
            why = f", because of {listing(after.causes)}" if after.causes else _error(after.error)
            yield f"~ {_name(name)}: {before.fate.replace('_', ' ')} -> {fate.replace('_', ' ')}{why}"
        elif before.causes != after.causes:
            yield f"~ {_name(name)}: {fate} because of {listing(before.causes)} -> {listing(after.causes)}"
        elif before.error_type != after.error_type:
            yield f"~ {_name(name)}: {before.error_type or 'no error'} -> {after.error_type or 'no error'}"


def _error(text: str | None) -> str:
    first = (text or "").partition("\n")[0]
    return f", {shorten(clean(first), 120)}" if first else ""


def _edges(old: Report, new: Report) -> Iterator[str]:
    before, after = (
        {(edge.dependent, edge.dependency): edge.uses for edge in report.plan.edges} for report in (old, new)
    )
    kinds = {True: "uses", False: "is only ordered before"}
    for sign, one, other in (("-", before, after), ("+", after, before)):
        for edge, uses in one.items():
            if other.get(edge) != uses and set(edge) <= (old.fates.keys() & new.fates.keys()):
                yield f"{sign} {_name(edge[0])} {kinds[uses]} {_name(edge[1])}"


def _times(old: Report, new: Report) -> Iterator[str]:
    pairs = [("the teardown", old.seconds, new.seconds)]
    for name in new.fates:
        if name in old.fates:
            before, after = old.outcomes[name].seconds, new.outcomes[name].seconds
            if before is not None and after is not None:
                pairs.append((_name(name), before, after))
    for whom, before, after in pairs:
        if abs(after - before) > max(_SLOWER, _SLOWER * before):
            yield f"time of {whom}: {duration(before)} -> {duration(after)}"


def _name(name: str) -> str:
    return shorten(visible(name), 80)
