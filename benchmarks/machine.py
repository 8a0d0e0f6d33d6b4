"""Say what machine figures come from."""

from __future__ import annotations

import os
import platform
from datetime import UTC, datetime

import duckdb
import pyarrow

from ingest.staging.workers import default_jobs


def describe() -> str:
    """Return one line: date, processor, cores, memory, system, versions, load."""
    processor = platform.processor() or platform.machine()
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            names = [line.split(":", 1)[1].strip() for line in file if line.startswith("model name")]
        processor = names[0] if names else processor
    except OSError:
        pass  # not Linux
    try:
        memory = f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.0f} GiB"
        load = f"load {os.getloadavg()[0]:.1f}"
    except (OSError, ValueError):
        memory = load = ""
    parts = [
        f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
        f"{processor}, {default_jobs()} cores",
        memory,
        f"{platform.system()} {platform.release()}",
        f"Python {platform.python_version()}, DuckDB {duckdb.__version__}, pyarrow {pyarrow.__version__}",
        load,
    ]
    return "; ".join(filter(None, parts))
