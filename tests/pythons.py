"""The supported Pythons found on this machine. Needs nothing but the standard library.

``python tests/pythons.py`` prints the path of each, one a line; ``--others`` leaves out its own version.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

SUPPORTED = ((3, 11), (3, 12), (3, 13))

_ASK = """\
import sys, sysconfig
print(sys.implementation.name, *sys.version_info[:3], sysconfig.get_config_var("Py_GIL_DISABLED") or 0)
"""


@dataclass(frozen=True, order=True)
class Interpreter:
    """A Python that runs: its version and its path."""

    version: tuple[int, int, int]
    path: str

    @property
    def minor(self) -> tuple[int, int]:
        """Such as ``(3, 12)``."""
        return self.version[:2]


def candidates() -> Iterator[str]:
    """Paths that may be supported Pythons: those that LIFEGRAPH_PYTHONS lists, else pyenv's and those on PATH."""
    said = os.environ.get("LIFEGRAPH_PYTHONS")
    if said is not None:
        yield from filter(None, said.split(os.pathsep))
        return
    root = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    for home in sorted(root.glob("versions/3.*")):
        if re.fullmatch(r"3\.\d+\.\d+", home.name):
            yield str(home / "bin" / "python")
    for major, minor in SUPPORTED:
        found = shutil.which(f"python{major}.{minor}")
        if found:
            yield found


def ask(path: str) -> Interpreter | None:
    """The interpreter at ``path``; None when it does not run or is not a supported CPython."""
    try:
        said = subprocess.run([path, "-I", "-c", _ASK], capture_output=True, text=True, timeout=30, check=True)
        kind, *numbers = said.stdout.split()
        major, minor, micro, free_threaded = map(int, numbers)
    except (OSError, subprocess.SubprocessError, ValueError):
        return None
    supported = kind == "cpython" and (major, minor) in SUPPORTED and not free_threaded
    return Interpreter((major, minor, micro), path) if supported else None


def others() -> list[Interpreter]:
    """The newest interpreter of each supported version but the running one's."""
    found = {seen.minor: seen for seen in sorted(filter(None, map(ask, candidates())))}
    found.pop(sys.version_info[:2], None)
    return sorted(found.values())


def main() -> None:
    """Print the paths."""
    if "--others" not in sys.argv[1:]:
        print(sys.executable)
    for other in others():
        print(other.path)


if __name__ == "__main__":
    main()
