"""What a scene gathers."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, replace
from pathlib import Path

import pytest

from lifegraph.view import Edge, Kind, Role, Scene, scene
from tests.view.samples import Fate, Outcome, Report, graph, named, tiers, tiers_report


def edges(drawn: Scene, poison: bool = False) -> set[str]:
    """The edges as `a b`; those that carried poison only, if asked."""
    names = [node.name for node in drawn.nodes]
    return {f"{names[e.dependent]} {names[e.dependency]}" for e in drawn.edges if e.poison or not poison}


def test_a_scene_is_plain_and_frozen() -> None:
    """Nodes stand in declared order, edges point from dependent to dependency, nothing can be changed."""
    drawn = scene(graph({"a": "b", "b": ""}))
    assert ["a", "b"] == [node.name for node in drawn.nodes]
    assert (Edge(0, 1, Kind.USE),) == drawn.edges
    assert (2, None, None, 0) == (drawn.total, drawn.verdict, drawn.focus, drawn.hidden)
    with pytest.raises(FrozenInstanceError):
        drawn.nodes[0].name = "c"  # type: ignore[misc]  # that is what must fail
    assert not hasattr(drawn, "__dict__")


def test_a_pair_has_one_edge() -> None:
    """Twice the same edge is one, and a use edge stands where an order-only one speaks of the same pair."""
    drawn = scene(graph({"a": "b b", "b": ""}, {"a": "b b"}))
    assert (Edge(0, 1, Kind.USE),) == drawn.edges


def test_roles_and_lines_come_from_the_report() -> None:
    """Root causes, consequences and the rest are told apart, each with its status and its reason."""
    nodes = {node.name: node for node in scene(tiers(), tiers_report()).nodes}
    assert Role.ROOT_CAUSE is nodes["FileTier"].role is nodes["NixlTier"].role is nodes["Metrics"].role
    assert Role.CONSEQUENCE is nodes["PrimaryTier"].role is nodes["Disk"].role
    assert Role.FINE is nodes["Server"].role is nodes["Db"].role
    assert ("FileTier", "timed out after 5.00 s", "HookTimeout: stop() still ran after 5.0 s") == nodes[
        "FileTier"
    ].label
    assert ("Disk", "poisoned", "because of FileTier") == nodes["Disk"].label
    assert "released by kill in 0.30 s" == nodes["Scheduler"].status
    assert ("start failed: OSError: no route to db:5432",) == nodes["Db"].error
    assert nodes["Db"].start_failed
    assert nodes["Scheduler"].forced


def test_the_verdict_counts_root_causes_first() -> None:
    """The verdict speaks of the whole graph, whatever the focus."""
    for drawn in (scene(tiers(), tiers_report()), scene(tiers(), tiers_report(), focus="Disk")):
        assert drawn.verdict is not None
        counts = (("failed", 1), ("timed_out", 1), ("abandoned", 1), ("poisoned", 3), ("released", 3), ("skipped", 1))
        assert counts == drawn.verdict.counts
        assert (False, 5.42, 10) == (drawn.verdict.ok, drawn.verdict.seconds, drawn.total)


def test_poison_is_marked_on_its_way() -> None:
    """Only use edges from a cause, or from its consequence, to what it poisoned carried poison."""
    drawn = scene(tiers(), tiers_report())
    ways = {"FileTier PrimaryTier", "FileTier Disk", "NixlTier PrimaryTier", "PrimaryTier Arena"}
    assert ways == edges(drawn, poison=True)


def test_poison_takes_no_way_its_causes_do_not_name() -> None:
    """An attested dependent poisons nothing, and a lease poisons without an edge."""
    causes = {"pool": Outcome(causes=("lease:req-17",)), "base": Outcome(causes=("lease:req-17",))}
    fates = {"user": Fate.failed, "pool": Fate.poisoned, "base": Fate.poisoned}
    report = Report(False, 1.0, fates, causes, attested=("user",))
    drawn = scene(graph({"user": "pool base", "pool": "base", "base": ""}), report)
    assert {"pool base"} == edges(drawn, poison=True)
    assert drawn.nodes[0].attested
    assert "failed, attested" == drawn.nodes[0].status


def test_what_a_report_does_not_know_has_no_fate() -> None:
    """A resource added after the report, and one without an outcome, are drawn all the same."""
    drawn = scene(graph({"a": "b", "b": ""}), Report(False, 1.0, {"b": Fate.poisoned}))
    assert (None, "poisoned") == (drawn.nodes[0].fate, drawn.nodes[1].fate)
    assert set() == edges(drawn, poison=True)


def test_errors_are_told_once() -> None:
    """The type stands before the text unless the text begins with it; an empty text leaves the type."""
    said = {"a": ("boom", "OSError"), "b": ("OSError: boom", "OSError"), "c": ("", "OSError"), "d": ("boom", None)}
    fates = dict.fromkeys(said, Fate.failed)
    report = Report(False, 1.0, fates, {name: Outcome(error, kind) for name, (error, kind) in said.items()})
    errors = [node.error for node in scene(named(list(said)), report).nodes]
    assert [("OSError: boom",), ("OSError: boom",), ("OSError",), ("boom",)] == errors


def test_focus_keeps_what_is_above_and_below() -> None:
    """A focus keeps one resource, its dependencies and dependents over both kinds of edge, and the edges between."""
    drawn = scene(tiers(), focus="FileTier")
    kept = ["Server", "Scheduler", "FileTier", "PrimaryTier", "Arena", "Disk", "Metrics"]
    assert kept == [node.name for node in drawn.nodes]
    assert list(range(7)) == [node.index for node in drawn.nodes]
    assert "Server Metrics" in edges(drawn)
    assert 10 == drawn.total


def test_an_unknown_focus_asks_what_was_meant() -> None:
    """A wrong name is refused with the nearest ones."""
    with pytest.raises(ValueError, match=r"^kv has no resource named 'PrimaryTeir'; did you mean 'PrimaryTier'\?$"):
        scene(tiers(), focus="PrimaryTeir")
    with pytest.raises(ValueError, match=r"^kv has no resource named 'xyz'$"):
        scene(tiers(), focus="xyz")


def test_reduce_hides_what_longer_paths_say() -> None:
    """A use edge needs a path of use edges, an order-only edge any path."""
    drawn = scene(graph({"a": "b c", "b": "c", "c": "", "d": "c"}, {"a": "d"}), reduce=True)
    assert {"a b", "b c", "a d", "d c"} == edges(drawn)
    assert 1 == drawn.hidden
    mixed = scene(graph({"a": "c", "b": "c", "c": ""}, {"a": "b"}), reduce=True)
    assert {"a b", "a c", "b c"} == edges(mixed)
    ordered = scene(graph({"a": "b", "b": "c", "c": ""}, {"a": "c"}), reduce=True)
    assert {"a b", "b c"} == edges(ordered)


def test_poison_without_named_causes_is_believed() -> None:
    """Where a report names no causes, what failed or was poisoned above a poisoned resource carried it."""
    fates = {"a": Fate.failed, "b": Fate.poisoned, "c": Fate.poisoned, "d": Fate.released}
    drawn = scene(graph({"a": "b", "b": "c", "c": "", "d": "c"}, {"a": "c"}), Report(False, 1.0, fates))
    assert {"a b", "b c"} == edges(drawn, poison=True)


def test_places_are_told_from_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was declared below the working directory is named without it; all else as it is."""
    monkeypatch.chdir(tmp_path)
    where = [str(tmp_path / "deep" / "app.py:7"), "/elsewhere/app.py:8", "app.py:9", ""]
    source = replace(named(["a", "b", "c", "d"]), where=where)
    assert ["deep/app.py:7", "/elsewhere/app.py:8", "app.py:9", ""] == [node.where for node in scene(source).nodes]


def test_a_working_directory_that_is_gone_spoils_no_picture(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nothing can be said relative to it, places stand as they are."""

    def gone() -> str:
        raise FileNotFoundError("no working directory")

    monkeypatch.setattr("os.getcwd", gone)
    [node] = scene(replace(named(["a"]), where=["/srv/app.py:7"])).nodes
    assert "/srv/app.py:7" == node.where
