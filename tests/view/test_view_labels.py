"""Names made visible, and the contrast of the palette."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifegraph.view.labels import cells, clean, duration, fit, listing, shorten, visible
from lifegraph.view.palette import EDGE, INK, LOOKS, PAGE, PLAIN, POISON
from tests.view.samples import NASTY

ANY = st.text(st.characters(), max_size=30)  # surrogates too


@pytest.mark.parametrize("name", ["Db", "db:5432", "a b", "日本語", "שלום", "😀", "C:\\new"])
def test_plain_names_stay(name: str) -> None:
    """A name that is plain to see is shown as it is."""
    assert name == visible(name)


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("", "''"),
        (" a", "' a'"),
        ("a\nb", "'a\\nb'"),
        ("\t", "'\\t'"),
        ("\u202ex", "'\\u202ex'"),
        ("\u3164", "'\\u3164'"),
        ("\u0301a", "'\\u0301a'"),
        ("\ud800", "'\\ud800'"),
        ("'a'", "'\\'a\\''"),
    ],
)
def test_hidden_things_are_written_out(name: str, shown: str) -> None:
    """What cannot be seen is quoted and escaped."""
    assert shown == visible(name)


@given(st.lists(ANY | st.sampled_from(NASTY), unique=True, max_size=20))
def test_no_two_names_look_alike(names: list[str]) -> None:
    """Different names give different lines, all printable and none blank."""
    lines = [visible(name) for name in names]
    assert len(names) == len(set(lines))
    assert all(line.isprintable() and line.strip() for line in lines)


@given(ANY, st.integers(5, 40))
def test_shortening_keeps_to_its_limit(text: str, limit: int) -> None:
    """A shortened line fits, and one that fitted is not touched."""
    line = clean(text)
    short = shorten(line, limit)
    assert cells(short) <= limit
    assert short == line or cells(line) > limit
    assert cells(fit(line, limit)) <= limit
    assert line.startswith(fit(line, limit))


def test_shortening_keeps_both_ends() -> None:
    """The middle goes, since names often differ at their ends."""
    assert "aaaaaa…zzz" == shorten("a" * 50 + "z" * 50, 10)


def test_listing_counts_the_rest() -> None:
    """A long list ends in a count."""
    assert "a, b" == listing(["a", "b"], 2)
    assert "a, b and 2 more" == listing(["a", "b", "c", "d"], 2)


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0.0, "<1 ms"), (0.012, "12 ms"), (0.25, "0.25 s"), (5.0, "5.00 s"), (42.04, "42.0 s"), (1234.4, "1,234 s")],
)
def test_durations(seconds: float, said: str) -> None:
    """Times are rounded for people."""
    assert said == duration(seconds)


def contrast(one: str, other: str) -> float:
    """The contrast of two colours as WCAG 2 defines it."""
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def luminance(color: str) -> float:
    """The relative luminance of `#rrggbb`."""
    parts = [int(color[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("mine", [*LOOKS.values(), PLAIN], ids=lambda mine: mine.word or "plain")
def test_every_look_can_be_read(mine: object) -> None:
    """Ink on fill reaches 7:1, and lines reach 3:1 on white and on dark pages."""
    fill, ink, line = (getattr(mine, name) for name in ("fill", "ink", "line"))
    assert contrast(fill, ink) >= 7
    for page in ("#ffffff", "#0d1117"):
        assert contrast(line, page) >= 3


def test_edges_and_text_can_be_read() -> None:
    """Edges reach 3:1 on both pages, and text on the page 4.5:1."""
    assert contrast(INK, PAGE) >= 4.5
    for page in ("#ffffff", "#0d1117"):
        assert min(contrast(EDGE, page), contrast(POISON, page)) >= 3


def test_no_fate_is_told_by_colour_alone() -> None:
    """Words and marks differ for every fate, in ASCII too."""
    for name in ("word", "mark", "ascii_mark"):
        assert len(LOOKS) == len({getattr(mine, name) for mine in LOOKS.values()})
