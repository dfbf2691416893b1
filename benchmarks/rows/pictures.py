"""Pictures: how long layouts and pages take, how often edges cross, and how soon a browser answers."""

from __future__ import annotations

import random
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median

from lifegraph.plan import Plan
from lifegraph.view.layout import arranged

from ..measure import Row, Scale, Stopwatch, spread

__all__ = ["measure"]

LAYOUT, READY, SELECT, CROSSINGS = 1.0, 4.0, 0.1, 1.5  # seconds, seconds, seconds, times those of dot
Edges = list[tuple[int, int]]


def measure(scale: Scale) -> Row:
    """Skewed, wide and scattered graphs of three edges for each node."""
    row = Row("pictures", "Laying out, writing and opening pictures; seconds and ratios")
    count = 1000 if scale.quick else 10_000
    shapes: dict[str, Callable[[int], Edges]] = {"skewed": _skewed, "wide": _wide, "scattered": _scattered}
    for name, shape in shapes.items():
        edges = shape(count)
        seconds = [_seconds(lambda: arranged([(130.0, 30.0)] * count, edges)) for _ in range(3)]  # noqa: B023 - at once
        row.figures.append(spread(f"layout, {name}, {count:,} nodes and {len(edges):,} edges, s", seconds, LAYOUT))
    if shutil.which("dot") is None:
        row.context.append("crossings: skipped, Graphviz is not installed")
    else:
        for name, shape in shapes.items():
            ratios = [_crossed(edges) for edges in (shape(200)[:400], shape(201)[:400])]
            row.figures.append(spread(f"crossings, {name}, 200 nodes / dot", ratios, CROSSINGS))
    plan = _plan(count, _skewed(count))
    for form in (plan.to_svg, plan.to_html, plan.to_text):
        row.figures.append(spread(f"{form.__name__}, {count:,} nodes, s", [_seconds(form) for _ in range(3)]))
    _opened(row, plan.to_html())
    return row


def _seconds(work: Callable[[], object]) -> float:
    with Stopwatch() as watch:
        work()
    return watch.spent.wall


def _skewed(count: int) -> Edges:
    chance = random.Random(2)  # noqa: S311 - the same graph each time, nothing secret
    found: set[tuple[int, int]] = set()
    while len(found) < 3 * count:
        upper, lower = chance.randrange(count), int(count * chance.random() ** 3)
        if upper > lower:
            found.add((upper, lower))
    return sorted(found, key=lambda edge: hash(edge) % 1009)


def _wide(count: int) -> Edges:
    chance, deep = random.Random(1), count // 5  # noqa: S311 - the same
    found: set[tuple[int, int]] = set()
    while len(found) < 3 * count:
        upper = chance.randrange(count - deep)
        found.add((upper, min(count - 1, (upper // deep + 1) * deep + chance.randrange(deep))))
    return sorted(found, key=lambda edge: hash(edge) % 1009)


def _scattered(count: int) -> Edges:
    chance = random.Random(3)  # noqa: S311 - the same graph each time, nothing secret
    found: set[tuple[int, int]] = set()
    while len(found) < 3 * count:
        upper = chance.randrange(count - 1)
        found.add((upper, min(count - 1, upper + 1 + int(chance.expovariate(30 / count)))))
    return sorted(found, key=lambda edge: hash(edge) % 1009)


def _crossed(edges: Edges) -> float:
    """Our crossings over those that dot counts."""
    count = 1 + max(max(edge) for edge in edges)
    text = "".join(f"{upper} -> {lower};" for upper, lower in edges)
    ran = subprocess.run(  # noqa: S603 - Graphviz, with numbers
        [shutil.which("dot") or "dot", "-v", "-Tplain"], input=f"digraph {{ {text} }}", capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    theirs = int(re.findall(r"mincross \S+ (\d+) crossings", ran.stderr)[-1])
    ours = arranged([(120.0, 36.0)] * count, edges, engine="layered").crossings or 0
    return ours / max(theirs, 1)


def _plan(count: int, edges: Edges) -> Plan:
    uses: list[list[int]] = [[] for _ in range(count)]
    for upper, lower in edges:
        uses[upper].append(lower)
    names, none = tuple(f"resource-{n}" for n in range(count)), ((),) * count
    return Plan("pictures", names, tuple(map(tuple, uses)), none, ("",) * count, (60.0,) * count, (10.0,) * count)


def _opened(row: Row, page: str) -> None:
    """How soon Chromium shows the page, and how soon it answers a selection."""
    chromium = shutil.which("chromium")
    try:
        from playwright.sync_api import sync_playwright  # noqa: PLC0415 - need not be installed
    except ImportError:
        chromium = None
    if chromium is None:
        row.context.append("browser: skipped, needs Chromium and playwright")
        return
    ready, answers = [], list[float]()
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        file = Path(folder, "page.html")
        file.write_text(page, encoding="utf-8")
        browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for _ in range(3):
            tab = browser.new_page()
            with Stopwatch() as watch:
                tab.goto(file.as_uri())
                tab.wait_for_function("document.documentElement.dataset.ready === 'yes'")
            ready.append(watch.spent.wall)
            took = "(n) => { const from = performance.now(); select(n); return (performance.now() - from) / 1000; }"
            answers.append(median(float(tab.evaluate(took, node)) for node in (1, 77, 500, 900)))
            tab.close()
        browser.close()
    row.figures.append(spread("the page in Chromium, ready, s", ready, READY))
    row.figures.append(spread("selecting a node, s", answers, SELECT))
