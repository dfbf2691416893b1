"""Runs the benchmarks: ``python -m benchmarks [ROW ...] [--quick] [--json FILE] [--write PAGE]``."""

from __future__ import annotations

import argparse
import gc
import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from . import machine, page
from .measure import Row, Scale
from .rows import ROWS

__all__ = ["main"]


def main(arguments: list[str] | None = None) -> int:
    """Measure, print, and write what was asked for. Never fails for a target that is not met."""
    asked = _parser().parse_args(arguments)
    scale = Scale(quick=asked.quick)
    result: dict[str, Any] = {"quick": asked.quick, "machine": machine.facts(), "rows": []}
    _say("\n".join(f"{key:<16} {value}" for key, value in result["machine"].items()))
    for name in asked.rows or ROWS:
        row = _plain(ROWS[name](scale))
        result["rows"].append(row)
        _say("\n" + page.text(row))
        _write(result, asked.json, asked.write)  # after each row, so that an interrupted run leaves what it has
        gc.collect()
    return 0


def _write(result: dict[str, Any], data: Path | None, prose: Path | None) -> None:
    if data:
        data.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    if prose:
        prose.parent.mkdir(parents=True, exist_ok=True)
        prose.write_text(page.markdown(result), encoding="utf-8")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Ours, peers and floors, side by side.")
    parser.add_argument("rows", nargs="*", metavar="ROW", choices=[[], *ROWS], help=f"which: {', '.join(ROWS)} (all)")
    parser.add_argument("--quick", action="store_true", help="small and once: only whether it runs")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything that was measured")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="write the page of results, in Markdown")
    return parser


def _plain(row: Row) -> dict[str, Any]:
    figures = [asdict(figure) | {"met": figure.met} for figure in row.figures]
    return {"name": row.name, "title": row.title, "figures": figures, "context": row.context}


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
