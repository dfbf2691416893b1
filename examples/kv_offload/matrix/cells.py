"""What the matrix is made of, and what the rule says of each cell: pure data, without a graph."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from lifegraph import Fate

from ..assembly import FAR, TIERS


class Wrong(StrEnum):
    """What goes wrong with a resource."""

    RAISE = "raise"
    HANG = "hang"
    LIE = "lie"
    LATE = "late write"
    SIGKILL = "SIGKILL"


class Phase(StrEnum):
    """When."""

    TEARDOWN = "teardown"
    ROLLBACK = "roll-back"
    DETACH = "detach"


@dataclass(frozen=True, slots=True)
class Cell:
    """One fault of one resource at one time."""

    node: str
    wrong: Wrong
    phase: Phase

    @property
    def tiers(self) -> tuple[str, ...]:
        """The tiers of its hierarchy: the one that it is about, and the disk."""
        about = tier_of(self.node)
        return ("disk", "peer") if about in (None, "disk") else ("disk", str(about))


_SHARED: Final = ("engine", "view(engine)", "manager", "pool", "registration", "mapping")
_MEMORY: Final = ("pool", "registration", "mapping")


def tier_of(node: str) -> str | None:
    """The tier in whose branch a resource stands, or None for those that all share."""
    for label in TIERS:
        if node in (label, FAR[label], f"view({label})", f"link({label})"):
            return label
    return None


def nodes(tiers: Iterable[str]) -> list[str]:
    """All resources of a hierarchy with these tiers."""
    named = [[f"link({tier})", tier, FAR[tier], f"view({tier})"] for tier in tiers]
    return [*_SHARED[:3], *(node for branch in named for node in branch), *_MEMORY]


def has_kill(node: str) -> bool:
    """Whether its end can be forced, and so proven: a process, or what hangs on one."""
    about = tier_of(node)
    return about not in (None, "disk") and node in (about, FAR[str(about)])


def possible(node: str, wrong: Wrong) -> bool:
    """Whether it can go wrong so: what neither has memory nor a thread cannot write late."""
    writes = node in (*TIERS, "engine", *_MEMORY) or node.startswith("view(")
    return wrong is not Wrong.LATE or writes


def dies(cell: Cell) -> bool:
    """Whether SIGKILL ends the whole process; the others are processes of their own, or speak to one."""
    return cell.wrong is Wrong.SIGKILL and not has_kill(cell.node)


def expected(cell: Cell, edges: Sequence[tuple[str, str]]) -> tuple[dict[str, Fate], bool]:
    """The fate of everybody by the rule, and whether the resource itself was released by its kill.

    `edges` are the use edges, from dependent to dependency. What is not proven to have stopped holds what it reaches.
    """
    names = {name for edge in edges for name in edge}
    fates = dict.fromkeys(names, Fate.RELEASED)
    if cell.wrong is Wrong.SIGKILL:
        return fates, False
    if has_kill(cell.node) and cell.wrong is not Wrong.LATE:
        return fates, True
    threaded = cell.node in (*TIERS, "engine")
    still_runs = cell.wrong is Wrong.HANG or (cell.wrong is Wrong.LATE and threaded)
    for name in reach(cell.node, edges):
        fates[name] = Fate.POISONED
    fates[cell.node] = Fate.TIMED_OUT if still_runs else Fate.FAILED
    return fates, False


def reach(node: str, edges: Sequence[tuple[str, str]]) -> set[str]:
    """Everything below a resource."""
    found: set[str] = set()
    waiting = [node]
    while waiting:
        above = waiting.pop()
        below = {dependency for dependent, dependency in edges if dependent == above} - found
        found |= below
        waiting += below
    return found
