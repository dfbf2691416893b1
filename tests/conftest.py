"""What all tests share: Hypothesis profiles, and child interpreters of every supported Python."""

from __future__ import annotations

import functools
import importlib.util
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.pythons import SUPPORTED, Interpreter, others

ROOT = Path(__file__).resolve().parent.parent

settings.register_profile("dev", deadline=None, print_blob=True)
settings.register_profile(
    "ci",
    deadline=None,
    print_blob=True,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("ci" if os.environ.get("CI") else "dev")


def installed(name: str) -> Path:
    """The folder of the package ``name``, which is not imported for it."""
    spec = importlib.util.find_spec(name)
    assert spec is not None, f"{name} is not installed"
    assert spec.submodule_search_locations, f"{name} is no package"
    return Path(next(iter(spec.submodule_search_locations)))


def pytest_configure(config: pytest.Config) -> None:
    """Be sure that what is tested is what was asked for: the source tree, or the installed wheel."""
    wheel = os.environ.get("LIFEGRAPH_WHEEL_TEST") == "1"
    where = installed("lifegraph")
    if wheel == (where.parent == ROOT):
        asked = "the installed wheel" if wheel else "the source tree"
        raise pytest.UsageError(f"asked to test {asked}, but lifegraph is imported from {where}")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what needs a GPU where there is none."""
    if Path("/dev/nvidiactl").exists():
        return
    for item in items:
        if item.get_closest_marker("gpu"):
            item.add_marker(pytest.mark.skip(reason="no NVIDIA GPU here"))


@dataclass(frozen=True)
class Child:
    """Runs programs in fresh interpreters of one Python that can import lifegraph, the very one under test.

    The core dependencies (networkx, structlog) can be imported there, too, unless ``bare=True``; nothing
    else outside the standard library can.
    """

    python: Interpreter
    full: Path
    bare: Path

    def run(
        self,
        program: str,
        *args: str,
        bare: bool = False,
        check: bool = True,
        timeout: float = 60,
        env: Mapping[str, str] | None = None,
        options: tuple[str, ...] = (),
    ) -> subprocess.CompletedProcess[str]:
        """Run ``program`` (source text); ``check`` fails the test when it exits with anything but 0."""
        environ = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "COV_"))}
        environ |= {
            "PYTHONPATH": str(self.bare if bare else self.full),
            "PYTHONNOUSERSITE": "1",
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONFAULTHANDLER": "1",
        }
        environ |= env or {}
        done = subprocess.run(
            [self.python.path, "-S", *options, "-c", program, *args],  # -S: no site-packages
            capture_output=True,
            text=True,
            timeout=timeout,
            env=environ,
            check=False,
            stdin=subprocess.DEVNULL,
        )
        if check and done.returncode:
            pytest.fail(f"exit code {done.returncode} of {self.python.path}\n{done.stdout}\n{done.stderr}")
        return done


@functools.cache
def found() -> dict[tuple[int, int], Interpreter]:
    """Every supported Python found, by minor version; the running one is always among them."""
    running = Interpreter(sys.version_info[:3], sys.executable)
    return {running.minor: running} | {other.minor: other for other in others()}


@pytest.fixture(scope="session")
def import_paths(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Two folders from which children import: lifegraph with its core dependencies, and lifegraph alone."""
    full, bare = tmp_path_factory.mktemp("full"), tmp_path_factory.mktemp("bare")
    for name in ("lifegraph", "networkx", "structlog"):
        (full / name).symlink_to(installed(name))
    (bare / "lifegraph").symlink_to(installed("lifegraph"))
    return full, bare


@pytest.fixture(scope="session")
def child(import_paths: tuple[Path, Path]) -> Child:
    """Fresh interpreters of the running Python."""
    return Child(found()[sys.version_info[:2]], *import_paths)


@pytest.fixture(params=SUPPORTED, ids=[f"py{major}.{minor}" for major, minor in SUPPORTED])
def any_child(request: pytest.FixtureRequest, import_paths: tuple[Path, Path]) -> Child:
    """Fresh interpreters of each supported Python in turn; a test that uses it runs once for each one found."""
    major, minor = request.param
    if (major, minor) not in found():
        pytest.skip(f"no Python {major}.{minor} found here")
    return Child(found()[major, minor], *import_paths)


@pytest.fixture(scope="session")
def other_children(import_paths: tuple[Path, Path]) -> list[Child]:
    """The supported Pythons found beside the running one, one `Child` each."""
    return [Child(python, *import_paths) for minor, python in sorted(found().items()) if minor != sys.version_info[:2]]
