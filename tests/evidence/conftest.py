"""What the tests of evidence share: ways to speak to a graph, and a stage for each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.aio.looping import Beside
from tests.evidence.stage import WAYS, Stage, Way


def _stage(kind: str) -> Iterator[Stage]:
    beside = Beside()
    made = Stage(Way(kind, beside))
    try:
        yield made
    finally:
        made.close()
        beside.close()


@pytest.fixture(params=("sync", "async"))
def stage(request: pytest.FixtureRequest) -> Iterator[Stage]:
    """A stage in each world: sync verbs and hooks, async verbs and hooks; what hangs is let go at the end."""
    yield from _stage(request.param)


@pytest.fixture(params=WAYS)
def any_stage(request: pytest.FixtureRequest) -> Iterator[Stage]:
    """A stage for each mixture of sync and async verbs and hooks."""
    yield from _stage(request.param)


@pytest.fixture
def sync_stage() -> Iterator[Stage]:
    """A stage with sync verbs and sync hooks, for what is about threads."""
    yield from _stage("sync")


@pytest.fixture
def async_stage() -> Iterator[Stage]:
    """A stage with async verbs and async hooks, for what is about loops."""
    yield from _stage("async")
