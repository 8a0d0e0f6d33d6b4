"""What the XLA compiler does with memory, from Python: scripts, notebooks and running JAX programs.

Dumps, compiled functions and what a program compiles answer alike::

    import xbuf

    with xbuf.open("/tmp/xla_dump") as dumps:         # or a database, a protobuf, a profile
        dumps.run("jit_train_step").show()
        frame = dumps.query("memory_by_source", run="jit_train_step").pandas()

    step = jax.jit(train_step).lower(params, batch).compile()
    xbuf.load(step).live_at_peak(top=5)               # nothing was dumped

    with xbuf.capture() as captured:                  # whatever JAX compiles in the block
        train()
    captured.show()

Every error that is raised on purpose is an `XbufError`, or a TypeError for an argument of another kind. Names
are imported when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ingest.version import VERSION as __version__

if TYPE_CHECKING:
    from ingest.errors import (
        DatabaseError,
        DatabaseLocked,
        DatabaseTooNew,
        DumpError,
        NotADatabase,
        SchedulerError,
        SourceError,
        UsageError,
        XbufError,
    )
    from ingest.pipeline.importer import import_dumps
    from ingest.pipeline.summary import ImportSummary
    from xbuf.capturing import Capture, capture
    from xbuf.database import Database, RejectedWarning, open
    from xbuf.programs import load
    from xbuf.run import Peak, Run
    from xbuf.table import Table

__all__ = [
    "Capture",
    "Database",
    "DatabaseError",
    "DatabaseLocked",
    "DatabaseTooNew",
    "DumpError",
    "ImportSummary",
    "NotADatabase",
    "Peak",
    "RejectedWarning",
    "Run",
    "SchedulerError",
    "SourceError",
    "Table",
    "UsageError",
    "XbufError",
    "__version__",
    "capture",
    "import_dumps",
    "load",
    "open",
]

_MODULES = {
    "ingest.errors": (
        "DatabaseError",
        "DatabaseLocked",
        "DatabaseTooNew",
        "DumpError",
        "NotADatabase",
        "SchedulerError",
        "SourceError",
        "UsageError",
        "XbufError",
    ),
    "ingest.pipeline.importer": ("import_dumps",),
    "ingest.pipeline.summary": ("ImportSummary",),
    "xbuf.capturing": ("Capture", "capture"),
    "xbuf.database": ("Database", "RejectedWarning", "open"),
    "xbuf.programs": ("load",),
    "xbuf.run": ("Peak", "Run"),
    "xbuf.table": ("Table",),
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used."""
    if name in _MODULE_OF:
        return getattr(import_module(_MODULE_OF[name]), name)
    raise AttributeError(f"module 'xbuf' has no attribute {name!r}")


def __dir__() -> list[str]:
    """List the public names."""
    return __all__
