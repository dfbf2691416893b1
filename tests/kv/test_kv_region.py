"""The region: pinned for real, kept while in use, not inherited, and refused with the cure in the message."""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
import pickle
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from examples.kv_offload.memory import smaps
from examples.kv_offload.memory.libc import MADV_POPULATE_WRITE
from examples.kv_offload.memory.pinning import CudaPages, LockedPages, PinError
from examples.kv_offload.memory.region import PAGE, Mapping
from examples.kv_offload.memory.registration import Registration, pinnable

ROOT = Path(__file__).resolve().parents[2]
SIZE = 8 << 20


@pytest.fixture
def mapping():
    """A started mapping, unmapped at the end."""
    mapping = Mapping(SIZE)
    mapping.start()
    yield mapping
    mapping.stop()


def test_every_page_is_locked_between_start_and_stop(mapping):
    """The kernel itself says that the whole range is locked, and that none of it is afterwards."""
    registration = Registration(mapping)
    registration.start()
    extent = smaps.extent(mapping.address, SIZE)
    assert (SIZE, True) == (extent.covered, extent.fully_locked)
    assert SIZE == registration.pinned
    registration.stop()
    assert 0 == smaps.extent(mapping.address, SIZE).locked
    assert 0 == registration.pinned


def test_stopping_a_registration_twice_is_harmless(mapping):
    """A second stop has nothing left to undo."""
    registration = Registration(mapping)
    registration.start()
    registration.stop()
    registration.stop()


def test_stop_unmaps():
    """After stop the kernel has no such range any longer."""
    mapping = Mapping(SIZE)
    mapping.start()
    address = mapping.address
    assert SIZE == smaps.extent(address, SIZE).covered
    mapping.stop()
    assert not mapping.mapped
    assert 0 == smaps.extent(address, SIZE).covered


@pytest.mark.parametrize("borrow", [lambda cut: cut, (ctypes.c_ubyte * PAGE).from_buffer])
def test_a_region_in_use_is_kept(borrow):
    """An exported slice makes stop raise, the bytes stay, and stop works once it is given back."""
    mapping = Mapping(SIZE)
    mapping.start()
    user = borrow(mapping.cut(PAGE, PAGE))
    with pytest.raises(BufferError):
        mapping.stop()
    assert mapping.mapped
    user[0] = 42
    with mapping.cut(PAGE, 1) as first:
        assert 42 == first[0]
    del user
    mapping.stop()
    assert not mapping.mapped


@pytest.mark.parametrize(("offset", "length"), [(-1, 1), (0, 0), (0, SIZE + 1), (SIZE, 1)])
def test_cuts_stay_inside(mapping, offset, length):
    """A slice that would be cut short is refused instead."""
    with pytest.raises(ValueError, match="outside"):
        mapping.cut(offset, length)


@pytest.mark.parametrize("size", [0, -PAGE, PAGE + 1])
def test_a_size_is_whole_pages(size):
    """Anything else is refused before anything is mapped."""
    with pytest.raises(ValueError, match="multiple"):
        Mapping(size)


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_the_region_is_not_inherited_over_fork(mapping):
    """Touching it in a forked child is a segmentation fault."""
    with mapping.cut(0, 1) as cut:
        pid = os.fork()
        if pid == 0:
            import faulthandler

            faulthandler.disable()
            cut[0] = 1
            os._exit(0)
        _, status = os.waitpid(pid, 0)
    assert signal.SIGSEGV == os.WTERMSIG(status)


def test_what_the_kernel_refuses_is_noted_and_worked_around(monkeypatch):
    """Without huge pages and without prefaulting by advice, ordinary pages are touched; both are in the notes."""

    class Old(mmap.mmap):
        def madvise(self, advice, *range_):
            if advice in (mmap.MADV_HUGEPAGE, MADV_POPULATE_WRITE):
                raise OSError(errno.EINVAL, "Invalid argument")
            super().madvise(advice, *range_)

    monkeypatch.setattr("examples.kv_offload.memory.region.mmap.mmap", Old)
    mapping = Mapping(SIZE)
    mapping.start()
    assert [True, True] == [
        note.startswith(start) for note, start in zip(mapping.notes, ("huge", "prefaulted"), strict=True)
    ]
    registration = Registration(mapping)
    registration.start()
    registration.stop()
    mapping.stop()


def test_a_view_in_use_does_not_stop(memory):
    """A block that somebody has from it is named; the others are released, and the memory stays."""
    view = memory.view()
    user = pickle.PickleBuffer(view.block(3))
    with pytest.raises(BufferError, match=r"1 block\(s\) still in use by test: slots \[3\]"):
        view.stop()
    with pytest.raises(ValueError, match="released"):
        view.block(4)[0] = 1
    view.block(3)[0] = 42
    user.release()
    view.stop()
    with pytest.raises(ValueError, match="released"):
        view.block(3)[0] = 1


