"""Graphviz DOT: invented ids, names only inside quoted labels."""

from __future__ import annotations

import re

from lifegraph.view.headline import asides
from lifegraph.view.palette import CYCLE, EDGE, INK, PAGE, POISON, look
from lifegraph.view.scene import Edge, Kind, Node, Role, Scene

__all__ = ["to_dot"]

_LEFT = "\\l"  # ends a line that stands on the left
_SHAPES = {
    "failed": 'shape=octagon, style="filled"',
    "timed_out": 'shape=doubleoctagon, style="filled"',
    "abandoned": 'shape=hexagon, style="filled,dashed"',
    "poisoned": 'style="filled,diagonals"',
    "skipped": 'style="rounded,filled,dashed"',
}
_ENTITY = re.compile(r"&(?=#?\w+;)")  # what Graphviz would read as an HTML entity


def to_dot(drawn: Scene) -> str:
    """The scene in the DOT language; nodes are `n0`, `n1`, ... and their labels begin with the name."""
    font = 'fontname="Helvetica,Arial,sans-serif"'
    lines = [
        "digraph lifegraph {",
        f'  graph [bgcolor="{PAGE}", fontcolor="{INK}", {font}, fontsize=11, labeljust=l, labelloc=b,',
        f"    label={_quoted(*_caption(drawn), ends=_LEFT)}];",
        f'  node [style="rounded,filled", shape=box, {font}, fontsize=12];',
        f'  edge [color="{EDGE}", arrowsize=0.8];',
        *(_node(node) for node in drawn.nodes),
        *(_edge(edge) for edge in drawn.edges),
        "}",
    ]
    return "\n".join([*lines, ""])


def _caption(drawn: Scene) -> list[str]:
    lines = [drawn.title, "dependent -> dependency; the dependent stops first"]
    if any(edge.kind is Kind.ORDER_ONLY for edge in drawn.edges):
        lines.append("dashed: only ordered")
    if any(edge.poison for edge in drawn.edges):
        lines.append("thick red: carried poison")
    if any(edge.cycle for edge in drawn.edges):
        lines.append("bold dotted, marked cycle: lies on a cycle")
    return [*lines, *asides(drawn)]


def _node(node: Node) -> str:
    mine = look(node.fate)
    label = list(node.label)
    if node.fate:
        label[1] = f"{mine.mark} {label[1]}".strip()
    facts = [f'fillcolor="{mine.fill}"', f'color="{mine.line}"', f'fontcolor="{mine.ink}"']
    if node.fate in _SHAPES:
        facts.append(_SHAPES[node.fate])
    if node.role is not Role.FINE:
        facts.append("penwidth=2")
    if node.where:
        facts.append(f"tooltip={_quoted(node.where)}")
    return f"  n{node.index} [label={_quoted(*label)}, {', '.join(facts)}];"


def _edge(edge: Edge) -> str:
    style = ""
    if edge.cycle:
        style = f' [label="cycle", style="bold,dotted", color="{CYCLE}", fontcolor="{CYCLE}", penwidth=2.5]'
    elif edge.kind is Kind.ORDER_ONLY:
        style = " [style=dashed]"
    elif edge.poison:
        style = f' [color="{POISON}", penwidth=2.5]'
    return f"  n{edge.dependent} -> n{edge.dependency}{style};"


def _quoted(*lines: str, ends: str = "") -> str:
    """Lines as one quoted string; backslashes and entities in them mean themselves."""
    safe = [_ENTITY.sub("&amp;", line.replace("\\", "\\\\").replace('"', '\\"')) for line in lines]
    return '"' + (ends.join([*safe, ""]) if ends else "\\n".join(safe)) + '"'
