"""The model: collects specs, checks all of it, freezes a `Plan`.

Members are dense numbers in declared order. What is pulled in because others need it sits at the tail, and
is provisional until something is built on it: a later `add` of the real thing takes its place.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from .errors import (
    AmbiguousDependencyError,
    CycleError,
    DeclarationError,
    DuplicateNameError,
    Fault,
    MissingDependencyError,
    did_you_mean,
    message,
    short,
)
from .parameters import Asked, Parameter, asked, evaluate, parameters, signature
from .plan import Plan
from .spec import Form, Spec, Wish, declaration, read

__all__ = ["Filling", "Model"]

K = TypeVar("K")
_PLAIN = (type(None), bool, int, float, complex, str, bytes)  # whose identity says nothing
GRAPH = -1  # in a `Filling`: the graph itself


class Filling(NamedTuple):
    """How the graph fills one parameter: with one member (or `GRAPH`), with several, or with None."""

    parameter: str
    members: tuple[int, ...]
    many: Callable[[Iterable[Any]], Any] | None = None


class Model:
    """All members of one graph with their edges. Not thread-safe: the graph's lock guards it."""

    def __init__(self, title: str, owner: type, defaults: Mapping[str, Any]) -> None:
        self.title = title
        self.defaults = defaults
        self.specs: list[Spec | None] = []  # None: forgotten
        self.names: list[str] = []
        self.uses: list[tuple[int, ...]] = []
        self.orders: list[tuple[int, ...]] = []
        self.fillings: dict[int, tuple[Filling, ...]] = {}
        self.ids: dict[str, int] = {}
        self.built: set[int] = set()  # their edges are fixed: they live by them
        self.base = 0  # what lies from here on was pulled in, and is provisional
        self._owner = owner
        self._made_by: dict[int, list[int]] = {}  # id() of a target or instance -> members
        self._by_class: dict[type, list[int]] = {}
        self._replaced: dict[int, tuple[object, Spec]] = {}  # id() of what is asked for -> itself, its override
        self._declared: dict[int, dict[int, tuple[bool, str]]] = {}  # edges by `depend`
        self._counts: dict[str, int] = {}
        self._dirty: set[int] = set()
        self._fluid: set[int] = set()  # resolved by class: another member may change the answer
        self._tangled = False  # some edge leads to a later member, so a cycle is possible

    # Members ---------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self.ids)

    def __iter__(self) -> Iterator[str]:
        return iter(self.ids)

    def nodes(self) -> list[int]:
        """The numbers of all members."""
        return [node for node, spec in enumerate(self.specs) if spec is not None]

    def spec(self, node: int) -> Spec:
        """The spec of a member."""
        spec = self.specs[node]
        if spec is None:
            raise LookupError(f"member {node} is forgotten")
        return spec

    def whom(self, node: int) -> str:
        """A member as messages say it: name and file:line."""
        return f"{self.names[node]} ({short(self.spec(node).where)})"

    def enlist(self, spec: Spec, faults: list[Fault], *, alone: bool = False) -> int:
        """Take a member in and return its number. ``alone``: its target may be in the graph already."""
        if self.base < len(self.specs):
            self._drop_provisional()
        node = self._append(spec, faults, alone=alone)
        self.base = len(self.specs)
        return node

    def forget(self, nodes: Iterable[int]) -> None:
        """Let go of members, for good."""
        for node in sorted(nodes, reverse=True):
            spec = self.specs[node]
            if spec is None:
                continue
            del self.ids[self.names[node]]
            _strike(self._made_by, id(spec.target), node)
            for kind in [kind for kind, row in self._by_class.items() if node in row] if spec.kinds else ():
                _strike(self._by_class, kind, node)
            self._dirty.discard(node)
            self._fluid.discard(node)
            self._declared.pop(node, None)
            self.built.discard(node)
            self.fillings.pop(node, None)
            if node == len(self.specs) - 1:
                for column in (self.specs, self.names, self.uses, self.orders):
                    column.pop()
            else:
                self.specs[node], self.uses[node], self.orders[node] = None, (), ()
        self.base = min(self.base, len(self.specs))

    def recognise(self, node: int, instance: object) -> None:
        """From now on ``instance`` among arguments means this member; its edges are fixed."""
        if not isinstance(instance, _PLAIN) and node not in self._made_by.get(id(instance), ()):
            self._made_by.setdefault(id(instance), []).append(node)
        self.built.add(node)
        self._fluid.discard(node)

    def unrecognise(self, node: int, instance: object) -> None:
        """The instance is gone; its address may come again."""
        if self.spec(node).target is not instance:
            _strike(self._made_by, id(instance), node)

    def wants(self, node: int) -> bool:
        """Whether something that this member needs is missing so far."""
        return node in self._dirty

    def override(self, key: object, spec: Spec) -> int | None:
        """Use ``spec`` wherever ``key`` is asked for; returns the member whose place it took, if there is one."""
        found = self.find(key)
        if len(found) > 1:
            raise DeclarationError.of([self._ambiguous(f"override of {_called(key)}", found)])
        if isinstance(key, str) and not found:
            raise DeclarationError.of([self._missing("override", key)])
        if not found:
            self._replaced[id(key)] = (key, spec)
            return None
        self._put_in_place_of(found[0], key, spec)
        return found[0]

    # Finding ---------------------------------------------------------------------------------------------

    def find(self, key: object) -> list[int]:
        """The members that ``key`` (a name, class, factory, partial or instance) means: the exact ones, else kin."""
        if isinstance(key, str):
            return [self.ids[key]] if key in self.ids else []
        if not isinstance(key, type):
            return list(self._made_by.get(id(key), ()))
        if exact := self._by_class.get(key) or self._made_by.get(id(key)):
            return list(exact)
        return self.kin(key)

    def kin(self, key: type) -> list[int]:
        """All members that are a ``key``, exact ones and others."""
        return sorted({node for kind, row in self._by_class.items() for node in row if self._is_kin(kind, node, key)})

    def the(self, key: object, asker: str = "lookup") -> int:
        """The one member that ``key`` means; raises `MissingDependencyError` or `AmbiguousDependencyError`."""
        found = self.find(key)
        if not found:
            raise DeclarationError.of([self._missing(asker, key)])
        if len(found) > 1:
            raise DeclarationError.of([self._ambiguous(asker, found)])
        return found[0]

    # Edges -----------------------------------------------------------------------------------------------

    def depend(self, dependent: int, dependency: int, *, uses: bool, where: str) -> None:
        """Add an edge between members; raises `CycleError` when that would close a cycle."""
        self.base = len(self.specs)
        if path := self.path(dependency, dependent):
            raise DeclarationError.of([self._cycle([dependent, *path[:-1]], {(dependent, dependency): where})])
        uses = uses or dependency in self.uses[dependent]
        self._declared.setdefault(dependent, {})[dependency] = (uses, where)
        self._set_edge(dependent, dependency, uses)

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
            node = work.popleft()
            before, size = len(curable), len(self.specs)
            self._resolve(node, faults, curable)
            if len(curable) > before:
                wanting.add(node)
            work.extend(range(size, len(self.specs)))
        self._dirty = wanting
        if self._tangled:
            faults += self._cycles()
        if faults or (curable and not lenient):
            raise DeclarationError.of(faults + curable)

    def freeze(self, nodes: Sequence[int] | None = None, *, workers: int, grace: float | None) -> tuple[Plan, list[int]]:
        """The plan of these members (default: all), and their numbers in its order."""
        chosen = self.nodes() if nodes is None else sorted(nodes)
        uses, orders = self.uses, self.orders
        if len(chosen) == len(self.specs):
            rows = tuple(uses), tuple(orders)
        else:
            at = {node: place for place, node in enumerate(chosen)}
            rows = (
                tuple(tuple(at[d] for d in uses[node] if d in at) for node in chosen),
                tuple(tuple(at[d] for d in orders[node] if d in at) for node in chosen),
            )
        specs = [self.spec(node) for node in chosen]
        plan = Plan(
            self.title, tuple(self.names[node] for node in chosen), *rows, tuple(spec.where for spec in specs),
            tuple(spec.hooks.start_timeout for spec in specs), tuple(spec.hooks.stop_timeout for spec in specs),
            workers, grace,
        )  # fmt: skip
        return plan, chosen

    # Inside: members -------------------------------------------------------------------------------------

    def _append(self, spec: Spec, faults: list[Fault], *, alone: bool) -> int:
        node, target = len(self.specs), spec.target
        twin = self._made_by.get(id(target))
        if twin and not alone and not spec.again:
            faults.append(Fault(DuplicateNameError, message(f"{self.whom(twin[0])} is in graph {self.title!r} already",
                    why=f"the same {spec.form.value.split(' ', 1)[1]} was added twice",
                    hint="a functools.partial of it, another name=, or graph.create makes a second one")))  # fmt: skip
        name = spec.name
        if name is None:
            name = self._free_name(spec.label)
        elif name in self.ids:
            faults.append(Fault(DuplicateNameError, message(f"two resources named {name!r} in graph {self.title!r}",
                    has=f"{self.whom(self.ids[name])}, and now {spec.label} ({short(spec.where)})",
                    hint="give one of them another name=")))  # fmt: skip
            name = self._free_name(name)
        self.specs.append(spec)
        self.names.append(name)
        self.ids[name] = node
        self.uses.append(())
        self.orders.append(())
        self._made_by.setdefault(id(target), []).append(node)
        for kind in spec.kinds:
            self._by_class.setdefault(kind, []).append(node)
        if spec.wishes or spec.form not in (Form.LIVE, Form.CONTEXT, Form.ASYNC_CONTEXT):
            self._dirty.add(node)
        return node

    def _free_name(self, label: str) -> str:
        if label not in self.ids:
            return label
        count = self._counts.get(label, 1) + 1
        while f"{label}-{count}" in self.ids:
            count += 1
        self._counts[label] = count
        return f"{label}-{count}"

    def _drop_provisional(self) -> None:
        if self.base < len(self.specs):
            self.forget(range(self.base, len(self.specs)))
            self._dirty |= self._fluid

    def _put_in_place_of(self, node: int, key: object, spec: Spec) -> None:
        old = self.spec(node)
        self.base = max(self.base, node + 1)
        self.specs[node] = spec
        self._made_by.setdefault(id(spec.target), []).append(node)
        for kind in {spec.provides, old.provides, key}:
            if isinstance(kind, type) and node not in self._by_class.setdefault(kind, []):
                self._by_class[kind].append(node)
        self._dirty.add(node)

    def _is_kin(self, kind: type, node: int, key: type) -> bool:
        try:
            return issubclass(kind, key)
        except TypeError:  # a protocol with attributes: only an instance can tell
            spec = self.spec(node)
            return spec.form is Form.LIVE and getattr(key, "_is_runtime_protocol", False) and isinstance(spec.target, key)

    # Inside: resolving -----------------------------------------------------------------------------------

    def _resolve(self, node: int, faults: list[Fault], curable: list[Fault]) -> None:
        spec = self.spec(node)
        edges: dict[int, bool] = {}
        self._fluid.discard(node)
        if spec.form not in (Form.LIVE, Form.CONTEXT, Form.ASYNC_CONTEXT) and node not in self.built:
            self._resolve_parameters(node, spec, edges, faults, curable)
            for member in self._among((spec.args, spec.kwargs)):
                edges[member] = True
        said: dict[int, bool] = {}
        for wish in spec.wishes:
            self._resolve_wish(node, wish, said, faults, curable)
        edges |= said
        for dependency, (uses, _) in self._declared.get(node, {}).items():
            edges[dependency] = uses
        self.uses[node] = tuple(d for d, uses in edges.items() if uses)
        self.orders[node] = tuple(d for d, uses in edges.items() if not uses)
        self._tangled = self._tangled or any(d >= node for d in edges)

    def _resolve_wish(
        self, node: int, wish: Wish, said: dict[int, bool], faults: list[Fault], curable: list[Fault]
    ) -> None:
        if isinstance(wish.key, type):
            self._fluid.add(node)
        found = self.find(wish.key)
        if not found and not wish.optional:
            found = self._pull(wish.key, faults)
        if len(found) == 1:
            said[found[0]] = wish.uses or said.get(found[0], False)
        elif found:
            faults.append(self._ambiguous(f"{self.whom(node)} depends_on", found, wish.key))
            said |= dict.fromkeys(found, wish.uses)  # the safe side, should it be torn down like this
        elif not wish.optional:
            curable.append(self._missing(f"{self.whom(node)} depends_on", wish.key))

    def _resolve_parameters(
        self, node: int, spec: Spec, edges: dict[int, bool], faults: list[Fault], curable: list[Fault]
    ) -> None:
        known = signature(spec.target)
        try:
            given = known.bind_partial(*spec.args, **(spec.kwargs or {})).arguments if known else {}
        except TypeError as why:
            faults.append(Fault(DeclarationError, message(f"{self.whom(node)} does not take these arguments", why=str(why))))
            return
        members = self._class_names()
        fillings: list[Filling] = []
        for parameter in parameters(spec.target):
            if parameter.name in given:
                continue
            try:
                wanted = asked(evaluate(parameter.annotation, spec.target, members), self._owner)
            except Exception as why:  # noqa: BLE001 - an annotation is any expression
                faults.append(Fault(DeclarationError, message(
                    f"cannot read the annotation {parameter.annotation!r} of {self.whom(node)}, parameter "
                    f"{parameter.name!r}", why=f"{type(why).__name__}: {why}",
                    hint=f"import it at run time, or give the argument: functools.partial({spec.label}, "
                         f"{parameter.name}=...)")))  # fmt: skip
                continue
            if filling := self._fill(node, parameter, wanted, edges, faults, curable):
                fillings.append(filling)
        self.fillings[node] = tuple(fillings)

    def _class_names(self) -> dict[str, type]:
        """What a name can mean that only type checkers see: classes of members, where just one has that name."""
        named: dict[str, set[type]] = {self._owner.__name__: {self._owner}}
        for kind in self._by_class:
            named.setdefault(kind.__name__, set()).add(kind)
        return {name: kinds.pop() for name, kinds in named.items() if len(kinds) == 1}

    def _fill(
        self, node: int, parameter: Parameter, wanted: Asked | type | None,
        edges: dict[int, bool], faults: list[Fault], curable: list[Fault],
    ) -> Filling | None:  # fmt: skip
        if wanted is self._owner:
            return Filling(parameter.name, (GRAPH,))
        if not isinstance(wanted, Asked):
            if parameter.required:
                faults.append(self._unfilled(node, parameter))
            return None
        self._fluid.add(node)
        asker = f"{self.whom(node)}, parameter {parameter.name!r},"
        found = self._candidates(wanted, node, lenient=wanted.optional or not parameter.required)
        if not found and parameter.required and not wanted.optional and not wanted.many:
            found = self._pull(wanted.keys[0], faults) if wanted.named is None else []
        if len(found) > 1 and wanted.many is None:
            faults.append(self._ambiguous(asker, found, wanted.keys[0]))
            return None
        for member in found:
            edges[member] = edges.get(member, False) or not wanted.order_only
        if found or (wanted.many and declaration(wanted.keys[0]) is not None):
            return Filling(parameter.name, tuple(found), wanted.many)
        if not parameter.required:
            return None
        if wanted.optional:
            return Filling(parameter.name, ())
        curable.append(self._missing(asker, wanted.named or wanted.keys[0], parameter))
        return None

    def _candidates(self, wanted: Asked, node: int, *, lenient: bool) -> list[int]:
        if wanted.named is not None:
            return self.find(wanted.named)
        look = self.kin if wanted.many else self.find
        found = sorted({member for key in wanted.keys for member in look(key)})
        return [member for member in found if member != node] if len(found) > 1 or wanted.many or lenient else found

    def _pull(self, key: object, faults: list[Fault]) -> list[int]:
        """Take a class or factory in because it is needed; it is provisional."""
        if id(key) in self._replaced:
            _, spec = self._replaced[id(key)]
            node = self._append(spec, faults, alone=True)
            if isinstance(key, type) and node not in self._by_class.setdefault(key, []):
                self._by_class[key].append(node)
            return [node]
        if isinstance(key, str | Wish) or declaration(key) is None or not callable(key):
            return []
        pulled = read(key, {}, "", self.defaults, faults)
        return [self._append(pulled, faults, alone=True)] if pulled else []

    def _among(self, arguments: object) -> Iterator[int]:
        """Members found among arguments, also inside lists, tuples, sets and dicts."""
        work, seen = [arguments], set[int]()
        while work:
            value = work.pop()
            if id(value) in seen:
                continue
            seen.add(id(value))
            if isinstance(value, Mapping):
                work.extend(value.values())
            elif isinstance(value, list | tuple | set | frozenset):
                work.extend(value)
            if not isinstance(value, (type, *_PLAIN)):
                yield from self._made_by.get(id(value), ())

    def _set_edge(self, dependent: int, dependency: int, uses: bool) -> None:
        for column, wanted in ((self.uses, uses), (self.orders, not uses)):
            row = tuple(d for d in column[dependent] if d != dependency)
            column[dependent] = (*row, dependency) if wanted else row
        self._tangled = self._tangled or dependency >= dependent

    # Inside: cycles --------------------------------------------------------------------------------------

    def path(self, source: int, goal: int) -> list[int]:
        """A path over dependencies from ``source`` to ``goal``, both included; empty when there is none."""
        came: dict[int, int] = {source: source}
        work = deque([source])
        while work:
            node = work.popleft()
            if node == goal:
                path = [node]
                while path[-1] != source:
                    path.append(came[path[-1]])
                return path[::-1]
            for dependency in (*self.uses[node], *self.orders[node]):
                if dependency not in came:
                    came[dependency] = node
                    work.append(dependency)
        return []

    def _cycles(self) -> list[Fault]:
        """One fault for each knot of members that wait for each other; none, cheaply, when there is no cycle."""
        waiting = [0] * len(self.specs)
        for rows in (self.uses, self.orders):
            for row in rows:
                for dependency in row:
                    waiting[dependency] += 1
        free = [node for node, count in enumerate(waiting) if not count]
        settled = 0
        while free:
            node = free.pop()
            settled += 1
            for dependency in (*self.uses[node], *self.orders[node]):
                waiting[dependency] -= 1
                if not waiting[dependency]:
                    free.append(dependency)
        if settled == len(self.specs):
            return []
        import networkx as nx  # noqa: PLC0415 - slow to import, and needed here only

        knots = nx.DiGraph()
        for node, count in enumerate(waiting):
            if count:
                knots.add_edges_from((node, d) for d in (*self.uses[node], *self.orders[node]) if waiting[d])
        return [
            self._cycle([edge[0] for edge in nx.find_cycle(knots.subgraph(knot), min(knot))], {})
            for knot in sorted(nx.strongly_connected_components(knots), key=min)
            if len(knot) > 1 or knots.has_edge(*[min(knot)] * 2)
        ]

    def _cycle(self, nodes: list[int], places: Mapping[tuple[int, int], str]) -> Fault:
        first = nodes.index(min(nodes))
        ring = [*nodes[first:], *nodes[:first], nodes[first]]
        names = [self.names[node] for node in ring]
        lines = [
            f"{self.names[a]} -> {self.names[b]}  ({short(places.get((a, b)) or self._edge_where(a, b))})"
            for a, b in zip(ring, ring[1:], strict=False)
        ]
        if len(names) > 20:
            left_out = len(names) - 20
            names = [*names[:10], f"... {left_out} more ...", *names[-10:]]
            lines = [*lines[:10], f"... {left_out} more ...", *lines[-10:]]
        return Fault(CycleError, message(f"cycle: {' -> '.join(names)}", edges=lines,
            why="each waits for the next to have stopped, so none could stop first",
            hint="drop one of these edges, or split a resource in two"))  # fmt: skip

    def _edge_where(self, dependent: int, dependency: int) -> str:
        if declared := self._declared.get(dependent, {}).get(dependency):
            return declared[1]
        return self.spec(dependent).where

    # Inside: faults --------------------------------------------------------------------------------------

    def _missing(self, asker: str, key: object, parameter: Parameter | None = None) -> Fault:
        names = list(self.names)
        called = _called(key)
        shown = ", ".join(names[:12]) + (f" and {len(names) - 12} more" if len(names) > 12 else "")
        if near := did_you_mean(called, names):
            hint = near
        elif isinstance(key, type):
            hint = f"decorate {called} with @resource, or graph.add an instance of it"
            if parameter is not None:
                hint += f", or give the argument with functools.partial(..., {parameter.name}=...)"
        else:
            hint = "add it first: graph.add(...)"
        return Fault(MissingDependencyError, message(f"{asker} needs {called}, which graph {self.title!r} has not",
                has=shown or "nothing", hint=hint))  # fmt: skip

    def _ambiguous(self, asker: str, found: Sequence[int], key: object = None) -> Fault:
        what = f" {_called(key)}" if key is not None else ""
        return Fault(AmbiguousDependencyError, message(f"{asker}{what} could be any of {len(found)} resources",
                has=", ".join(self.whom(node) for node in found[:6]),
                hint='say which: Annotated[..., named("...")], a name in depends_on, or ask for list[...]'))  # fmt: skip

    def _unfilled(self, node: int, parameter: Parameter) -> Fault:
        label = self.spec(node).label
        return Fault(DeclarationError, message(f"{self.whom(node)} needs an argument for {parameter.name!r}",
                why="no resource of the graph can fill it",
                hint=f"functools.partial({label}, {parameter.name}=...), or graph.create({label}, {parameter.name}=...)",
            ))  # fmt: skip


def _strike(index: dict[K, list[int]], key: K, node: int) -> None:
    """Take ``node`` out of one row of an index."""
    row = index.get(key, [])
    if node in row:
        row.remove(node)
        if not row:
            del index[key]


def _called(key: object) -> str:
    if isinstance(key, str):
        return repr(key)
    return getattr(key, "__name__", None) or f"this {type(key).__name__}"
