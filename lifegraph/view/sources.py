"""What the wing asks of a graph and of a report: shapes, so that it knows neither."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

__all__ = ["Drawable", "Ended", "Reported"]


class Drawable(Protocol):
    """Anything with names and edges. Position i of every sequence speaks of resource i."""

    @property
    def title(self) -> str: ...
    @property
    def names(self) -> Sequence[str]: ...
    @property
    def uses(self) -> Sequence[Sequence[int]]:
        """The dependencies that carry poison."""
        ...

    @property
    def orders(self) -> Sequence[Sequence[int]]:
        """The dependencies that only order."""
        ...

    @property
    def where(self) -> Sequence[str]:
        """`file:line` of each declaration, or an empty string."""
        ...


class Ended(Protocol):
    """How one resource ended."""

    @property
    def error(self) -> str | None: ...
    @property
    def error_type(self) -> str | None: ...
    @property
    def causes(self) -> Sequence[str]: ...
    @property
    def seconds(self) -> float | None: ...
    @property
    def start_error(self) -> str | None: ...
    @property
    def forced(self) -> bool: ...
    @property
    def stack(self) -> str | None:
        """Where a hook hangs, or the traceback of its error."""
        ...

    @property
    def began(self) -> float | None:
        """Seconds since the run began."""
        ...

    @property
    def ended(self) -> float | None:
        """The same."""
        ...


class Reported(Protocol):
    """How a run ended.

    `attested`, `critical_path` and `notes` (sequences of strings), `start_failed` and `forecast` (flags) are read too where
    there are any.
    """

    @property
    def ok(self) -> bool: ...
    @property
    def seconds(self) -> float: ...
    @property
    def fates(self) -> Mapping[str, str]: ...
    @property
    def outcomes(self) -> Mapping[str, Ended]: ...
