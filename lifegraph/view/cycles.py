"""Which edges lie on a cycle. A checked graph has none; the picture of a broken one shows where they are."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["knotted", "peeled", "turned"]


def knotted(below: Sequence[Sequence[int]]) -> set[tuple[int, int]]:
    """The edges `(a, b)` from whose end a path leads back to their beginning; `below[a]` are the heads of a's edges."""
    core = _core(below)
    if not core:
        return set()
    part = _parts(core, below)
    return {(node, head) for node in core for head in below[node] if part.get(head, -1) == part[node]}


def turned(below: Sequence[Sequence[int]]) -> set[tuple[int, int]]:
    """Edges without which there is no cycle left: those that lead back to where a walk in declared order is."""
    core = _core(below)
    back: set[tuple[int, int]] = set()
    state = dict.fromkeys(core, 0)  # 1 while the walk stands on it or below it, 2 afterwards
    for start in core:
        path = [(start, iter(below[start]))] if not state[start] else []
        state[start] = state[start] or 1
        while path:
            node, heads = path[-1]
            head = next(heads, None)
            if head is None:
                state[node] = 2
                path.pop()
            elif state.get(head) == 1:
                back.add((node, head))
            elif state.get(head) == 0:
                state[head] = 1
                path.append((head, iter(below[head])))
    return back


def peeled(below: Sequence[Sequence[int]]) -> list[int]:
    """Nodes in the order in which they come off when those that nothing leads to are taken away, again and again."""
    entered = [0] * len(below)
    for heads in below:
        for head in heads:
            entered[head] += 1
    free = [node for node, count in enumerate(entered) if not count]
    for node in free:  # grows while it is read
        for head in below[node]:
            entered[head] -= 1
            if not entered[head]:
                free.append(head)
    return free


def _core(below: Sequence[Sequence[int]]) -> list[int]:
    """What does not come off: nothing, or a cycle and more."""
    free = peeled(below)
    return sorted(set(range(len(below))).difference(free)) if len(free) < len(below) else []


def _parts(core: Sequence[int], below: Sequence[Sequence[int]]) -> dict[int, int]:
    """For each node its strongly connected part, after Kosaraju: finish a walk along the edges, then walk against them."""
    above: dict[int, list[int]] = {node: [] for node in core}
    for node in core:
        for head in below[node]:
            if head in above:
                above[head].append(node)
    part: dict[int, int] = {}
    for root in reversed(_finished(core, below)):
        work = [root] if root not in part else []
        while work:
            node = work.pop()
            if node not in part:
                part[node] = root
                work += above[node]
    return part


def _finished(core: Sequence[int], below: Sequence[Sequence[int]]) -> list[int]:
    """The nodes in the order in which a walk along the edges leaves them."""
    unseen, order = set(core), list[int]()
    for start in core:
        path = [(start, iter(below[start]))] if start in unseen else []
        unseen.discard(start)
        while path:
            node, heads = path[-1]
            head = next((head for head in heads if head in unseen), None)
            if head is None:
                order.append(node)
                path.pop()
            else:
                unseen.remove(head)
                path.append((head, iter(below[head])))
    return order
