"""What one member depends on: its wishes, the parameters of its constructor, and members among its arguments."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple, Protocol

from ..errors import DeclarationError, Fault, message
from ..parameters import Asked, Parameter, asked, evaluate, parameters, signature
from ..spec import Spec, Wish, declaration
from . import faults as say

__all__ = ["GRAPH", "Around", "Filling", "Resolution"]

GRAPH = -1  # in a `Filling`: the graph itself


class Filling(NamedTuple):
    """How the graph fills one parameter: with one member (or `GRAPH`), with several, or with None."""

    parameter: str
    members: tuple[int, ...]
    many: Callable[[Iterable[Any]], Any] | None = None


class Around(Protocol):
    """The members around the one that is resolved."""

    owner: type

    def whom(self, node: int) -> str:
        """A member as messages say it."""
        ...

    def find(self, key: object) -> list[int]:
        """The members that a key means."""
        ...

    def kin(self, key: type) -> list[int]:
        """All members that are of a class."""
        ...

    def among(self, arguments: object) -> Iterator[int]:
        """Members found among arguments."""
        ...

    def pull(self, key: object, faults: list[Fault]) -> list[int]:
        """Take in what is needed."""
        ...

    def names_in_annotations(self) -> dict[str, type]:
        """What names can mean that only type checkers see."""
        ...

    def missing(self, asker: str, key: object, parameter: str | None = None) -> Fault:
        """The fault that nothing is what a key means."""
        ...

    def ambiguous(self, asker: str, key: object, found: Iterable[int]) -> Fault:
        """The fault that more than one is."""
        ...


class Resolution:
    """The edges and fillings of one member, and what is wrong or missing; pulls in what it needs."""

    def __init__(self, model: Around, node: int) -> None:
        self.edges: dict[int, bool] = {}  # dependency -> whether it is used
        self.fillings: list[Filling] = []
        self.faults: list[Fault] = []
        self.missing: list[Fault] = []  # what a later member may still cure
        self.by_class = False  # another member may change the answer
        self._model = model
        self._node = node
        self._whom = model.whom(node)

    def resolve(self, spec: Spec, *, built: bool) -> None:
        """Find all that this member depends on."""
        if not built and spec.form.constructed:
            self._parameters(spec)
            for member in self._model.among((spec.args, spec.kwargs)):
                self.edges[member] = True
        said: dict[int, bool] = {}
        for wish in spec.wishes:
            self._wish(wish, said)
        self.edges |= said

    def _wish(self, wish: Wish, said: dict[int, bool]) -> None:
        self.by_class = self.by_class or isinstance(wish.key, type)
        found = self._model.find(wish.key)
        if not found and not wish.optional:
            found = self._model.pull(wish.key, self.faults)
        if len(found) > 1:
            self.faults.append(self._model.ambiguous(f"{self._whom} depends_on", wish.key, found))
        elif not found and not wish.optional:
            self.missing.append(self._model.missing(f"{self._whom} depends_on: it", wish.key))
        for member in found:  # of several all: the safe side, should it be torn down like this
            said[member] = wish.uses or said.get(member, False)

    def _parameters(self, spec: Spec) -> None:
        known = signature(spec.target)
        try:
            given = known.bind_partial(*spec.args, **(spec.kwargs or {})).arguments if known else {}
        except TypeError as why:
            text = message(f"{self._whom} does not take these arguments", why=str(why))
            self.faults.append(Fault(DeclarationError, text))
            return
        names = self._model.names_in_annotations()
        for parameter in parameters(spec.target):
            if parameter.name in given:
                continue
            try:
                wanted = asked(evaluate(parameter.annotation, spec.target, names), self._model.owner)
            except Exception as why:  # noqa: BLE001 - an annotation is any expression
                self.faults.append(self._unreadable(spec, parameter, why))
            else:
                self._fill(spec, parameter, wanted)

    def _fill(self, spec: Spec, parameter: Parameter, wanted: Asked | type | None) -> None:
        if wanted is self._model.owner:
            self.fillings.append(Filling(parameter.name, (GRAPH,)))
        elif isinstance(wanted, Asked):
            self._fill_asked(parameter, wanted)
        elif parameter.required:
            self.faults.append(say.unfilled(self._whom, spec.label, parameter.name))

    def _fill_asked(self, parameter: Parameter, wanted: Asked) -> None:
        self.by_class = True
        found = self._candidates(parameter, wanted)
        asker = f"{self._whom}, parameter {parameter.name!r},"
        if len(found) > 1 and wanted.many is None:
            self.faults.append(self._model.ambiguous(asker, wanted.keys[0], found))
            return
        for member in found:
            self.edges[member] = self.edges.get(member, False) or not wanted.order_only
        if found or (wanted.many and declaration(wanted.keys[0]) is not None):
            self.fillings.append(Filling(parameter.name, tuple(found), wanted.many))
        elif parameter.required and wanted.optional:
            self.fillings.append(Filling(parameter.name, ()))
        elif parameter.required:
            self.missing.append(self._model.missing(asker, wanted.named or wanted.keys[0], parameter.name))

    def _candidates(self, parameter: Parameter, wanted: Asked) -> list[int]:
        model = self._model
        if wanted.named is not None:
            return model.find(wanted.named)
        look = model.kin if wanted.many else model.find
        found = sorted({member for key in wanted.keys for member in look(key)})
        needed = parameter.required and not wanted.optional
        if len(found) > 1 or wanted.many or not needed:
            found = [member for member in found if member != self._node]
        if not found and needed and not wanted.many:
            return model.pull(wanted.keys[0], self.faults)
        return found

    def _unreadable(self, spec: Spec, parameter: Parameter, why: Exception) -> Fault:
        cure = f"import it at run time, or give the argument: functools.partial({spec.label}, {parameter.name}=...)"
        where = f"cannot read the annotation {parameter.annotation!r} of {self._whom}, parameter {parameter.name!r}"
        return Fault(DeclarationError, message(where, why=f"{type(why).__name__}: {why}", hint=cure))
