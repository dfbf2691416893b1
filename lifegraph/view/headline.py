"""What every picture says of itself in words: how it went, what is shown, and what its signs mean."""

from __future__ import annotations

from .labels import clean, counted, duration, shorten, visible
from .palette import look
from .scene import Edge, Kind, Scene, Verdict

__all__ = ["ARROWS", "asides", "headline", "stroke", "strokes", "verdict_words"]

ARROWS = "arrows point from dependent to dependency; the dependent stops first"


def headline(drawn: Scene) -> str:
    """One line after the title: how it went, or how large it is."""
    verdict = drawn.verdict
    if verdict is None:
        size = counted(drawn.total, "resource", "resources") if drawn.total else "no resources"
        whole = drawn.edges and drawn.focus is None
        return f"{size}, {counted(len(drawn.edges), 'dependency', 'dependencies')}" if whole else size
    counts = ", ".join(f"{count:,} {look(fate).word or clean(fate)}" for fate, count in verdict.counts) or "nothing"
    if verdict.forecast:
        return f"forecast: {counts}"
    return f"{verdict_words(verdict)} after {duration(verdict.seconds)}: {counts}"


def verdict_words(verdict: Verdict) -> str:
    """`ok`, `NOT ok`, and how the start went if not well."""
    if not verdict.start:
        return "ok" if verdict.ok else "NOT ok"
    return f"start {verdict.start}" + ("; all that was up is released" if verdict.ok else ", and NOT ok")


def asides(drawn: Scene) -> list[str]:
    """What is not shown, one line each."""
    said = []
    if drawn.focus is not None:
        around = shorten(visible(drawn.focus), 60)
        said.append(f"focus: {around}, {len(drawn.nodes):,} of {drawn.total:,} resources shown")
    if drawn.hidden:
        said.append(f"{counted(drawn.hidden, 'edge', 'edges')} implied by longer paths not shown")
    return said


def strokes(drawn: Scene) -> list[tuple[str, str]]:
    """The kinds of edges that occur, each with what it means; `use` always."""
    kinds = [("use", "depends on")]
    if any(edge.kind is Kind.ORDER_ONLY for edge in drawn.edges):
        kinds.append(("order", "only ordered"))
    if any(edge.poison for edge in drawn.edges):
        kinds.append(("poison", "carried poison"))
    if any(edge.cycle for edge in drawn.edges):
        kinds.append(("cycle", "lies on a cycle"))
    return kinds


def stroke(edge: Edge) -> str:
    """Which of these kinds an edge is."""
    if edge.cycle:
        return "cycle"
    return "poison" if edge.poison else "order" if edge.kind is Kind.ORDER_ONLY else "use"
