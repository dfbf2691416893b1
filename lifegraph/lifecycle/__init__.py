"""The life of one graph: its states, and which run a verb makes. The face above it only speaks."""

from .ground import State
from .lifecycle import Lifecycle

__all__ = ["Lifecycle", "State"]
