"""SVG: a picture that stands alone, in presentation attributes only, so that it is drawn the same wherever it is put."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from html import escape
from math import atan2, cos, sin

from .boxes import LINE, PADDING, SIZE, Box, laid_out
from .boxes import boxes as boxed
from .headline import ARROWS, asides, headline, stroke, strokes
from .labels import cells, listing, shorten, visible
from .layout import Engine, Way
from .palette import CYCLE, EDGE, INK, LOOKS, PAGE, POISON, Look, look
from .scene import Edge, Node, Role, Scene

__all__ = ["to_svg"]

_MARGIN = 24.0
_MONO = "ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, 'Liberation Mono', monospace"
_TOLD = 1500  # edges that have a tooltip, each
_WEIGHTS = ("bold", "normal")  # of a first line, of the others
_STROKES = {
    "use": f'stroke="{EDGE}" stroke-width="1.3"',
    "order": f'stroke="{EDGE}" stroke-width="1.3" stroke-dasharray="5 4"',
    "poison": f'stroke="{POISON}" stroke-width="2.8"',
    "cycle": f'stroke="{CYCLE}" stroke-width="2.4" stroke-dasharray="10 3 2 3"',
}
_INKS = {"use": EDGE, "order": EDGE, "poison": POISON, "cycle": CYCLE}
_UNSEEN = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # what XML 1.0 has no place for


def to_svg(drawn: Scene, *, engine: Engine = "auto") -> str:
    """The scene as one SVG document; `engine` says who lays it out (see `lifegraph.view.layout`)."""
    sizes = boxed(drawn)
    picture = laid_out(drawn, sizes, engine)
    head, foot = _heading(drawn), _legend(drawn)
    across = max([picture.width, *(cells(line) * SIZE * 0.61 for line, _ in head), *(width for width, _ in foot)])
    top = _MARGIN + 20.0 * len(head) + 12
    bottom = top + picture.height + 28
    width, height = across + 2 * _MARGIN, bottom + 20.0 * len(foot) + _MARGIN - 8
    left = _MARGIN + (across - picture.width) / 2
    order = sorted(range(len(drawn.edges)), key=lambda at: (drawn.edges[at].cycle, drawn.edges[at].poison))
    lines = [
        _opening(width, height),
        f"<title>{_said(f'{drawn.title}: {headline(drawn)}')}</title>",
        f'<rect width="100%" height="100%" fill="{PAGE}"/>',
        *_lines(head, _MARGIN, _MARGIN + SIZE, 20.0),
        f'<g transform="translate({left:.1f} {top:.1f})" fill="none" class="edges">',
        *(_edge(drawn, drawn.edges[at], picture.ways[at]) for at in order),
        "</g>",
        f'<g transform="translate({left:.1f} {top:.1f})" text-anchor="middle" class="nodes">',
        *(_node(node, box, middle) for node, box, middle in zip(drawn.nodes, sizes, picture.middles, strict=True)),
        "</g>",
        f'<g transform="translate({_MARGIN:g} {bottom:.1f})" class="legend">',
        *(f'<g transform="translate(0 {20 * at})">{line}</g>' for at, (_, line) in enumerate(foot)),
        "</g>",
        "</svg>",
    ]
    return "\n".join([*lines, ""])


def _opening(width: float, height: float) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" role="img" font-family="{_MONO}" font-size="{SIZE:g}" '
        'xml:space="preserve">'
    )


def _said(text: str) -> str:
    return _UNSEEN.sub("\ufffd", escape(text))


def _heading(drawn: Scene) -> list[tuple[str, str]]:
    """Lines above the picture, each with its weight: the verdict, root causes before consequences."""
    lines = [(f"{drawn.title}: {headline(drawn)}", "bold")]
    roots = [node.name for node in drawn.nodes if node.role is Role.ROOT_CAUSE]
    if roots:
        lines.append((f"root cause: {listing(roots, 4, 40)}", "normal"))
    poisoned = [node.name for node in drawn.nodes if node.role is Role.CONSEQUENCE]
    if poisoned:
        lines.append((f"poisoned: {listing(poisoned, 4, 40)}", "normal"))
    return lines


def _lines(lines: Sequence[tuple[str, str]], x: float, y: float, step: float) -> Iterator[str]:
    for at, (line, weight) in enumerate(lines):
        yield f'<text x="{x:g}" y="{y + step * at:g}" fill="{INK}" font-weight="{weight}">{_said(line)}</text>'


def _edge(drawn: Scene, edge: Edge, way: Way) -> str:
    style = stroke(edge)
    x, y, *curve = (f"{value:.1f}" for value in way)
    rest = "".join(f"C{','.join(curve[at : at + 6])}" for at in range(0, len(curve), 6))
    told = ""
    if len(drawn.edges) <= _TOLD:
        ends = (shorten(visible(drawn.nodes[end].name), 80) for end in (edge.dependent, edge.dependency))
        told = f"<title>{_said(' -> '.join(ends))}: {dict(strokes(drawn))[style]}</title>"
    return (
        f'<g class="edge {style}"><path d="M{x},{y}{rest}" {_STROKES[style]}>{told}</path>'
        f'<path d="{_arrow(way)}" fill="{_INKS[style]}"/></g>'
    )


def _arrow(way: Way) -> str:
    """A triangle at the end of a curve, in its direction."""
    to_x, to_y = way[-2:]
    before = next(
        (way[at : at + 2] for at in range(len(way) - 4, -1, -2) if way[at : at + 2] != way[-2:]), (to_x, to_y - 1)
    )
    angle = atan2(to_y - before[1], to_x - before[0])
    corners = [(to_x - 8 * cos(angle + turn), to_y - 8 * sin(angle + turn)) for turn in (-0.45, 0.45)]
    return f"M{to_x:.1f},{to_y:.1f}" + "".join(f"L{x:.1f},{y:.1f}" for x, y in corners) + "Z"


def _node(node: Node, box: Box, middle: tuple[float, float]) -> str:
    mine = look(node.fate)
    title = [visible(node.name)[:400], node.status, *node.error[:5], *([node.where] if node.where else [])]
    weight = 2.6 if node.role is Role.ROOT_CAUSE else 2.0 if node.role is Role.CONSEQUENCE else 1.2
    first = -box.height / 2 + PADDING + SIZE
    texts = [
        f'<text y="{first + LINE * at:g}" fill="{mine.ink}" font-weight="{_WEIGHTS[at > 0]}">{_said(line)}</text>'
        for at, line in enumerate(box.lines)
    ]
    said = _said("\n".join(line for line in title if line))
    return (
        f'<g class="node {node.fate or "plain"}" transform="translate({middle[0]:.1f} {middle[1]:.1f})">'
        f"<title>{said}</title>{_shape(node.fate, mine, box.width / 2, box.height / 2, weight)}{''.join(texts)}</g>"
    )


def _shape(fate: str | None, mine: Look, half: float, tall: float, weight: float) -> str:
    """The outline of a node: its fate can be told by it without colours."""
    paint = f'fill="{mine.fill}" stroke="{mine.line}" stroke-width="{weight:g}"'
    paint += ' stroke-dasharray="6 4"' if mine.dashed else ""
    if fate in ("failed", "timed_out"):
        inner = f'<path d="{_cut(half, tall, 8)}" {paint}/>'
        return inner + (
            f'<path d="{_cut(half + 4, tall + 4, 9.5)}" fill="none" stroke="{mine.line}"/>' if fate != "failed" else ""
        )
    if fate == "abandoned":
        return f'<path d="M{-half:g},0L{10 - half:g},{-tall:g}H{half - 10:g}L{half:g},0L{half - 10:g},{tall:g}H{10 - half:g}Z" {paint}/>'
    corner = {"released": 10, "skipped": 10, "poisoned": 0}.get(fate or "", 4)
    box = f'<rect x="{-half:g}" y="{-tall:g}" width="{2 * half:g}" height="{2 * tall:g}" rx="{corner}" {paint}/>'
    if fate != "poisoned":
        return box
    ticks = "".join(
        f"M{x * half:g},{y * (tall - 8):g}L{x * (half - 8):g},{y * tall:g}" for x in (-1, 1) for y in (-1, 1)
    )
    return f'{box}<path d="{ticks}" stroke="{mine.line}" stroke-width="1.6"/>'


def _cut(half: float, tall: float, by: float) -> str:
    """A box without its corners."""
    x, y = half - by, tall - by
    return f"M{-x:g},{-tall:g}H{x:g}L{half:g},{-y:g}V{y:g}L{x:g},{tall:g}H{-x:g}L{-half:g},{y:g}V{-y:g}Z"


def _legend(drawn: Scene) -> list[tuple[float, str]]:
    """Lines below the picture, each with its width: arrows, strokes, fates, and what is left out."""
    fates = [fate for fate in LOOKS if any(node.fate == fate for node in drawn.nodes)]
    rows = []
    if drawn.edges:
        lines = [
            (f'<path d="M0,-4H26" {_STROKES[key]}/><path d="M32,-4l-8,-4v8z" fill="{_INKS[key]}"/>', said)
            for key, said in strokes(drawn)
        ]
        rows.append(_swatches(lines, 40))
    if fates:
        shapes = [
            (
                f'<g transform="translate(14 -4)">{_shape(fate, look(fate), 12, 7, 1.2)}</g>',
                f"{look(fate).mark} {look(fate).word}",
            )
            for fate in fates
        ]
        rows.append(_swatches(shapes, 40))
    said = [*([ARROWS] if drawn.edges else []), *asides(drawn)]
    return rows + [(cells(line) * SIZE * 0.61, f'<text fill="{INK}">{_said(line)}</text>') for line in said]


def _swatches(pairs: Sequence[tuple[str, str]], room: float) -> tuple[float, str]:
    """Signs beside each other, each followed by its meaning."""
    x, parts = 0.0, []
    for sign, said in pairs:
        parts.append(
            f'<g transform="translate({x:g} 0)">{sign}<text x="{room:g}" fill="{INK}">{_said(said)}</text></g>'
        )
        x += room + cells(said) * SIZE * 0.61 + 24
    return x, "".join(parts)
