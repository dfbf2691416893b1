"""The fault matrix: what the rule says, that every cell goes by it, and that the page shows just that."""

from __future__ import annotations

from pathlib import Path

import pytest

from examples.kv_offload import cli
from examples.kv_offload.assembly import Settings, assemble
from examples.kv_offload.matrix import table as matrix
from examples.kv_offload.matrix.cells import Cell, Phase, Wrong, dies, expected, nodes, possible, reach
from examples.kv_offload.matrix.run import Result
from lifegraph import Fate

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "reference" / "kv-faults.md"
TIERS = ["peer", "nixl", "redis", "disk"]
of_the_page = pytest.mark.skipif(
    not PAGE.exists(),
    reason=f"{PAGE.name} is not written yet: this version of lifegraph calls no hooks of evidence, and tears no parts down",
)
MEMORY = {"pool", "registration", "mapping"}


def edges():
    """Who uses whom in the whole hierarchy."""
    plan = assemble(Settings(4 << 20, tiers=tuple(TIERS))).plan()
    return [(edge.dependent, edge.dependency) for edge in plan.edges if edge.uses]


def test_every_resource_has_its_row():
    """The rows are the resources of the hierarchy, no more and no less."""
    graph = assemble(Settings(4 << 20, tiers=tuple(TIERS)))
    assert sorted(nodes(TIERS)) == sorted(graph)


@pytest.mark.parametrize(
    ("node", "held"),
    [
        ("mapping", set()),
        ("disk", MEMORY | {"view(disk)", "directory"}),
        ("nixl", MEMORY | {"view(nixl)", "nixl host"}),
        ("view(disk)", MEMORY),
        ("engine", MEMORY | {"manager", "view(engine)"}),
        ("link(peer)", MEMORY | {"manager", "peer", "view(peer)", "peer process"}),
        ("peer process", set()),
    ],
)
def test_what_a_failure_holds_said_by_hand(node, held):
    """The reach that the matrix is compared with, for some resources, written out."""
    assert held == reach(node, edges())


def test_the_rule_for_each_kind_of_fault():
    """What can be killed is released by it; what still runs is timed out; the rest failed; a killed process holds nothing."""
    for node, wrong, fate, forced in [
        ("disk", Wrong.RAISE, Fate.FAILED, False),
        ("disk", Wrong.HANG, Fate.TIMED_OUT, False),
        ("disk", Wrong.LIE, Fate.FAILED, False),
        ("nixl", Wrong.HANG, Fate.RELEASED, True),
        ("nixl", Wrong.LATE, Fate.TIMED_OUT, False),
        ("view(peer)", Wrong.LATE, Fate.FAILED, False),
        ("peer process", Wrong.SIGKILL, Fate.RELEASED, False),
    ]:
        fates, by_kill = expected(Cell(node, wrong, Phase.TEARDOWN), edges())
        assert (fate, forced) == (fates[node], by_kill), f"{wrong} of {node}"
        poisoned = {name for name, other in fates.items() if other is Fate.POISONED}
        assert poisoned == (set() if fate is Fate.RELEASED else reach(node, edges()))


def test_which_cells_there_are():
    """Only what has neither memory nor a thread cannot write late; only what is no process dies with ours."""
    assert [name for name in nodes(TIERS) if not possible(name, Wrong.LATE)] == [
        "manager", *(f"link({tier})" if part == 0 else far for tier, far in [
            ("peer", "peer process"), ("nixl", "nixl host"), ("redis", "redis server"), ("disk", "directory"),
        ] for part in (0, 1)),
    ]  # fmt: skip
    assert dies(Cell("disk", Wrong.SIGKILL, Phase.TEARDOWN))
    assert not dies(Cell("redis", Wrong.SIGKILL, Phase.TEARDOWN))


def test_a_wrong_cell_is_seen():
    """It is counted, shown and said."""
    good, bad = Cell("disk", Wrong.RAISE, Phase.TEARDOWN), Cell("disk", Wrong.HANG, Phase.TEARDOWN)
    others = {Cell("disk", wrong, Phase.TEARDOWN): None for wrong in Wrong if wrong not in (good.wrong, bad.wrong)}
    table = {good: Result("failed", 5), bad: Result("released", 0, ["disk still runs"]), **others}
    assert (1, 2) == matrix.right(table)
    assert "| disk | failed, holds 5 | WRONG |" in matrix.markdown(table)
    assert ["teardown, hang of disk: disk still runs"] == matrix.complaints(table)


def compared(names, phases):
    """Run these rows; the page must show them just so."""
    table = matrix.fill(names, phases)
    assert [] == matrix.complaints(table)
    shown, told = matrix.rows(PAGE.read_text()), matrix.rows(matrix.markdown(table))
    assert told == {key: shown[key] for key in told}
    return told


def test_what_no_evidence_can_help_goes_by_the_rule_in_the_roll_back():
    """A tier and the memory: raising, hanging, writing late, and dying in the stop."""
    table = matrix.fill(["disk", "mapping"], [Phase.ROLLBACK])
    told = {cell: result for cell, result in table.items() if cell.wrong is not Wrong.LIE}
    assert 8 == len(told)
    assert [] == matrix.complaints(told)
    assert "failed, holds 5" == matrix.show(told[Cell("disk", Wrong.RAISE, Phase.ROLLBACK)])
    assert matrix.DIES == matrix.show(told[Cell("mapping", Wrong.SIGKILL, Phase.ROLLBACK)])


@of_the_page
def test_some_rows_of_the_page():
    """A tier and the memory, in a teardown and in a detaching, run again."""
    assert 6 == len(compared(["disk", "peer", "mapping"], [Phase.TEARDOWN, Phase.DETACH]))


@pytest.mark.slow
@of_the_page
def test_all_rows_of_the_page():
    """The whole matrix, with every tier that can be tried here."""
    tiers, _ = matrix.tiers_here()
    told = compared(nodes(tiers), list(Phase))
    assert 3 * len(nodes(tiers)) == len(told)
    assert set(told) <= set(matrix.rows(PAGE.read_text()))


@of_the_page
def test_the_page_is_all_right():
    """It says that every cell went by the rule, and none that did not is in it."""
    text = PAGE.read_text()
    assert "WRONG" not in text
    assert 3 * len(nodes(TIERS)) == len(matrix.rows(text))


def test_the_verb_prints_the_table(tmp_path, monkeypatch):
    """`faults` writes the page, and exits with 0 where every cell went by the rule."""
    monkeypatch.setattr(matrix, "fill", lambda names, phases, **_: {
        Cell(names[0], wrong, phases[0]): Result("failed", 1) for wrong in Wrong
    })  # fmt: skip
    assert 0 == cli.main(["faults", "--quick", "--markdown", str(tmp_path / "page.md")])
    assert "**5 of 5 cells went by the rule**" in (tmp_path / "page.md").read_text()
