"""Runs one cell for real, and compares what became of everybody with the rule, and with what the system says."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from lifegraph import Graph, Report, StartError, resource

from ..assembly import FAR, Settings, assemble, branch
from ..faults import Fault
from ..memory import smaps
from ..memory.region import PAGE, Mapping
from ..serving.prompts import Workload, prompts
from ..tiers.child_process import ChildProcess
from ..tiers.disk_tier import DiskTier
from ..tiers.remote import RemoteTier
from ..tiers.tier import Job
from .cells import Cell, Phase, Wrong, dies, expected, has_kill, tier_of
from .late import LATE_BYTES, Fire, StuckContent, arm

SIZE = 4 << 20
LIMIT = 0.4
"""seconds given to a stop, or a kill, that is to hang"""
WORK = Workload(prompts=12, prefixes=3, prefix_blocks=8, suffix_blocks=2)

_FAULTS = {Wrong.RAISE: Fault.STOP, Wrong.HANG: Fault.HANG, Wrong.LIE: Fault.LIE}


@resource
class Last:
    """The last to start, which fails: everything else is up by then, and is rolled back."""

    def __init__(self, prepare: Callable[[], None]) -> None:
        self._prepare = prepare

    def start(self) -> None:
        self._prepare()
        raise OSError("injected: the last start fails")


@dataclass(slots=True)
class Result:
    """What came of a cell. `wrong` lists everything that is not as it must be."""

    fate: str
    held: int
    wrong: list[str] = field(default_factory=list)


class Run:
    """One cell, from its start to the last late write."""

    def __init__(self, cell: Cell) -> None:
        self.cell = cell
        self.content = StuckContent()
        self.graph = self._assemble()
        self.edges = [(edge.dependent, edge.dependency) for edge in self.graph.plan().edges if edge.uses]
        self.objects: dict[str, Any] = {}
        self.before = b""
        self.fire: Fire | None = None
        self.problems: list[str] = []

    def carry_out(self) -> Result:
        """All of it."""
        report = self._end()
        for name, fate in self._expected()[0].items():
            if report.fates[name] is not fate:
                self.problems.append(f"{name} is {report.fates[name]}, not {fate}: {report.outcomes[name].error}")
        if (self.cell.node in report.forced) != self._expected()[1]:
            self.problems.append(f"forced are {list(report.forced)}")
        self._compare_with_the_system(report)
        if self.fire is not None:
            self.fire()
            self.problems += self._changed(but=LATE_BYTES)
        self._thaw()
        fate = str(report.fates[self.cell.node]) + (" by kill" if self.cell.node in report.forced else "")
        return Result(fate, len(report.poisoned), self.problems)

    def _assemble(self) -> Graph:
        cell = self.cell
        fault = _FAULTS.get(cell.wrong)
        if cell.wrong is Wrong.LATE and cell.node in cell.tiers:
            fault = Fault.LATE
        if cell.wrong is Wrong.HANG and cell.node in cell.tiers and has_kill(cell.node):
            fault = None  # it hangs of itself, on a frozen other side
        if dies(cell):
            fault = Fault.DIE
        settings = Settings(
            SIZE, faults={} if fault is None else {cell.node: fault}, for_good=False, tiers=cell.tiers,
            content=self.content, hang_limit=LIMIT, kill_limit=LIMIT, patience=0.2,
            stop_limits={} if fault else {cell.node: LIMIT, FAR[tier_of(cell.node) or "disk"]: LIMIT},
        )  # fmt: skip
        graph = assemble(settings)
        if cell.phase is Phase.ROLLBACK:
            graph.add(
                partial(Last, self._prepare),
                name="last",
                depends_on=["engine"] + [f"link({tier})" for tier in cell.tiers],
            )
        return graph

    def _end(self) -> Report:
        graph, cell = self.graph, self.cell
        if cell.phase is Phase.ROLLBACK:
            with suppress(StartError):
                graph.start()
            return _report_of(graph)
        graph.start()
        self._prepare()
        if cell.phase is Phase.DETACH:
            about = tier_of(cell.node)
            tear_down: Any = graph.teardown
            tear_down(targets=[cell.node] if about is None else branch(about))
            if about is not None:
                self._serve_on()
        graph.teardown()
        return _report_of(graph)

    def _prepare(self) -> None:
        """Serve, so that there is something to lose; remember what is there; and put the fault in place."""
        graph, cell = self.graph, self.cell
        self.objects = {name: graph[name] for name in graph if name != "last"}
        graph["engine"].serve(prompts(WORK))
        graph["manager"].flush(20)
        process = self.objects[FAR[tier_of(cell.node) or "disk"]]
        if has_kill(cell.node) and cell.wrong is Wrong.SIGKILL:
            os.kill(process.pid, signal.SIGKILL)
        if has_kill(cell.node) and cell.wrong is Wrong.HANG and cell.node in cell.tiers:
            self._freeze(process, self.objects[cell.node])
        if cell.wrong is Wrong.LATE:
            self.fire = arm(graph, cell.node, self.content)
        with self.objects["mapping"].cut(0, SIZE) as region:
            self.before = bytes(region)

    def _freeze(self, process: ChildProcess, tier: RemoteTier) -> None:
        """Stop the other side, and give the tier something to do that will not end."""
        os.killpg(process.pid, signal.SIGSTOP)
        keys = [bytes([255 - number]) * 32 for number in range(16)]
        tier.submit_store(Job("store", keys, range(16), lambda _: None))

    def _thaw(self) -> None:
        for one in self.objects.values():
            if isinstance(one, ChildProcess) and one.running:
                with suppress(ProcessLookupError):
                    os.killpg(one.pid, signal.SIGKILL)

    def _serve_on(self) -> None:
        """The others go on: right bytes, whatever became of the one that left."""
        try:
            self.objects["engine"].serve(prompts(WORK))
        except Exception as error:  # noqa: BLE001 - whatever it is, it is what is wrong with this cell
            self.problems.append(f"after the detaching: {type(error).__name__}: {error}")

    def _expected(self) -> tuple[dict[str, Any], bool]:
        return expected(self.cell, [edge for edge in self.edges if "last" not in edge])

    def _compare_with_the_system(self, report: Report) -> None:
        held = {name for name, fate in report.fates.items() if fate in ("failed", "timed_out", "poisoned")}
        said = self.problems
        region: Mapping = self.objects["mapping"]
        if region.mapped != ("mapping" in held):
            said.append(f"the region is {'still mapped' if region.mapped else 'unmapped'}")
        if region.mapped:
            extent = smaps.extent(region.address, SIZE)
            if extent.covered != SIZE:
                said.append(f"only {extent.covered} bytes are mapped")
            if extent.fully_locked != ("registration" in held):
                said.append(f"{extent.locked} bytes are locked")
            said += self._changed(but=b"")
        for name, one in self.objects.items():
            if isinstance(one, ChildProcess) and one.running != (name in held):
                said.append(f"the process of {name} is {'running' if one.running else 'gone'}")
            if isinstance(one, DiskTier | RemoteTier) and name not in held and not one.is_stopped():
                said.append(f"{name} still runs")
        directory = self.objects["directory"]
        if directory.path.exists() != ("directory" in held):
            said.append(f"{directory.path} is {'there' if directory.path.exists() else 'gone'}")

    def _changed(self, but: bytes) -> Iterator[str]:
        """Pages of a held region that are not what they were, but for one late write."""
        if self.cell.phase is Phase.DETACH:
            return  # the traffic went on
        with self.objects["mapping"].cut(0, SIZE) as region:
            was = [(offset, self.before[offset : offset + PAGE]) for offset in range(0, SIZE, PAGE)]
            pages = [offset for offset, page in was if region[offset : offset + PAGE] != page]
            odd = [offset for offset in pages if region[offset : offset + PAGE] != but]
        if odd or len(pages) > bool(but):
            yield f"{len(pages)} pages of the held region have changed"


def _report_of(graph: Graph) -> Report:
    report = graph.report
    if report is None:
        raise RuntimeError("nothing was torn down")
    return report
