"""What staging must know of a run that is recorded already: its files and their content."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

__all__ = ["RecordedRun"]


class RecordedRun(NamedTuple):
    """A run with its member files; `files` are (role, file name, size, mtime, SHA-256)."""

    run_id: int
    files: Sequence[tuple[str, str, int, int, str | None]]

    @property
    def sha256(self) -> dict[str, str | None]:
        """SHA-256 of each member by role."""
        return {file[0]: file[4] for file in self.files}
