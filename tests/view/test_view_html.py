"""The HTML page, read as text; tests/view/test_view_browser.py opens it in a browser."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifegraph import Graph, resource
from lifegraph.view import scene, to_html
from lifegraph.view.labels import visible
from lifegraph.view.palette import DARK, DAY, EDGE, LOOKS, NIGHT, PAGE, PLAIN
from tests.view.samples import NASTY, golden, named, tiers, tiers_report


class Reader(HTMLParser):
    """The elements of a page, its attributes, and what stands in scripts and styles."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.inside: dict[str, str] = {}
        self.text = ""
        self._open: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        facts = {key: value or "" for key, value in attrs}
        self.tags.append(tag)
        self.attributes += [(tag, key, value) for key, value in facts.items()]
        self._open.append("data" if facts.get("id") == "data" else tag)

    def handle_endtag(self, tag: str) -> None:
        self._open.append("")

    def handle_data(self, data: str) -> None:
        where = self._open[-1] if self._open else ""
        if where in ("data", "script", "style"):
            self.inside[where] = self.inside.get(where, "") + data
        else:
            self.text += data


def data_of(page: str) -> dict[str, Any]:
    """What the scripts read."""
    read: dict[str, Any] = json.loads(Reader(page).inside["data"])
    return read


@pytest.mark.parametrize(
    ("name", "page"),
    [
        ("poisoned.html", to_html(scene(tiers(), tiers_report()), engine="layered")),
        ("nasty.html", to_html(scene(named(NASTY)), engine="layered")),
    ],
)
def test_pages_look_as_agreed(name: str, page: str) -> None:
    """All but scripts and styles, which have files of their own, is what the golden file shows."""
    page = re.sub(r"<style>.*?</style>", "<style/>", page, flags=re.DOTALL)
    page = re.sub(r"<script>.*?</script>", "<script/>", page, flags=re.DOTALL)
    golden(name, re.sub(r"sha256-[\w+/=]+", "sha256", page))


def test_the_policy_allows_what_is_there_and_nothing_else() -> None:
    """Default is none; the hashes are those of the script and the style; nothing points anywhere."""
    page = to_html(scene(tiers(), tiers_report()))
    read = Reader(page)
    [policy] = [value for tag, key, value in read.attributes if tag == "meta" and "default-src" in value]
    hashes = {
        f"'sha256-{base64.b64encode(hashlib.sha256(read.inside[part].encode()).digest()).decode()}'"
        for part in ("script", "style")
    }
    assert "default-src 'none'" in policy
    assert hashes == set(re.findall(r"'sha256-[^']+'", policy))
    assert "unsafe" not in policy
    assert ["data:,"] == [value for _, key, value in read.attributes if key in ("src", "href", "action", "srcset")]
    assert not [key for _, key, _ in read.attributes if key == "style" or key.startswith("on")]
    assert not re.search(r"https?://|@import|url\(", page)


@given(st.lists(st.text(st.characters(), max_size=12) | st.sampled_from(NASTY), unique=True, max_size=9), st.text())
def test_no_name_leaves_its_place(names: list[str], title: str) -> None:
    """Whatever the names, the page has the same elements, and the data gives every name as it is shown."""
    plain = Reader(to_html(scene(named([f"n{at}" for at in range(len(names))], title="t")), engine="layered"))
    page = to_html(scene(named(names, title=title)), engine="layered")
    page.encode()
    read = Reader(page)
    assert plain.tags == read.tags
    assert [visible(name) for name in names] == data_of(page)["names"]
    assert "<" not in read.inside["data"]


def test_errors_are_text_without_scripts() -> None:
    """Root causes, their errors and their consequences can be read in the page itself."""
    text = Reader(to_html(scene(tiers(), tiers_report()))).text
    for said in ("HookTimeout: stop() still ran after 5.0 s", 'OSError: link "a\\b" is down', "because of FileTier"):
        assert said in text
    assert "arrows point from dependent to dependency" in text


@resource
class Base:
    def close(self) -> None: ...


@resource
class User:
    def __init__(self, base: Base) -> None: ...

    def stop(self) -> None:
        raise OSError("no <b>way</b>")


@resource
class Other:
    def __init__(self, user: User) -> None: ...

    def stop(self) -> None: ...


def test_a_real_run_has_its_timeline() -> None:
    """The report of a teardown is drawn with its times, and its critical path in words."""
    graph = Graph(Other)
    graph.start()
    page = graph.teardown().to_html()
    assert "critical path" in Reader(page).text
    assert "Other -> User" in Reader(page).text
    told = data_of(page)
    assert [0, 1] == told["critical"]
    assert [True, True, False] == [began is not None for began in told["began"]]
    assert "no <b>way</b>" in told["errors"]["1"][0]
    assert "raise OSError" in " ".join(told["stacks"]["1"])


def luminance(color: str) -> float:
    """Relative luminance, after WCAG 2."""
    parts = [int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    """The contrast of two colours, after WCAG 2."""
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def test_contrast() -> None:
    """Text has at least 4.5 to 1 on its ground, and lines 3 to 1 on the page, by day and by night."""
    assert pytest.approx(21) == contrast("#000000", "#ffffff")
    for mine in (*LOOKS.values(), PLAIN):
        assert contrast(mine.ink, mine.fill) >= 4.5, mine
        assert contrast(mine.line, PAGE) >= 3, mine
    assert set(LOOKS) | {"plain"} == set(DARK)
    for fate, (fill, ink, line) in DARK.items():
        assert contrast(ink, fill) >= 4.5, fate
        assert contrast(line, NIGHT["page"]) >= 3, fate
    assert contrast(EDGE, PAGE) >= 3
    for page in (DAY, NIGHT):
        for ink in ("ink", "faint"):
            assert contrast(page[ink], page["page"]) >= 4.5
            assert contrast(page[ink], page["soft"]) >= 4.5
        for line in ("edge", "poison", "cycle", "focus"):
            assert contrast(page[line], page["page"]) >= 3, line
