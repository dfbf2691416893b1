"""Root causes: which unproven resources poisoned which others, and along which path."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Sequence
from functools import cached_property

from ..events import Fate
from ..plan import Plan

__all__ = ["Causes"]


class Causes:
    """Follows from the edges and the fates alone; worked out when it is first asked for."""

    def __init__(self, plan: Plan, fates: Sequence[Fate], attested: Collection[str]) -> None:
        self._plan = plan
        self._fates = fates
        self._attested = attested
        self._trees: dict[int, dict[int, int]] = {}

    @cached_property
    def of(self) -> dict[int, tuple[int, ...]]:
        """The root causes of each poisoned resource, by number."""
        found: dict[int, tuple[int, ...]] = {}
        for node in self._plan.sequence:
            unproven = self._fates[node].unproven and self._plan.names[node] not in self._attested
            carried = (node,) if unproven else found.get(node, ())
            for dependency in self._plan.uses[node] if carried else ():
                known = found.get(dependency, ())
                found[dependency] = carried if not known else known + tuple(n for n in carried if n not in known)
        return {node: causes for node, causes in found.items() if self._fates[node] is Fate.POISONED}

    def path(self, cause: int, node: int) -> tuple[str, ...]:
        """A shortest path of names along which ``cause`` poisoned ``node``, both included."""
        tree = self._trees.get(cause)
        if tree is None:
            tree = self._trees[cause] = self._tree(cause)
        path = []
        while node >= 0:
            path.append(self._plan.names[node])
            node = tree[node]
        return tuple(reversed(path))

    def _tree(self, cause: int) -> dict[int, int]:
        tree, work = {cause: -1}, deque([cause])
        while work:
            at = work.popleft()
            for dependency in self._plan.uses[at]:
                if dependency not in tree and self._fates[dependency] in (Fate.POISONED, Fate.SKIPPED):
                    tree[dependency] = at
                    work.append(dependency)
        return tree
