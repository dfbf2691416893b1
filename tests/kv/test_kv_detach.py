"""Tiers leave and come back while prompts are served, and what fails on the way out holds only what it uses."""

from __future__ import annotations

import inspect
import itertools
import os
import signal
import threading

import pytest

from examples.kv_offload.assembly import Settings, assemble, branch
from examples.kv_offload.faults import Fault
from examples.kv_offload.serving.prompts import Workload, prompts
from lifegraph import Fate, Graph

from .remote_tiers import needs_nixl, needs_redis

pytestmark = pytest.mark.skipif(
    "targets" not in inspect.signature(Graph.teardown).parameters,
    reason="needs partial teardown, which this version of lifegraph does not have yet",
)

REMOTE = [
    "peer",
    pytest.param("redis", marks=needs_redis),
    pytest.param("nixl", marks=needs_nixl),
]


class Customers:
    """Prompts without end, on a thread of their own, until it is left."""

    def __init__(self, engine):
        self._engine, self._enough = engine, False
        self._served = threading.Semaphore(0)
        self.errors = []
        self._thread = threading.Thread(target=self._go_on)

    def __enter__(self):
        self._thread.start()
        self.wait(4)
        return self

    def __exit__(self, *_):
        self._enough = True
        self._thread.join(60)
        assert not self._thread.is_alive()

    def wait(self, prompts):
        """Until so many more have been served."""
        for _ in range(prompts):
            assert self._served.acquire(timeout=60), self.errors

    def _go_on(self):
        work = itertools.cycle(list(prompts(Workload(16, prefixes=4, prefix_blocks=8, suffix_blocks=2))))
        try:
            self._engine.serve(itertools.takewhile(lambda _: not self._enough, work), lambda _: self._served.release())
        except Exception as error:
            self.errors.append(error)
            self._served.release(1000)


def build(path, *tiers, **options):
    """A hierarchy whose region is too small for the work, with short limits."""
    return assemble(
        Settings(4 << 20, path, tiers=tiers, for_good=False, hang_limit=0.5, kill_limit=0.5, patience=0.2, **options)
    )


@pytest.mark.parametrize("label", ["disk", *REMOTE])
def test_detached_and_attached_again_under_traffic(tmp_path, label):
    """Three times; every block served is right; the new generation serves, and a disk's blocks are found again."""
    other = "peer" if label == "disk" else "disk"
    graph = build(tmp_path / "kv", label, other)
    with graph, Customers(graph["engine"]) as customers:
        for generation in range(2, 5):
            first = graph[label]
            report = graph.teardown(targets=branch(label))
            assert report.ok
            gone = {*branch(label), label, f"link({label})"}
            assert gone <= set(report.released)
            assert [other] == graph["manager"].attached()
            assert first.is_stopped()
            customers.wait(3)
            graph.start()
            assert graph[label] is not first
            assert {label, other} == set(graph["manager"].attached())
            customers.wait(3)
            assert generation == graph.teardown(targets=[f"link({label})"]).outcomes[label].generation
            graph.start()
        assert [] == customers.errors
        loaded = graph[label].stats().loaded + graph[label].stats().stored
        assert loaded > 0
    assert graph.report is not None
    assert graph.report.ok


@pytest.mark.parametrize("fault", [Fault.STOP, Fault.HANG, Fault.LIE])
def test_a_tier_that_fails_to_leave_is_held_and_the_traffic_goes_on(tmp_path, fault):
    """Its view and its directory are held; the others serve on; at the end the region is held as well."""
    graph = build(tmp_path / "kv", "disk", "peer", faults={"disk": fault})
    graph.start()
    with Customers(graph["engine"]) as customers:
        report = graph.teardown(targets=branch("disk"))
        assert {"view(disk)", "directory"} == set(report.poisoned)
        customers.wait(6)
        assert [] == customers.errors
    report = graph.teardown()
    held = {"view(disk)", "directory", "pool", "registration", "mapping"}
    assert held == set(report.poisoned)
    assert {"disk"} == set(report.failed) | set(report.timed_out)
    assert ("disk",) == report.outcomes["mapping"].causes


@pytest.mark.parametrize("label", REMOTE)
def test_a_frozen_other_side_is_left_by_kill_under_traffic(tmp_path, label):
    """The stop would wait for ever; kill proves the end; nothing is held, and the traffic goes on."""
    graph = build(tmp_path / "kv", label, "disk", stop_limits={label: 0.5})
    with graph:
        far = graph[branch(label)[1]]
        with Customers(graph["engine"]) as customers:
            os.killpg(far.pid, signal.SIGSTOP)
            report = graph.teardown(targets=[f"view({label})"])
            assert report.ok
            assert Fate.RELEASED is report.fates[label]
            customers.wait(4)
            assert [] == customers.errors
        os.killpg(far.pid, signal.SIGCONT)


@pytest.mark.parametrize("label", REMOTE)
def test_sigkill_of_the_other_side_under_traffic_and_a_new_one(tmp_path, label):
    """Blocks are lost and recomputed; the dead side is replaced by detaching and attaching."""
    graph = build(tmp_path / "kv", label, "disk")
    with graph, Customers(graph["engine"]) as customers:
        os.killpg(graph[branch(label)[1]].pid, signal.SIGKILL)
        customers.wait(4)
        assert graph.teardown(targets=branch(label)).ok
        graph.start()
        assert graph[branch(label)[1]].running
        customers.wait(6)
        assert [] == customers.errors
        assert "" == graph[label].broken
