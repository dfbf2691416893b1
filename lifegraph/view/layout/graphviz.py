"""Layout by Graphviz, where its program `dot` is installed and the picture is small enough for it to be quick."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence

from .picture import Box, Picture, Way

__all__ = ["by_dot"]

_INCH = 72.0
_PATIENCE = 5.0  # seconds


def by_dot(sizes: Sequence[Box], edges: Sequence[tuple[int, int]]) -> Picture | None:
    """Places by `dot`; None where it is not installed, fails, takes too long or says what is not understood."""
    program = shutil.which("dot")
    if program is None:
        return None
    try:
        ran = subprocess.run(  # noqa: S603 - numbers only, and no shell
            [program, "-Tplain", "-y"],
            input=_asked(sizes, edges),
            capture_output=True,
            text=True,
            timeout=_PATIENCE,
            check=True,
        )
        return _read(ran.stdout, sizes, edges)
    except (OSError, subprocess.SubprocessError, ValueError, LookupError):
        return None


def _asked(sizes: Sequence[Box], edges: Sequence[tuple[int, int]]) -> str:
    lines = ["digraph {", 'node [shape=box, fixedsize=true, label=""]; edge [arrowhead=none];']
    lines += [f"{n} [width={w / _INCH:.4f}, height={h / _INCH:.4f}];" for n, (w, h) in enumerate(sizes)]
    lines += [f"{upper} -> {lower};" for upper, lower in edges]
    return "\n".join([*lines, "}", ""])


def _read(plain: str, sizes: Sequence[Box], edges: Sequence[tuple[int, int]]) -> Picture:
    middles = [(0.0, 0.0)] * len(sizes)
    ways: dict[tuple[int, int], Way] = {}
    width = height = 0.0
    for line in plain.splitlines():
        kind, *words = line.split()
        if kind == "graph":
            width, height = (float(word) * _INCH for word in words[1:3])
        elif kind == "node":
            middles[int(words[0])] = float(words[1]) * _INCH, float(words[2]) * _INCH
        elif kind == "edge":
            numbers = tuple(float(word) * _INCH for word in words[3 : 3 + 2 * int(words[2])])
            ways[int(words[0]), int(words[1])] = numbers
    heights = {y: row for row, y in enumerate(sorted({round(y) for _, y in middles}))}
    rows = [heights[round(y)] for _, y in middles]
    return Picture(width, height, middles, [ways[edge] for edge in edges], rows)
