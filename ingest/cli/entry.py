"""Where the programs begin: Ctrl-C is taken care of before anything else is imported."""

from __future__ import annotations

import gc
import os
import signal

__all__ = ["xbuf", "xbuf_ingest"]


def _end(number: int, frame: object) -> None:
    os.write(2, b"interrupted; nothing was done yet\n")
    os._exit(130)


signal.signal(signal.SIGINT, _end)
gc.disable()  # 4 ms of looks for garbage while modules are imported, which make none; `run` enables it


def xbuf() -> None:
    """Run `xbuf`."""
    from ingest.cli.xbuf import main

    main()


def xbuf_ingest() -> None:
    """Run `xbuf-ingest`."""
    from ingest.cli.ingest import main

    main()
