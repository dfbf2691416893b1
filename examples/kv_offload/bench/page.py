"""Runs all of it, and says it as text and as a page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..units import show_size
from . import costs, disk

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
    total, rounds = (16 << 20, 1) if quick else (256 << 20, 5)
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


def markdown(tables: Sequence[Table]) -> str:
    """For a page."""
    parts = []
    for table in tables:
        head = ["| " + " | ".join(table.columns) + " |", "|---" * len(table.columns) + "|"]
        body = ["| " + " | ".join(row) + " |" for row in table.rows]
        parts.append("\n".join([f"### {table.title}", "", *head, *body, *(["", table.note] if table.note else [])]))
    return "\n\n".join(parts) + "\n"
