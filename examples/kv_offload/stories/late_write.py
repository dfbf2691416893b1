"""Deregistering is not proof: a NIXL transfer writes into pages that were given to somebody else, and how to stop it.

    python -m examples.kv_offload.stories.late_write

A read from another process into the region is in flight. Then the transfer is released and the memory deregistered,
both of which say yes; the pages are given to somebody new, who writes into all of them. Without the fence the old
transfer goes on and writes over what is new. With it (the agent is destroyed first) nothing comes any more.
"""

from __future__ import annotations

import sys
import threading
from dataclasses import dataclass

from ..memory.region import PAGE, Mapping
from ..tiers.nixl_agent import NixlAgent
from ..tiers.nixl_far import NixlHost

SIZE = 64 << 20
NEW = b"\x11"
LATE_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class Seen:
    """What became of the new owner's pages."""

    pages: int
    changed: int
    said_yes: bool
    """whether release and deregistration succeeded while the transfer was in flight"""


def happen(*, fence: bool) -> Seen:
    """One run of the story."""
    far = NixlHost(SIZE // PAGE, PAGE)
    far.start()
    region = Mapping(SIZE)
    region.start()
    try:
        return _reuse_in_flight(far, region, fence=fence)
    finally:
        far.kill()
        region.stop()


def _reuse_in_flight(far: NixlHost, region: Mapping, *, fence: bool) -> Seen:
    agent = NixlAgent(f"story-{'fence' if fence else 'bare'}", far.backend)
    extent = (region.address, region.size, 0)
    agent.register(extent, "DRAM")
    there = far.reach(agent)
    number = agent.post("READ", [extent], [(there.base, region.size, there.device)], there.kind, there.agent)
    said_yes = agent.let_go(number)
    if fence:
        agent.destroy()
    with region.cut(0, region.size) as new:
        new[:] = NEW * region.size
    threading.Event().wait(LATE_SECONDS)  # the old transfer has this long to do what it should not
    with region.cut(0, region.size) as new:
        changed = sum(new[offset : offset + PAGE] != NEW * PAGE for offset in range(0, region.size, PAGE))
    if not fence:
        agent.destroy()
    return Seen(region.size // PAGE, changed, said_yes)


def main() -> int:
    """Both runs, one line each; 0 where they went as the story says."""
    bare, fenced = happen(fence=False), happen(fence=True)
    for name, seen in (("without the fence", bare), ("with the fence", fenced)):
        said = "yes" if seen.said_yes else "no"
        print(f"{name:<18} release and deregister said {said}; {seen.changed} of {seen.pages} new pages were changed")
    return 0 if bare.changed and not fenced.changed else 1


if __name__ == "__main__":
    sys.exit(main())
