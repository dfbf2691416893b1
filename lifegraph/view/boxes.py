"""How large each node's box is: its lines in a monospaced type, so that text fits whatever font is there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from .cycles import turned
from .labels import cells, shorten
from .layout import Engine, Picture, Way, arranged
from .palette import look
from .scene import Scene

__all__ = ["CELL", "LINE", "PADDING", "SIZE", "Box", "boxes", "laid_out"]

SIZE = 12.0  # of the type, in pixels
CELL = 0.61 * SIZE  # no common monospaced type is wider
LINE = 16.0
PADDING = 7.0
_LOOP = 30.0  # how far an edge goes out that comes back to its own node
_FEW, _MANY = 60, 400  # nodes up to which a box holds everything, or how it ended


@dataclass(frozen=True, slots=True)
class Box:
    """The lines of one node and the size of what they stand in."""

    lines: tuple[str, ...]
    width: float
    height: float


def boxes(drawn: Scene) -> list[Box]:
    """A box for each node: all lines where there are few nodes, names alone where there are many."""
    count = len(drawn.nodes)
    found = []
    for node in drawn.nodes:
        mark = f"{look(node.fate).mark} " if node.fate else ""
        if count <= _MANY:
            status, *why = node.label[1:] or ("",)
            lines = [shorten(node.label[0], 40), *([mark + status] if node.fate else [])]
            lines += [shorten(line, 44) for line in why if count <= _FEW]
        else:
            lines = [mark + shorten(node.label[0], 28)]
        widest = max(map(cells, lines))
        least = 56.0
        if _FEW < count <= _MANY:  # the name can still be read when all is made small
            least = max(120.0, cells(lines[0]) * CELL * 1.7)
        found.append(Box(tuple(lines), max(least, widest * CELL + 22), len(lines) * LINE + 2 * PADDING))
    return found


def laid_out(drawn: Scene, sizes: Sequence[Box], engine: Engine = "auto") -> Picture:
    """Where all boxes stand and all edges run; one that leads back to its own node goes round its right side."""
    below: list[list[int]] = [[] for _ in drawn.nodes]
    pairs = [(edge.dependent, edge.dependency) for edge in drawn.edges if edge.dependent != edge.dependency]
    for upper, lower in pairs:
        below[upper].append(lower)
    back = frozenset(turned(below)) if any(edge.cycle for edge in drawn.edges) else frozenset[tuple[int, int]]()
    picture = arranged([(box.width, box.height) for box in sizes], pairs, back, engine)
    if len(pairs) == len(drawn.edges):
        return picture
    straight = iter(picture.ways)
    ways = [
        next(straight)
        if edge.dependent != edge.dependency
        else _loop(picture.middles[edge.dependent], sizes[edge.dependent])
        for edge in drawn.edges
    ]
    return replace(picture, ways=ways, width=picture.width + _LOOP)


def _loop(middle: tuple[float, float], box: Box) -> Way:
    x, y = middle[0] + box.width / 2, middle[1]
    return (x, y + 6, x + _LOOP, y + 12, x + _LOOP, y - 12, x, y - 6)
