"""Where the programs begin: Ctrl-C is taken care of before anything else is imported."""

from __future__ import annotations

import gc
import os
import signal
import sys


def _end(number: int, frame: object) -> None:
    os.write(2, b"interrupted; nothing was done yet\n")
    os._exit(130)


class _WithoutPandas:
    """A finder that lets DuckDB and Arrow find no pandas, which our programs have no use for.

    As soon as a parameter is bound DuckDB imports it: 0.4 s where it is installed; where it is not, half of
    the time of each statement with parameters goes into the search. None in `sys.modules` would not do: what
    Cython imports then is None.
    """

    def find_spec(self, name: str, path: object, target: object = None) -> None:
        if name == "pandas":
            raise ModuleNotFoundError("our programs do without pandas", name=name)


signal.signal(signal.SIGINT, _end)
gc.disable()  # 4 ms of looks for garbage while modules are imported, which make none; `run` enables it
sys.meta_path.insert(0, _WithoutPandas())


def xbuf() -> None:
    """Run `xbuf`."""
    from ingest.cli.xbuf import main

    main()


def xbuf_ingest() -> None:
    """Run `xbuf-ingest`."""
    from ingest.cli.ingest import main

    main()
