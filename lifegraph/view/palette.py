"""How each fate looks: a word, a mark, a shape and colours, so that no painter speaks by colour alone.

Ink on fill reaches a contrast of 7:1; lines reach 3:1 on a white page and on a dark one. Red is for root causes and the
way their poison takes, amber for its consequences.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["CYCLE", "DARK", "DAY", "EDGE", "INK", "LOOKS", "NIGHT", "PAGE", "PLAIN", "POISON", "Look", "look"]


@dataclass(frozen=True, slots=True)
class Look:
    """How one fate is drawn."""

    word: str
    mark: str
    ascii_mark: str
    fill: str
    ink: str
    line: str
    terminal: str  # the parameter of an ANSI colour sequence
    dashed: bool = False


_RED = ("#fee2e2", "#7f1d1d", "#dc2626", "31")

LOOKS: dict[str, Look] = {  # root causes first, then consequences, then the rest: the order of every list
    "failed": Look("failed", "✗", "x", *_RED),
    "timed_out": Look("timed out", "◷", "t", *_RED),
    "abandoned": Look("abandoned", "⊘", "a", *_RED, dashed=True),
    "poisoned": Look("poisoned", "☣", "!", "#fef3c7", "#713f12", "#b45309", "33"),
    "released": Look("released", "✓", "+", "#dcfce7", "#14532d", "#15803d", "32"),
    "skipped": Look("skipped", "○", "-", "#f3f4f6", "#374151", "#6b7280", "2", dashed=True),
}
PLAIN = Look("", "?", "?", "#eef2f7", "#1f2937", "#64748b", "0")

EDGE = "#64748b"
POISON = "#dc2626"
CYCLE = "#7c3aed"
PAGE = "#ffffff"
INK = "#1f2937"


def look(fate: str | None) -> Look:
    """The look of a fate; an unknown one, or none, is plain."""
    return LOOKS.get(fate or "", PLAIN)


# The same on a dark page: fill, ink and line of each fate.
DARK: dict[str, tuple[str, str, str]] = {
    "failed": ("#450a0a", "#fecaca", "#f87171"),
    "timed_out": ("#450a0a", "#fecaca", "#f87171"),
    "abandoned": ("#450a0a", "#fecaca", "#f87171"),
    "poisoned": ("#422006", "#fde68a", "#f59e0b"),
    "released": ("#052e16", "#bbf7d0", "#22c55e"),
    "skipped": ("#1f2937", "#d1d5db", "#9ca3af"),
    "plain": ("#1e293b", "#e2e8f0", "#94a3b8"),
}

# What else a page is painted with, by day and by night.
DAY = {
    "page": PAGE, "ink": INK, "soft": "#f1f5f9", "rule": "#94a3b8", "faint": "#475569", "focus": "#1d4ed8",
    "edge": EDGE, "poison": POISON, "cycle": CYCLE,
}  # fmt: skip
NIGHT = {
    "page": "#0f172a", "ink": "#e5e7eb", "soft": "#1e293b", "rule": "#64748b", "faint": "#cbd5e1", "focus": "#60a5fa",
    "edge": "#94a3b8", "poison": "#f87171", "cycle": "#a78bfa",
}  # fmt: skip
