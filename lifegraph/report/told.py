"""What a report has to have in order to be put in words or written down."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from ..events import Fate
from ..plan import Plan
from .causes import Causes
from .outcome import Detail, Lease, Outcome

__all__ = ["Told"]


class Told(Protocol):
    """A report, seen from the rooms that it calls."""

    @property
    def plan(self) -> Plan:
        """The plan it followed."""
        ...

    @property
    def codes(self) -> Sequence[int]:
        """The fates, by number."""
        ...

    @property
    def began(self) -> Sequence[float]:
        """When each attempt began."""
        ...

    @property
    def ended(self) -> Sequence[float]:
        """When it ended."""
        ...

    @property
    def details(self) -> Mapping[int, Detail]:
        """What else is known."""
        ...

    @property
    def seconds(self) -> float:
        """How long it took."""
        ...

    @property
    def notes(self) -> tuple[str, ...]:
        """What else happened."""
        ...

    @property
    def leases(self) -> tuple[Lease, ...]:
        """What was borrowed."""
        ...

    @property
    def attested(self) -> tuple[str, ...]:
        """What an operator vouched for."""
        ...

    @property
    def start_failed(self) -> bool:
        """A start was rolled back."""
        ...

    @property
    def forecast(self) -> bool:
        """It did not really happen."""
        ...

    @property
    def ok(self) -> bool:
        """All is released."""
        ...

    @property
    def exit_code(self) -> int:
        """The exit code."""
        ...

    @property
    def critical_path(self) -> tuple[str, ...]:
        """What took so long."""
        ...

    @property
    def causes(self) -> Causes:
        """Root causes."""
        ...

    @property
    def fates(self) -> Mapping[str, Fate]:
        """The fate of each."""
        ...

    @property
    def outcomes(self) -> Mapping[str, Outcome]:
        """The outcome of each."""
        ...

    @property
    def held(self) -> tuple[str, ...]:
        """What is not released."""
        ...

    @property
    def poisoned(self) -> tuple[str, ...]:
        """What was not attempted."""
        ...
