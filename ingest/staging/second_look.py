"""Look a second time at a large dump that is rejected, from its start, for what is wrong with it first.

Pieces are scanned apart and in parallel: they tell *that* something is wrong. What is told is what the parser
of small dumps comes to first; for that, these read the file again, piece by piece.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import takewhile

import pyarrow as pa

from ingest.dump import features
from ingest.dump.allocations import LateError, PieceOfSection, scan_allocations, style_of
from ingest.dump.check import check_same_values
from ingest.dump.sections import Piece, Section, cut
from ingest.dump.source import BlockReader
from ingest.dump.used_values import scan_used_values
from ingest.errors import DumpError
from ingest.staging.pieces import value_lines


def first_unreadable(file: str) -> DumpError | None:
    """Return what cannot be read first of the allocations, scanned from their start; None if nothing.

    A piece by itself does not tell in which way a dump prints its values, nor whether others follow.
    """

    def pieces() -> Iterator[Piece]:
        of_file = cut(BlockReader(file), Section.ALLOCATIONS)
        return takewhile(lambda piece: piece.section is Section.ALLOCATIONS, of_file)

    styles = set()
    last, last_header = 0, 0  # lines at which pieces start
    for piece in pieces():
        styles.add(style_of(piece.text))
        last = piece.line
        if piece.text.startswith("allocation ") or "\nallocation " in piece.text:
            last_header = last
    style = next((one for one in (features.LOGICAL_BUFFERS, features.EMBEDDED_VALUES) if one in styles), None)
    reuse = (False, False)
    late: LateError | None = None
    for piece in pieces():
        place = PieceOfSection(style, *reuse, piece.line < last, piece.line < last_header)
        try:
            scan = scan_allocations(piece.text, piece.line, file, place)
            reuse = (scan.ends_in_reuse, scan.ends_in_told_reuse)
        except LateError as error:
            late = late or error.with_traceback(None)
        except DumpError as error:
            return error
    return late


def require_same_values(values: pa.Table, file: str, start: Section) -> None:
    """Raise what differs first between the value lines, by id, and `Used values` in a file.

    Args:
        values: the value lines, as `ingest.staging.pieces.AllocationPiece` holds them.
        file: the file with `Used values`.
        start: section in which its text begins.
    """
    row = 0
    for piece in cut(BlockReader(file), start):
        if piece.section is Section.VALUES:
            blocks = scan_used_values(piece.text, piece.line, file).blocks
            check_same_values(value_lines(values.slice(row, len(blocks))).rows, blocks)
            row += len(blocks)
    check_same_values(value_lines(values.slice(row, 1)).rows, [])
