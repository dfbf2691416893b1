"""How long ``import lifegraph`` takes above a bare interpreter, and what it must not load."""

from __future__ import annotations

from statistics import median

from ..children import answer, seconds
from ..measure import Row, Scale, spread

__all__ = ["measure"]

NETWORKX = 0.22  # times the import of networkx, both above bare start-up: 30 ms where that takes 138
LATE = ("networkx", "structlog", "asyncio", "rich")


def measure(scale: Scale) -> Row:
    """Fresh interpreters in the order A B C C B A."""
    row = Row("imports", "`import lifegraph` above bare start-up")
    codes = {"bare": "pass", "lifegraph": "import lifegraph", "networkx": "import networkx"}
    taken: dict[str, list[float]] = {name: [] for name in codes}
    for code in codes.values():
        seconds(code)  # writes the byte code
    for _ in range(2 if scale.quick else 15):
        for name in (*codes, *reversed(codes)):
            taken[name].append(seconds(codes[name]))
    bare = median(taken["bare"])
    ours, theirs = ([each - bare for each in taken[name]] for name in ("lifegraph", "networkx"))
    row.ratio("lifegraph / networkx", ours, theirs, NETWORKX)
    loaded = answer(f"import sys, lifegraph; print(sum(name in sys.modules for name in {LATE!r}))")
    row.figures.append(spread(f"how many of {', '.join(LATE)} it loads", [float(loaded)], 0))
    row.context.append(
        f"bare {1e3 * bare:.1f} ms; above it lifegraph {1e3 * median(ours):.1f}, networkx {1e3 * median(theirs):.1f} ms"
    )
    return row
