"""What takes a while to make, made once for all workers of a run."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable
from pathlib import Path

import pytest


def folder_of_run(factory: pytest.TempPathFactory) -> Path:
    """Return the temporary directory that all workers of a run share."""
    base = factory.getbasetemp()
    # A worker has one of its own in there.
    return base.parent if "PYTEST_XDIST_WORKER" in os.environ else base


def made_once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], Path]) -> Path:
    """Return the file that `make` makes in a folder of its own, whichever worker asks first.

    The others wait for it, and must only read it. A failure is each worker's own: the next one tries again.

    Args:
        name: of the folder, in the temporary directory of the run.
        make: is given the empty folder, and returns the file.
    """
    base = folder_of_run(factory)
    done = base / f"{name}.made"
    with (base / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not done.exists():
            done.write_text(os.fspath(make(factory.mktemp(name))), encoding="utf-8")
        return Path(done.read_text(encoding="utf-8"))
