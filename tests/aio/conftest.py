"""What the tests of the asynchronous half share."""

from __future__ import annotations

import functools
import importlib.util
import shutil
import subprocess
import sys
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest

from tests.aio.looping import LOOPS, Beside, Gate, Through, has, run_on, turns
from tests.conftest import ROOT, Child, installed
from tests.graph.world import World

T = TypeVar("T")

Run = Callable[[Callable[[], Coroutine[Any, Any, T]]], T]


@pytest.fixture
def world() -> Iterator[World]:
    """A world of its own for each test; whatever hangs in it is let go at the end."""
    made = World()
    yield made
    made.gate.set()


@pytest.fixture
def gate() -> Iterator[Gate]:
    """Where things hang; opened at the end of the test."""
    made = Gate()
    yield made
    made.open()


@pytest.fixture(params=LOOPS)
def run(request: pytest.FixtureRequest, gate: Gate) -> Run[Any]:
    """Runs a main function on each kind of loop in turn; what hangs is let go before the loop ends."""

    def run(main: Callable[[], Coroutine[Any, Any, T]]) -> T:
        async def whole() -> T:
            try:
                return await main()
            finally:
                gate.open()
                await turns()

        return run_on(request.param, whole)

    return run


@pytest.fixture(params=("threads", *LOOPS))
def through(request: pytest.FixtureRequest, gate: Gate) -> Through:
    """Each way to bring a graph up and down, in turn."""
    if request.param != "threads" and request.param != "asyncio" and not has(request.param):
        pytest.skip(f"{request.param} is not installed")
    return Through(request.param, gate)


@pytest.fixture
def beside() -> Iterator[Beside]:
    """A loop in a thread of its own."""
    made = Beside()
    yield made
    made.close()


@functools.cache
def site_packages(minor: tuple[int, int]) -> Path | None:
    """Where packages for this Python are installed, in a virtual environment beside the one under test."""
    for config in sorted([*ROOT.glob(".venv*/pyvenv.cfg"), *ROOT.glob("build/venv*/pyvenv.cfg")]):
        place = config.parent / "lib" / f"python{minor[0]}.{minor[1]}" / "site-packages"
        if place.is_dir():
            return place
    return None


@pytest.fixture
def loop_child(any_child: Child, tmp_path: Path) -> Child:
    """Fresh interpreters of each supported Python that can also import anyio and uvloop, where these are found."""
    full = tmp_path / "full"
    shutil.copytree(any_child.full, full, symlinks=True)
    places = [site_packages(any_child.python.minor)]
    for name in ("uvloop", "anyio", "idna", "sniffio", "typing_extensions.py"):
        for place in places:
            if place is not None and (place / name).exists():
                (full / name).symlink_to(place / name)
        fits = name != "uvloop" or any_child.python.minor == sys.version_info[:2]  # it is compiled
        if fits and not (full / name).exists() and has(name.removesuffix(".py")):
            (full / name).symlink_to(where(name))
    return Child(any_child.python, full, any_child.bare)


def where(name: str) -> Path:
    """The folder of a package, or the file of a module."""
    if not name.endswith(".py"):
        return installed(name)
    spec = importlib.util.find_spec(name.removesuffix(".py"))
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin)


def run_child(
    child: Child, program: str, *args: str, timeout: float = 60, check: bool = True
) -> subprocess.CompletedProcess[str]:
    """Run a program that starts a loop; it is skipped where that loop's package is missing."""
    for package in ("uvloop", "anyio"):
        if package in args and not (child.full / package).exists():
            pytest.skip(f"{package} is not installed for {child.python.minor}")
    return child.run(program, *args, timeout=timeout, check=check)
