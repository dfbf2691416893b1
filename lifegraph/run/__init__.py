"""One run of one plan: a start, or a teardown. No thread and no loop: a driver asks, acts, and answers."""

from .engine import Failure, Run
from .lives import Lives, Phase
from .start import Start
from .teardown import Teardown

__all__ = ["Failure", "Lives", "Phase", "Run", "Start", "Teardown"]
