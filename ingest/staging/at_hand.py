"""Which dump each worker is reading, in a small file that outlives a kill.

The file has one slot for each worker and one for the coordinator. A slot is memory that processes share: to
note a dump costs a microsecond, and what was at hand is there for whoever looks after the death of a worker,
or of the whole import.
"""

from __future__ import annotations

import mmap
import os
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from ingest.dump.sets import DumpSet

_SLOT_BYTES: Final = 8192
"""For the moment and the path; a path has no more than 4,096 bytes."""
_HEAD: Final = struct.Struct("=dI")

_slot: tuple[mmap.mmap, int] | None = None
"""Where this process notes what it reads."""


@dataclass(frozen=True, slots=True)
class Reading:
    """A dump that is being read: its place as `place_of` gives it, and the seconds for which it is."""

    place: str
    seconds: float


@dataclass(frozen=True, slots=True)
class AtHand:
    """The file of an import; slot 0 is the coordinator's."""

    path: Path

    @classmethod
    def create(cls, path: Path, slots: int) -> AtHand:
        """Make the file.

        Raises:
            OSError: it cannot be made, or is there.
        """
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            os.ftruncate(descriptor, slots * _SLOT_BYTES)
        finally:
            os.close(descriptor)
        return cls(path)

    def read(self) -> list[Reading | None]:
        """Return what each slot notes; nothing where there is no such file or it is damaged."""
        try:
            data = self.path.read_bytes()
        except OSError:
            return []
        return [_read(data[start : start + _SLOT_BYTES]) for start in range(0, len(data), _SLOT_BYTES)]

    def places(self) -> list[str]:
        """Return the places of all sets that are being read, or were when their readers were killed."""
        return [reading.place for reading in self.read() if reading is not None]


def place_of(dump_set: DumpSet) -> str:
    """Return the path of a set without its members' endings."""
    return os.path.join(dump_set.directory, dump_set.stem)


def take_slot(at_hand: AtHand, slot: int) -> None:
    """Let this process note what it reads in a slot.

    Raises:
        OSError: the file is gone, or cannot be mapped.
    """
    global _slot
    descriptor = os.open(at_hand.path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        shared = mmap.mmap(descriptor, 0)
    finally:
        os.close(descriptor)
    _HEAD.pack_into(shared, slot * _SLOT_BYTES, 0.0, 0)  # of a worker that was lost
    _slot = shared, slot * _SLOT_BYTES


@contextmanager
def reading(dump_set: DumpSet) -> Iterator[None]:
    """Note a set as the one at hand, for as long as the block lasts."""
    if _slot is None:
        yield
        return
    shared, start = _slot
    place = os.fsencode(place_of(dump_set))[: _SLOT_BYTES - _HEAD.size]
    # The length comes last: a slot with a length is complete.
    _HEAD.pack_into(shared, start, time.monotonic(), 0)
    shared[start + _HEAD.size : start + _HEAD.size + len(place)] = place
    _HEAD.pack_into(shared, start, time.monotonic(), len(place))
    try:
        yield
    finally:
        _HEAD.pack_into(shared, start, 0.0, 0)


def still_reading() -> None:
    """Count the time of the set at hand from now on: more of it has come."""
    if _slot is not None:
        shared, start = _slot
        _, length = _HEAD.unpack_from(shared, start)
        if length:
            _HEAD.pack_into(shared, start, time.monotonic(), length)


def _read(slot: bytes) -> Reading | None:
    if len(slot) < _SLOT_BYTES:
        return None
    since, length = _HEAD.unpack_from(slot)
    if not length:
        return None
    place = os.fsdecode(slot[_HEAD.size : _HEAD.size + length])
    return Reading(place, time.monotonic() - since)
