"""One door to all painters: by method, or by the ending of a file's name."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from .dot import to_dot
from .mermaid import to_mermaid
from .scene import Scene, scene
from .sources import Drawable, Reported
from .text import to_text

__all__ = ["Drawn", "save"]

_ENDINGS: Final = {".json": "json", ".txt": "text", ".dot": "dot", ".gv": "dot", ".mmd": "mermaid"}


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

    def _scene(self, report: Reported | None, reduce: bool, focus: str | None) -> Scene:
        source, own = self._drawn()
        return scene(source, report if report is not None else own, reduce=reduce, focus=focus)


def save(path: str | os.PathLike[str], forms: Mapping[str, Callable[[], str]]) -> None:
    """Write to ``path`` what its ending asks for; raises ValueError for an ending that means nothing."""
    ending = Path(path).suffix.lower()
    form = _ENDINGS.get(ending)
    if form is None or form not in forms:
        known = ", ".join(end for end, form in _ENDINGS.items() if form in forms)
        raise ValueError(f"cannot save to {os.fspath(path)!r}: no picture ends in {ending!r}; these do: {known}")
    Path(path).write_text(forms[form](), encoding="utf-8")
