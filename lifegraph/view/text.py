"""The text tree: dependents above, what they depend on indented below them.

A resource that several others depend on is expanded where it comes first and only named afterwards, so every edge
takes one line. Indentation ends at a depth: below it the lines go on flat, each with its depth in brackets (`(22) name`
belongs to the nearest `(21)` above it). So the text of a chain grows with its length, not with the square of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from lifegraph.view.labels import cells, clean, counted, duration, fit, listing, shorten, visible
from lifegraph.view.palette import look
from lifegraph.view.scene import Edge, Kind, Node, Role, Scene, Verdict

__all__ = ["to_text"]

_NAME = 120  # cells
_ERROR_LINES = 5
_LEVELS = 20  # of indentation where no width is given
_NARROWEST = 20


@dataclass(frozen=True, slots=True)
class _Strokes:
    """The pieces lines are drawn with. Branches: one that more follow, the last one, one below the deepest level."""

    use: tuple[str, str, str]
    order: tuple[str, str, str]
    poison: tuple[str, str, str]
    bar: str
    above: str
    cut: str


_UNICODE = _Strokes(
    ("├── ", "└── ", "⋮── "), ("├┄┄ ", "└┄┄ ", "⋮┄┄ "), ("┝━━ ", "┕━━ ", "⋮━━ "), "│   ", "↑ see above", "…"
)
_ASCII = _Strokes(
    ("|-- ", "`-- ", ":-- "), ("|.. ", "`.. ", ":.. "), ("|== ", "`== ", ":== "), "|   ", "(see above)", "..."
)


@dataclass(slots=True)
class _Visit:
    """One line of the tree: a node, reached over an edge (none at the top)."""

    index: int
    edge: Edge | None
    depth: int
    guides: str  # what stands left of the branch
    last: bool
    again: bool = False
    parent: bool = False  # something stands below it


class _Pen:
    """Writes lines of styled pieces, in the characters, colours and width asked for."""

    def __init__(self, unicode: bool, color: bool, width: int | None) -> None:
        self.strokes = _UNICODE if unicode else _ASCII
        self.unicode = unicode
        self.levels = _LEVELS
        self.name = _NAME
        self._color = color
        self._width = None
        self._lines: list[str] = []
        if width is not None:
            self._width = max(width, _NARROWEST)
            self.levels = max(3, min(_LEVELS, self._width // 8))
            self.name = min(_NAME, self._width // 2)

    def line(self, *pieces: tuple[str, str]) -> None:
        """Adds a line of pieces `(text, ANSI parameter or nothing)`, cut where it is too wide."""
        if not self.unicode:
            pieces = tuple((_in_ascii(text), style) for text, style in pieces)
        if self._width is not None and sum(cells(text) for text, _ in pieces) > self._width:
            pieces = tuple(self._cut(pieces, self._width))
        self._lines.append("".join(self._styled(text, style) for text, style in pieces).rstrip())

    def text(self) -> str:
        return "\n".join([*self._lines, ""])

    def _cut(self, pieces: tuple[tuple[str, str], ...], width: int) -> Iterator[tuple[str, str]]:
        room = width - len(self.strokes.cut)
        for text, style in pieces:
            kept = fit(text, room)
            yield kept, style
            room = room - cells(kept) if kept == text else 0
        yield self.strokes.cut, ""

    def _styled(self, text: str, style: str) -> str:
        return f"\x1b[{style}m{text}\x1b[0m" if self._color and style and text else text


def _in_ascii(text: str) -> str:
    return text if text.isascii() else text.replace("…", "...").encode("ascii", "backslashreplace").decode()


def to_text(drawn: Scene, *, unicode: bool = True, color: bool = False, width: int | None = None) -> str:
    """The scene as a tree for the terminal.

    `unicode=False` writes ASCII only, `color=True` adds ANSI colours, `width` cuts lines to that many cells (20 at
    least).
    """
    pen = _Pen(unicode, color, width)
    _header(pen, drawn)
    flat = False
    if drawn.nodes:
        pen.line()
    for visit in _visits(drawn, pen):
        _draw(pen, drawn, visit)
        flat = flat or visit.depth > pen.levels
    if drawn.edges:
        pen.line()
        _legend(pen, drawn, flat)
    return pen.text()


def _header(pen: _Pen, drawn: Scene) -> None:
    pieces = [(drawn.title, "1")]
    verdict = drawn.verdict
    if verdict is None:
        edges = "" if not drawn.edges else ", " + counted(len(drawn.edges), "dependency", "dependencies")
        size = counted(drawn.total, "resource", "resources") if drawn.total else "no resources"
        pieces.append((f": {size}{edges if drawn.focus is None else ''}", ""))
    else:
        after = "" if verdict.forecast else f" after {duration(verdict.seconds)}"
        pieces += [(": ", ""), *_said(verdict), (f"{after}: ", "")]
        counts = [f"{count:,} {look(fate).word or clean(fate)}" for fate, count in verdict.counts]
        pieces.append((", ".join(counts) or "nothing", ""))
    pen.line(*pieces)
    if drawn.focus is not None:
        around = shorten(visible(drawn.focus), pen.name)
        pen.line((f"  focus       {around}: {len(drawn.nodes):,} of {drawn.total:,} resources shown", ""))
    roots = [node for node in drawn.nodes if node.role is Role.ROOT_CAUSE]
    if roots:
        more = f" and {len(roots) - 5:,} more" if len(roots) > 5 else ""
        shown = ", ".join(f"{shorten(visible(node.name), pen.name)} ({look(node.fate).word})" for node in roots[:5])
        pen.line(("  root cause  ", "31"), (shown + more, ""))
    poisoned = [node.name for node in drawn.nodes if node.role is Role.CONSEQUENCE]
    if poisoned:
        pen.line(("  poisoned    ", "33"), (listing(poisoned, 8, pen.name), ""))


def _said(verdict: Verdict) -> list[tuple[str, str]]:
    if verdict.forecast:
        return [("forecast", "1")]
    if not verdict.start:
        return [("ok", "32") if verdict.ok else ("NOT ok", "31")]
    start = (f"start {verdict.start}", "31" if verdict.start == "failed" else "")
    if verdict.ok:
        return [start, ("; ", ""), ("all that was up is released", "32")]
    return [start, (", and ", ""), ("NOT ok", "31")]


def _visits(drawn: Scene, pen: _Pen) -> Iterator[_Visit]:
    """Every edge once, in the order of the lines. Where all are on a cycle, the first declared stands at the top."""
    below = drawn.below()
    used = bytearray(len(below))
    for edge in drawn.edges:
        used[edge.dependency] = 1
    seen = bytearray(len(below))
    for top in (*(i for i, flag in enumerate(used) if not flag), *range(len(below))):
        stack = [] if seen[top] else [_Visit(top, None, 0, "", True)]
        while stack:
            visit = stack.pop()
            edges = below[visit.index]
            visit.again, visit.parent = bool(seen[visit.index]), bool(edges)
            yield visit
            if not visit.again:
                seen[visit.index] = 1
                guides = _guides(visit, pen)
                stack += [_Visit(e.dependency, e, visit.depth + 1, guides, e is edges[-1]) for e in reversed(edges)]


def _guides(visit: _Visit, pen: _Pen) -> str:
    """What stands left of everything below a node."""
    if not 0 < visit.depth <= pen.levels:
        return visit.guides
    return visit.guides + ("    " if visit.last else pen.strokes.bar)


def _draw(pen: _Pen, drawn: Scene, visit: _Visit) -> None:
    node = drawn.nodes[visit.index]
    style = look(node.fate).terminal if node.fate else ""
    pieces = [(visit.guides, "2"), *_branch(pen, visit)]
    if node.fate:
        mark = look(node.fate).mark if pen.unicode else f"[{look(node.fate).ascii_mark}]"
        pieces.append((f"{mark} ", style))
    pieces.append((shorten(visible(node.name), pen.name), "" if visit.again else "1"))
    if visit.edge is not None and visit.edge.cycle:
        pieces.append(("  ↺ on a cycle" if pen.unicode else "  (on a cycle)", "35"))
    if visit.again:
        pen.line(*pieces, (f"  {pen.strokes.above}", "2"))
        return
    pieces.append((f"  {node.status}" if node.status else "", style))
    if node.causes:
        pieces.append((f", because of {listing(node.causes, 3, pen.name)}", style))
    pen.line(*pieces, (f"  ({node.where})" if node.where else "", "2"))
    _errors(pen, node, visit)


def _branch(pen: _Pen, visit: _Visit) -> list[tuple[str, str]]:
    edge = visit.edge
    if edge is None:
        return []
    strokes = pen.strokes.poison if edge.poison else pen.strokes.use if edge.kind is Kind.USE else pen.strokes.order
    if visit.depth <= pen.levels:
        return [(strokes[visit.last], "31" if edge.poison else "2")]
    return [(strokes[2], "31" if edge.poison else "2"), (f"({visit.depth}) ", "2")]


def _errors(pen: _Pen, node: Node, visit: _Visit) -> None:
    guides = _guides(visit, pen) + (pen.strokes.bar if visit.parent else "    ")
    for line in node.error[:_ERROR_LINES]:
        pen.line((guides, "2"), (f"  {line}", "31"))
    if len(node.error) > _ERROR_LINES:
        pen.line((guides, "2"), (f"  and {counted(len(node.error) - _ERROR_LINES, 'more line', 'more lines')}", "2"))


def _legend(pen: _Pen, drawn: Scene, flat: bool) -> None:
    arrow = "→" if pen.unicode else "->"
    said = [f"dependent {arrow} dependency: each stands above what it depends on, and stops before it"]
    kinds = {edge.kind for edge in drawn.edges}
    signs = []
    if Kind.ORDER_ONLY in kinds:
        signs.append(f"{pen.strokes.order[0].strip()} only ordered")
    if any(edge.poison for edge in drawn.edges):
        signs.append(f"{pen.strokes.poison[0].strip()} carried poison")
    if any(edge.cycle for edge in drawn.edges):
        signs.append(f"{'↺' if pen.unicode else 'on a cycle:'} none of these could stop first")
    if flat:
        signs.append(f"({pen.levels + 1}) depth, not indented further")
    if signs:
        said.append("    ".join(signs))
    if drawn.hidden:
        said.append(f"{counted(drawn.hidden, 'dependency', 'dependencies')} implied by longer paths not shown")
    for line in said:
        pen.line((line, "2"))
