"""Runs the cells of one resource at one time, each in a hierarchy of its own, and prints a line of JSON for each.

    python -m examples.kv_offload.matrix.child PHASE NODE FAULT [FAULT ...]

What is held stays so until this process ends, which it does without running anything else.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict

from .cells import Cell, Phase, Wrong
from .run import Result, Run


def main() -> None:
    """Never returns."""
    said = os.dup(1)
    os.dup2(2, 1)  # what the injected faults say is not for the table
    phase, node, *wrongs = sys.argv[1:]
    for wrong in map(Wrong, wrongs):
        try:
            result = Run(Cell(node, wrong, Phase(phase))).carry_out()
        except Exception as error:  # noqa: BLE001 - whatever it is, it is what is wrong with this cell
            result = Result("none", 0, [f"{type(error).__name__}: {error}"])
        os.write(said, json.dumps({"fault": wrong, **asdict(result)}).encode() + b"\n")
    os._exit(0)


if __name__ == "__main__":
    main()
