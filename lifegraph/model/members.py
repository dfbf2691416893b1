"""Who is in a graph, under which name and number, and who is meant by a key."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, TypeVar

from ..errors import DeclarationError, DuplicateNameError, Fault, message, short
from ..plan import Plan
from ..spec import Form, Spec
from . import faults as say

__all__ = ["PLAIN", "K", "Members"]

K = TypeVar("K")
PLAIN: Final = (type(None), bool, int, float, complex, str, bytes, tuple, frozenset)  # whose identity says nothing


class Members:
    """The members of one graph, by number in declared order.

    What lies from ``base`` on was pulled in only because others need it, and is provisional.
    """

    def __init__(self, title: str) -> None:
        self.title = title
        self.specs: list[Spec | None] = []  # None: forgotten
        self.names: list[str] = []
        self.uses: list[tuple[int, ...]] = []
        self.orders: list[tuple[int, ...]] = []
        self.ids: dict[str, int] = {}
        self.frozen: Plan | None = None  # of all members, as long as they are the same
        self.base = 0
        self._made_by: dict[int, list[int]] = {}  # id() of a target or instance -> members
        self._by_class: dict[type, list[int]] = {}
        self._counts: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self.ids)

    def __iter__(self) -> Iterator[str]:
        return iter(self.ids)

    def nodes(self) -> list[int]:
        """The numbers of all members."""
        if len(self.ids) == len(self.specs):
            return list(range(len(self.specs)))
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

    def append(self, spec: Spec, faults: list[Fault], *, alone: bool) -> int:
        """Take a member in. ``alone``: its target may be in the graph already."""
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
        self.frozen = None
        self.specs.append(spec)
        self.names.append(name)
        self.ids[name] = node
        self.uses.append(())
        self.orders.append(())
        self._made_by.setdefault(id(target), []).append(node)
        for kind in spec.kinds:
            self._by_class.setdefault(kind, []).append(node)
        return node

    def forget(self, nodes: Iterable[int]) -> None:
        """Let go of members, for good."""
        self.frozen = None
        for node in sorted(set(nodes), reverse=True):
            spec = self.specs[node]
            if spec is None:
                continue
            del self.ids[self.names[node]]
            _strike(self._made_by, id(spec.target), node)
            for kind in [kind for kind, row in self._by_class.items() if node in row] if spec.kinds else ():
                _strike(self._by_class, kind, node)
            if node == len(self.specs) - 1:
                for column in (self.specs, self.names, self.uses, self.orders):
                    column.pop()
            else:
                self.specs[node], self.uses[node], self.orders[node] = None, (), ()
        self.base = min(self.base, len(self.specs))

    def unrecognise(self, node: int, instance: object) -> None:
        """The instance is gone; its address may come again."""
        if self.spec(node).target is not instance:
            _strike(self._made_by, id(instance), node)

    def also_known_as(self, node: int, instance: object) -> None:
        """``instance`` among arguments or in ``depends_on`` means this member."""
        if not isinstance(instance, PLAIN) and node not in self._made_by.get(id(instance), ()):
            self._made_by.setdefault(id(instance), []).append(node)

    def answers_for(self, node: int, kind: object) -> None:
        """Who asks for this class means this member too."""
        if isinstance(kind, type) and node not in self._by_class.setdefault(kind, []):
            self._by_class[kind].append(node)

    def class_names(self) -> dict[str, type]:
        """The classes of members by name, where just one has that name."""
        named: dict[str, set[type]] = {}
        for kind in self._by_class:
            named.setdefault(kind.__name__, set()).add(kind)
        return {name: kinds.pop() for name, kinds in named.items() if len(kinds) == 1}

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

    def the(self, key: object, asker: str = "lookup:") -> int:
        """The one member that ``key`` means; raises `MissingDependencyError` or `AmbiguousDependencyError`."""
        found = self.find(key)
        if not found:
            raise DeclarationError.of([self.missing(asker, key)])
        if len(found) > 1:
            raise DeclarationError.of([self.ambiguous(asker, key, found)])
        return found[0]

    def among(self, arguments: object) -> Iterator[int]:
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
            if not isinstance(value, (type, *PLAIN)):
                yield from self._made_by.get(id(value), ())

    def missing(self, asker: str, key: object, parameter: str | None = None) -> Fault:
        """The fault that nothing here is what ``key`` means."""
        return say.missing(asker, key, self.title, list(self.ids), parameter)

    def ambiguous(self, asker: str, key: object, found: Iterable[int]) -> Fault:
        """The fault that more than one here is what ``key`` means."""
        return say.ambiguous(asker, key, [self.whom(node) for node in found])

    def _free_name(self, label: str) -> str:
        if label not in self.ids:
            return label
        count = self._counts.get(label, 1) + 1
        while f"{label}-{count}" in self.ids:
            count += 1
        self._counts[label] = count
        return f"{label}-{count}"

    def _is_kin(self, kind: type, node: int, key: type) -> bool:
        try:
            return issubclass(kind, key)
        except TypeError:  # a protocol with attributes: only an instance can tell
            spec = self.spec(node)
            return (
                spec.form is Form.LIVE and getattr(key, "_is_runtime_protocol", False) and isinstance(spec.target, key)
            )


def _strike(index: dict[K, list[int]], key: K, node: int) -> None:
    """Take ``node`` out of one row of an index."""
    row = index.get(key, [])
    if node in row:
        row.remove(node)
        if not row:
            del index[key]
