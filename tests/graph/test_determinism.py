"""The same graph has the same order in every process."""

from __future__ import annotations

from tests.conftest import Child

PROGRAM = """
import json, threading
from lifegraph import Graph, resource, order_only, AmbiguousDependencyError, CycleError
log = []
class Base: pass
def kind(name, needs=(), **options):
    def stop(self): log.append(name)
    return resource(name=name, depends_on=list(needs), **options)(type(name, (Base,), {"stop": stop}))
names = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta"]
graph = Graph(*[kind(name, [order_only(n) if len(n) == 4 else n for n in names[:k] if (len(n) + k) % 3 == 0])
                for k, name in enumerate(names)], workers=1)
class User:
    def __init__(self, all: list[Base], s=frozenset(names)): self.all = [type(a).__name__ for a in all]
    def stop(self): log.append("User")
graph.add(resource(User), start=lambda it: log.append(tuple(it.all)))
plan = graph.plan()
graph.start()
report = graph.teardown()
try: Graph(*[kind(n, [names[(k + 1) % 8]]) for k, n in enumerate(names)]); error = None
except CycleError as why: error = str(why)
lookups = Graph(*[kind(n) for n in names])
try: lookups[Base]
except AmbiguousDependencyError as why: ambiguous = str(why)
print(json.dumps([plan.order, plan.levels, plan.edges, plan.critical_path, log, report.released,
    [list(b) for b in graph.blast()], graph.to_dot(), graph.to_mermaid(), graph.to_text(), error, ambiguous]))
"""


def test_order_does_not_depend_on_the_hash_seed(any_child: Child) -> None:
    """Order, levels, edges, ranking, pictures and errors are the same under any PYTHONHASHSEED."""
    said = {any_child.run(PROGRAM, env={"PYTHONHASHSEED": seed}).stdout for seed in ("0", "1", "42", "4294967295")}
    assert 1 == len(said)
    assert said.pop().startswith("[[")


def test_every_python_says_the_same(child: Child, other_children: list[Child]) -> None:
    """And it is the same on every supported Python."""
    assert 1 == len({each.run(PROGRAM).stdout for each in (child, *other_children)})
