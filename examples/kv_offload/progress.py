"""A progress bar on a terminal, a few plain lines elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def progress(what: str, total: int) -> Iterator[Callable[[int], None]]:
    """Yields a function that is told how many of `total` are done."""
    if sys.stdout.isatty():
        try:
            from rich.progress import Progress  # noqa: PLC0415 - optional, and slow to import
        except ImportError:
            yield _plain(what, total)
        else:
            with Progress() as bar:
                task = bar.add_task(what, total=total)
                yield lambda done: bar.update(task, completed=done)
    else:
        yield _plain(what, total)


def _plain(what: str, total: int) -> Callable[[int], None]:
    step = max(1, total // 4)

    def told(done: int) -> None:
        if done % step == 0 or done == total:
            print(f"{what} {done}/{total}", flush=True)

    return told
