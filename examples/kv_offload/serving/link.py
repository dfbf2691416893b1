"""What joins a tier to the hierarchy: the use that one makes of the other, as something with a life."""

from __future__ import annotations

from lifegraph import Graph, resource

from .hierarchy import Hierarchy


@resource
class Link:
    """Attaches the tier named `label` at start, and detaches it at stop; the traffic goes on meanwhile.

    If the hierarchy depended on its tiers, none of them could leave without it. So it depends on none of them, and each
    of these links depends on both. Declare it with `depends_on=[label]`.
    """

    def __init__(self, label: str, rank: int, hierarchy: Hierarchy, graph: Graph, *, patience: float = 5.0) -> None:
        self._label = label
        self._rank = rank
        self._hierarchy = hierarchy
        self._graph = graph
        self._patience = patience

    def start(self) -> None:
        """Attach the tier."""
        self._hierarchy.attach(self._graph[self._label], self._rank)

    def stop(self) -> None:
        """Detach it, and give it `patience` seconds to finish what it has.

        A tier that is late does not keep the link from stopping: what it does with the blocks it has is for its own
        stop to prove.
        """
        left = self._hierarchy.detach(self._label, self._patience)
        if left:
            self._hierarchy.troubles[f"{left} job(s) left in {self._label} after {self._patience} s"] += 1

    def is_stopped(self) -> bool:
        """The hierarchy gives the tier nothing any longer."""
        return self._label not in self._hierarchy.attached()
