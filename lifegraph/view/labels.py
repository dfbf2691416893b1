"""Any string as one short, honest line: nothing invisible, nothing that moves a cursor or turns the writing around."""

from __future__ import annotations

from collections.abc import Sequence
from unicodedata import category, east_asian_width

__all__ = ["cells", "clean", "counted", "duration", "fit", "listing", "shorten", "visible"]

# Letters and marks that Unicode calls printable although they draw nothing.
_BLANKS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")


def visible(name: str) -> str:
    """`name` as it stands where that is plain to see, else quoted with escapes, as `repr` would.

    No two names give the same line.
    """
    plain = name.isprintable() and name[:1] not in ("", " ", "'", '"') and name[-1] != " "
    if plain and _BLANKS.isdisjoint(name) and not category(name[0]).startswith("M"):
        return name
    inside = _seen(name.replace("\\", "\\\\").replace("'", "\\'"))
    if inside and category(inside[0]).startswith("M"):  # a mark would sit on the quote before it
        inside = _escaped(inside[0]) + inside[1:]
    return f"'{inside}'"


def clean(text: str) -> str:
    """`text` on one line, with escapes for what cannot be seen; tabs become spaces."""
    return _seen(text.replace("\t", "    "))


def _seen(text: str) -> str:
    if text.isprintable() and _BLANKS.isdisjoint(text):
        return text
    return "".join(c if c.isprintable() and c not in _BLANKS else _escaped(c) for c in text)


def _escaped(char: str) -> str:
    return char.encode("unicode_escape").decode("ascii")


def cells(text: str) -> int:
    """How many terminal cells `text` takes, at most: wide characters take two, and marks are counted too."""
    if text.isascii():
        return len(text)
    return sum(2 if east_asian_width(c) in "WF" else 1 for c in text)


def shorten(text: str, limit: int) -> str:
    """`text` in at most `limit` cells, with the middle left out: names often differ at their ends."""
    if len(text) <= limit and cells(text) <= limit:
        return text
    tail = fit(text[::-1], (limit - 1) // 3)[::-1]
    return f"{fit(text, limit - 1 - cells(tail))}…{tail}"


def fit(text: str, limit: int) -> str:
    """As much of the beginning of `text` as `limit` cells can hold."""
    used = 0
    for count, char in enumerate(text[: max(limit, 0)]):
        used += 2 if east_asian_width(char) in "WF" else 1
        if used > limit:
            return text[:count]
    return text[: max(limit, 0)]


def listing(names: Sequence[str], most: int = 3, limit: int = 60) -> str:
    """Some names as a phrase: `A, B, C and 4 more`."""
    shown = ", ".join(shorten(visible(name), limit) for name in names[:most])
    return f"{shown} and {len(names) - most:,} more" if len(names) > most else shown


def duration(seconds: float) -> str:
    """A time for people: `<1 ms`, `12 ms`, `5.00 s`, `1,200 s`."""
    if seconds < 0.0005:
        return "<1 ms"
    if seconds < 0.0995:
        return f"{seconds * 1000:.0f} ms"
    digits = 2 if seconds < 9.995 else 1 if seconds < 99.95 else 0
    return f"{seconds:,.{digits}f} s"


def counted(count: int, one: str, many: str) -> str:
    """`1 resource`, `2 resources`."""
    return f"{count:,} {one if count == 1 else many}"
