"""Files that do harm to whoever reads them; importable by the workers of a cluster."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ingest.source.local import LocalFiles
from ingest.source.source import OpenFile, Status


@dataclass(frozen=True)
class Poison(LocalFiles):
    """Files of this machine; who opens one dies, or takes its parent along, or hangs.

    Attributes:
        how: what it does.
        note: a file that gets the process of the reader; with "kills-worker-once", that it was done.
    """

    how: Literal["kills", "kills-worker", "kills-worker-once", "hangs"]
    note: str

    def open(self, path: str, found: Status | None = None) -> OpenFile:
        """Do the harm."""
        note = Path(self.note)
        is_first = not note.exists()
        note.write_text(str(os.getpid()))
        if self.how == "hangs":
            time.sleep(3600)
        elif self.how == "kills":
            os.kill(os.getpid(), signal.SIGKILL)
        elif self.how == "kills-worker" or is_first:
            time.sleep(10)  # it is reported after one, and later where there is much else to do
            os.kill(os.getppid(), signal.SIGKILL)
            time.sleep(3600)  # it ends with its parent
        return super().open(path, found)