CHILD = """
import os, resource, sys
from examples.kv_offload.memory.pinning import PinError
from examples.kv_offload.memory.region import Mapping
from examples.kv_offload.memory.registration import Registration, pinnable
resource.setrlimit(resource.RLIMIT_MEMLOCK, (1 << 20, 1 << 20))
if os.getuid() == 0:
    os.setgid(65534); os.setuid(65534)
print(*pinnable(8 << 20, 64 << 10), sep="|")
mapping = Mapping(8 << 20)
mapping.start()
try:
    Registration(mapping).start()
except PinError as error:
    print(error)
small = Mapping(1 << 19)
small.start()
registration = Registration(small)
registration.start()
print(registration.how)
"""


def test_a_refusal_by_the_limit_names_limit_and_cure():
    """As an ordinary user: too much is refused with the cure, what fits is pinned, and the size is shrunk with notice."""
    run = subprocess.run([sys.executable, "-c", CHILD], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert "" == run.stderr
    shrunk, refused, pinned = run.stdout.splitlines()
    assert shrunk.startswith(f"{1 << 20}|the region is 1.0 MiB, not 8.0 MiB: RLIMIT_MEMLOCK")
    assert "RLIMIT_MEMLOCK is 1.0 MiB" in refused
    assert "ulimit -l 8192" in refused
    assert "mlock, 512.0 KiB locked" == pinned


def test_what_may_be_pinned_is_not_shrunk():
    """One page is within any limit."""
    assert (PAGE, "") == pinnable(PAGE, PAGE)


def test_a_lock_that_the_kernel_does_not_show_is_not_believed(mapping, monkeypatch):
    """If mlock says yes and smaps says no, pinning fails."""
    monkeypatch.setattr("examples.kv_offload.memory.libc.mlock", lambda address, length: None)
    with pytest.raises(PinError, match="only 0 bytes are locked"):
        LockedPages().pin(mapping.address, SIZE)


def test_a_failed_munlock_is_an_error_and_can_be_tried_again(mapping, monkeypatch):
    """The pages count as pinned until an unlock succeeds."""

    def refuse(address, length):
        raise OSError(errno.EINVAL, "no")

    pages = LockedPages()
    pages.pin(mapping.address, SIZE)
    with monkeypatch.context() as patch:
        patch.setattr("examples.kv_offload.memory.libc.munlock", refuse)
        with pytest.raises(PinError, match="munlock"):
            pages.unpin()
    assert SIZE == pages.pinned()
    pages.unpin()
    assert 0 == pages.pinned()


def device(refuse_register=(), refuse_unregister=()):
    """A CUDA runtime by its calling convention, which keeps what is registered."""
    registered: dict[int, int] = {}

    def register(address, length, flags):
        if address in refuse_register:
            return ("cudaErrorMemoryAllocation",)
        registered[address] = length
        return (0,)

    def unregister(address):
        if address in refuse_unregister:
            return ("cudaErrorHostMemoryNotRegistered",)
        del registered[address]
        return (0,)

    return SimpleNamespace(cudaHostRegister=register, cudaHostUnregister=unregister, registered=registered)


def test_a_refused_piece_rolls_the_earlier_ones_back():
    """Registering is all or nothing."""
    runtime = device(refuse_register={20})
    with pytest.raises(PinError, match="cudaErrorMemoryAllocation"):
        CudaPages(runtime, piece=10).pin(0, 35)
    assert {} == runtime.registered


def test_pieces_cover_the_range_and_are_all_undone():
    """The last piece is shorter."""
    runtime = device()
    pages = CudaPages(runtime, piece=10)
    pages.pin(0, 35)
    assert {0: 10, 10: 10, 20: 10, 30: 5} == runtime.registered
    pages.unpin()
    assert ({}, 0) == (runtime.registered, pages.pinned())


def test_a_failed_unregister_is_an_error_after_all_were_tried():
    """What the device still holds stays on the list, for another try."""
    refused = {10}
    runtime = device(refuse_unregister=refused)
    pages = CudaPages(runtime, piece=10)
    pages.pin(0, 35)
    with pytest.raises(PinError, match="cudaErrorHostMemoryNotRegistered"):
        pages.unpin()
    assert ({10: 10}, 10) == (runtime.registered, pages.pinned())
    refused.clear()
    pages.unpin()
    assert {} == runtime.registered
