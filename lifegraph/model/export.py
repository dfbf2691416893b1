"""A plan as a graph of networkx, for all that can be asked of one there."""

from __future__ import annotations

from typing import Any

from ..plan import Plan

__all__ = ["exported"]


def exported(plan: Plan) -> Any:
    """A `networkx.DiGraph`: nodes are names, edges lead from dependent to dependency and say whether they carry poison."""
    import networkx as nx  # noqa: PLC0415 - slow to import, and seldom needed

    graph = nx.DiGraph(name=plan.title)
    for name, where, limit in zip(plan.names, plan.where, plan.stop_limits, strict=True):
        graph.add_node(name, declared_at=where, stop_timeout=limit)
    for dependent, dependency, uses in plan.edges:
        graph.add_edge(dependent, dependency, uses=uses)
    return graph
