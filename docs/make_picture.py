"""Make `docs/_static/poisoned.svg`: tear down a graph whose disk tier hangs, and draw the report with Graphviz.

python docs/make_picture.py
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from threading import Event

from lifegraph import Graph, order_only, resource

HERE = Path(__file__).resolve().parent
BEFORE = '  node [margin="0.13,0.06"];\n'  # before what the report says: room to breathe
AFTER = (
    '  graph [bgcolor=transparent, fontcolor="#7d8590", pad=0.2, nodesep=0.4, ranksep=0.42];\n'  # light page or dark
)


@resource
class Mapping:
    """Memory that device and disk write into."""

    def close(self) -> None:
        """Unmap it."""


@resource
class Pool:
    """Blocks of the mapping."""

    def __init__(self, mapping: Mapping) -> None: ...

    def close(self) -> None:
        """Forget them."""


@resource
class Directory:
    """Where the disk tier keeps its files."""

    def close(self) -> None:
        """Close it."""


@resource
class Metrics:
    """Counters, which the tiers write while they run."""

    def close(self) -> None:
        """Flush them."""


@resource(stop_timeout=1, depends_on=[order_only(Metrics)])
class DiskTier:
    """It copies blocks to files, and one write never ends."""

    def __init__(self, pool: Pool, directory: Directory) -> None: ...

    def stop(self) -> None:
        """Wait for that write."""
        Event().wait()


@resource
class PeerSocket:
    """A connection to another host."""

    def close(self) -> None:
        """Close it."""


@resource
class PeerTier:
    """It copies blocks to another host."""

    def __init__(self, pool: Pool, socket: PeerSocket) -> None: ...

    def stop(self) -> None:
        """Join its threads."""


@resource
class Manager:
    """It hands blocks to every tier."""

    def __init__(self, disk: DiskTier, peer: PeerTier) -> None: ...

    def stop(self) -> None:
        """Hand out no more."""


def picture() -> str:
    """The SVG of a teardown in which the disk tier hangs."""
    graph = Graph(Manager, name="a KV cache, torn down")
    graph.start()
    dot = graph.teardown().to_dot().replace(f"{HERE.parent}/", "")
    opening, newline, body = dot.partition("{\n")
    body, brace, end = body.rpartition("}")
    drawn = subprocess.run(  # noqa: S603 - Graphviz, with fixed arguments
        [shutil.which("dot") or "dot", "-Tsvg"],
        input=f"{opening}{newline}{BEFORE}{body}{AFTER}{brace}{end}",
        capture_output=True,
        text=True,
        check=True,
    )
    return drawn.stdout


if __name__ == "__main__":
    if shutil.which("dot") is None:
        sys.exit("dot is missing: install graphviz")
    (HERE / "_static" / "poisoned.svg").write_text(picture(), encoding="utf-8")
