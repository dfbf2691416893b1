"""Programs for child interpreters, and an observer that outlives Python in its process."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

WATCH = r"""
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static uintptr_t address;
static unsigned char expected;

/* Run by libc when the process exits, after Python has finalized. */
static void look(void) {
    unsigned char resident;
    const char *said = "exit: unmapped\n";
    if (mincore((void *)(address & ~(uintptr_t)4095), 1, &resident) == 0)
        said = *(volatile unsigned char *)address == expected ? "exit: mapped\n" : "exit: changed\n";
    if (write(1, said, strlen(said)) < 0) _exit(99);
}

int watch(void *where, unsigned char content) {
    address = (uintptr_t)where;
    expected = content;
    return atexit(look);
}
"""


@pytest.fixture(scope="session")
def watcher(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A C library whose ``watch(address, byte)`` has libc say, at the very end, whether that is still mapped."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler here")
    folder = tmp_path_factory.mktemp("watch")
    source, library = folder / "watch.c", folder / "watch.so"
    source.write_text(WATCH)
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", str(library), str(source)], check=True)
    return library
