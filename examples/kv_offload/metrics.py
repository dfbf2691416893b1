"""What is going on, and who holds what for how long: as Prometheus text, and as lines of a report."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass, fields

from lifegraph import Report, quarantine

from .memory.pool import BlockPool
from .memory.region import Mapping
from .memory.registration import Registration
from .tiers.tier import Tier, TierStats
from .units import show_size

PREFIX = "kv_offload"

Sample = tuple[dict[str, str], float]


@dataclass(frozen=True, slots=True)
class Metric:
    """One family of samples."""

    name: str
    kind: str
    help: str
    samples: tuple[Sample, ...]

    def text(self) -> str:
        """In Prometheus' text format."""
        lines = [f"# HELP {PREFIX}_{self.name} {self.help}", f"# TYPE {PREFIX}_{self.name} {self.kind}"]
        for labels, value in self.samples:
            inner = ",".join(f'{key}="{_escaped(label)}"' for key, label in labels.items())
            lines.append(
                f"{PREFIX}_{self.name}{{{inner}}} {value:.15g}" if inner else f"{PREFIX}_{self.name} {value:.15g}"
            )
        return "\n".join(lines)


def prometheus(mapping: Mapping, registration: Registration, pool: BlockPool, tiers: Sequence[Tier]) -> str:
    """Everything, at one moment; also of a hierarchy that was torn down, of which something may be held."""
    return "\n".join(metric.text() for metric in _metrics(mapping, registration, pool, tiers)) + "\n"


def _metrics(mapping: Mapping, registration: Registration, pool: BlockPool, tiers: Sequence[Tier]) -> Iterator[Metric]:
    yield Metric("region_bytes", "gauge", "Bytes of the region that are mapped.", (({}, mapping.nbytes),))
    yield Metric("pinned_bytes", "gauge", "Bytes of it that are pinned.", (({}, registration.pinned),))
    counts = pool.counts()
    states = zip([each.name for each in fields(counts)], astuple(counts), strict=True)
    yield Metric("blocks", "gauge", "Blocks by state; pinned ones are ready, too.", tuple(({"state": name}, count) for name, count in states))  # fmt: skip
    yield Metric("evicted_blocks_total", "counter", "Blocks given up to make room.", (({}, pool.evicted),))
    holders = pool.holders()
    yield Metric("holder_bytes", "gauge", "Bytes that cannot be given up, by who uses them.", tuple(({"holder": each.owner}, each.nbytes) for each in holders))  # fmt: skip
    yield Metric("holder_age_seconds", "gauge", "Since when, at the longest.", tuple(({"holder": each.owner}, each.age) for each in holders))  # fmt: skip
    for each in fields(TierStats):
        seconds = each.name.endswith("seconds")
        values = tuple(({"tier": tier.label()}, float(getattr(tier.stats(), each.name))) for tier in tiers)
        yield Metric(
            f"tier_{each.name}_total", "counter", f"{'Time' if seconds else 'Count'} since the tier's start.", values
        )
    held = quarantine()
    now = time.time()
    yield Metric("held_bytes", "gauge", "Bytes of resources in quarantine, where known.", tuple(({"resource": each.resource}, each.bytes or 0) for each in held))  # fmt: skip
    yield Metric("held_age_seconds", "gauge", "Since when they are held.", tuple(({"resource": each.resource}, now - each.since) for each in held))  # fmt: skip


def told(report: Report, tiers: Sequence[Tier], pool: BlockPool) -> Iterator[str]:
    """A line for each tier that is not proven to have stopped: which one, of what class, and what it holds."""
    held = {holder.owner: holder for holder in pool.holders()}
    for index, tier in enumerate(tiers):
        fate = report.fates.get(tier.label())
        if fate is None or fate in ("released", "skipped"):
            continue
        own = [held[owner] for owner in (tier.label(), f"promotion from {tier.label()}") if owner in held]
        uses = ", ".join(name for name in report.poisoned if tier.label() in report.outcomes[name].causes)
        yield (
            f"tier {index} ({tier.label()}, {type(tier).__name__}) {fate}: holds {uses or 'nothing'}; "
            f"{sum(each.blocks for each in own)} blocks ({show_size(sum(each.nbytes for each in own))}) in its hands, "
            f"for {max((each.age for each in own), default=0.0):.1f} s"
        )


def names(text: str) -> list[str]:
    """The families in a Prometheus text."""
    return [line.split()[2] for line in text.splitlines() if line.startswith("# TYPE ")]


def _escaped(label: str) -> str:
    return label.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
