"""The command line: `lifegraph`, also `python -m lifegraph`."""

from .command import main

__all__ = ["main"]
