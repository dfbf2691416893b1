"""The checks that need a GPU; and, where there is none, that they say so, and run on a stand-in for the runtime."""

from __future__ import annotations

import ctypes
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from examples.kv_offload import gpu_check
from examples.kv_offload.memory.pinning import CUDA_SUCCESS, cuda_runtime

ROOT = Path(__file__).resolve().parents[2]


def run(*arguments):
    """The script, in a process of its own: some of it is held to the end."""
    command = [sys.executable, "-m", "examples.kv_offload.gpu_check", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600, check=False)


@pytest.mark.gpu
def test_on_a_gpu():
    """Registration, copies, double registration, a failing unregister, teardown under copies."""
    done = run("--size", "256M")
    assert 0 == done.returncode, done.stdout + done.stderr
    assert "WRONG" not in done.stdout


@pytest.mark.skipif(cuda_runtime() is not None, reason="there is a GPU")
def test_without_a_gpu_it_says_so():
    """Exit 2, one line, nothing pretended."""
    done = run("--size", "4M")
    assert (2, gpu_check.NO_DEVICE + "\n") == (done.returncode, done.stdout)


@pytest.mark.skipif(find_spec("cuda") is None, reason="needs the cuda extra")
@pytest.mark.skipif(cuda_runtime() is not None, reason="there is a GPU")
def test_the_real_bindings_answer_with_a_code_and_no_exception():
    """Without a driver every call returns its error first, and the device is not made."""
    from cuda.bindings import runtime

    with pytest.raises(RuntimeError, match="cudaMalloc returned"):
        gpu_check.Device(runtime, 4096)


class Kind:
    """Which way a copy goes."""

    cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost = 1, 2


class StandIn:
    """A runtime by its calling convention, whose device is ordinary memory; copies are done when waited for."""

    cudaMemcpyKind = Kind

    def __init__(self, *, lenient=False):
        self.registered, self.queue, self.memory, self.lenient = set(), [], {}, lenient

    def cudaMalloc(self, size):
        buffer = ctypes.create_string_buffer(size)
        self.memory[ctypes.addressof(buffer)] = buffer
        return CUDA_SUCCESS, ctypes.addressof(buffer)

    def cudaFree(self, address):
        del self.memory[address]
        return (CUDA_SUCCESS,)

    def cudaStreamCreate(self):
        return CUDA_SUCCESS, 7

    def cudaStreamDestroy(self, stream):
        return (CUDA_SUCCESS,)

    def cudaMemcpyAsync(self, to, source, size, kind, stream):
        self.queue.append((to, source, size))
        return (CUDA_SUCCESS,)

    def cudaStreamSynchronize(self, stream):
        for copy in self.queue:
            ctypes.memmove(*copy)
        self.queue.clear()
        return (CUDA_SUCCESS,)

    def cudaHostRegister(self, address, size, flags):
        if address in self.registered and not self.lenient:
            return (712,)
        self.registered.add(address)
        return (CUDA_SUCCESS,)

    def cudaHostUnregister(self, address):
        if address not in self.registered:
            return (713,)
        self.registered.discard(address)
        return (CUDA_SUCCESS,)


@pytest.mark.parametrize("lenient", [False, True])
def test_the_checks_run_on_a_stand_in_and_can_fail(lenient):
    """All that is no matter of speed holds; a runtime that takes a range twice is found out."""
    said = list(gpu_check.checks(StandIn(lenient=lenient), 1 << 20))
    wrong = [text for holds, text in said if not holds and "faster" not in text]
    assert ("a second registration of the same range was taken" in wrong) == lenient
    assert lenient or [] == wrong
