"""How each fate looks: a word, a mark, a shape and colours, so that no painter speaks by colour alone.

Ink on fill reaches a contrast of 7:1; lines reach 3:1 on a white page and on a dark one. Red is for root causes and the
way their poison takes, amber for its consequences.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["CYCLE", "EDGE", "INK", "LOOKS", "PAGE", "PLAIN", "POISON", "Look", "look"]


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
