"""Many at once: verbs from threads and tasks, starts and teardowns crossing each other."""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import AsyncIterator
from typing import Any

import pytest

from lifegraph import Graph, GraphClosingError, GraphStateError, StartError, resource
from tests.aio.conftest import Run
from tests.aio.looping import in_thread, turns, within
from tests.graph.world import Elsewhere


class Books:
    """Counts, for each resource, how often it came up and went down."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.up: dict[str, int] = {}
        self.down: dict[str, int] = {}

    def note(self, book: dict[str, int], name: str) -> None:
        """One more."""
        with self.lock:
            book[name] = book.get(name, 0) + 1

    def kind(self, name: str, number: int) -> Any:
        """A resource of one of several forms."""

        async def generator() -> AsyncIterator[str]:
            await asyncio.sleep(0)
            self.note(self.up, name)
            yield name
            await asyncio.sleep(0)
            self.note(self.down, name)

        class Sync:
            def start(inner) -> None:
                self.note(self.up, name)

            def stop(inner) -> None:
                self.note(self.down, name)

        class Async:
            async def start(inner) -> None:
                await turns(number % 5)
                self.note(self.up, name)

            async def stop(inner) -> None:
                await turns(number % 5)
                self.note(self.down, name)

        return resource((generator, Sync, Async)[number % 3])

    def balanced(self) -> bool:
        """Whether all that came up went down, once."""
        return self.up == self.down and set(self.up.values()) <= {1}


@pytest.mark.parametrize("seed", range(6))
def test_creating_while_it_closes(run: Run[Any], seed: int) -> None:
    """Tasks and threads bring members in while the graph starts, runs and closes: each is refused, or up and down once."""

    async def main() -> None:
        draw, books = random.Random(seed), Books()
        graph = Graph(stop_timeout=30, start_timeout=30)
        for number in range(10):
            graph.add(books.kind(f"first{number}", number), name=f"first{number}")

        async def task(number: int) -> None:
            await turns(draw.randint(0, 30))
            try:
                await graph.acreate(books.kind(f"t{number}", number), name=f"t{number}")
            except (GraphClosingError, GraphStateError, StartError):
                return

        def thread(number: int) -> None:
            try:
                graph.create(books.kind(f"h{number}", number), name=f"h{number}")
            except (GraphClosingError, GraphStateError, StartError):
                return

        async def close() -> Any:
            await turns(draw.randint(0, 60))
            return await graph.ateardown()

        start = asyncio.ensure_future(graph.astart())
        await turns(1)
        tasks = [asyncio.ensure_future(task(number)) for number in range(30)]
        threads = [in_thread(lambda number=number: thread(number)) for number in range(10)]  # type: ignore[misc]  # bound now
        report = await within(close())
        await within(asyncio.gather(start, *tasks, *threads, return_exceptions=True))
        assert report.ok, report.to_text()
        assert books.balanced(), (books.up, books.down)
        assert "closed" == graph.state

    run(main)


def test_many_graphs_in_many_worlds() -> None:
    """Graphs on private loops and on loops of their own come and go in many threads at once."""
    books = Books()

    def life(number: int) -> bool:
        graph = Graph(name=f"g{number}")
        for member in range(6):
            name = f"g{number}m{member}"
            below = [f"g{number}m{member - 1}"] if member % 2 else []
            graph.add(books.kind(name, member), name=name, depends_on=below)
        if number % 2:
            graph.start()
            return graph.teardown().ok

        async def main() -> bool:
            await graph.astart()
            return (await graph.ateardown()).ok

        return asyncio.run(main())

    for _ in range(3):
        books = Books()
        lives = [Elsewhere(lambda number=number: life(number)) for number in range(16)]  # type: ignore[misc]  # bound now
        assert all(each.result() for each in lives)
        assert books.balanced()
        assert 96 == len(books.up)


@pytest.mark.parametrize("seed", range(4))
def test_cancelled_at_any_moment(run: Run[Any], seed: int) -> None:
    """A graph whose ``async with`` is cancelled after any number of turns loses nothing: all that came up went down,
    or is in the report."""

    async def main() -> None:
        for count in range(seed, 60, 4):
            books = Books()
            graph = Graph(stop_timeout=30, start_timeout=30)
            for number in range(6):
                below = [f"n{number - 1}"] if number else []
                graph.add(books.kind(f"n{number}", number), name=f"n{number}", depends_on=below)

            async def whole() -> None:
                async with graph:
                    await turns(3)

            task = asyncio.ensure_future(whole())
            await turns(count)
            task.cancel()
            await within(asyncio.wait({task}))
            if graph.state == "new":
                assert {} == books.up
                continue
            assert "closed" == graph.state
            assert graph.report is not None
            lost = {n for n in books.up if n not in books.down and graph.report.fates[n] in ("released", "skipped")}
            assert set() == lost
            assert all(count <= 1 for count in (*books.up.values(), *books.down.values()))

    run(main)
