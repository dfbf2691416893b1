"""Which block is in which pack, under a cap on the bytes of all packs together."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from .pack_format import Entry, Header


@dataclass(slots=True, eq=False)
class Pack:
    """One file, and the keys it still answers for."""

    path: Path
    header: Header
    live: set[bytes] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a block lies."""

    pack: Pack
    position: int

    @property
    def entry(self) -> Entry:
        """What the header says of it."""
        return self.pack.header.entries[self.position]


class PackIndex:
    """Thread-safe. Methods that make a pack useless return it, and the caller removes the file."""

    def __init__(self, cap: int) -> None:
        self._cap = cap
        self._lock = threading.Lock()
        self._places: dict[bytes, Place] = {}
        self._packs: OrderedDict[Path, Pack] = OrderedDict()
        self._bytes = 0

    def __contains__(self, key: bytes) -> bool:
        return key in self._places

    @property
    def nbytes(self) -> int:
        """Bytes of the packs, those reserved for writing among them."""
        return self._bytes

    def reserve(self, nbytes: int) -> list[Pack] | None:
        """Set bytes aside for a new pack; the packs that must go for it, least recently used first.

        None, with nothing changed, where that many bytes can never fit or other writers have the room.
        """
        with self._lock:
            evictable = sum(pack.header.file_bytes for pack in self._packs.values())
            if self._bytes + nbytes - evictable > self._cap:
                return None
            victims = []
            while self._bytes + nbytes > self._cap:
                victims.append(self._forget(next(iter(self._packs.values()))))
            self._bytes += nbytes
            return victims

    def give_back(self, nbytes: int) -> None:
        """The reserved bytes were not used after all."""
        with self._lock:
            self._bytes -= nbytes

    def add(self, path: Path, header: Header) -> list[Pack]:
        """A pack for which bytes were reserved. Newer blocks win: packs left without any block are returned."""
        with self._lock:
            pack = Pack(path, header)
            empty = []
            for position, entry in enumerate(header.entries):
                empty += self._drop(entry.key)
                self._places[entry.key] = Place(pack, position)
                pack.live.add(entry.key)
            self._packs[path] = pack
            return empty

    def find(self, keys: Iterable[bytes]) -> list[Place | None]:
        """Where these blocks are. Counts as a use of their packs."""
        with self._lock:
            places = [self._places.get(key) for key in keys]
            for place in places:
                if place is not None:
                    self._packs.move_to_end(place.pack.path)
            return places

    def drop(self, key: bytes, place: Place) -> list[Pack]:
        """Forget a block that proved unreadable, unless a newer copy was added meanwhile."""
        with self._lock:
            return self._drop(key) if self._places.get(key) is place else []

    def _drop(self, key: bytes) -> list[Pack]:
        place = self._places.pop(key, None)
        if place is None:
            return []
        place.pack.live.discard(key)
        return [] if place.pack.live else [self._forget(place.pack)]

    def _forget(self, pack: Pack) -> Pack:
        if self._packs.pop(pack.path, None) is not None:
            self._bytes -= pack.header.file_bytes
        for key in pack.live:
            self._places.pop(key, None)
        return pack
