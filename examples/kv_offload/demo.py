"""One run: start, serve, tear down, and show what came of it."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from lifegraph import Graph, Report

from .assembly import FAR, TIERS, Settings, assemble
from .held import inspect
from .memory.pool import BlockPool
from .memory.region import Mapping
from .memory.registration import Registration
from .metrics import prometheus, told
from .progress import progress
from .serving.hierarchy import Hierarchy
from .serving.prompts import Workload, prompts
from .serving.traffic import COMPUTED, REGION, Traffic, WrongBytes
from .tiers.child_process import ChildProcess
from .tiers.directory import Directory
from .tiers.tier import Tier
from .units import show_rate, show_size

WORKLOAD = Workload(prompts=200, prefixes=16, prefix_blocks=24, suffix_blocks=4)
SETTLE_SECONDS = 30.0


@dataclass(slots=True)
class _Seen:
    """What `main` saw while the graph was up. The objects outlive it only to be asked, never to be used."""

    mapping: Mapping
    registration: Registration
    pool: BlockPool
    directory: Directory | None
    engine: Traffic
    manager: Hierarchy
    tiers: list[Tier]
    hosts: dict[str, ChildProcess]
    checksum: int | None = None


class Demo:
    """Runs a hierarchy once; `main` is what the graph runs between start and teardown."""

    def __init__(
        self, settings: Settings, report_path: Path, *, killed: Sequence[str] = (), metrics_path: Path | None = None
    ) -> None:
        self._killed = tuple(killed)
        self._metrics_path = metrics_path
        self._settings = settings
        self._report_path = report_path
        self._seen: _Seen | None = None

    def run(self) -> int:
        """The exit code of `Graph.run`. Does not return while something is held: then the process ends here.

        What is held must stay so to the very end, so nothing may be finalized any more. The graph would leave by itself,
        were it not that what is held is looked at first.
        """
        graph = assemble(self._settings)
        code = graph.run(self.main, hard_exit=False)
        report = graph.report
        if report is None:
            return code
        self._show(report, code)
        if not report.ok:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
        return code

    def main(self, graph: Graph) -> None:
        """Serve the prompts, let the tiers finish, and take the checksum that must still hold if anything is held.

        A signal ends it anywhere, by a KeyboardInterrupt. Exits with 1 where the traffic fails.
        """
        seen = self._seen = _Seen(
            mapping=graph[Mapping],
            registration=graph[Registration],
            pool=graph[BlockPool],
            directory=graph[Directory] if "disk" in self._settings.tiers else None,
            engine=graph[Traffic],
            manager=graph[Hierarchy],
            tiers=[graph[label] for label in TIERS if label in self._settings.tiers],
            hosts={
                label: graph[FAR[label]]
                for label in self._settings.tiers
                if isinstance(graph[FAR[label]], ChildProcess)
            },
        )
        region = graph[Mapping]
        print(f"region    {show_size(region.size)}, {graph[Registration].how}")
        for note in region.notes:
            print(f"note      {note}")
        try:
            with progress("prompts", WORKLOAD.prompts) as told:
                seen.engine.serve(prompts(WORKLOAD), self._killing(seen, told))
        except (WrongBytes, OSError) as error:  # TimeoutError is one, and so is the end of a worker
            sys.exit(f"the traffic failed: {error}")
        seen.manager.flush(SETTLE_SECONDS)
        seen.checksum = region.checksum()

    def _killing(self, seen: _Seen, told: Callable[[int], None]) -> Callable[[int], None]:
        """Tells as `told` does, and half-way kills the processes that are to be killed."""

        def tell(done: int) -> None:
            if done == WORKLOAD.prompts // 2:
                for label in self._killed:
                    print(f"injected  SIGKILL to {FAR[label]}", flush=True)
                    os.kill(seen.hosts[label].pid, signal.SIGKILL)
            told(done)

        return tell

    def _show(self, report: Report, code: int) -> None:
        seen = self._seen
        if seen is not None:
            _show_traffic(seen)
        if report.ok:  # else `Graph.run` has said it
            print(report.to_text(), file=sys.stderr if code else sys.stdout)
        print(f"report    {', '.join(map(str, _saved(report, self._report_path)))}")
        if seen is None:
            return
        print(f"memory    {inspect(seen.mapping, seen.checksum)}")
        for line in told(report, seen.tiers, seen.pool):
            print(f"held      {line}")
        if self._metrics_path is not None:
            self._metrics_path.write_text(prometheus(seen.mapping, seen.registration, seen.pool, seen.tiers))
            print(f"metrics   {self._metrics_path}")
        if seen.directory is not None and seen.directory.temporary:
            print(f"left      {seen.directory.path}: remove it when no process uses it any longer")


def _saved(report: Report, path: Path) -> list[Path]:
    """As JSON, and beside it as a page that can be opened."""
    path.write_text(report.to_json())
    page = path.with_suffix(".html")
    report.save(page)
    return [path, page]


def _show_traffic(seen: _Seen) -> None:
    total = seen.engine.served.total()
    print(f"\nserved    {total} blocks, {seen.engine.checked}")
    for source in (REGION, *(tier.label() for tier in seen.tiers), COMPUTED):
        count = seen.engine.served[source]
        print(f"  {source:<9} {count:>6}  {count / max(total, 1):>5.0%}")
    for tier in seen.tiers:
        stats = tier.stats()
        print(
            f"{tier.label():<9} stored {stats.stored} ({show_rate(stats.stored_bytes, stats.store_seconds)}), "
            f"loaded {stats.loaded} ({show_rate(stats.loaded_bytes, stats.load_seconds)}), missed {stats.missed}, "
            f"wrong {stats.corrupt}, failed {stats.failed}, cancelled {stats.cancelled}, refused {stats.refused}"
        )
        for note in getattr(tier, "notes", ()):
            print(f"note      {tier.label()}: {note}")
    for trouble, times in seen.manager.troubles.items():
        print(f"note      {trouble} ({times} times)")
    print()
