"""Where evidence runs: never behind a hook that hangs."""

from __future__ import annotations

import threading
from typing import Any

from tests.evidence.stage import SHORT, Stage
from tests.graph.world import PATIENCE, fates


def test_evidence_does_not_wait_for_a_dedicated_thread(sync_stage: Stage) -> None:
    """A stop that hangs on its own thread is looked after and killed on another."""
    threads: dict[str, int] = {}

    def here(word: str, answer: Any = None) -> Any:
        threads[word] = threading.get_ident()
        return answer

    _, report = sync_stage.life(
        sync_stage.kind("base"),
        sync_stage.kind(
            "a",
            ["base"],
            start=lambda: here("start"),
            stop="hangs",
            is_stopped=lambda: here("look", "kill" in threads),
            kill=lambda: here("kill"),
            lane="dedicated",
        ),
    )
    assert {"base": "released", "a": "released"} == fates(report)
    assert ("a",) == report.forced
    assert threads["start"] not in (threads["look"], threads["kill"])


def test_salvage_does_not_wait_for_a_hung_lane(sync_stage: Stage) -> None:
    """A poisoned resource of the dedicated lane saves its data."""
    _, report = sync_stage.life(
        sync_stage.kind("base", salvage="ok", lane="dedicated"),
        sync_stage.kind("bad", ["base"], stop="hangs", lane="dedicated", salvage="ok"),
    )
    assert {"base": "poisoned", "bad": "timed_out"} == fates(report)
    assert ["base"] == sync_stage.names("salvage")


def test_kills_are_not_short_of_workers(sync_stage: Stage) -> None:
    """With one worker and many hung stops, every kill is tried."""
    kinds = [sync_stage.kind(f"r{n}", stop="hangs", kill="ok", is_stopped=[False, True]) for n in range(5)]
    _, report = sync_stage.life(*kinds, workers=1)
    assert {"released"} == set(fates(report).values())
    assert 5 == len(report.forced)


def test_a_stop_whose_lane_is_taken_is_timed_out_unattempted(sync_stage: Stage) -> None:
    """Another resource of a blocked private loop is not attempted, not even when the loop is free again."""
    from lifegraph import Graph, resource

    stage, let_go = sync_stage, threading.Event()
    entered = threading.Event()

    class Blocks:
        async def stop(self) -> None:
            entered.set()
            let_go.wait(PATIENCE)

    class Other:
        async def stop(self) -> None:
            stage.log.append(("stop", "other"))

    graph = Graph(
        stage.kind("base"),
        resource(name="other", depends_on=["base"], stop_timeout=0.3)(Other),
        resource(name="blocks", depends_on=["other"], stop_timeout=SHORT, kill=lambda it: None)(Blocks),
    )
    graph.start()
    report = graph.teardown()
    try:
        assert entered.is_set()
        assert {"base": "poisoned", "other": "timed_out", "blocks": "released"} == fates(report)
        assert "other" not in stage.names("stop")
        assert None is report.outcomes["other"].began or None is not report.outcomes["other"].ended
    finally:
        let_go.set()
    assert "other" not in stage.names("stop"), "it was stopped after it had been given up"
    assert "base" not in stage.names("stop")


def test_evidence_proves_what_could_not_be_attempted(sync_stage: Stage) -> None:
    """Sync evidence of such a resource is asked all the same."""
    from lifegraph import Graph, resource

    stage, let_go = sync_stage, threading.Event()

    class Blocks:
        async def stop(self) -> None:
            let_go.wait(PATIENCE)

    class Other:
        async def stop(self) -> None:
            stage.log.append(("stop", "other"))

    def look(_: object) -> bool:
        stage.log.append(("is_stopped", "other"))
        return True

    graph = Graph(
        stage.kind("base"),
        resource(name="other", depends_on=["base"], stop_timeout=0.3, kill=lambda it: None, is_stopped=look)(Other),
        resource(name="blocks", depends_on=["other"], stop_timeout=SHORT, kill=lambda it: None)(Blocks),
    )
    graph.start()
    report = graph.teardown()
    let_go.set()
    assert {"base": "released", "other": "released", "blocks": "released"} == fates(report)
    assert "base" in stage.names("stop")
