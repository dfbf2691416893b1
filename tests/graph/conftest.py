"""What the tests of the graph share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.graph.world import World


@pytest.fixture
def world() -> Iterator[World]:
    """A world of its own for each test; whatever hangs in it is let go at the end."""
    made = World()
    yield made
    made.gate.set()
