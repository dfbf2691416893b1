"""Two type checkers read the files of this folder, whose `assert_type` lines are the tests."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.conftest import ROOT

FILES = sorted(str(path.relative_to(ROOT)) for path in Path(__file__).parent.glob("*.py") if path != Path(__file__))


def read_by(*command: str) -> str:
    """What a type checker says; its module must be installed."""
    if find_spec(command[0]) is None:
        pytest.skip(f"{command[0]} is not installed")
    done = subprocess.run(
        [sys.executable, "-m", *command], cwd=ROOT, capture_output=True, text=True, timeout=280, check=False
    )
    return f"exit code {done.returncode}\n{done.stdout}{done.stderr}" if done.returncode else ""


def wrong(tmp_path: Path) -> str:
    """A file with an `assert_type` that does not hold."""
    file = tmp_path / "wrong.py"
    file.write_text("from typing import assert_type\n\nassert_type(1, str)\n", encoding="utf-8")
    return str(file)


def test_there_are_files_to_read() -> None:
    """The checkers have something to read."""
    assert "tests/typing/public_api.py" in FILES


def test_mypy(tmp_path: Path) -> None:
    """mypy --strict has nothing to say, and would have."""
    assert "" == read_by("mypy", "--strict", "--cache-dir", str(tmp_path), *FILES)
    assert "assert-type" in read_by("mypy", "--strict", wrong(tmp_path))


@pytest.mark.slow
def test_pyright(tmp_path: Path) -> None:
    """pyright has nothing to say, and would have."""
    assert "" == read_by("pyright", *FILES)
    assert "reportAssertTypeFailure" in read_by("pyright", wrong(tmp_path))
