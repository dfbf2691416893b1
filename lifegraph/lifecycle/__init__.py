"""The life of one graph: its states, and which run a verb makes. The face above it only speaks."""

from .ground import State
from .lifecycle import Lifecycle
from .session import Session, entering, leaving, run
from .settings import faulty_settings

__all__ = ["Lifecycle", "Session", "State", "entering", "faulty_settings", "leaving", "run"]
