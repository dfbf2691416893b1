"""One door to all painters: by method, by the ending of a file's name, or by where it is shown."""

from __future__ import annotations

import os
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from shutil import get_terminal_size
from typing import Any, Final, TextIO

from .as_json import to_json
from .dot import to_dot
from .html import to_html
from .mermaid import to_mermaid
from .scene import Scene, scene
from .sources import Drawable, Reported
from .svg import to_svg
from .text import to_text
from .trace import to_trace

__all__ = ["ENDINGS", "Drawn", "form_of", "printed"]

ENDINGS: Final = {
    ".txt": "tree", ".dot": "dot", ".gv": "dot", ".mmd": "mermaid", ".svg": "svg", ".html": "html", ".htm": "html",
    ".trace.json": "trace", ".json": "json",
}  # fmt: skip
_INLINE = 300  # nodes that a notebook shows as a picture; more are shown as text


class Drawn(ABC):
    """What can be drawn. ``report`` lays fates over it; a report draws its own.

    ``reduce`` leaves out edges that longer paths imply; ``focus`` shows only one resource with what it depends on
    and what depends on it, and raises ValueError for a name that is not there.
    """

    @abstractmethod
    def _drawn(self) -> tuple[Drawable, Reported | None]:
        """The graph, and the fates to lay over it."""

    def to_text(
        self, report: Reported | None = None, *, reduce: bool = False, focus: str | None = None,
        unicode: bool = True, color: bool = False, width: int | None = None,
    ) -> str:  # fmt: skip
        """A tree for a terminal, dependents above what they depend on; ``width`` in characters."""
        return to_text(self._scene(report, reduce, focus), unicode=unicode, color=color, width=width)

    def to_dot(self, report: Reported | None = None, *, reduce: bool = False, focus: str | None = None) -> str:
        """The graph in Graphviz's language; arrows point from dependent to dependency."""
        return to_dot(self._scene(report, reduce, focus))

    def to_mermaid(self, report: Reported | None = None, *, reduce: bool = False, focus: str | None = None) -> str:
        """The graph in Mermaid's language; arrows point from dependent to dependency."""
        return to_mermaid(self._scene(report, reduce, focus))

    def to_svg(self, report: Reported | None = None, *, reduce: bool = False, focus: str | None = None) -> str:
        """The graph as one SVG picture; Graphviz lays it out where that is installed and the graph is small."""
        return to_svg(self._scene(report, reduce, focus))

    def to_html(self, report: Reported | None = None, *, reduce: bool = False, focus: str | None = None) -> str:
        """The graph as one page that needs no network: search, zoom, what a failure would poison, the run over time."""
        return to_html(self._scene(report, reduce, focus))

    def to_json(self, report: Reported | None = None, *, reduce: bool = False, focus: str | None = None) -> str:
        """The graph as JSON, for programs."""
        return to_json(self._scene(report, reduce, focus))

    def show(self, report: Reported | None = None, *, reduce: bool = False, focus: str | None = None) -> None:
        """Print the tree, in colours where the terminal has them; in a notebook, draw the picture."""
        drawn = self._scene(report, reduce, focus)
        display = _notebook()
        if display is not None:
            display(_mimebundle(drawn), raw=True)
        else:
            sys.stdout.write(printed(drawn, sys.stdout))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a picture by the ending of ``path``; raises ValueError for an ending it does not know."""
        form = form_of(path)
        forms = self._forms()
        if form not in forms:
            raise ValueError(f"cannot save to {os.fspath(path)!r}: only a report has times to draw")
        Path(path).write_text(forms[form](), encoding="utf-8")

    def _forms(self) -> Mapping[str, Callable[[], str]]:
        return {
            "tree": self.to_text, "dot": self.to_dot, "mermaid": self.to_mermaid, "svg": self.to_svg,
            "html": self.to_html, "json": self.to_json,
        }  # fmt: skip

    def _trace(self) -> str:
        return to_trace(self._scene(None, reduce=False, focus=None))

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, Any]:
        return _mimebundle(self._scene(None, reduce=False, focus=None))

    def _scene(self, report: Reported | None, reduce: bool, focus: str | None) -> Scene:
        """What all of these paint."""
        source, own = self._drawn()
        return scene(source, report if report is not None else own, reduce=reduce, focus=focus)


def form_of(path: str | os.PathLike[str]) -> str:
    """The form that the ending of a file's name asks for; raises ValueError for one that means nothing."""
    name = Path(path).name.lower()
    for ending, form in ENDINGS.items():
        if name.endswith(ending):
            return form
    known = ", ".join(ENDINGS)
    raise ValueError(f"cannot save to {os.fspath(path)!r}: no picture ends in {Path(name).suffix!r}; these do: {known}")


def printed(drawn: Scene, stream: TextIO) -> str:
    """The tree as this stream can show it: its signs, its width, and colours where it is a terminal that has them."""
    terminal = stream.isatty()
    color = terminal and "NO_COLOR" not in os.environ and os.environ.get("TERM", "") not in ("", "dumb")
    width = get_terminal_size().columns if terminal else None
    text = to_text(drawn, color=color, width=width)
    try:
        text.encode(getattr(stream, "encoding", None) or "ascii")
    except (UnicodeError, LookupError):
        return to_text(drawn, unicode=False, color=color, width=width)
    return text


def _mimebundle(drawn: Scene) -> dict[str, Any]:
    bundle = {"text/plain": to_text(drawn)}
    return bundle | {"image/svg+xml": to_svg(drawn)} if len(drawn.nodes) <= _INLINE else bundle


def _notebook() -> Callable[..., None] | None:
    """How a notebook is shown something, if this is one."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if shell is None or not hasattr(shell, "kernel"):
        return None
    return getattr(sys.modules.get("IPython.display"), "display", None)
