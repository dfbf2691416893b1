"""The life of one graph: its states, and which run a verb makes. The face above it only speaks."""

from .ground import State
from .lifecycle import Lifecycle
from .session import Session, heard, listening, run
from .settings import faulty_settings

__all__ = ["Lifecycle", "Session", "State", "faulty_settings", "heard", "listening", "run"]
