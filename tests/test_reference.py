"""The tables of docs/reference/ say what the code says, and the programs in README.md and docs/ print what they say.

A program is a block marked ``python`` right before one marked ``text app.py``: saved as app.py and run by itself, it
must have printed that. Times in it may differ.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import ROOT, Child
from tests.test_docs import PAGES, blocks

TIMES = re.compile(r"<?\b\d[\d.,]*(?= (?:ms|s)\b)")  # "after 5.00 s", "<1 ms"


def programs() -> Iterator[tuple[str, str, str]]:
    """Where each program stands, its text, and what it prints."""
    for page in PAGES:
        before = None
        for block in blocks(page.read_text(encoding="utf-8")):
            if block.info == "text app.py":
                assert before is not None and before.info == "python", f"{page}:{block.line}: no program before it"
                yield f"{page.relative_to(ROOT)}:{before.line}", before.text, block.text
            before = block


PROGRAMS = [pytest.param(text, prints, id=where) for where, text, prints in programs()]


@pytest.mark.parametrize(("text", "prints"), PROGRAMS)
def test_a_program_prints_what_its_page_says(text: str, prints: str, child: Child, tmp_path: Path) -> None:
    """Each program, run by itself, prints what stands below it."""
    (tmp_path / "app.py").write_text(text, encoding="utf-8")
    start = f"import os, runpy; os.chdir({str(tmp_path)!r}); runpy.run_path({str(tmp_path / 'app.py')!r}, {{}}, '__main__')"
    printed = child.run(start, env={"PYTHONIOENCODING": "utf-8"}).stdout.replace(f"{tmp_path}/", "")
    assert timeless(prints) == timeless(printed)


def timeless(text: str) -> str:
    """The text without its times, and without the blanks at its end."""
    return "\n".join(line.rstrip() for line in TIMES.sub("#", text).strip().splitlines())
