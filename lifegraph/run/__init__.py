"""One run of one plan: a start, or a teardown. No thread and no loop: a driver asks, acts, and answers."""

from .engine import Herald, Run, is_awaitable
from .failure import Failure
from .lives import Lives, Phase
from .start import Start
from .teardown import Teardown

__all__ = ["Failure", "Herald", "Lives", "Phase", "Run", "Start", "Teardown", "is_awaitable"]
