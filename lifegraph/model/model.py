"""The model: collects specs, checks all of it, freezes a `Plan`."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from operator import is_
from typing import Any

from ..errors import DeclarationError, Fault
from ..plan import Plan
from ..spec import Spec, declaration, read
from . import faults as say
from . import knots
from .members import Members
from .resolving import Filling, Resolution

__all__ = ["Model"]


class Model(Members):
    """All members of one graph with their edges. Not thread-safe: the graph's lock guards it."""

    def __init__(self, title: str, owner: type, defaults: Mapping[str, Any]) -> None:
        super().__init__(title)
        self.owner = owner
        self.defaults = defaults
        self.fillings: dict[int, tuple[Filling, ...]] = {}
        self._built: set[int] = set()  # constructed: their edges are fixed, for they live by them
        self._replaced: dict[int, tuple[object, Spec]] = {}  # id() of what is asked for -> itself, its override
        self._declared: dict[int, dict[int, tuple[bool, str]]] = {}  # edges by `depend`
        self._dirty: set[int] = set()  # to be resolved
        self._fluid: set[int] = set()  # resolved by class: another member may change the answer
        self._tangled = False  # some edge leads to a later member, so a cycle is possible

    # Members ---------------------------------------------------------------------------------------------

    def enlist(self, spec: Spec, faults: list[Fault], *, alone: bool) -> int:
        """Take a member in for good, and return its number."""
        self._drop_provisional()
        node = self.append(spec, faults, alone=alone)
        self.base = len(self.specs)
        return node

    def append(self, spec: Spec, faults: list[Fault], *, alone: bool) -> int:
        """Take a member in; its edges are yet to be resolved."""
        node = super().append(spec, faults, alone=alone)
        if spec.form.constructed or (spec.wishes and not self._resolve_at_once(node, spec)):
            self._dirty.add(node)
        return node

    def pull(self, key: object, faults: list[Fault]) -> list[int]:
        """Take a class or factory in because it is needed; it is provisional."""
        if id(key) in self._replaced:
            node = self.append(self._replaced[id(key)][1], faults, alone=True)
            self.answers_for(node, key)
            return [node]
        if isinstance(key, str) or declaration(key) is None or not callable(key):
            return []
        spec = read(key, {}, "", self.defaults, faults)
        return [self.append(spec, faults, alone=True)] if spec is not None else []

    def forget(self, nodes: Iterable[int]) -> None:
        """Let go of members, for good."""
        nodes = set(nodes)
        for node in nodes:
            self._dirty.discard(node)
            self._fluid.discard(node)
            self._built.discard(node)
            self._declared.pop(node, None)
            self.fillings.pop(node, None)
        super().forget(nodes)

    def recognise(self, node: int, instance: object) -> None:
        """This member is constructed: it is known by its instance too, and its edges are fixed."""
        self.also_known_as(node, instance)
        self._built.add(node)
        self._fluid.discard(node)

    def override(self, key: object, spec: Spec) -> int | None:
        """Use ``spec`` wherever ``key`` is asked for; returns the member whose place it took, if there is one."""
        found = self.find(key)
        if len(found) > 1 or (isinstance(key, str) and not found):
            self.the(key, "override:")
        if not found:
            self._replaced[id(key)] = (key, spec)
            return None
        node = found[0]
        old = self.spec(node)
        self.base = max(self.base, node + 1)
        self.specs[node], self.frozen = spec, None
        self.also_known_as(node, spec.target)
        for kind in (*spec.kinds, *old.kinds, key):
            self.answers_for(node, kind)
        self._dirty.add(node)
        return node

    def names_in_annotations(self) -> dict[str, type]:
        """What a name can mean that only type checkers see: the graph's class, and those of members."""
        return {self.owner.__name__: self.owner, **self.class_names()}

    # Edges -----------------------------------------------------------------------------------------------

    def depend(self, dependent: int, dependency: int, *, uses: bool, where: str) -> None:
        """Add an edge between members; raises `CycleError` when that would close a cycle."""
        self.base = len(self.specs)
        if path := self.path(dependency, dependent):
            raise DeclarationError.of([self._cycle([dependent, *path[:-1]], {(dependent, dependency): where})])
        uses = uses or dependency in self.uses[dependent]
        self._declared.setdefault(dependent, {})[dependency] = (uses, where)
        for column, wanted in ((self.uses, uses), (self.orders, not uses)):
            row = tuple(d for d in column[dependent] if d != dependency)
            column[dependent] = (*row, dependency) if wanted else row
        self._tangled = self._tangled or dependency >= dependent

    def path(self, source: int, goal: int) -> list[int]:
        """A path over dependencies from ``source`` to ``goal``, both included; empty when there is none."""
        return knots.path(self.uses, self.orders, source, goal)

    @property
    def unresolved(self) -> bool:
        """Whether some member is yet to be resolved."""
        return bool(self._dirty)

    def wants(self, node: int) -> bool:
        """Whether something that this member needs is missing so far."""
        return node in self._dirty

    def seal(self, *, lenient: bool = False, whole: bool = True) -> None:
        """Resolve every wish and check everything; raises one `DeclarationError` with all faults.

        ``lenient``: what only misses something may still get it, unless other things are wrong too. Not ``whole``:
        what was asked for by class is not looked at again, though a new member might change the answer.
        """
        faults: list[Fault] = []
        curable: list[Fault] = []
        if self._dirty:
            self._drop_provisional()
            self._dirty |= self._fluid if whole else set()
        work = deque(sorted(self._dirty))
        wanting: set[int] = set()
        while work:
            node, size = work.popleft(), len(self.specs)
            found = self._resolve(node)
            faults += found.faults
            curable += found.missing
            if found.missing:
                wanting.add(node)
            work.extend(range(size, len(self.specs)))
        self._dirty = wanting
        if self._tangled:
            faults += [self._cycle(ring, {}) for ring in knots.cycles(self.uses, self.orders)]
        if faults or (curable and not lenient):
            raise DeclarationError.of(faults + curable)

    def freeze(
        self, nodes: Sequence[int] | None = None, *, workers: int, grace: float | None
    ) -> tuple[Plan, list[int]]:
        """The plan of these members (default: all), and their numbers in its order."""
        if nodes is None and (known := _unchanged(self.frozen, self.uses, self.orders, workers, grace)):
            return known, self.nodes()
        chosen = self.nodes() if nodes is None else sorted(nodes)
        uses, orders = self.uses, self.orders
        if len(chosen) == len(self.specs):
            rows = tuple(uses), tuple(orders)
        else:
            rows = _among(chosen, uses), _among(chosen, orders)
        specs = [self.spec(node) for node in chosen]
        plan = Plan(
            self.title, tuple(self.names[node] for node in chosen), *rows, tuple(spec.where for spec in specs),
            tuple(spec.hooks.start_timeout for spec in specs), tuple(spec.hooks.stop_timeout for spec in specs),
            workers, grace,
        )  # fmt: skip
        self.frozen = plan if len(chosen) == len(self.specs) else None
        return plan, chosen

    # Inside ----------------------------------------------------------------------------------------------

    def _resolve(self, node: int) -> Resolution:
        found, built = Resolution(self, node), node in self._built
        found.resolve(self.spec(node), built=built)
        for dependency, (uses, _) in self._declared.get(node, {}).items():
            found.edges[dependency] = uses
        if built:  # it lives by what it was built with
            found.edges = dict.fromkeys(self.orders[node], False) | dict.fromkeys(self.uses[node], True) | found.edges
        else:
            self.fillings[node] = tuple(found.fillings)
        self.uses[node] = tuple(d for d, uses in found.edges.items() if uses)
        self.orders[node] = tuple(d for d, uses in found.edges.items() if not uses)
        self._tangled = self._tangled or any(d >= node for d in found.edges)
        if found.by_class:
            self._fluid.add(node)
        else:
            self._fluid.discard(node)
        return found

    def _resolve_at_once(self, node: int, spec: Spec) -> bool:
        """The edges of a live object to members by instance or name: nothing added later changes them."""
        edges: dict[int, bool] = {}
        for wish in spec.wishes:
            found = () if isinstance(wish.key, type) else self.find(wish.key)
            if len(found) != 1 or not found[0] < self.base:
                return False
            edges[found[0]] = wish.uses or edges.get(found[0], False)
        self.uses[node] = tuple(d for d, uses in edges.items() if uses)
        self.orders[node] = tuple(d for d, uses in edges.items() if not uses)
        return True

    def _drop_provisional(self) -> None:
        if self.base < len(self.specs):
            self.forget(range(self.base, len(self.specs)))
            self._dirty |= self._fluid

    def _cycle(self, nodes: list[int], places: Mapping[tuple[int, int], str]) -> Fault:
        first = nodes.index(min(nodes))
        ring = [*nodes[first:], *nodes[:first], nodes[first]]
        said = [self._declared.get(a, {}).get(b, (True, self.spec(a).where))[1] for a, b in pairwise(ring)]
        where = [places.get(edge, place) for edge, place in zip(pairwise(ring), said, strict=True)]
        return say.cycle([self.names[node] for node in ring], where)


def _unchanged(
    plan: Plan | None, uses: Sequence[object], orders: Sequence[object], workers: int, grace: float | None
) -> Plan | None:
    """The plan that was made last, which is asked for again and again, if these are still its very edges."""
    if plan is None or (plan.workers, plan.grace, len(plan)) != (workers, grace, len(uses)):
        return None
    return plan if all(map(is_, plan.uses, uses)) and all(map(is_, plan.orders, orders)) else None


def _among(chosen: Sequence[int], rows: Sequence[Sequence[int]]) -> tuple[tuple[int, ...], ...]:
    """The edges between these members, by their places among them."""
    at = {node: place for place, node in enumerate(chosen)}
    return tuple(tuple(at[d] for d in rows[node] if d in at) for node in chosen)
