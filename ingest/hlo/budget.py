"""What the sidecar files of one dump set may cost."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from ingest.errors import DumpError

MAX_RECORDS: Final = 1_000_000
"""Most records of one dump set: instructions, values, events and the like, of up to 500 bytes each."""

MAX_SECONDS: Final = 60.0
"""Most CPU time for one dump set. Reading is linear: 100,000 instructions take 1 to 2 s."""

_CLOCK_EVERY: Final = 5_000
"""Records from one look at the clock to the next."""

_SMALL: Final = 16
"""Numbers or characters that count as one record where they are kept in long lists and texts."""


class Budget:
    """Counts what is kept of the sidecar files of one dump set, and ends the reading where it is too much.

    Attributes:
        spent: records so far.
    """

    def __init__(
        self,
        records: int = MAX_RECORDS,
        seconds: float = MAX_SECONDS,
        clock: Callable[[], float] = time.process_time,
    ) -> None:
        self.spent = 0
        self._records = records
        self._seconds = seconds
        self._clock = clock
        self._end = clock() + seconds
        self._look_at = _CLOCK_EVERY

    def spend(self, file: str, records: int, small: int = 0) -> None:
        """Count records, and small parts of which 16 make one.

        Raises:
            DumpError: there are too many, or reading took too long.
        """
        self.spent += records + small // _SMALL
        if self.spent > self._records:
            message = (
                f"there are more than {self._records:,} instructions, values and events;"
                " leave out the HLO text and the protobuf of this set (--no-hlo)"
            )
            raise DumpError("sidecar-limit", message, file=file)
        if self.spent >= self._look_at:
            self._look_at = self.spent + _CLOCK_EVERY
            if self._clock() > self._end:
                message = (
                    f"reading it took more than {self._seconds:.0f} s of CPU time;"
                    " leave out the HLO text and the protobuf of this set (--no-hlo)"
                )
                raise DumpError("sidecar-limit", message, file=file)
