"""What is promised to installers."""

from __future__ import annotations

import re
import tomllib

import pytest

import lifegraph
from tests.conftest import ROOT, installed

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def names(requirements: list[str]) -> set[str]:
    """The distributions that are required."""
    return {re.split(r"[^\w.-]", requirement)[0] for requirement in requirements}


def test_the_core_needs_two_packages() -> None:
    """Installing lifegraph brings networkx and structlog, and nothing else."""
    assert {"networkx", "structlog"} == names(PROJECT["dependencies"])


def test_the_version_is_said_once() -> None:
    """The version is pyproject's; wherever else it is told, it is the same."""
    assert PROJECT["version"] == getattr(lifegraph, "__version__", PROJECT["version"])
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    released = re.findall(r"^## \[(\d.*?)\]", changes, re.MULTILINE)
    assert released[:1] in ([], [PROJECT["version"]])


@pytest.mark.parametrize(
    ("exists", "said"),
    [
        ((installed("lifegraph") / "cli").exists(), PROJECT.get("scripts") == {"lifegraph": "lifegraph.cli:main"}),
        ((ROOT / "README.md").exists(), PROJECT.get("readme") == "README.md"),
    ],
    ids=["command", "readme"],
)
def test_what_is_there_is_declared(exists: bool, said: bool) -> None:
    """The command and the readme are declared as soon as they exist, and not before."""
    assert exists == said


def test_types_are_shipped() -> None:
    """Type checkers are told that lifegraph has types."""
    assert (installed("lifegraph") / "py.typed").exists()
