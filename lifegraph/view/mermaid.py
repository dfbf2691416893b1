"""Mermaid flowcharts: invented ids, and names inside quoted labels, every sign that could mean something as an entity.

Mermaid refuses more than 500 edges or 50,000 characters (UTF-16 units). A scene beyond that is reduced, and what is
still too much is cut, which a comment and a note in the picture say.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from lifegraph.view.headline import asides
from lifegraph.view.labels import counted
from lifegraph.view.palette import INK, LOOKS, PAGE, PLAIN, POISON, look
from lifegraph.view.scene import Edge, Kind, Node, Role, Scene, reduced

__all__ = ["to_mermaid"]

_EDGES = 500
_UNITS = 50_000
_FRAME = 6_000  # kept free for what stands around nodes and edges: classes, legend, note
_LINK = 5  # an edge's line end and its number among the coloured ones
_SHAPES = {
    "failed": ('{{"', '"}}'),
    "timed_out": ('{{"', '"}}'),
    "abandoned": ('{{"', '"}}'),
    "poisoned": ('[/"', '"/]'),
    "released": ('("', '")'),
    "skipped": ('(["', '"])'),
}
_CLASSES = {fate: fate.replace("_", "") for fate in LOOKS}
# Letters, digits, blanks and commas mean nothing to Mermaid or to the Markdown in its labels; nor do - _ . in a word.
_SPECIAL = re.compile(r"(?<=[^\W_])[-_.](?=[^\W_])|([^\w ,]|_)")


def to_mermaid(drawn: Scene) -> str:
    """The scene as a Mermaid `flowchart TD`; the node `drawn.nodes[i]` is `ni`."""
    text = _chart(drawn, drawn.nodes, drawn.edges, [])
    if _fits(text, drawn.edges):
        return text
    size = f"{counted(len(drawn.edges), 'edge', 'edges')} in {_units(text):,} characters are more than Mermaid draws"
    fewer = reduced(drawn)
    said = [size, f"so {counted(fewer.hidden - drawn.hidden, 'edge', 'edges')} implied by longer paths not shown"]
    text = _chart(fewer, fewer.nodes, fewer.edges, said)
    if _fits(text, fewer.edges):
        return text
    nodes, edges = _cut(fewer)
    said.append(f"and cut: {len(nodes):,} of {len(drawn.nodes):,} resources shown, with what is between them")
    return _chart(fewer, nodes, edges, said)


def _fits(text: str, edges: Sequence[Edge]) -> bool:
    return len(edges) <= _EDGES and _units(text) <= _UNITS


def _units(text: str) -> int:
    """The length of a text as JavaScript counts it."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le")) // 2


def _chart(drawn: Scene, nodes: Sequence[Node], edges: Sequence[Edge], said: Sequence[str]) -> str:
    used = sorted({_class(node) for node in nodes})
    poison = ",".join(str(place) for place, edge in enumerate(edges) if edge.poison)
    lines = [
        "flowchart TD",
        *(f"  %% {line}" for line in said),
        *(_node(node) for node in nodes),
        *(_edge(edge) for edge in edges),
        *([f"  linkStyle {poison} stroke:{POISON},stroke-width:3px"] if poison else []),
        *(_class_def(name) for name in used),
        f'  legend["{_safe(*_legend(drawn, edges))}"]:::legend',
        *([f'  note["{_safe(*said)}"]:::legend'] if said else []),
        f"  classDef legend fill:{PAGE},stroke:{PLAIN.line},color:{INK},stroke-dasharray:2 4,text-align:left",
    ]
    return "\n".join([*lines, ""])


def _legend(drawn: Scene, edges: Sequence[Edge]) -> list[str]:
    lines = [drawn.title, "arrows: dependent to dependency, the dependent stops first"]
    if any(edge.kind is Kind.ORDER_ONLY for edge in edges):
        lines.append("dotted: only ordered")
    if any(edge.poison for edge in edges):
        lines.append("thick red: carried poison")
    if any(edge.cycle for edge in edges):
        lines.append("marked cycle: lies on a cycle")
    return [*lines, *asides(drawn)]


def _node(node: Node) -> str:
    label = list(node.label)
    if node.fate:
        label[1] = f"{look(node.fate).mark} {label[1]}".strip()
    left, right = _SHAPES.get(node.fate or "", ('["', '"]'))
    return f"  n{node.index}{left}{_safe(*label)}{right}:::{_class(node)}"


def _edge(edge: Edge) -> str:
    arrow = "-.->" if edge.kind is Kind.ORDER_ONLY else "==>" if edge.poison else "-->"
    if edge.cycle:
        arrow += "|cycle|"
    return f"  n{edge.dependent} {arrow} n{edge.dependency}"


def _class(node: Node) -> str:
    return _CLASSES.get(node.fate or "", "plain")


def _class_def(name: str) -> str:
    mine = next((LOOKS[fate] for fate, known in _CLASSES.items() if known == name), PLAIN)
    dashed = ",stroke-dasharray:5 4" if mine.dashed else ""
    return f"  classDef {name} fill:{mine.fill},stroke:{mine.line},color:{mine.ink},stroke-width:2px{dashed}"


def _safe(*lines: str) -> str:
    return "<br/>".join(_SPECIAL.sub(lambda sign: f"#{ord(sign[1])};" if sign[1] else sign[0], line) for line in lines)


def _cut(drawn: Scene) -> tuple[list[Node], list[Edge]]:
    """As many nodes as fit, with all edges between them: what went wrong first, then what stands near it."""
    touching: list[list[Edge]] = [[] for _ in drawn.nodes]
    for edge in drawn.edges:
        touching[edge.dependent].append(edge)
        touching[edge.dependency].append(edge)
    kept: set[int] = set()
    room = _UNITS - _FRAME
    edges = 0
    for index in _by_weight(drawn, touching):
        kept.add(index)
        news = [edge for edge in touching[index] if edge.dependent in kept and edge.dependency in kept]
        room -= _units(_node(drawn.nodes[index])) + 1 + sum(len(_edge(edge)) + _LINK for edge in news)
        edges += len(news)
        if room < 0 or edges > _EDGES:
            kept.remove(index)
            break
    shown = [edge for edge in drawn.edges if edge.dependent in kept and edge.dependency in kept]
    return [node for node in drawn.nodes if node.index in kept], shown


def _by_weight(drawn: Scene, touching: Sequence[Sequence[Edge]]) -> list[int]:
    """All nodes: root causes, consequences, then neighbours of what came before, in declared order."""
    order = [node.index for role in (Role.ROOT_CAUSE, Role.CONSEQUENCE) for node in drawn.nodes if node.role is role]
    seen = set(order)
    starts = iter(range(len(drawn.nodes)))
    for index in _growing(order, starts, seen):
        for edge in touching[index]:
            for other in (edge.dependent, edge.dependency):
                if other not in seen:
                    seen.add(other)
                    order.append(other)
    return order


def _growing(order: list[int], starts: Iterator[int], seen: set[int]) -> Iterator[int]:
    """Reads `order` while it grows; where it ends, the next unseen start goes on."""
    read = 0
    while True:
        if read == len(order):
            start = next((index for index in starts if index not in seen), None)
            if start is None:
                return
            seen.add(start)
            order.append(start)
        yield order[read]
        read += 1
