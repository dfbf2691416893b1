"""One page that needs nothing but itself: the graph to move about in, what would happen, the run over time, the errors.

A policy in its own head forbids it every request, and every script but its own. Whatever a graph says reaches the page as
data, or as escaped text.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator, Mapping
from functools import cache
from html import escape
from importlib.resources import files

from .boxes import Box, laid_out
from .boxes import boxes as boxed
from .headline import ARROWS, asides, headline, stroke, strokes
from .labels import counted, shorten, visible
from .layout import Engine, Picture
from .palette import DARK, DAY, LOOKS, NIGHT, PLAIN, look
from .scene import Node, Role, Scene

__all__ = ["to_html"]

_SCRIPTS = ("graph.js", "paint.js", "panel.js", "timeline.js")
_TOLD = 200  # errors written out; the panel tells of every one
_HINT = (
    "Select a resource to see what it would poison. Search with /, move between neighbours with the arrow keys, "
    "zoom with + and -, fit with 0, let the selected one fail with f, let go with Escape."
)


def to_html(drawn: Scene, *, engine: Engine = "auto") -> str:
    """The scene as one HTML document; `engine` says who lays it out (see `lifegraph.view.layout`)."""
    sizes = boxed(drawn)
    script, style = _script(), _style()
    policy = (
        f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    bad = drawn.verdict is not None and not drawn.verdict.ok
    lines = [
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n<link rel="icon" href="data:,">',
        f"<title>{escape(drawn.title)}: {escape(headline(drawn))}</title>\n<style>{style}</style>\n</head>\n<body>",
        f'<header><h1 class="name">{escape(drawn.title)}</h1>',
        f'<p id="verdict"{" class=bad" if bad else ""}>{escape(headline(drawn))}</p>',
        '<input id="search" type="search" placeholder="search (/)" aria-label="search for a resource" autocomplete="off">',
        *(f'<button type="button" id="{name}" aria-label="{said}">{sign}</button>' for name, sign, said in _BUTTONS),
        "</header>",
        '<main><section id="graph" aria-label="the graph"><canvas id="ground" aria-hidden="true"></canvas>',
        f'<canvas id="sheet" tabindex="0" role="application" aria-label="{escape(_HINT)}"></canvas></section>',
        '<aside><ul id="results" aria-label="found"></ul><div id="forecast" role="status" hidden></div>',
        f'<div id="panel" aria-live="polite" data-hint="{escape(_HINT)}"></div></aside></main>',
        f'<ul id="legend">{"".join(_legend(drawn))}</ul>',
        *_timeline(drawn),
        *_errors(drawn),
        "<noscript><p>The graph is drawn by a script of this page; without scripts only the text is shown.</p></noscript>",
        f'<script type="application/json" id="data">{_data(drawn, sizes, laid_out(drawn, sizes, engine))}</script>',
        f"<script>{script}</script>\n</body>\n</html>",
    ]
    return "\n".join([*lines, ""])


_BUTTONS = (
    ("fit", "fit", "show all of the graph"),
    ("in", "+", "zoom in"),
    ("out", "\N{MINUS SIGN}", "zoom out"),
    ("theme", "dark", "dark or light"),
)


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _part(name: str) -> str:
    return files("lifegraph.view").joinpath("page", name).read_text(encoding="utf-8")


@cache
def _script() -> str:
    return '"use strict";\n' + "\n".join(map(_part, _SCRIPTS))


@cache
def _style() -> str:
    light = {fate: (mine.fill, mine.ink, mine.line) for fate, mine in (*LOOKS.items(), ("plain", PLAIN))}
    return f":root {{ {_variables(light, DAY)} }}\n:root.dark {{ {_variables(DARK, NIGHT)} }}\n{_part('page.css')}"


def _variables(fates: Mapping[str, tuple[str, str, str]], rest: Mapping[str, str]) -> str:
    said = [f"--{key}: {value};" for key, value in rest.items()]
    for fate, colors in fates.items():
        said += [f"--{fate}-{part}: {color};" for part, color in zip(("fill", "ink", "line"), colors, strict=True)]
    return " ".join(said)


def _data(drawn: Scene, sizes: list[Box], picture: Picture) -> str:
    """All that the scripts read. No `<` is left in it, so it can neither end its element nor open a comment."""
    nodes = drawn.nodes
    index = {node.name: node.index for node in nodes}
    straight = all(len(way) == 8 for way in picture.ways) and len(drawn.edges) > 2000
    told = {
        "names": [visible(node.name) for node in nodes],
        "short": [shorten(visible(node.name), 40) for node in nodes],
        "lines": [box.lines for box in sizes],
        "status": [node.status for node in nodes],
        "fates": [node.fate if node.fate in LOOKS else "" for node in nodes],
        "where": [node.where for node in nodes],
        "errors": {node.index: node.error for node in nodes if node.error},
        "stacks": {node.index: node.stack for node in nodes if node.stack},
        "causes": {node.index: [index[c] for c in node.causes if c in index] for node in nodes if node.causes},
        "began": [_rounded(node.began) for node in nodes],
        "ended": [_rounded(node.ended) for node in nodes],
        "x": [round(x, 1) for x, _ in picture.middles],
        "y": [round(y, 1) for _, y in picture.middles],
        "w": [round(box.width, 1) for box in sizes],
        "h": [box.height for box in sizes],
        "rows": picture.rows,
        "edges": [(edge.dependent, edge.dependency, stroke(edge)) for edge in drawn.edges],
        "ways": None if straight else [[round(value, 1) for value in way] for way in picture.ways],
        "critical": drawn.critical,
        "width": round(picture.width, 1),
        "height": round(picture.height, 1),
        "looks": {
            fate: {"mark": mine.mark if fate != "plain" else "", "word": mine.word}
            for fate, mine in (*LOOKS.items(), ("plain", PLAIN))
        },
    }
    return json.dumps(told, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c").replace(">", "\\u003e")


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 6)


def _legend(drawn: Scene) -> Iterator[str]:
    if drawn.edges:
        yield f"<li>{escape(ARROWS)}</li>"
    for key, said in strokes(drawn) if drawn.edges else ():
        yield f'<li><canvas width="48" height="18" data-stroke="{key}" aria-hidden="true"></canvas>{said}</li>'
    for fate, mine in LOOKS.items():
        if drawn.verdict is None or any(node.fate == fate for node in drawn.nodes):
            sign = f'<canvas width="46" height="18" data-fate="{fate}" aria-hidden="true"></canvas>'
            yield f"<li>{sign}{mine.mark} {mine.word}</li>"
    for line in asides(drawn):
        yield f"<li>{escape(line)}</li>"


def _timeline(drawn: Scene) -> Iterator[str]:
    if not any(node.began is not None for node in drawn.nodes):
        yield '<div id="rows" hidden></div>'
        return
    path = " -> ".join(shorten(visible(drawn.nodes[at].name), 60) for at in drawn.critical[:50])
    more = f" and {len(drawn.critical) - 50:,} more" if len(drawn.critical) > 50 else ""
    yield '<section id="timeline"><h2>The run over time</h2>'
    if path:
        yield f'<p>critical path (\N{BLACK DIAMOND}): <span class="name">{escape(path + more)}</span></p>'
    yield '<div id="rows" tabindex="0" aria-label="a bar for each stop"><canvas></canvas><div></div></div></section>'


def _errors(drawn: Scene) -> Iterator[str]:
    """What went wrong, as text that is there without scripts."""
    roots = [node for node in drawn.nodes if node.role is Role.ROOT_CAUSE or node.error]
    poisoned = [node for node in drawn.nodes if node.role is Role.CONSEQUENCE]
    if not (roots or poisoned or drawn.notes):
        return
    yield '<section id="errors"><h2>What went wrong</h2>'
    for node in sorted(roots, key=lambda node: node.role is not Role.ROOT_CAUSE)[:_TOLD]:
        yield from _told(node, "\n".join([*node.error, *node.stack]))
    for node in poisoned[:_TOLD]:
        yield from _told(node, "because of " + ", ".join(shorten(visible(name), 80) for name in node.causes[:50]))
    left = max(0, len(roots) - _TOLD) + max(0, len(poisoned) - _TOLD)
    if left:
        yield f"<p>and {counted(left, 'more resource', 'more resources')}: select them in the graph</p>"
    if drawn.notes:
        yield "<h3>notes</h3><pre>" + escape("\n".join(drawn.notes[:_TOLD])) + "</pre>"
    yield "</section>"


def _told(node: Node, text: str) -> Iterator[str]:
    where = f" ({node.where})" if node.where else ""
    name = shorten(visible(node.name), 200)
    yield f'<h3 class="name">{look(node.fate).mark} {escape(f"{name}: {node.status}{where}")}</h3>'
    if text:
        yield f"<pre>{escape(text)}</pre>"
