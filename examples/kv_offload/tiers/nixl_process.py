"""The other host of a NIXL tier, as a process of its own: registers memory, says where, and leaves when stdin ends.

python -m examples.kv_offload.tiers.nixl_process --size BYTES
"""

from __future__ import annotations

import argparse
import base64
import json
import mmap
import os
import sys
from collections.abc import Sequence

from ..memory.libc import address_of
from .nixl_agent import NixlAgent


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until stdin ends; the agent's own thread does all the work."""
    parser = argparse.ArgumentParser(description="keeps KV blocks for another NIXL agent")
    parser.add_argument("--size", type=int, required=True, metavar="BYTES")
    options = parser.parse_args(arguments)
    said = os.dup(sys.stdout.fileno())
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # libraries may print; the first line said is ours
    memory = mmap.mmap(-1, options.size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    base = address_of(memoryview(memory))
    agent = NixlAgent(f"host-{os.getpid()}", "UCX")
    agent.register((base, options.size, 0), "DRAM")
    line = json.dumps({"base": base, "metadata": base64.b64encode(agent.metadata()).decode()})
    os.write(said, line.encode() + b"\n")
    while sys.stdin.buffer.read(4096):
        pass
    os._exit(0)


if __name__ == "__main__":
    sys.exit(main())
