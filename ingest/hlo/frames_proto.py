"""Read a StackFrameIndexProto."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ingest.hlo.fields import as_text
from ingest.hlo.records import SourceFrame
from ingest.hlo.wire import Wire


class FrameReader:
    """Collect the four tables; ids are places in them, from 1, and 0 is none."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._files: list[str] = []
        self._functions: list[str] = []
        self._locations: list[Any] = []
        self._frames: list[tuple[int, int]] = []

    def take(self, index: Any) -> None:
        """Take an index, or a piece of one."""
        tables = (index.file_names, index.function_names, index.file_locations, index.stack_frames)
        self._wire.count(sum(map(len, tables)))
        self._files += map(as_text, index.file_names)
        self._functions += map(as_text, index.function_names)
        self._locations += index.file_locations
        self._frames += ((frame.file_location_id, frame.parent_frame_id) for frame in index.stack_frames)

    def frames(self) -> tuple[SourceFrame, ...]:
        """Return the frames that were read, by ascending id."""
        return tuple(self._frame(at, *frame) for at, frame in enumerate(self._frames, 1))

    def _frame(self, frame_id: int, location_id: int, parent_id: int) -> SourceFrame:
        location = _at(self._locations, location_id)
        if location is None:
            return SourceFrame(frame_id, parent_id or None, None, None, None)
        # A column of 0 is the first; a line of 0 is none, and end_line is younger than the rest.
        has_end = bool(location.end_line)
        return SourceFrame(
            frame_id,
            parent_id or None,
            _at(self._functions, location.function_name_id),
            _at(self._files, location.file_name_id),
            location.line,
            location.end_line if has_end else None,
            location.column,
            location.end_column if has_end else None,
        )


def _at(table: Sequence[Any], id_: int) -> Any | None:
    return table[id_ - 1] if 0 < id_ <= len(table) else None
