r"""All code in README.md, docs/ and the docstrings runs.

In a page, the fenced blocks marked ``python`` share one namespace, in order, as if they were one module:

* a block with ``>>>`` is a doctest;
* any other block is executed;
* a block marked ``text output`` right after it is what it must have printed (``...`` stands for anything);
* a block marked ``python notest: the reason`` is only compiled.
"""

from __future__ import annotations

import contextlib
import doctest
import importlib
import io
import pkgutil
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import pytest

import lifegraph
from tests.conftest import ROOT

FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
OPTIONAL = {"ray", "rich", "torch"}  # what a module may need that is not installed here
PAGES = sorted(path for path in (ROOT / "README.md", *(ROOT / "docs").rglob("*.md")) if path.exists())
MODULES = sorted(
    name for _, name, _ in pkgutil.walk_packages(lifegraph.__path__, "lifegraph.") if not name.endswith(".__main__")
)

of_pages = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))


@dataclass(frozen=True)
class Block:
    """A fenced block: its info string, its text, and the line in which its text begins."""

    info: str
    text: str
    line: int

    @property
    def language(self) -> str:
        return self.info.partition(" ")[0]


def blocks(page: str) -> Iterator[Block]:
    """The fenced blocks of a page, indented ones too."""
    lines = page.splitlines()
    number = 0
    while number < len(lines):
        opening = re.match(r"^(\s*)(`{3,}|~{3,})\s*([^`]*)$", lines[number])
        number += 1
        if not opening:
            continue
        indent, fence, info = opening.groups()
        began = number
        while number < len(lines) and not re.match(rf"^\s*{fence[0]}{{{len(fence)},}}\s*$", lines[number]):
            number += 1
        assert number < len(lines), f"the block in line {began} is never closed"
        yield Block(
            info.strip(), "\n".join(line.removeprefix(indent) for line in lines[began:number]) + "\n", began + 1
        )
        number += 1


class Page:
    """The blocks of one page, run in order in one module."""

    def __init__(self, path: str, source: str) -> None:
        self.path = path
        self.source = source
        self.module = ModuleType(re.sub(r"\W", "_", path))
        self.module.__file__ = path
        self.ran = 0

    def run(self) -> None:
        """Run every block; the first failure is raised."""
        sys.modules[self.module.__name__] = self.module  # annotations are looked up there
        printed: str | None = None
        try:
            for block in blocks(self.source):
                if block.language in ("python", "pycon", "py"):
                    printed = self.python(block)
                elif block.info == "text output":
                    self.compare(block, printed)
        finally:
            del sys.modules[self.module.__name__]

    def python(self, block: Block) -> str | None:
        """Run one block and return what it printed."""
        where = f"{self.path}:{block.line}"
        notest, _, reason = block.info.partition(" ")[2].partition(":")
        if notest.strip():
            assert notest.strip() == "notest", f"{where}: not an info string: {block.info!r}"
            assert reason.strip(), f"{where}: say why: ```python notest: reason"
            compile(block.text, self.path, "exec")
            return None
        self.ran += 1
        if re.search(r"^>>> ", block.text, re.MULTILINE):
            self.doctest(block)
            return None
        code = compile("\n" * (block.line - 1) + block.text, self.path, "exec")
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(code, self.module.__dict__)
        return printed.getvalue()

    def doctest(self, block: Block) -> None:
        """Run one block as a doctest, in the page's namespace."""
        parsed = doctest.DocTestParser().get_doctest(block.text, {}, self.path, self.path, block.line - 1)
        parsed.globs = self.module.__dict__
        said = io.StringIO()
        failed = doctest.DocTestRunner(optionflags=FLAGS).run(parsed, out=said.write, clear_globs=False).failed
        assert not failed, said.getvalue()

    def compare(self, block: Block, printed: str | None) -> None:
        """What a block must have printed."""
        assert printed is not None, f"{self.path}:{block.line}: no block before that printed this"
        same = doctest.OutputChecker().check_output(block.text, printed, doctest.ELLIPSIS)
        assert same, f"{self.path}:{block.line}: expected\n{block.text}\nbut printed\n{printed}"


def test_there_are_pages_and_modules() -> None:
    """The tests below run on something."""
    assert ROOT / "docs" / "index.md" in PAGES
    assert {"lifegraph.walk", "lifegraph.errors"} <= set(MODULES)


@of_pages
def test_code_of_a_page(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All code of the page runs, and prints what the page says."""
    monkeypatch.chdir(tmp_path)
    Page(str(page.relative_to(ROOT)), page.read_text(encoding="utf-8")).run()


@of_pages
def test_links_of_a_page(page: Path) -> None:
    """Every relative link of the page leads to a file, and to a heading of it."""
    text = re.sub(r"^(\s*)(`{3,}|~{3,}).*?^\s*\2", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, heading = target.partition("#")
        there = (page.parent / name).resolve() if name else page
        assert there.exists(), f"{page}: {target}"
        if heading and there.suffix == ".md":
            assert heading in anchors(there.read_text(encoding="utf-8")), f"{page}: {target}"


def anchors(text: str) -> set[str]:
    """The names by which headings are linked to."""
    headings = re.findall(r"^#+\s+(.*?)\s*$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("name", ["lifegraph", *MODULES])
def test_docstrings(name: str) -> None:
    """The examples in the docstrings of each module hold."""
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name not in OPTIONAL:
            raise
        pytest.skip(f"needs {error.name}")
    said = io.StringIO()
    runner = doctest.DocTestRunner(optionflags=FLAGS)
    for example in doctest.DocTestFinder(exclude_empty=True).find(module, name):
        runner.run(example, out=said.write)
    assert not runner.summarize(verbose=False).failed, said.getvalue()


GOOD = """
```python
from __future__ import annotations
import dataclasses, typing
@dataclasses.dataclass
class A:
    b: B
```
1. indented

   ```python
   class B: pass
   print(typing.get_type_hints(A)["b"].__name__, 1.25)
   ```

   ```text output
   B ...
   ```

```python notest: it would never end
while True: pass
```

```python
>>> A(B()).b is None
False
```

```text
not python
```
"""


def test_a_page_is_one_module() -> None:
    """Blocks share a namespace, output is compared, and what is no test is passed over."""
    page = Page("example.md", GOOD)
    page.run()
    assert page.ran == 3


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("```python\nassert False, 'no'\n```", "no"),
        ("```python\n>>> 1 + 1\n3\n```", "Expected"),
        ("```python\nprint(1)\n```\n```text output\n2\n```", "but printed"),
        ("```text output\n2\n```", "no block before"),
        ("```python notest\nx\n```", "say why"),
        ("```python skip: why\nx\n```", "not an info string"),
        ("```python\nx", "never closed"),
    ],
)
def test_a_bad_page_is_seen(source: str, says: str) -> None:
    """A block that fails, prints something else or hides without a reason fails its page."""
    with pytest.raises(AssertionError, match=re.escape(says)):
        Page("example.md", source).run()


def test_an_error_names_the_line_of_the_page() -> None:
    """The traceback of a failing block names the page and the line in it."""
    with pytest.raises(ZeroDivisionError) as caught:
        Page("example.md", "# Title\n\n```python\nx = 1\n1 / 0\n```\n").run()
    assert ("example.md", 5) == (caught.traceback[-1].frame.code.raw.co_filename, caught.traceback[-1].lineno + 1)
