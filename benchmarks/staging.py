"""Stage dumps without loading them: `python -m benchmarks.staging DIRECTORY JOBS`; prints the seconds."""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import ingest.staging.arrow_rows  # noqa: F401 - its import is not what is measured
from ingest.dump.find import discover
from ingest.staging.at_hand import AtHand
from ingest.staging.parts import Parts
from ingest.staging.task import Task
from ingest.staging.workers import stage_tasks


def main() -> None:
    """Find, stage, print."""
    tasks = [Task(number, one) for number, one in enumerate(discover([sys.argv[1]]).sets)]
    with tempfile.TemporaryDirectory() as folder:
        parts = Parts(Path(folder))
        jobs = int(sys.argv[2])
        AtHand.create(parts.at_hand.path, jobs + 1)
        started = time.perf_counter()
        rows = sum(staged.rows for _, staged in stage_tasks(tasks, parts, jobs))
        seconds = time.perf_counter() - started
    if not rows:
        raise SystemExit("nothing was staged")
    print(seconds)


if __name__ == "__main__":
    main()
