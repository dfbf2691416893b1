"""Runs all of it, and says it as text and as a page."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..units import show_size
from . import costs, disk

ROUNDS = 5
VLLM = Path("build/vllm/bin/python")
ABSENT = (
    "vLLM is not beside it: no {}. `python3 -m venv build/vllm` and `build/vllm/bin/pip install --no-deps vllm==0.33.0` "
    "make one (its file tier needs nothing else)"
)


@dataclass(frozen=True, slots=True)
class Table:
    """A heading, the names of its columns, and rows of text."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""


def run(directory: Path, *, quick: bool, vllm: Path, told: Callable[[Table], None]) -> list[Table]:
    """Every table, each told as soon as it is there."""
    peer = vllm if vllm.exists() else None
    absent = "" if peer else ABSENT.format(vllm)
    total, rounds = (16 << 20, 1) if quick else (256 << 20, ROUNDS)
    tables: list[Table] = []

    def add(table: Table) -> None:
        tables.append(table)
        told(table)

    for block in (1 << 20, 64 << 10):
        rates = disk.measure(directory, block, total, rounds, peer)
        add(_of_rates(f"Disk, blocks of {show_size(block)}, {show_size(total)}, direct I/O", rates, absent))
    add(_of_numbers("Scheduler-side cost of a block", "us", costs.per_block(512 if quick else 4096)))
    size = (64 << 20) if quick else (1 << 30)
    add(
        _of_numbers(
            f"An idle hierarchy of {show_size(size)}", "ms", costs.idle_teardown(size, rounds=1 if quick else 3)
        )
    )
    add(
        _of_numbers(
            f"Unpinning and unmapping {show_size(size)}", "ms", costs.pinned_release(size, rounds=1 if quick else 3)
        )
    )
    busy = tuple(costs.busy_teardown(size // 4).items())
    add(Table("A teardown with a full store queue", ("", ""), busy))
    moved = {name: rate / 1e9 for name, rate in costs.copies((4 if quick else 64) << 20).items()}
    add(_of_numbers("Copies within the region, one thread", "GB/s", moved))
    return tables


def _of_rates(title: str, rates: dict[str, tuple[float, float]], note: str) -> Table:
    best = rates[next(iter(rates))]
    rows = [
        (name, f"{store / 1e9:.2f}", f"{load / 1e9:.2f}", f"{best[0] / store:.2f}", f"{best[1] / load:.2f}")
        for name, (store, load) in rates.items()
    ]
    columns = ("", "store, GB/s", "load, GB/s", "ours / this, store", "ours / this, load")
    return Table(title, columns, tuple(rows), note)


def _of_numbers(title: str, unit: str, numbers: dict[str, float]) -> Table:
    return Table(title, ("", unit), tuple((name, f"{number:.2f}") for name, number in numbers.items()))


def text(table: Table) -> str:
    """For a terminal."""
    rows = [table.columns, *table.rows]
    widths = [max(len(row[column]) for row in rows) for column in range(len(table.columns))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return "\n".join([table.title, *(f"  {line}" for line in lines), *([f"  {table.note}"] if table.note else [])])


HEAD = """# The KV-cache example, measured

Written by `python -m examples.kv_offload bench --markdown docs/reference/kv-performance.md` from one run; do not edit it
by hand. Read the ratios: absolute figures move with the machine, and with what else runs on it.

The contestants of a table take turns in one run, there and back again; medians of {rounds} rounds after one that does not
count. All of them use direct I/O where the file system takes it. Ours is the only one with a checksum, taken on each
store and compared on each load. "ours / this" above 1 means that ours is faster.

vLLM's file tier (0.33.0) is driven as its manager drives it, its own I/O functions on its own pool of 16 + 16 threads, with
as many blocks in a job as suits it best (1 of 1 MiB, 16 of 64 KiB). Its C extension wants CUDA's libraries; where it cannot
be loaded, its Python functions run, as they do for its users there.

| measured on | |
|---|---|
{machine}
"""


def machine(rounds: int) -> str:
    """The head of the page."""
    facts = {
        "date": time.strftime("%Y-%m-%d"),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "cores": str(os.cpu_count()),
        "load": f"{os.getloadavg()[0]:.1f} when the page was written",
    }
    return HEAD.format(rounds=rounds, machine="\n".join(f"| {name} | {fact} |" for name, fact in facts.items()))


def markdown(tables: Sequence[Table]) -> str:
    """For a page."""
    parts = []
    for table in tables:
        head = ["| " + " | ".join(table.columns) + " |", "|---" * len(table.columns) + "|"]
        body = ["| " + " | ".join(row) + " |" for row in table.rows]
        parts.append("\n".join([f"## {table.title}", "", *head, *body, *(["", table.note] if table.note else [])]))
    return machine(ROUNDS) + "\n" + "\n\n".join(parts) + "\n"
