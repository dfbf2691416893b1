"""Children that tests of the process's life talk with."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any, TypeAlias

import pytest

from tests.conftest import Child
from tests.process.talking import Talk

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


@pytest.fixture
def begin_any(any_child: Child) -> Iterator[Begin]:
    """The same for each supported Python in turn."""
    yield from _beginning(any_child)
