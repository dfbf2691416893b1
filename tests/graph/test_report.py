"""Reports: plain data that says what happened and why."""

from __future__ import annotations

import gc
import itertools
import json
import math
import pickle
import random
import weakref
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifegraph import Graph, HookError, Outcome, Report, ReportError, TeardownError, order_only
from tests.graph.world import World, fates, raises, whole_life


@pytest.fixture
def report(world: World) -> Report:
    """One with every fate in it."""
    graph = Graph(
        world.kind("bottom"),
        world.kind("below", ["bottom"]),
        world.kind("hung", ["below"], stop=world.hang, stop_timeout=None),
        world.kind("bad", [order_only("apart")], stop=raises(ValueError("no good"))),
        world.kind("apart", stop_timeout=5),
        world.kind("fine", ["bad"]),
        world.kind("second", stop=world.hang, stop_timeout=2),  # less urgent than those above
        world.kind("late", stop_timeout=0.01),  # the least urgent: both workers are lost by then
        grace=0.3,
        workers=2,
        name="all",
    )
    graph.start()
    return graph.teardown()


def all_of(report: Report) -> list[Outcome]:
    """Every outcome."""
    return [report.outcomes[name] for name in report.outcomes]


class TestRoundTrip:
    """JSON and pickle."""

    def test_json(self, report: Report) -> None:
        """What was written can be read again, and is equal in all that it says."""
        text = report.to_json()
        again = Report.from_json(text)
        assert all_of(report) == all_of(again)
        for each in ("fates", "ok", "exit_code", "notes", "seconds", "critical_path", "leases", "attested", "forced"):
            assert getattr(report, each) == getattr(again, each), each
        for name in report.fates:
            assert report.explain(name) == again.explain(name)
        assert report.to_text() == again.to_text()
        assert text == again.to_json()
        assert report == again

    def test_bytes(self, report: Report) -> None:
        """Bytes are read as well."""
        assert report.fates == Report.from_json(report.to_json().encode()).fates

    def test_pickle(self, report: Report) -> None:
        """A pickled copy is equal."""
        again = pickle.loads(pickle.dumps(report))
        assert report == again
        assert all_of(report) == all_of(again)

    def test_it_is_json(self, world: World) -> None:
        """Strictly: no limit is infinity, and any name can stand in it."""
        graph, report = whole_life(
            world.kind("\ud800 \x00 \u2028 </script>", stop_timeout=math.inf, start_timeout=None), grace=math.inf
        )
        data = json.loads(report.to_json(), parse_constant=lambda constant: pytest.fail(constant))
        assert isinstance(data["lifegraph"], int)
        assert list(graph) == list(Report.from_json(report.to_json()).fates)

    @pytest.mark.parametrize(
        "text",
        [
            "",
            "{",
            "[]",
            "null",
            "{}",
            '{"lifegraph": 999}',
            '{"lifegraph": 1}',
            '"x"',
            "1e400",
            "[" * 100_000,
            b"\xff\xfe\x00",
        ],
        ids=lambda text: repr(text[:20]),
    )
    def test_other_texts(self, text: Any) -> None:
        """Anything else is one clear error."""
        with pytest.raises(ReportError):
            Report.from_json(text)

    @given(st.data())
    def test_damaged_ones(self, data: st.DataObject) -> None:
        """A report with anything replaced by anything is read, or refused by a ReportError; nothing else."""
        _, whole = whole_life(World().kind("a"), World().kind("b", ["a"], stop=raises(OSError())))
        tree = json.loads(whole.to_json())
        place: Any = tree
        while True:
            key = data.draw(st.sampled_from(sorted(place) if isinstance(place, dict) else range(len(place))))
            if isinstance(place[key], dict | list) and place[key] and data.draw(st.booleans()):
                place = place[key]
                continue
            break
        if data.draw(st.booleans()):
            del place[key]
        else:
            place[key] = data.draw(
                st.none()
                | st.booleans()
                | st.integers(-3, 3)
                | st.text(max_size=3)
                | st.just([])
                | st.just({})
                | st.just([0])
            )
        try:
            again = Report.from_json(json.dumps(tree))
        except ReportError:
            return
        again.to_json()
        again.to_text()
        all_of(again)
        for name in again.fates:
            again.explain(name)


class TestOutcomes:
    """What it says of one resource."""

    def test_fields(self, report: Report) -> None:
        """Fate, error, causes, paths, times and place of each."""
        assert {
            "bottom": "poisoned",
            "below": "poisoned",
            "hung": "timed_out",
            "bad": "failed",
            "apart": "released",
            "fine": "released",
            "second": "timed_out",
            "late": "abandoned",
        } == fates(report)
        bad = report.outcomes["bad"]
        assert ("bad", 1, "failed", "no good", "ValueError", None) == (
            bad.name,
            bad.generation,
            bad.fate,
            bad.error,
            bad.error_type,
            bad.start_error,
        )
        assert "no good" in (bad.stack or "")
        assert "raise error" in (bad.stack or "")
        assert "world.py:" in bad.declared_at
        assert (False, False) == (bad.late, bad.forced)
        poisoned = report.outcomes["bottom"]
        assert (("hung",), (("hung", "below", "bottom"),)) == (poisoned.causes, poisoned.paths)
        assert (None, None, None, None, None) == (
            poisoned.error,
            poisoned.error_type,
            poisoned.began,
            poisoned.ended,
            poisoned.seconds,
        )

    def test_times(self, report: Report) -> None:
        """Seconds since the teardown began: in order, within the whole, along the edges."""
        for outcome in all_of(report):
            if outcome.began is not None:
                assert outcome.ended is not None
                assert outcome.seconds is not None
                assert 0 <= outcome.began <= outcome.ended <= report.seconds + 0.001
                assert outcome.seconds == pytest.approx(outcome.ended - outcome.began)
        fine, bad = report.outcomes["fine"], report.outcomes["bad"]
        assert fine.ended is not None
        assert bad.began is not None
        assert fine.ended <= bad.began

    def test_tuples_are_in_the_order_of_the_plan(self, report: Report) -> None:
        """Names come dependents first."""
        order = report.plan.order
        for fate in ("released", "failed", "timed_out", "poisoned", "abandoned", "skipped"):
            names = getattr(report, fate)
            assert list(names) == sorted(names, key=order.index)
            assert set(names) == {name for name, found in report.fates.items() if found == fate}

    def test_unknown_names(self, report: Report) -> None:
        """A name it does not have is a KeyError."""
        for ask in (report.outcomes.__getitem__, report.explain):
            with pytest.raises(KeyError):
                ask("nobody")


