"""Seeing a graph: `scene` gathers plain data once, each painter turns a `Scene` into a string."""

from lifegraph.view.as_json import to_json
from lifegraph.view.dot import to_dot
from lifegraph.view.drawing import ENDINGS, Drawn, form_of, printed
from lifegraph.view.html import to_html
from lifegraph.view.mermaid import to_mermaid
from lifegraph.view.scene import Edge, Kind, Node, Role, Scene, Verdict, reduced, scene
from lifegraph.view.sources import Drawable, Ended, Reported
from lifegraph.view.svg import to_svg
from lifegraph.view.text import to_text
from lifegraph.view.trace import to_trace

__all__ = [
    "ENDINGS",
    "Drawable",
    "Drawn",
    "Edge",
    "Ended",
    "Kind",
    "Node",
    "Reported",
    "Role",
    "Scene",
    "Verdict",
    "form_of",
    "printed",
    "reduced",
    "scene",
    "to_dot",
    "to_html",
    "to_json",
    "to_mermaid",
    "to_svg",
    "to_text",
    "to_trace",
]
