"""Child interpreters: for what happens once in a process."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

__all__ = ["answer", "seconds"]

_ROOT = Path(__file__).parent.parent


def answer(code: str) -> str:
    """What a fresh interpreter prints for ``code``. It finds byte code, as installed packages have it, from the second on."""
    command, kept = [sys.executable, "-c", code], {**os.environ, "PYTHONPYCACHEPREFIX": _byte_code().name}
    kept.pop("PYTHONDONTWRITEBYTECODE", None)
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=_ROOT, env=kept)  # noqa: S603 - fixed code
    return done.stdout.strip()


def seconds(code: str) -> float:
    """How long a fresh interpreter takes from its start to its end."""
    began = perf_counter()
    answer(code)
    return perf_counter() - began


@cache
def _byte_code() -> TemporaryDirectory[str]:
    return TemporaryDirectory(prefix="lifegraph-bench-")
