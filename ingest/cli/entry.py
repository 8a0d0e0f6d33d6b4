"""Where the programs begin: Ctrl-C is taken care of before anything else is imported."""

from __future__ import annotations

import gc
import os
import signal
import sys

__all__ = ["xbuf", "xbuf_ingest"]


def _end(number: int, frame: object) -> None:
    os.write(2, b"interrupted; nothing was done yet\n")
    os._exit(130)


signal.signal(signal.SIGINT, _end)
gc.disable()  # 4 ms of looks for garbage while modules are imported, which make none; `run` enables it
# As soon as a parameter is bound DuckDB imports pandas, which our programs have no use for: 0.4 s where it is
# installed; where it is not, half of the time of each statement with parameters goes into the search.
sys.modules["pandas"] = None  # type: ignore[assignment]


def xbuf() -> None:
    """Run `xbuf`."""
    from ingest.cli.xbuf import main

    main()


def xbuf_ingest() -> None:
    """Run `xbuf-ingest`."""
    from ingest.cli.ingest import main

    main()
