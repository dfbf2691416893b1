"""The whole matrix: a child process for every resource at every time, and what they say as a table."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

from ..tiers.pack_files import PackFiles
from .cells import Cell, Phase, Wrong, dies, nodes, possible
from .run import SIZE, Result

_ROOT = Path(__file__).resolve().parents[3]
_SHM = Path("/dev/shm")  # noqa: S108 - where names of shared memory are
CHILD_SECONDS = 180.0
GONE_SECONDS = 15.0
NEVER = "-"
DIES = "dies; nothing left"

_HEADINGS = {
    Phase.TEARDOWN: "## In a teardown",
    Phase.ROLLBACK: "## In the roll-back of a failed start",
    Phase.DETACH: "## In a detaching",
}

Table = dict[Cell, Result | None]
"""None where a resource cannot go wrong so"""


def tiers_here() -> tuple[list[str], list[str]]:
    """The tiers that can be tried here, and a line for each of the others."""
    found, missing = ["peer", "disk"], []
    if find_spec("redis") and shutil.which("redis-server"):
        found.append("redis")
    else:
        missing.append("redis: needs the redis extra, and a redis-server")
    if find_spec("nixl_cu12"):
        found.append("nixl")
    else:
        missing.append("nixl: needs the nixl extra")
    return found, missing


def fill(
    names: Iterable[str], phases: Sequence[Phase], at_once: int = 2, told: Callable[[int, int], None] | None = None
) -> Table:
    """Run all cells of these resources at these times, `at_once` children at a time."""
    rows = [(node, phase) for phase in phases for node in names]
    table: Table = {}
    with ThreadPoolExecutor(at_once) as pool:
        for done, row in enumerate(pool.map(lambda row: _row(*row), rows), 1):
            table.update(row)
            if told is not None:
                told(done, len(rows))
    return table


def _row(node: str, phase: Phase) -> Table:
    cells = [Cell(node, wrong, phase) for wrong in Wrong]
    row: Table = {cell: None for cell in cells if not possible(node, cell.wrong)}
    here = [cell for cell in cells if cell not in row and not dies(cell)]
    row.update(_survivors(node, phase, here))
    row.update((cell, _death(cell)) for cell in cells if cell not in row)
    return {cell: row[cell] for cell in cells}


def _survivors(node: str, phase: Phase, cells: Sequence[Cell]) -> Table:
    """The cells that one process can go through, one after the other."""
    command = [*_command(phase, node), *(cell.wrong for cell in cells)]
    try:
        done = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, timeout=CHILD_SECONDS, check=False)
        lines, end = done.stdout.splitlines(), f"the child ended with {done.returncode}: {done.stderr[-500:]}"
    except subprocess.TimeoutExpired:
        lines, end = [], f"the child did not end in {CHILD_SECONDS} s"
    said = {each["fault"]: Result(each["fate"], each["held"], each["wrong"]) for each in map(json.loads, lines)}
    return {cell: said.get(cell.wrong, Result("none", 0, [end])) for cell in cells}


def _death(cell: Cell) -> Result:
    """A process that is killed in the middle of the stop of one resource must leave nothing behind."""
    wrong: list[str] = []
    names = set(_SHM.iterdir())
    with tempfile.TemporaryDirectory(prefix="kv_matrix-") as scratch:
        child = subprocess.Popen(
            [*_command(cell.phase, cell.node), cell.wrong],
            cwd=_ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
            env={**os.environ, "TMPDIR": scratch},
        )  # fmt: skip
        try:
            code = child.wait(CHILD_SECONDS)
        except subprocess.TimeoutExpired:
            child.kill()
            code = child.wait()
            wrong.append("it did not come to the stop")
        if code != -9:
            wrong.append(f"it ended with {code}")
        if left := _left(child.pid):
            wrong.append(f"processes are left: {left}")
        for directory in Path(scratch).glob("kv_offload-*"):
            files = PackFiles(directory, SIZE // 64)
            files.open()
            files.sweep()
            wrong += [f"{path.name}: {why}" for path, why in files.scan()[1]]
    wrong += [f"{path} is left" for path in set(_SHM.iterdir()) - names if "kv_offload" in path.name]
    return Result(DIES, 0, wrong)


def _left(session: int) -> list[int]:
    """Processes of a session that are still there after some seconds."""
    deadline = time.monotonic() + GONE_SECONDS
    while found := processes_of(session):
        if time.monotonic() > deadline:
            break
        time.sleep(0.05)  # there is nothing that tells of the end of somebody else's children
    return found


def processes_of(session: int) -> list[int]:
    """The living processes of a session."""
    return [int(entry.name) for entry in Path("/proc").iterdir() if _is_of(entry, session)]


def _is_of(entry: Path, session: int) -> bool:
    with suppress(OSError, ValueError, IndexError):
        fields = (entry / "stat").read_text().rpartition(")")[2].split()
        return int(fields[3]) == session and fields[0] != "Z"
    return False


def _command(phase: Phase, node: str) -> list[str]:
    return [sys.executable, "-m", f"{__package__}.child", phase, node]


def right(table: Table) -> tuple[int, int]:
    """Cells that went by the rule, of how many."""
    tried = [result for result in table.values() if result is not None]
    return sum(not result.wrong for result in tried), len(tried)


def show(result: Result | None) -> str:
    """One cell, in words."""
    if result is None:
        return NEVER
    if result.wrong:
        return "WRONG"
    return f"{result.fate}, holds {result.held}" if result.held else result.fate


PAGE = """# The fault matrix

