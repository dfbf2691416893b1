"""vLLM's file tier, driven as its manager drives it: its own I/O functions on its own thread pool.

    PYTHON vllm_peer.py DIRECTORY BLOCK_BYTES BLOCKS BATCH

Run by the Python of an environment that has vLLM (0.33.0 is known to work), and imports nothing of ours. For each line
on stdin, `store` or `load`, it says on stdout how many seconds that took. vLLM's package is not initialised, only the
modules of the tier are loaded; its C extension is used where it is there.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import mmap
import shutil
import sys
import time
import types
from pathlib import Path
from typing import Any

THREADS = 16


def load_tier() -> tuple[Any, Any]:
    """The module of its I/O functions, and the class of its thread pool."""
    spec = importlib.util.find_spec("vllm")
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit("vLLM is not installed here")
    package = types.ModuleType("vllm")
    package.__path__ = list(spec.submodule_search_locations)
    sys.modules["vllm"] = package
    types_of_jobs = types.ModuleType("vllm.v1.kv_offload.tiering.base")  # the pool wants one name of it, for typing
    types_of_jobs.JobId = int  # type: ignore[attr-defined]  # a stand-in for a module
    sys.modules[types_of_jobs.__name__] = types_of_jobs
    io = importlib.import_module("vllm.v1.kv_offload.tiering.fs.io")
    pool = importlib.import_module("vllm.v1.kv_offload.tiering.fs.thread_pool")
    return io, pool.DualQueueThreadPool


def main() -> None:
    """Until stdin ends."""
    directory, block, blocks, batch = Path(sys.argv[1]), *map(int, sys.argv[2:5])
    io, pool_kind = load_tier()
    pool = pool_kind(THREADS, THREADS, thread_name_prefix="peer")
    memory = mmap.mmap(-1, block * blocks)
    memory[:] = bytes(range(256)) * (block * blocks // 256)
    view = memoryview(memory).cast("B", shape=[blocks, block])
    direct = io.probe_o_direct(str(directory))
    names = [directory / f"{number % 97:03x}" / f"{number:08x}.bin" for number in range(blocks)]
    job = 0
    for line in sys.stdin:
        store = line.strip() == "store"
        if store:
            for path in directory.iterdir():
                shutil.rmtree(path)
        jobs = range(job, job + len(range(0, blocks, batch)))
        job = jobs.stop
        began = time.perf_counter()
        for number, first in zip(jobs, range(0, blocks, batch), strict=True):
            part = range(first, min(first + batch, blocks))
            task = functools.partial(
                io.batch_store_block if store else io.batch_load_block,
                [str(names[index]) for index in part],
                view,
                [index * block for index in part],
                block,
                direct,
            )
            (pool.enqueue_store if store else pool.enqueue_load)(number, 1, [task])
        waiting = set(jobs)
        while waiting:
            for number, success, _ in pool.get_finished():
                if not success:
                    raise SystemExit(f"a {line.strip()} failed")
                waiting.discard(number)
        print(time.perf_counter() - began, flush=True)


if __name__ == "__main__":
    main()
