"""What only a machine with a GPU can show: pinning by the driver, and what its copies do to a teardown.

    python -m examples.kv_offload.gpu_check [--size 1G]

A line for each check; exit 0 where all of them hold, 1 where one does not, 2 where no CUDA device answers. It takes
about a minute, and needs the cuda extra; with the torch extra (a build with CUDA) torch's own pinned memory is measured
beside ours.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from lifegraph import Fate, Graph, resource

from .memory.pinning import CUDA_SUCCESS, CudaPages, PinError, cuda_runtime
from .memory.region import Mapping
from .memory.registration import Registration
from .units import parse_size, show_rate, show_size

ROUNDS = 5
NO_DEVICE = "no CUDA device answers here: nothing was checked"


class Device:
    """Memory on a device, and a stream of copies to and from it. `runtime` is `cuda.bindings.runtime`."""

    def __init__(self, runtime: Any, size: int) -> None:
        self._runtime = runtime
        self._size = size
        self._memory = self.call(runtime.cudaMalloc, size)
        self._stream = self.call(runtime.cudaStreamCreate)
        self._to, self._from = (
            runtime.cudaMemcpyKind.cudaMemcpyHostToDevice,
            runtime.cudaMemcpyKind.cudaMemcpyDeviceToHost,
        )

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call into the runtime, which never raises; its code is checked here. Raises RuntimeError."""
        code, *results = function(*arguments)
        if code != CUDA_SUCCESS:
            raise RuntimeError(f"{function.__name__} returned {code!r}")
        return results[0] if results else None

    def send(self, address: int) -> None:
        """Queue a copy from the host."""
        self.call(self._runtime.cudaMemcpyAsync, self._memory, address, self._size, self._to, self._stream)

    def fetch(self, address: int) -> None:
        """Queue a copy to the host."""
        self.call(self._runtime.cudaMemcpyAsync, address, self._memory, self._size, self._from, self._stream)

    def wait(self) -> None:
        """Until all that was queued is done."""
        self.call(self._runtime.cudaStreamSynchronize, self._stream)

    def seconds(self, queue: Callable[[int], None], address: int) -> float:
        """The fastest of some copies."""
        times = []
        for _ in range(ROUNDS):
            began = time.perf_counter()
            queue(address)
            self.wait()
            times.append(time.perf_counter() - began)
        return min(times)

    def close(self) -> None:
        """Free both."""
        self.call(self._runtime.cudaStreamDestroy, self._stream)
        self.call(self._runtime.cudaFree, self._memory)


@resource
class Copies:
    """Copies from the device into the region, queued at start; its stop waits for them, unless it is to fail."""

    def __init__(self, device: Device, registration: Registration, mapping: Mapping, *, fails: bool) -> None:
        self._device, self._address, self._fails = device, mapping.address, fails
        self._registration = registration

    def start(self) -> None:
        """Queue more than is done by the time of the stop."""
        for _ in range(64):
            self._device.fetch(self._address)

    def stop(self) -> None:
        """Proof by the stream, or none."""
        if self._fails:
            raise TimeoutError("injected: nobody asked the stream")
        self._device.wait()


def _graph(runtime: Any, size: int, **options: Any) -> Graph:
    graph = Graph(name="gpu")
    graph.add(partial(Mapping, size, **options), name="mapping")
    graph.add(partial(Registration, pinner=CudaPages(runtime)), name="registration")
    return graph


def _copying(runtime: Any, device: Device, size: int) -> Iterator[tuple[bool, str]]:
    """Rates from pinned memory, pageable memory, and torch's."""
    with _graph(runtime, size) as graph:
        yield True, f"pinned: {graph[Registration].how}"
        pinned = [device.seconds(way, graph[Mapping].address) for way in (device.send, device.fetch)]
    pageable = Mapping(size)
    pageable.start()
    plain = [device.seconds(way, pageable.address) for way in (device.send, device.fetch)]
    pageable.stop()
    rows = {"region, pinned": pinned, "region, pageable": plain}
    try:
        import torch  # noqa: PLC0415 - optional, and slow to import

        theirs = torch.empty(size, dtype=torch.uint8, pin_memory=True)
        rows["torch, pinned"] = [device.seconds(way, theirs.data_ptr()) for way in (device.send, device.fetch)]
    except (ImportError, RuntimeError) as error:
        yield True, f"torch's pinned memory was not measured: {error}"
    for name, (there, back) in rows.items():
        yield True, f"{name}: to the device {show_rate(size, there)}, back {show_rate(size, back)}"
    yield pinned[1] < plain[1], "pinned memory is faster than pageable memory"


def _registering(runtime: Any, device: Device, size: int) -> Iterator[tuple[bool, str]]:
    """Twice is refused, without harm to the first; an unregistering that fails holds the mapping."""
    graph = _graph(runtime, size)
    graph.start()
    mapping, second = graph[Mapping], CudaPages(runtime)
    try:
        second.pin(mapping.address, size)
        yield False, "a second registration of the same range was taken"
    except PinError as error:
        yield second.pinned() == 0, f"a second registration is refused: {error}"
    device.call(runtime.cudaHostUnregister, mapping.address)  # behind the registration's back: its own will fail
    report = graph.teardown()
    fates = {"registration": Fate.FAILED, "mapping": Fate.POISONED}
    yield dict(report.fates) == {**fates} and mapping.mapped, "an unregistering that fails holds the mapping"


def _in_flight(runtime: Any, device: Device, size: int) -> Iterator[tuple[bool, str]]:
    """Copies into the region run while it is torn down."""
    for fails in (False, True):
        graph = _graph(runtime, size)
        graph.add(partial(Copies, device, fails=fails), name="copies")
        graph.start()
        mapping = graph[Mapping]
        report = graph.teardown()
        if fails:
            device.wait()
            yield (
                set(report.poisoned) == {"registration", "mapping"} and mapping.mapped,
                "copies in flight that nobody waited for: the region is held, and they end in it",
            )
        else:
            yield report.ok and not mapping.mapped, "copies in flight that stop waits for: all is released"


def checks(runtime: Any, size: int) -> Iterator[tuple[bool, str]]:
    """Every check, whether it holds, and what it says."""
    device = Device(runtime, size)
    for part in (_copying, _registering, _in_flight):
        yield from part(runtime, device, size)
    device.close()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run them."""
    parser = argparse.ArgumentParser(description="checks that need a GPU")
    parser.add_argument("--size", type=parse_size, default=1 << 30)
    size = parser.parse_args(arguments).size
    runtime = cuda_runtime()
    if runtime is None:
        print(NO_DEVICE)
        return 2
    print(f"region    {show_size(size)}")
    worst = 0
    for holds, said in checks(runtime, size):
        print(f"{'ok' if holds else 'WRONG':<9} {said}", flush=True)
        worst |= not holds
    return worst


if __name__ == "__main__":
    sys.exit(main())
