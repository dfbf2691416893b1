"""SIGKILL of the whole process at any moment leaves nothing behind, and nothing wrong on the disk."""

from __future__ import annotations

import pytest

from .killing import sweep


def test_killed_at_a_few_moments(tmp_path):
    """No process, no name, no wrong pack; the next run opens clean and serves right bytes only."""
    assert sweep(tmp_path / "kv", 8, seed=0) >= 4


@pytest.mark.slow
def test_killed_at_two_hundred_moments(tmp_path):
    """The same, often enough to hit every part of a run."""
    assert sweep(tmp_path / "kv", 200, seed=1) >= 100
