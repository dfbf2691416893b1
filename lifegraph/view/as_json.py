"""The scene as JSON, for programs: names and numbers as they are, nothing shortened."""

from __future__ import annotations

import json
from typing import Any

from .scene import Edge, Kind, Node, Scene

__all__ = ["SCHEMA", "to_json"]

SCHEMA = 1


def to_json(drawn: Scene) -> str:
    """The scene in JSON. `uses` and `orders` are places in `resources`; what a report does not say is left out."""
    below = drawn.below()
    verdict = drawn.verdict
    told: dict[str, Any] = {
        "lifegraph_scene": SCHEMA, "graph": drawn.title, "total": drawn.total, "focus": drawn.focus,
        "hidden_edges": drawn.hidden, "resources": [_resource(node, below[node.index]) for node in drawn.nodes],
    }  # fmt: skip
    if verdict is not None:
        told |= {"ok": verdict.ok, "seconds": verdict.seconds, "fates": dict(verdict.counts)}
        told |= {"forecast": verdict.forecast, "notes": drawn.notes}
        told["critical_path"] = [drawn.nodes[at].name for at in drawn.critical]
    return json.dumps(told, indent=1, allow_nan=False)


def _resource(node: Node, edges: list[Edge]) -> dict[str, Any]:
    cycle = [edge.dependency for edge in edges if edge.cycle]
    poison = [edge.dependency for edge in edges if edge.poison]
    known = {
        "declared_at": node.where, "fate": node.fate, "role": str(node.role) if node.fate else "", "status": node.status,
        "error": "\n".join(node.error), "stack": "\n".join(node.stack), "because": list(node.causes),
        "began": node.began, "ended": node.ended, "on_a_cycle": cycle, "poisons": poison,
    }  # fmt: skip
    return {
        "name": node.name,
        "uses": [edge.dependency for edge in edges if edge.kind is Kind.USE],
        "orders": [edge.dependency for edge in edges if edge.kind is Kind.ORDER_ONLY],
        **{key: value for key, value in known.items() if value not in (None, "", [])},
    }
