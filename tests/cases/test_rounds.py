"""More than one round: in one process, in one graph, at the end of the process."""

from __future__ import annotations

import mmap

import pytest

from lifegraph import Graph, resource
from tests.conftest import Child
from tests.graph.world import Elsewhere, World, fates, whole_life


@pytest.mark.parametrize("cycles", [2, 5])
def test_a_registration_goes_before_its_mapping_in_every_round(cycles: int) -> None:
    """Unregistered before it is unmapped, time after time, so that an address can be registered again.

    https://github.com/MoonshotAI/checkpoint-engine/issues/67
    """
    registered: set[int] = set()
    log: list[str] = []

    @resource
    class Mapping:
        def __init__(self) -> None:
            self.map = mmap.mmap(-1, 4096)
            log.append("map")

        def close(self) -> None:
            assert not registered, "unmapped while registered"
            self.map.close()
            log.append("unmap")

    class Registration:
        def __init__(self, mapping: Mapping) -> None:
            self.mapping = mapping

        def start(self) -> None:
            assert 0 not in registered, "registered already"
            registered.add(0)
            log.append("register")

        def stop(self) -> None:
            self.mapping.map[0] = 1
            registered.remove(0)
            log.append("unregister")

    Registration.__init__.__annotations__["mapping"] = Mapping
    registration = resource(Registration)

    @resource(depends_on=[registration])
    class Pool:
        def close(self) -> None:
            log.append("pool")

    for _ in range(cycles):
        _, report = whole_life(Pool)
        assert report.ok
        assert 3 == len(report.released)
    assert ["map", "register", "pool", "unregister", "unmap"] * cycles == log


@pytest.mark.parametrize("threads", [1, 8])
def test_a_second_teardown_returns_the_first_report(world: World, threads: int) -> None:
    """However often and from wherever it is asked for, a stop is called once.

    https://github.com/apache/spark/pull/56140
    """
    graph, report = whole_life(world.kind("svc"), world.kind("user", ["svc"]))
    for again in [Elsewhere(graph.teardown) for _ in range(threads)]:
        assert report is again.result()
    assert ["user", "svc"] == world.names("stop")


def test_nothing_happens_at_exit_after_a_teardown(any_child: Child) -> None:
    """After an explicit teardown the end of the process is silent, and stops nothing again.

    https://github.com/dask/distributed/pull/1170
    """
    done = any_child.run(
        """
from lifegraph import Graph, resource
@resource
class Svc:
    def close(self): print("closed")
graph = Graph(Svc)
graph.start()
graph.teardown()
graph.teardown()
""",
        options=("-W", "default"),
    )
    assert ("closed\n", "") == (done.stdout, done.stderr)


UNTOLD = """
import sys, lifegraph
from lifegraph import Graph, resource
@resource
class Pool:
    def __init__(self): self.open = True
    def close(self): print("pool closed")
@resource
class Batcher:
    def __init__(self, pool: Pool): self.pool = pool
    def close(self): print("flushed")
graph = Graph(Batcher, name="telemetry")
graph.start()
{more}
"""


@pytest.mark.parametrize("more", ["", "del graph", "import gc; del graph; gc.collect()", "raise SystemExit(0)"])
def test_a_graph_that_nobody_tore_down_is_told_of(any_child: Child, more: str) -> None:
    """At the end of the process one warning names the graph, its place and what is still up; nothing is stopped.

    https://github.com/open-telemetry/opentelemetry-python/issues/5568
    """
    done = any_child.run(UNTOLD.format(more=more))
    assert "" == done.stdout
    assert 1 == done.stderr.count("never torn down"), done.stderr
    for word in ("telemetry", "<string>:12", "Pool", "Batcher"):
        assert word in done.stderr


def test_the_warning_is_a_resource_warning(any_child: Child) -> None:
    """Where ResourceWarnings are shown it is one, and the log has it as well.

    https://github.com/open-telemetry/opentelemetry-python/issues/5568
    """
    done = any_child.run(UNTOLD.format(more=""), options=("-W", "always::ResourceWarning"))
    assert "ResourceWarning" in done.stderr
    assert "telemetry" in done.stderr


def test_no_warning_where_nothing_is_up(any_child: Child) -> None:
    """A graph that was never started, or that ended, is not told of.

    https://github.com/open-telemetry/opentelemetry-python/issues/5568
    """
    done = any_child.run(UNTOLD.format(more="graph.teardown()\nother = Graph(Batcher)"), options=("-W", "default"))
    assert "" == done.stderr


def test_the_graph_can_be_made_again(world: World) -> None:
    """A fresh graph of the same classes starts where the old one ended.

    https://github.com/MoonshotAI/checkpoint-engine/issues/67
    """
    kinds = world.kind("a"), world.kind("b", ["a"])
    for _ in range(3):
        _, report = whole_life(*kinds)
        assert {"a": "released", "b": "released"} == fates(report)
    with pytest.raises(LookupError):
        Graph(*kinds)["c"]
