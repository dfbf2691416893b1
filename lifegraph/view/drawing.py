"""One door to all painters: by the kind of picture, or by the ending of a file's name."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from .dot import to_dot
from .mermaid import to_mermaid
from .scene import scene
from .sources import Drawable, Reported
from .text import to_text

__all__ = ["draw", "save"]

_ENDINGS: Final = {".json": "json", ".txt": "text", ".dot": "dot", ".gv": "dot", ".mmd": "mermaid"}


def draw(
    kind: str,
    source: Drawable,
    report: Reported | None = None,
    *,
    reduce: bool = False,
    focus: str | None = None,
    **style: object,
) -> str:
    """A picture of ``source``, with the fates of ``report`` laid over it.

    ``kind`` is ``text``, ``dot`` or ``mermaid``. ``reduce`` leaves out edges that longer paths imply; ``focus``
    shows only one resource with what it depends on and what depends on it. ``text`` also takes ``unicode``,
    ``color`` and ``width``.
    """
    painters: dict[str, Callable[..., str]] = {"text": to_text, "dot": to_dot, "mermaid": to_mermaid}
    return painters[kind](scene(source, report, reduce=reduce, focus=focus), **style)


def save(path: str | os.PathLike[str], forms: Mapping[str, Callable[[], str]]) -> None:
    """Write to ``path`` what its ending asks for; raises ValueError for an ending that means nothing."""
    ending = Path(path).suffix.lower()
    form = _ENDINGS.get(ending)
    if form is None or form not in forms:
        known = ", ".join(end for end, form in _ENDINGS.items() if form in forms)
        raise ValueError(f"cannot save to {os.fspath(path)!r}: no picture ends in {ending!r}; these do: {known}")
    Path(path).write_text(forms[form](), encoding="utf-8")
