"""Give freed memory back to the system."""

from __future__ import annotations

import ctypes
import gc
import sys
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@contextmanager
def rare_collections() -> Iterator[None]:
    """Look for reference cycles rarely.

    Rows are lists and tuples by the million, none of them in a cycle. To find 100,000 unchanged dumps took a
    quarter longer.
    """
    thresholds = gc.get_threshold()
    gc.set_threshold(1_000_000, 20, 20)
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)


def release_freed() -> None:
    """Give back what the allocators keep for later; takes some milliseconds.

    After the columns of a gigabyte of text were put together, glibc alone kept 156 of 430 MB.
    """
    if arrow := sys.modules.get("pyarrow"):
        arrow.default_memory_pool().release_unused()
    if trim := _trim():
        trim(0)


@cache
def _trim() -> Callable[[int], int] | None:
    """Return glibc's malloc_trim; None with another C library."""
    try:
        trim: Callable[[int], int] = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):  # musl and macOS have none, Windows no such handle
        return None
    return trim
