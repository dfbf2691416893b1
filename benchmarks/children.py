"""Child interpreters: for what happens once in a process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from time import perf_counter

__all__ = ["answer", "seconds"]

_ROOT = Path(__file__).parent.parent


def answer(code: str) -> str:
    """What a fresh interpreter prints for ``code``."""
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=_ROOT)  # noqa: S603 - fixed code
    return done.stdout.strip()


def seconds(code: str) -> float:
    """How long a fresh interpreter takes from its start to its end."""
    began = perf_counter()
    answer(code)
    return perf_counter() - began
