"""A run as Chrome's trace format, for Perfetto and `chrome://tracing`: a bar for each attempt, a mark for what got none."""

from __future__ import annotations

import json
from heapq import heappop, heappush
from typing import Any

from .labels import visible
from .scene import Node, Role, Scene

__all__ = ["to_trace"]

_COLORS = {"failed": "terrible", "timed_out": "terrible", "abandoned": "bad", "poisoned": "bad", "released": "good"}


def to_trace(drawn: Scene) -> str:
    """The scene as trace events in JSON; times are microseconds since the run began."""
    ran = sorted((node for node in drawn.nodes if node.began is not None), key=lambda node: (node.began, node.index))
    critical = set(drawn.critical)
    events: list[dict[str, Any]] = [
        {"name": "process_name", "ph": "M", "pid": 1, "tid": 0, "args": {"name": drawn.title}}
    ]
    lanes: list[tuple[float, int]] = []  # when each line of the picture is free again
    for node in ran:
        began = node.began or 0.0
        ended = began if node.ended is None else node.ended
        lane = heappop(lanes)[1] if lanes and lanes[0][0] <= began else len(lanes) + 1
        heappush(lanes, (ended, lane))
        events.append(_event(node, "X", began, lane, critical) | {"dur": round((ended - began) * 1e6, 3)})
    end = drawn.verdict.seconds if drawn.verdict else 0.0
    events += [_event(node, "i", end, 0, critical) | {"s": "p"} for node in drawn.nodes if _unattempted(node)]
    return json.dumps({"traceEvents": events, "displayTimeUnit": "ms"}, indent=1, allow_nan=False)


def _unattempted(node: Node) -> bool:
    return node.began is None and node.role is not Role.FINE


def _event(node: Node, phase: str, at: float, lane: int, critical: set[int]) -> dict[str, Any]:
    facts = {"fate": node.fate, "error": "\n".join(node.error), "because": ", ".join(map(visible, node.causes))}
    told = {key: value for key, value in facts.items() if value} | (
        {"critical": True} if node.index in critical else {}
    )
    return {
        "name": visible(node.name), "cat": node.fate or "", "ph": phase, "ts": round(at * 1e6, 3), "pid": 1, "tid": lane,
        "args": told, **({"cname": _COLORS[node.fate]} if node.fate in _COLORS else {}),
    }  # fmt: skip
