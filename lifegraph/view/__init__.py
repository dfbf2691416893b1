"""Seeing a graph: `scene` gathers plain data once, each painter turns a `Scene` into a string."""

from lifegraph.view.dot import to_dot
from lifegraph.view.drawing import Drawn, save
from lifegraph.view.mermaid import to_mermaid
from lifegraph.view.scene import Edge, Kind, Node, Role, Scene, Verdict, reduced, scene
from lifegraph.view.sources import Drawable, Ended, Reported
from lifegraph.view.text import to_text

__all__ = [
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
    "reduced",
    "save",
    "scene",
    "to_dot",
    "to_mermaid",
    "to_text",
]