class TestExplaining:
    """The paragraph for people."""

    def test_a_poisoned_one(self, report: Report) -> None:
        """What, whom, where, why, path, state, cure."""
        text = report.explain("bottom")
        lines = text.splitlines()
        assert lines[0].startswith("cannot release bottom (")
        assert lines[0].endswith("): poisoned")
        for word in ("because  hung timed out", "path     hung -> below -> bottom", "state    quarantined", "hint "):
            assert f"\n  {word}" in text
        assert "hung" in text.split("hint")[1]

    def test_all_others(self, report: Report) -> None:
        """Each fate has its words."""
        assert "no good" in report.explain("bad")
        assert "timed out" in report.explain("hung")
        assert "in hang" in report.explain("hung")
        assert "released" in report.explain("fine")
        assert all(name in report.explain(name) for name in report.fates)

    def test_many_causes(self, world: World) -> None:
        """A hundred causes are not a hundred lines of hint, but all are in causes."""
        _, report = whole_life(
            world.kind("base"), *[world.kind(f"r{n}", ["base"], stop=raises(OSError())) for n in range(100)]
        )
        assert 100 == len(report.outcomes["base"].causes)
        assert "more" in report.explain("base")


class TestErrors:
    """Errors made from a report."""

    def test_raise_for_failures(self, report: Report) -> None:
        """One HookError for each that is not proven; nothing where all is well."""
        with pytest.raises(TeardownError) as caught:
            Report.from_json(report.to_json()).raise_for_failures()
        assert len(report.failed + report.timed_out + report.abandoned) == len(caught.value.exceptions)
        assert all(isinstance(error, HookError) for error in caught.value.exceptions)
        texts = [str(error) for error in caught.value.exceptions]
        assert any("bad" in text and "no good" in text for text in texts)
        assert caught.value.report is not None

    def test_nothing_to_raise(self, world: World) -> None:
        """A good report raises nothing."""
        whole_life(world.kind("a"))[1].raise_for_failures()

    def test_a_group_can_be_split_and_pickled(self, world: World) -> None:
        """It is an ExceptionGroup that keeps its report."""
        with (
            pytest.raises(TeardownError) as caught,
            Graph(world.kind("a", stop=raises(OSError("a"))), world.kind("b", stop=raises(ValueError("b")))),
        ):
            pass
        error = caught.value
        match, rest = error.split(OSError)
        assert isinstance(match, TeardownError)
        assert isinstance(rest, TeardownError)
        assert error.report is match.report is rest.report
        copied = pickle.loads(pickle.dumps(error))
        assert str(error) == str(copied)
        assert error.report.fates == copied.report.fates

    def test_the_report_holds_no_object(self, world: World) -> None:
        """Neither errors nor resources are kept alive by it."""

        class Error(Exception):
            pass

        watches: list[weakref.ref[Any]] = []

        def fail() -> None:
            error = Error("x")
            watches.append(weakref.ref(error))
            raise error

        kind = world.kind("a", stop=fail)
        graph = Graph(kind, world.kind("released"))
        graph.start()
        watches.append(weakref.ref(graph["released"]))
        report = graph.teardown()
        del graph, kind
        gc.collect()
        assert [None] == [watch() for watch in watches[:1]]
        assert watches[1]() is None
        assert "x" == report.outcomes["a"].error


class TestCriticalPath:
    """The chain that decided how long it took."""

    def test_it_is_the_slow_one(self, world: World) -> None:
        """Dependents first, from one that waited for nobody."""
        import threading

        def slow() -> None:
            threading.Event().wait(0.1)

        _, report = whole_life(
            world.kind("base"),
            world.kind("slow", ["base"], stop=slow),
            world.kind("top", ["slow"], stop=slow),
            world.kind("quick", ["base"]),
        )
        assert ("top", "slow", "base") == report.critical_path

    @given(st.randoms(use_true_random=False))
    def test_it_is_a_path(self, chance: random.Random) -> None:
        """Each depends on the next."""
        world, size = World(), 8
        needs = [[f"r{d}" for d in range(n) if chance.random() < 0.4] for n in range(size)]
        _, report = whole_life(*[world.kind(f"r{n}", needs[n]) for n in range(size)])
        path = report.critical_path
        assert path
        for above, below in itertools.pairwise(path):
            assert below in needs[int(above[1:])]


def test_save(report: Report, tmp_path: Any) -> None:
    """By the ending of the path."""
    report.save(str(tmp_path / "r.json"))
    assert report.fates == Report.from_json((tmp_path / "r.json").read_text()).fates
    report.save(str(tmp_path / "r.dot"))
    assert (tmp_path / "r.dot").read_text().startswith("digraph")
