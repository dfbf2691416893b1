"""A worker: maps the region of another process under its name, and computes blocks straight into it.

    python -m examples.kv_offload.serving.worker_process NAME SIZE WORKERS RANK

It says a line once it has mapped the region. Then each line on stdin is an order, in JSON: a key in hex, and where its
block lies; each is answered by a line when the block is written. It leaves when stdin ends.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence

from ..memory.shared import SharedFile, SharedMapping, SharedName
from .prompts import write_content


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until stdin ends; 0 then."""
    text, size, workers, rank = list(sys.argv[1:] if arguments is None else arguments)
    name = SharedName(text, int(size), int(workers), int(rank))
    name.start()
    file = SharedFile(name)
    file.start()
    region = SharedMapping(file, int(size))
    region.start()
    print("mapped", flush=True)
    name.arrive()
    for line in sys.stdin:
        if not line.strip():
            continue
        order = json.loads(line)
        with region.cut(order["offset"], order["length"]) as block:
            write_content(bytes.fromhex(order["key"]), block)
        print("written", flush=True)
    region.stop()
    file.stop()
    name.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
