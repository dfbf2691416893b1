"""Where the time goes in the hottest rows: ``python -m benchmarks.profile [--size N] [--by tottime|cumulative]``.

Every thread's calls are counted by cProfile, which inflates small functions; where `py-spy` or `perf` is
installed, the command to sample the same workload undisturbed is printed as well.
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import shutil
import sys
import threading
from collections.abc import Callable
from functools import partial
from io import StringIO
from typing import Final

from lifegraph import Graph

from .measure import Stopwatch
from .ours import filled
from .shapes import Shape, layered

__all__ = ["main"]

STAGES: Final[dict[str, tuple[Callable[[Shape], Graph | None], Callable[[Shape, Graph | None], Graph | None]]]] = {
    "register": (lambda _: None, lambda shape, _: filled(shape)),
    "teardown": (filled, lambda _, graph: _torn_down(graph)),
    "plan": (filled, lambda _, graph: _planned(graph)),
}


def main(arguments: list[str] | None = None) -> int:
    """Profile each stage once, and print its most expensive functions."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.profile", description="Where the time goes.")
    parser.add_argument("stages", nargs="*", metavar="STAGE", help=f"which of {', '.join(STAGES)} (all)")
    parser.add_argument("--size", type=int, default=20_000, help="how many resources (20000)")
    parser.add_argument("--by", default="tottime", choices=["tottime", "cumulative", "ncalls"], help="the order")
    parser.add_argument("--bare", action="store_true", help="run without a profiler, for one from outside")
    asked = parser.parse_args(arguments)
    for stage in asked.stages or STAGES:
        prepare, act = STAGES[stage]
        shape = layered(asked.size)
        graph = prepare(shape)
        if asked.bare:
            with Stopwatch() as watch:
                graph = act(shape, graph)
            sys.stdout.write(f"{stage}: {1e6 * watch.spent.cpu / asked.size:.2f} us of CPU per resource\n")
        else:
            graph, table = _profiled(partial(act, shape, graph), asked.by)
            sys.stdout.write(f"{stage}, {asked.size} resources\n{table}")
        if graph is not None:
            graph.teardown()
    for tool, command in _OUTSIDE.items():
        if not asked.bare and shutil.which(tool):
            sys.stdout.write(f"undisturbed: {command}\n")
    return 0


_OUTSIDE: Final = {
    "py-spy": "py-spy record --threads -o profile.svg -- python -m benchmarks.profile --bare teardown",
    "perf": "perf record -g python -m benchmarks.profile --bare teardown",
}


def _torn_down(graph: Graph | None) -> None:
    assert graph is not None
    graph.teardown()


def _planned(graph: Graph | None) -> Graph:
    assert graph is not None
    assert graph.plan().order
    return graph


def _profiled(act: Callable[[], Graph | None], by: str) -> tuple[Graph | None, str]:
    """What cProfile counts on this thread and on those that begin meanwhile, each with a profiler of its own."""
    profiles: list[cProfile.Profile] = []

    def begin(*_: object) -> None:
        profiles.append(cProfile.Profile())
        profiles[-1].enable()  # takes the place of this very function

    own = cProfile.Profile()
    threading.setprofile(begin)
    try:
        graph = own.runcall(act)
    finally:
        threading.setprofile(None)
    out = StringIO()
    stats = pstats.Stats(own, stream=out)
    for profile in profiles:
        stats.add(profile)
    stats.strip_dirs().sort_stats(by).print_stats(18)
    return graph, out.getvalue()


if __name__ == "__main__":
    sys.exit(main())
