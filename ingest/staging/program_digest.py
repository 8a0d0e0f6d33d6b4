"""Sixty-four bits that stand for the program that a dump prints, equal where two dumps print the same one.

A value counts by its shape, opcode and name, by its live range and by its uses; an allocation by size, color
and kind. What changes between two compilations of one program does not: ids, the numbers in names, and the
order of values and allocations; nor do names of parameters, which are the user's.

Each distinct text has 64 bits of a hash; what belongs together is multiplied, and the products are added up,
modulo 2**64. So the order does not matter, and workers can sum up pieces of a large dump.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any, Final

from ingest.dump.headers import Header

if TYPE_CHECKING:
    import numpy as np

_MASK: Final = (1 << 64) - 1
# Odd and without a pattern: the fractions of the golden ratio and of some square roots.
_FIRST: Final = 0x9E3779B97F4A7C15
_SECOND: Final = 0x6A09E667F3BCC909
_THIRD: Final = 0xBB67AE8584CAA73B
_FOURTH: Final = 0x3C6EF372FE94F82B
_NO_NUMBERS: Final = str.maketrans("", "", "0123456789.")


class _OfValues(dict[tuple[str, str, str | None, str], int]):
    """Hashes by shape, index, opcode and name without numbers."""

    def __missing__(self, key: tuple[str, str, str | None, str]) -> int:
        shape, index, opcode, stem = key
        stem = "" if opcode == "parameter" else stem
        print_ = self[key] = _hash(shape, index or "{}", opcode or "", stem)
        return print_


class _OfUses(dict[tuple[str, str, str], int]):
    """Hashes by operand, index and name without numbers."""

    def __missing__(self, key: tuple[str, str, str]) -> int:
        print_ = self[key] = print_of_use(*key)
        return print_


class _OfKinds(dict[str, int]):
    """Hashes by kind of allocation."""

    def __missing__(self, kind: str) -> int:
        print_ = self[kind] = _hash(kind)
        return print_


class Prints:
    """The hashes of texts, each made once; for any number of dumps."""

    def __init__(self) -> None:
        self._values, self._uses, self._kinds = _OfValues(), _OfUses(), _OfKinds()

    def of_values(
        self,
        names: Sequence[str],
        indices: Iterable[str],
        shapes: Iterable[str],
        opcodes: Iterable[str | None],
        uses: Sequence[tuple[str, str, str]] = (),
        use_counts: Sequence[int] = (),
    ) -> array[int]:
        """Return what each value counts, but for its live range.

        Args:
            names: of the defining instructions.
            indices: their shape indexes as printed, empty for the whole.
            shapes: as printed.
            opcodes: of the instructions; None where it is not known.
            uses: instruction, operand and index, of all values in order.
            use_counts: how many of them each value has; empty without uses.
        """
        keys = zip(shapes, indices, opcodes, without_numbers(names), strict=True)
        prints = [*map(self._values.__getitem__, keys)]
        if uses:
            sums = list(accumulate(self._of_uses(uses), initial=0))
            until = [sums[place] for place in accumulate(use_counts, initial=0)]
            prints = [
                print_ * (1 + after - before) & _MASK
                for print_, (before, after) in zip(prints, pairwise(until), strict=True)
            ]
        return array("Q", prints)

    def _of_uses(self, uses: Sequence[tuple[str, str, str]]) -> list[int]:
        names, operands, indices = zip(*uses, strict=True)
        keys = zip(operands, indices, without_numbers(names), strict=True)
        return [*map(self._uses.__getitem__, keys)]

    def of_allocations(self, headers: Iterable[Header]) -> int:
        """Return what allocations count together."""
        total = 0
        for header in headers:
            flags = header.attributes
            total += (
                self._kinds[flags.kind] * (header.size * _FIRST + _SECOND) * (flags.color * _THIRD + _FOURTH)
            )
        return total & _MASK


def placed(prints: Iterable[int], starts: Iterable[int], ends: Iterable[int]) -> int:
    """Return what values count together, with their live ranges.

    Args:
        prints: what each counts by itself.
        starts: first slots, `NOT_RANGED` where they are not known.
        ends: last slots.
    """
    return (
        sum(
            [
                print_ * (start * _FIRST + _SECOND & _MASK) * (end * _THIRD + _FOURTH & _MASK)
                for print_, start, end in zip(prints, starts, ends, strict=True)
            ]
        )
        & _MASK
    )


def placed_many(prints: array[int], starts: np.ndarray[Any, Any], ends: np.ndarray[Any, Any]) -> int:
    """Return the same as `placed` for columns of 64-bit numbers."""
    import numpy as np  # 70 ms

    # Unsigned numbers of NumPy wrap around, as the masks do.
    first, second, third, fourth = (np.uint64(number) for number in (_FIRST, _SECOND, _THIRD, _FOURTH))
    slots = (starts.astype(np.uint64) * first + second) * (ends.astype(np.uint64) * third + fourth)
    return int((np.frombuffer(prints, np.uint64) * slots).sum(dtype=np.uint64))


def signed(digest: int) -> int:
    """Return a digest as the database has it."""
    digest &= _MASK
    return digest - (1 << 64) if digest >> 63 else digest


def print_of_use(operand: str, index: str, stem: str) -> int:
    """Return what a use counts: operand and index as printed, name of the user without numbers."""
    return _hash(operand, index or "{}", stem)


def without_numbers(names: Sequence[str]) -> list[str]:
    """Return names without their digits and dots."""
    return "\n".join(names).translate(_NO_NUMBERS).split("\n") if names else []


def _hash(*texts: str) -> int:
    return int.from_bytes(blake2b("\n".join(texts).encode(), digest_size=8).digest(), "big")
