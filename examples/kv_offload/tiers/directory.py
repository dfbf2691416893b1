"""Where the disk tier keeps its files."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from lifegraph import resource


@resource
class Directory:
    """A directory of the user's, which stays; or, without one, a temporary directory that stop removes."""

    def __init__(self, path: Path | None = None) -> None:
        self._temporary = path is None
        self.path = Path(tempfile.mkdtemp(prefix="kv_offload-")) if path is None else path

    def stop(self) -> None:
        """Remove it, with all files in it, if it is a temporary one. Raises OSError."""
        if self._temporary:
            shutil.rmtree(self.path)
            self._temporary = False

    def is_stopped(self) -> bool:
        """A temporary directory is gone; nothing is to be done about another."""
        return not (self._temporary and self.path.exists())

    @property
    def temporary(self) -> bool:
        """True where stop has still to remove it."""
        return self._temporary
