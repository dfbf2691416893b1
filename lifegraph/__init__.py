"""lifegraph: tears down what depends on each other, dependents first, and never releases what may be in use.

>>> from lifegraph import Graph, resource
>>> @resource
... class Pool:
...     def close(self): print("pool closed")
>>> @resource
... class Client:
...     def __init__(self, pool: Pool): ...
...     def close(self): print("client closed")
>>> with Graph(Client):
...     print("at work")
at work
client closed
pool closed
"""

from __future__ import annotations

from .declare import named, optional, order_only, resource
from .errors import (
    AmbiguousDependencyError,
    CycleError,
    DeclarationError,
    DuplicateNameError,
    Fault,
    GraphClosingError,
    GraphStateError,
    HookError,
    HookInterrupted,
    HookTimeout,
    InternalError,
    LifegraphError,
    MissingDependencyError,
    NotAttempted,
    PoisonedError,
    ReentrantTeardownError,
    StartError,
    TeardownError,
)
from .events import (
    AnswerLate,
    Event,
    Fate,
    HookBegan,
    HookEnded,
    NoteTaken,
    ResourceSettled,
    StartBegan,
    StartEnded,
    StillWaiting,
    TeardownBegan,
    TeardownEnded,
)
from .graph import Graph
from .plan import Blast, Edge, Plan
from .quarantine import Held, quarantine
from .report import Outcome, Report, ReportError
from .spec import Options

__version__ = "0.1.0"
__all__ = [
    "AmbiguousDependencyError",
    "AnswerLate",
    "Blast",
    "CycleError",
    "DeclarationError",
    "DuplicateNameError",
    "Edge",
    "Event",
    "Fate",
    "Fault",
    "Graph",
    "GraphClosingError",
    "GraphStateError",
    "Held",
    "HookBegan",
    "HookEnded",
    "HookError",
    "HookInterrupted",
    "HookTimeout",
    "InternalError",
    "LifegraphError",
    "MissingDependencyError",
    "NotAttempted",
    "NoteTaken",
    "Options",
    "Outcome",
    "Plan",
    "PoisonedError",
    "ReentrantTeardownError",
    "Report",
    "ReportError",
    "ResourceSettled",
    "StartBegan",
    "StartEnded",
    "StartError",
    "StillWaiting",
    "TeardownBegan",
    "TeardownEnded",
    "TeardownError",
    "named",
    "optional",
    "order_only",
    "quarantine",
    "resource",
]
