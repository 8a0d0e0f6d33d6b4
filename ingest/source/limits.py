"""How much compressed data may stand for, wherever it comes from."""

from __future__ import annotations

from typing import Final

BOMB_BYTES: Final = 256 << 20
BOMB_TIMES: Final = 300
"""Compressed data that stands for more than so many bytes, and for so many times its own, is refused: dumps
of 278 MB are 15 to 60 times as large as their compressed copies."""

MAX_FILES: Final = 1_000_000
"""Files in an archive; a list of more takes a gigabyte of memory."""


def may_stand_for(packed: int, unpacked: int) -> bool:
    """Say whether so many compressed bytes may stand for so many."""
    return unpacked <= max(BOMB_BYTES, BOMB_TIMES * packed)
