"""What there is to see of a graph, as plain data: nodes, edges and, with a report, how each one ended and why.

Edges point from dependent to dependency. Painters read a `Scene` and nothing else.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from enum import StrEnum
from itertools import islice

from lifegraph.errors import short
from lifegraph.view.cycles import knotted
from lifegraph.view.labels import clean, duration, listing, shorten, visible
from lifegraph.view.palette import LOOKS
from lifegraph.view.reduction import implied
from lifegraph.view.sources import Drawable, Ended, Reported

__all__ = ["Edge", "Kind", "Node", "Role", "Scene", "Verdict", "reduced", "scene"]

_LABEL = 60  # cells in one line of a picture's label


class Role(StrEnum):
    """What part a resource has in what went wrong."""

    ROOT_CAUSE = "root cause"
    CONSEQUENCE = "consequence"
    FINE = "fine"


class Kind(StrEnum):
    """What an edge means."""

    USE = "use"
    ORDER_ONLY = "order only"


_ROLES = {"failed": Role.ROOT_CAUSE, "timed_out": Role.ROOT_CAUSE, "abandoned": Role.ROOT_CAUSE}
_ROLES["poisoned"] = Role.CONSEQUENCE


@dataclass(frozen=True, slots=True)
class Node:
    """One resource. `name` and `causes` are raw; `status`, `error` and `label` are safe to show."""

    index: int
    name: str
    label: tuple[str, ...]  # short lines: the name, then how it ended, then why
    where: str = ""
    fate: str | None = None
    role: Role = Role.FINE
    status: str = ""  # "timed out after 5.00 s"
    error: tuple[str, ...] = ()  # the lines of what was raised, in start or stop
    causes: tuple[str, ...] = ()
    seconds: float | None = None
    start_failed: bool = False
    forced: bool = False
    attested: bool = False
    stack: tuple[str, ...] = ()  # the lines of where its hook hangs or has raised
    began: float | None = None  # seconds since the run began
    ended: float | None = None


@dataclass(frozen=True, slots=True)
class Edge:
    """`dependent` depends on `dependency` (indices of nodes).

    `poison`: in this report it carried poison; `cycle`: it lies on a cycle, so the graph cannot be torn down.
    """

    dependent: int
    dependency: int
    kind: Kind
    poison: bool = False
    cycle: bool = False


@dataclass(frozen=True, slots=True)
class Verdict:
    """A report in a line. `counts` are those of the whole graph: root causes, consequences, the rest."""

    ok: bool
    seconds: float
    counts: tuple[tuple[str, int], ...]
    start: str = ""  # "failed" or "called off", where it did not come to its end
    forecast: bool = False  # it did not really happen


@dataclass(frozen=True, slots=True)
class Scene:
    """What a painter paints. `nodes[i].index == i`, in declared order; edges stand in the order of their dependents."""

    title: str
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    total: int  # resources in the whole graph
    verdict: Verdict | None = None
    focus: str | None = None
    hidden: int = 0  # edges left out because longer paths imply them
    critical: tuple[int, ...] = ()  # the nodes that decided how long the run took, in the order of their stops
    notes: tuple[str, ...] = ()  # what else happened, each safe to show

    def below(self) -> list[list[Edge]]:
        """For each node the edges to its dependencies."""
        edges: list[list[Edge]] = [[] for _ in self.nodes]
        for edge in self.edges:
            edges[edge.dependent].append(edge)
        return edges


def scene(source: Drawable, report: Reported | None = None, *, reduce: bool = False, focus: str | None = None) -> Scene:
    """Gathers what there is to see of `source`, with `report` overlaid.

    `reduce` leaves out the edges that longer paths imply, see `reduced`. `focus` keeps one resource, all it depends on
    and all that depends on it; `ValueError` if there is no such name. Where a pair has both kinds of edge, the use edge
    stands.
    """
    kept = range(len(source.names)) if focus is None else _around(source, focus)
    place = {old: new for new, old in enumerate(kept)}
    attested = frozenset(getattr(report, "attested", ()))
    nodes = tuple(_node(new, source.names[old], source.where[old], report, attested) for old, new in place.items())
    causes = {node.index: frozenset(node.causes) for node in nodes if node.role is Role.CONSEQUENCE}
    heads = [{place[lower]: k for lower, k in _heads(source, old).items() if lower in place} for old in place]
    knots = knotted([list(row) for row in heads])
    edges = tuple(
        Edge(upper, lower, k, k is Kind.USE and _carries(nodes[upper], lower, causes), (upper, lower) in knots)
        for upper, row in enumerate(heads)
        for lower, k in row.items()
    )
    title = shorten(visible(source.title), _LABEL)
    drawn = Scene(
        title, nodes, edges, len(source.names), _verdict(source, report), focus,
        critical=_critical(nodes, report), notes=tuple(clean(note) for note in getattr(report, "notes", ())),
    )  # fmt: skip
    return reduced(drawn) if reduce else drawn


def _critical(nodes: Sequence[Node], report: Reported | None) -> tuple[int, ...]:
    index = {node.name: node.index for node in nodes} if report is not None else {}
    return tuple(index[name] for name in getattr(report, "critical_path", ()) if name in index)


def reduced(drawn: Scene) -> Scene:
    """The scene without the edges that longer paths imply.

    A use edge is implied only by a path of use edges, since any other would not carry its poison; an order-only edge by
    any path. So what remains orders and poisons exactly what it did before, and no further edge could go.
    """
    uses: list[list[int]] = [[] for _ in drawn.nodes]
    both: list[list[int]] = [[] for _ in drawn.nodes]
    for edge in drawn.edges:
        both[edge.dependent].append(edge.dependency)
        if edge.kind is Kind.USE:
            uses[edge.dependent].append(edge.dependency)
    gone = {Kind.USE: implied(uses), Kind.ORDER_ONLY: implied(both)}
    edges = tuple(edge for edge in drawn.edges if (edge.dependent, edge.dependency) not in gone[edge.kind])
    return replace(drawn, edges=edges, hidden=drawn.hidden + len(drawn.edges) - len(edges))


def _heads(source: Drawable, index: int) -> dict[int, Kind]:
    heads = dict.fromkeys(source.uses[index], Kind.USE)
    for lower in source.orders[index]:
        heads.setdefault(lower, Kind.ORDER_ONLY)
    return heads


def _around(source: Drawable, focus: str) -> list[int]:
    if focus not in source.names:
        close = get_close_matches(focus[:200], [name for name in islice(source.names, 20_000) if len(name) < 200])
        cure = f"; did you mean {' or '.join(map(repr, close))}?" if close else ""
        raise ValueError(f"{shorten(visible(source.title), _LABEL)} has no resource named {focus!r}{cure}")
    start = source.names.index(focus)
    below = [_heads(source, index) for index in range(len(source.names))]
    above: list[list[int]] = [[] for _ in below]
    for upper, heads in enumerate(below):
        for lower in heads:
            above[lower].append(upper)
    return sorted(_reached(start, below) | _reached(start, above))


def _reached(start: int, ways: Sequence[Iterable[int]]) -> set[int]:
    seen, queue = {start}, [start]
    for index in queue:  # grows while it is read
        for other in ways[index]:
            if other not in seen:
                seen.add(other)
                queue.append(other)
    return seen


def _verdict(source: Drawable, report: Reported | None) -> Verdict | None:
    if report is None:
        return None
    found = Counter(str(report.fates[name]) for name in source.names if name in report.fates)
    counts = [(fate, found.pop(fate)) for fate in LOOKS if fate in found]
    counts += sorted(found.items())
    return Verdict(
        report.ok, report.seconds, tuple(counts), _start(source, report), bool(getattr(report, "forecast", False))
    )


def _start(source: Drawable, report: Reported) -> str:
    """How the start ended, if not well."""
    if not getattr(report, "start_failed", False):
        return ""
    outcomes = (report.outcomes[name] for name in source.names if name in report.outcomes)
    return "failed" if any(outcome.start_error is not None for outcome in outcomes) else "called off"


def _carries(upper: Node, lower: int, causes: Mapping[int, frozenset[str]]) -> bool:
    """Whether poison came this way: what the dependent passes on is among the causes of what it uses."""
    if lower not in causes or upper.role is Role.FINE:
        return False
    if not causes[lower]:
        return True
    if upper.role is Role.ROOT_CAUSE:
        return upper.name in causes[lower]
    return not causes[lower].isdisjoint(causes[upper.index])


def _node(index: int, name: str, where: str, report: Reported | None, attested: frozenset[str]) -> Node:
    title = shorten(visible(name), _LABEL)
    where = shorten(clean(_near(where)), 2 * _LABEL)
    if report is None or name not in report.fates:
        return Node(index, name, (title,), where)
    fate = str(report.fates[name])
    ended = report.outcomes.get(name)
    error = _error(ended)
    causes = tuple(ended.causes) if ended else ()
    status = _status(fate, ended, name in attested)
    why = (f"because of {listing(causes, 2, _LABEL // 2)}",) if causes else tuple(shorten(x, _LABEL) for x in error[:1])
    return Node(
        index,
        name,
        (title, status, *why),
        where,
        fate,
        _ROLES.get(fate, Role.FINE),
        status,
        error,
        causes,
        ended.seconds if ended else None,
        bool(ended and ended.start_error),
        bool(ended and ended.forced),
        name in attested,
        tuple(clean(line) for line in (ended.stack or "").splitlines()) if ended else (),
        ended.began if ended else None,
        ended.ended if ended else None,
    )


def _near(where: str) -> str:
    try:
        return short(where)
    except OSError:  # the working directory is gone, and a picture is drawn all the same
        return where


def _status(fate: str, ended: Ended | None, attested: bool) -> str:
    words = LOOKS[fate].word if fate in LOOKS else clean(fate)
    if ended and ended.forced:
        words += " by kill"
    if ended and ended.seconds is not None:
        words += f" {'in' if fate == 'released' else 'after'} {duration(ended.seconds)}"
    return f"{words}, attested" if attested else words


def _error(ended: Ended | None) -> tuple[str, ...]:
    lines: list[str] = []
    if ended and ended.start_error is not None:
        lines += f"start failed: {ended.start_error}".splitlines()
    if ended and ended.error is not None:
        kind, said = ended.error_type or "", ended.error
        lines += (said if said.startswith(kind) and said else f"{kind}: {said}" if said else kind).splitlines()
    return tuple(clean(line) for line in lines)
