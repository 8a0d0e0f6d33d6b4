"""Run a command and measure what it takes: time, CPU time, and memory of it and all its children."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

INTERVAL: Final = 0.02
"""Seconds between two looks at the memory; a look takes some milliseconds."""
XBUF: Final = (sys.executable, "-c", "from ingest.cli.entry import xbuf_ingest; xbuf_ingest()")
"""The command xbuf-ingest, also where it is not installed."""


@dataclass(frozen=True)
class Usage:
    """What one run of a command took.

    Attributes:
        seconds: wall time.
        cpu: user and system time of the command and its children, seconds.
        largest: most resident memory of one of its processes, bytes.
        together: most memory of all its processes, bytes: their PSS, in which pages that they share count
            once; without PSS their resident memory.
        output: what it wrote to stdout.
    """

    seconds: float
    cpu: float
    largest: int
    together: int
    output: str


def run(command: Sequence[str], *, watch_memory: bool = False) -> Usage:
    """Run a command to its end.

    Raises:
        RuntimeError: it failed; with what it wrote to stderr.
    """
    before = os.times()
    started = time.perf_counter()
    # An installed xbuf is compiled; a checkout may be set not to keep that, which costs 50 ms a start.
    environment = {name: text for name, text in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    )
    watch = _Watch(process.pid)
    if watch_memory:
        watch.start()
    output, errors = process.communicate()
    seconds = time.perf_counter() - started
    watch.stop()
    after = os.times()
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)}: exit code {process.returncode}\n{errors}")
    cpu = after.children_user - before.children_user + after.children_system - before.children_system
    return Usage(seconds, cpu, watch.largest, watch.together, output)


def in_turn(
    commands: dict[str, Callable[[], Usage]], repeat: int, report: Callable[[str], None]
) -> dict[str, Usage]:
    """Run commands A B C A B C ..., so that a busy moment hits all alike; return the run of median time."""
    runs: dict[str, list[Usage]] = {name: [] for name in commands}
    for number in range(repeat):
        for name, command in commands.items():
            usage = command()
            report(f"{name} {number + 1}/{repeat}: {usage.seconds:.2f} s")
            runs[name].append(usage)
    return {name: median(usages) for name, usages in runs.items()}


def median(usages: Sequence[Usage]) -> Usage:
    """Return the medians of each figure."""
    return Usage(
        statistics.median(usage.seconds for usage in usages),
        statistics.median(usage.cpu for usage in usages),
        max(usage.largest for usage in usages),
        max(usage.together for usage in usages),
        usages[-1].output,
    )


class _Watch(threading.Thread):
    """Looks at the memory of a process and its children again and again."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self.largest = 0
        self.together = 0
        self._pid = pid
        self._ended = threading.Event()

    def run(self) -> None:
        while not self._ended.wait(INTERVAL):
            together = 0
            for pid in _tree(self._pid):
                resident, shared = _memory(pid)
                self.largest = max(self.largest, resident)
                together += shared
            self.together = max(self.together, together)

    def stop(self) -> None:
        self._ended.set()
        if self.is_alive():
            self.join()


def _tree(pid: int) -> list[int]:
    """Return a process and all its descendants."""
    found = [pid]
    try:
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/children", encoding="ascii") as file:
                for child in file.read().split():
                    found += _tree(int(child))
    except OSError:
        pass  # it has ended
    return found


def _memory(pid: int) -> tuple[int, int]:
    """Return the resident memory and the PSS of a process, bytes; 0 when it has ended."""
    resident = shared = 0
    try:
        with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as file:
            resident = next((_kib(line) for line in file if line.startswith("VmHWM:")), 0)
        with open(f"/proc/{pid}/smaps_rollup", encoding="ascii", errors="replace") as file:
            shared = next((_kib(line) for line in file if line.startswith("Pss:")), 0)
    except OSError:
        shared = shared or resident
    return resident, shared


def _kib(line: str) -> int:
    return int(line.split()[1]) << 10
