"""Children that tests of the process's life talk with."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from _pytest.mark import ParameterSet

from tests.conftest import Child, found
from tests.process.talking import Talk
from tests.pythons import SUPPORTED

Begin: TypeAlias = Callable[..., Talk]


def _beginning(child: Child) -> Iterator[Begin]:
    with ExitStack() as stack:

        def begin(program: str, *args: str, **options: Any) -> Talk:
            return stack.enter_context(Talk(child, program, *args, **options))

        yield begin


@pytest.fixture
def begin(child: Child) -> Iterator[Begin]:
    """Begins a talk with a child of the running Python; it is killed after the test."""
    yield from _beginning(child)


def _every_python() -> list[ParameterSet]:
    """The running Python's version, and the others, which take as long again each."""
    running = sys.version_info[:2]
    return [
        pytest.param(minor, id=f"py{minor[0]}.{minor[1]}", marks=() if minor == running else pytest.mark.slow)
        for minor in SUPPORTED
    ]


@pytest.fixture(params=_every_python())
def begin_any(request: pytest.FixtureRequest, import_paths: tuple[Path, Path]) -> Iterator[Begin]:
    """The same for each supported Python in turn; slow for all but the running one."""
    if request.param not in found():
        pytest.skip(f"no Python {request.param[0]}.{request.param[1]} found here")
    yield from _beginning(Child(found()[request.param], *import_paths))