Written by `python -m examples.kv_offload faults --markdown docs/reference/kv-faults.md`; do not edit it by hand.

Every resource of [the KV-cache hierarchy](../../examples/kv_offload/README.md) with every fault, in a teardown, in the
roll-back of a failed start, and while its tier is detached under traffic (or it is torn down by itself, where all tiers
share it). A cell says what became of the resource, and how many others were held because of it; all the rest was
released. **{right} of {of} cells went by the rule**, which is computed apart from the library, from who uses whom alone.

- *raise*: its stop raises, and has done nothing. *hang*: its stop does not return; for the tiers with another side, that
  side is frozen in the middle of a transfer. *lie*: its stop returns, and has done nothing; `is_stopped` finds out.
- *late write*: somebody has a piece of the region in hand when the resource is told to stop, and writes into it after
  the report. What neither has memory nor a thread cannot (`-`).
- *SIGKILL*: of the other side's process, in the middle of the traffic; else of the whole process, in the middle of this
  resource's stop.
- *by kill*: the stop proved nothing, and `kill` did.

Each cell is also compared with the system: a held region is mapped, pinned and unchanged but for the late write, a
released one is gone; processes and directories are there, or are not; after a detaching the traffic goes on with right
bytes, each checked; after a SIGKILL no process, no name in /dev/shm and no wrong file is left.
"""


def page(table: Table) -> str:
    """What is written into the docs."""
    done, of = right(table)
    return PAGE.format(right=done, of=of) + "\n" + markdown(table)


def rows(text: str) -> dict[tuple[str, str], str]:
    """The rows of a page, by the heading that they stand under and their resource."""
    found, heading = {}, ""
    for line in text.splitlines():
        if line.startswith("## "):
            heading = line
        elif line.startswith("| ") and not line.startswith("| |"):
            found[heading, line.split(" | ")[0].removeprefix("| ")] = line
    return found


def markdown(table: Table) -> str:
    """A table for each time, with the resources as rows."""
    parts = []
    for phase in dict.fromkeys(cell.phase for cell in table):
        lines = [_HEADINGS[phase], "", "| | " + " | ".join(Wrong) + " |", "|---" * (len(Wrong) + 1) + "|"]
        for node in dict.fromkeys(cell.node for cell in table if cell.phase is phase):
            cells = [show(table[Cell(node, wrong, phase)]) for wrong in Wrong]
            lines.append(f"| {node} | " + " | ".join(cells) + " |")
        parts.append("\n".join(lines))
    return "\n\n".join(parts) + "\n"


def complaints(table: Table) -> list[str]:
    """Everything that did not go by the rule, one line each."""
    wrong = [(cell, said) for cell, result in table.items() if result is not None for said in result.wrong]
    return [f"{cell.phase}, {cell.wrong} of {cell.node}: {said}" for cell, said in wrong]


def all_nodes(tiers: Sequence[str]) -> list[str]:
    """The rows, for the tiers that can be tried."""
    return nodes(tiers)
