"""The pictures in a real browser: Chromium, driven by playwright; and Mermaid's own library, where it is at hand."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lifegraph.view import Scene, scene, to_html, to_mermaid, to_svg
from tests.view.samples import NASTY, Report, graph, named, tiers, tiers_report
from tests.view.test_view_layout import skewed

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
MERMAID = os.environ.get("LIFEGRAPH_MERMAID", "build/mermaid.min.js")
playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed"),
]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """One Chromium for all tests here."""
    with playwright.sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield opened
        opened.close()


class Opened:
    """A page, what it complained of, and what it asked for beside itself."""

    def __init__(self, browser: Any, path: Path, scheme: str = "light") -> None:
        self.context = browser.new_context(viewport={"width": 1400, "height": 900}, color_scheme=scheme)
        self.page = self.context.new_page()
        self.said: list[str] = []
        self.asked: list[str] = []
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.url = path.as_uri()
        self.page.goto(self.url)

    def ready(self) -> Any:
        """The page, once its graph stands."""
        self.page.wait_for_function("document.documentElement.dataset.ready === 'yes'")
        return self.page

    def close(self) -> None:
        """Nothing was complained of, and nothing asked for but the page itself."""
        self.context.close()
        assert [] == self.said
        assert [self.url] == self.asked


@pytest.fixture
def opened(browser: Any, tmp_path: Path) -> Iterator[Any]:
    """Opens pages, and looks at the end what they complained of."""
    pages: list[Opened] = []

    def show(drawn: Scene, scheme: str = "light") -> Any:
        path = tmp_path / f"{len(pages)}.html"
        path.write_text(to_html(drawn), encoding="utf-8")
        pages.append(Opened(browser, path, scheme))
        return pages[-1].ready()

    yield show
    for page in pages:
        page.close()


def timed() -> Report:
    """The report of the tiers, with times."""
    report = tiers_report()
    outcomes = {
        name: replace(outcome, began=0.1 * at, ended=0.1 * at + outcome.seconds) if outcome.seconds else outcome
        for at, (name, outcome) in enumerate(report.outcomes.items())
    }
    return replace(report, outcomes=outcomes)


def listed(page: Any, which: str) -> list[str]:
    """The names in a list of the panel, without their marks."""
    return [text.split(" ", 1)[-1] for text in page.locator(f"#{which} button").all_inner_texts()]


def test_search_select_and_fail(opened: Any) -> None:
    """Search finds, Enter selects and shows the blast radius, "fail this" forecasts, and back is as it was."""
    page = opened(scene(tiers(), timed()))
    page.keyboard.press("Tab")
    page.locator("#search").fill("filet")
    assert ["FileTier"] == listed(page, "results")
    page.keyboard.press("Enter")
    assert "FileTier" == page.locator("#panel h2").inner_text()
    assert "not proven stopped, it poisons 3 of 10" == page.locator("#blast").inner_text()
    assert ["PrimaryTier", "Arena", "Disk"] == listed(page, "poisoned")
    assert "stop() still ran" in page.locator("#panel pre").inner_text()
    page.locator("#search").fill("Scheduler")
    page.keyboard.press("Enter")
    page.locator("#fail").click()
    assert ["FileTier", "NixlTier", "PrimaryTier", "Arena", "Disk"] == listed(page, "forecast-poisoned")
    assert "if Scheduler failed, 5 poisoned, 4 released" in page.locator("#forecast").inner_text()
    assert "true" == page.locator("#fail").get_attribute("aria-pressed")
    page.locator("#clear").click()
    assert page.locator("#forecast").is_hidden()
    assert "released by kill" in page.locator("#panel p").first.inner_text()


def test_keys_and_mouse(opened: Any) -> None:
    """The arrows follow edges, f fails, Escape lets go; a click selects, the wheel zooms, the timeline selects."""
    page = opened(scene(tiers(), timed()), "dark")
    assert page.evaluate("document.documentElement.classList.contains('dark')")
    page.locator("#sheet").focus()
    page.keyboard.press("ArrowDown")
    assert "FileTier" == page.locator("#panel h2").inner_text()
    page.keyboard.press("ArrowUp")
    assert "Scheduler" == page.locator("#panel h2").inner_text()
    page.keyboard.press("f")
    assert page.locator("#forecast").is_visible()
    page.keyboard.press("Escape")
    assert 0 == page.locator("#panel h2").count()
    spot = page.evaluate("[data.x[5] * camera.k + camera.x, data.y[5] * camera.k + camera.y]")
    page.locator("#sheet").click(position={"x": spot[0], "y": spot[1]})
    assert "Arena" == page.locator("#panel h2").inner_text()
    before = page.evaluate("camera.k")
    page.mouse.wheel(0, -300)
    page.wait_for_function(f"camera.k > {before}")
    page.locator("#rows canvas").click(position={"x": 30, "y": 10})
    assert "Server" == page.locator("#panel h2").inner_text()


def test_what_is_painted(opened: Any) -> None:
    """A failed node is painted in its colour, and labels lie inside their boxes."""
    page = opened(scene(tiers(), tiers_report()))
    found = page.evaluate(
        """() => {
          const scale = window.devicePixelRatio;
          const copy = new OffscreenCanvas(ground.width, ground.height).getContext('2d', { willReadFrequently: true });
          copy.drawImage(ground, 0, 0);
          const at = (node) => [...copy.getImageData(Math.round((data.x[node] * camera.k + camera.x) * scale),
            Math.round(((data.y[node] - data.h[node] / 2 + 4) * camera.k + camera.y) * scale), 1, 1).data].slice(0, 3);
          pen.font = `bold 12px ${MONO}`;
          const wide = data.lines.filter((lines, node) => lines.some((l) => pen.measureText(l).width > data.w[node] - 4));
          return [at(2), at(4), at(0), wide.length];
        }"""
    )
    assert [[254, 226, 226], [254, 243, 199], [220, 252, 231], 0] == found


def test_nasty_names(opened: Any) -> None:
    """Names of every kind are found, selected and shown, and run nothing."""
    names = [*NASTY, '"><img src=x onerror=alert(1)>', "<!--<script>"]
    page = opened(scene(named(names, [(0, at) for at in range(1, len(names))])))
    for at in (0, names.index("</script>"), len(names) - 2, len(names) - 1):
        page.evaluate(f"select({at})")
        assert page.evaluate(f"data.names[{at}]") == page.locator("#panel h2").inner_text()
    assert 0 == page.locator("img").count()


@pytest.mark.parametrize("names", [[], ["alone"], ["a", "b", "c"]], ids=len)
def test_little_is_enough(opened: Any, names: list[str]) -> None:
    """Nothing at all, one resource and a cycle are shown, and take every key."""
    page = opened(scene(named(names, [(0, 1), (1, 2), (2, 0), (2, 2)] if len(names) == 3 else [])))
    page.locator("#sheet").focus()
    for key in ("ArrowDown", "ArrowRight", "f", "ArrowUp", "Escape", "0", "+", "-", "/"):
        page.keyboard.press(key)
    assert "search" == page.evaluate("document.activeElement.id")
    assert ("lies on a cycle" in page.locator("#legend").inner_text()) == (len(names) == 3)


def test_ten_thousand(opened: Any) -> None:
    """Thousands are usable: search, select, fail, and the forecast names all that is poisoned."""
    edges = skewed(10_000, 30_000, 2)
    page = opened(scene(named([f"resource {at}" for at in range(10_000)], edges)))
    page.locator("#search").fill("resource 9999")
    page.keyboard.press("Enter")
    assert "resource 9999" == page.locator("#panel h2").inner_text()
    below: dict[int, list[int]] = {}
    for upper, lower in edges:
        below.setdefault(upper, []).append(lower)
    hit, work = set[int](), [9999]
    for node in work:
        work += [other for other in below.get(node, []) if other not in hit]
        hit.update(below.get(node, []))
    assert f"not proven stopped, it poisons {len(hit)} of 10000" == page.locator("#blast").inner_text()


def test_svg_is_drawn(browser: Any, tmp_path: Path) -> None:
    """An SVG of nasty names is rendered, its texts inside their boxes."""
    path = tmp_path / "x.svg"
    path.write_text(to_svg(scene(named([*NASTY[:40], "日本語", "😀"])), engine="layered"), encoding="utf-8")
    shown = Opened(browser, path)
    wide = shown.page.evaluate(
        """() => [...document.querySelectorAll('.node')].filter((node) => [...node.querySelectorAll('text')].some(
          (text) => text.getBBox().width > node.querySelector('rect, path').getBBox().width)).length"""
    )
    assert 0 == wide
    assert shown.page.screenshot().startswith(b"\x89PNG")
    shown.close()


@pytest.mark.skipif(not Path(MERMAID).exists(), reason="Mermaid's library is not at hand: see LIFEGRAPH_MERMAID")
@pytest.mark.parametrize(
    "drawn",
    [
        scene(tiers(), tiers_report()),
        scene(named(["start", "end", "pre_end", "END"], [(0, 1), (1, 2), (2, 3)])),
        scene(named(NASTY, [(0, at) for at in range(1, len(NASTY))])),
        scene(graph({"a": "b", "b": "a", "c": "c"})),
    ],
    ids=["tiers", "end", "nasty", "cycle"],
)
def test_mermaid_draws_it(browser: Any, drawn: Scene) -> None:
    """Mermaid's own library renders every chart, with a node for each resource, and reads the labels as they are meant."""
    page = browser.new_page()
    page.set_content("<body></body>")
    page.add_script_tag(path=MERMAID)
    svg = page.evaluate(
        """async (chart) => {
          mermaid.initialize({ startOnLoad: false, securityLevel: 'strict' });
          document.body.innerHTML = (await mermaid.render('x', chart)).svg;
          return [...document.querySelectorAll('.node')].map((node) => node.textContent);
        }""",
        to_mermaid(drawn),
    )
    page.close()
    labels = [text for text in svg if "arrows: dependent to dependency" not in text]
    assert len(drawn.nodes) == len(labels)
    short = [node.label[0] for node in drawn.nodes if node.label[0].isalnum()]
    assert all(any(text.startswith(name) for text in labels) for name in short)
