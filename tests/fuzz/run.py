"""Throw damaged dumps at the parser for as long as you like: `python -m tests.fuzz.run --cases 1000000`.

The seeds are the smallest committed dumps of each release. A damaged dump whose outcome was not seen before
(kind, section and words of the reject; features and kinds of notices of what loads) joins the seeds, so that
damage is piled up where it leads somewhere new. Every so often those that load are staged as Parquet and
loaded into DuckDB together. Cases that end badly are kept with what they came to; the exit code is 1 then.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from types import FrameType

from ingest.dump.parse import ParsedDump
from ingest.errors import DumpError
from tests.dump_sets import committed_sets
from tests.fuzz.mutations import Texts, mutate
from tests.fuzz.oracle import Violation, judge
from tests.fuzz.stored import load_together

SECONDS_OF_A_CASE = 2
_MOST_SEEDS = 3000
_NAMES = {
    "primary": "module_0001.f-buffer-assignment.txt",
    "values": "module_0001.f-buffer-assignment-values.txt",
    "live_range": "module_0001.f-live-range.txt",
}


def seeds(largest: int) -> list[Texts]:
    """Return the committed sets of at most so many bytes."""
    sets = [one.texts() for one in committed_sets()]
    return [texts for texts in sets if sum(map(len, texts.values())) <= largest]


def write_set(folder: Path, texts: Mapping[str, bytes]) -> dict[str, Path]:
    """Write the files of a set; return their paths by role."""
    paths = {}
    for role, text in texts.items():
        path = paths[role] = folder / _NAMES[role]
        path.write_bytes(text)
    return paths


def outcome(result: ParsedDump | DumpError) -> tuple[str, ...]:
    """Return what tells one outcome from another."""
    if isinstance(result, DumpError):
        words = re.sub(r"[0-9]+|<[^>]*>|'[^']*'", "#", result.message)
        return ("reject", result.kind, str(result.section), words[:60])
    return ("load", *sorted(result.features), *sorted({notice.kind for notice in result.notices}))


class Fuzzer:
    """One run over many cases."""

    def __init__(self, seed: int, largest: int, keep: Path, store_every: int) -> None:
        self.cases = 0
        self.outcomes: Counter[tuple[str, ...]] = Counter()
        self.failures: Counter[str] = Counter()
        self.stored = 0
        self._chance = random.Random(seed)
        self._seeds = seeds(largest)
        self._keep = keep
        self._store_every = store_every
        self._waiting: list[Texts] = []
        self._folder = Path(tempfile.mkdtemp(prefix="xbuf-fuzz-", dir=_memory()))

    def step(self) -> None:
        """Make and judge one case."""
        self.cases += 1
        texts = mutate(self._chance, self._chance.choice(self._seeds), self._seeds)
        if sum(map(len, texts.values())) > 300_000:
            return
        try:
            signal.setitimer(signal.ITIMER_REAL, SECONDS_OF_A_CASE)
            result = judge(write_set(self._folder, texts), texts)
            signal.setitimer(signal.ITIMER_REAL, 0)
        except Exception as error:
            signal.setitimer(signal.ITIMER_REAL, 0)
            self._fail(error, texts)
            return
        key = outcome(result)
        self.outcomes[key] += 1
        if self.outcomes[key] == 1 and len(self._seeds) < _MOST_SEEDS and _size(texts) < 20_000:
            self._seeds.append(texts)
        if isinstance(result, ParsedDump):
            self._waiting.append(texts)
            if len(self._waiting) >= self._store_every:
                self.store()

    def store(self) -> None:
        """Load what is waiting into a database, together; where that fails, find the sets at fault."""
        waiting, self._waiting = self._waiting, []
        self.stored += len(waiting)
        self._store(waiting)

    def _store(self, sets: list[Texts]) -> None:
        try:
            load_together(sets, self._folder / "store")
        except Exception as error:
            if len(sets) == 1:
                self._fail(error, sets[0])
                return
            half = len(sets) // 2
            self._store(sets[:half])
            self._store(sets[half:])

    def close(self) -> None:
        """Remove the working folder."""
        shutil.rmtree(self._folder)

    def _fail(self, error: Exception, texts: Texts) -> None:
        frames = [
            f"{Path(frame.filename).name}:{frame.name}"
            for frame in traceback.extract_tb(error.__traceback__)
            if "/ingest/" in frame.filename
        ]
        words = re.sub(r"[0-9]+|'[^']*'", "#", str(error))[:60]
        name = f"{type(error).__name__} {words} {frames[-1] if frames else ''}"
        self.failures[name] += 1
        if self.failures[name] <= 3:
            folder = self._keep / re.sub(r"[^A-Za-z0-9]+", "-", name)[:80] / str(self.cases)
            folder.mkdir(parents=True, exist_ok=True)
            write_set(folder, texts)
            (folder / "why.txt").write_text("".join(traceback.format_exception(error))[-4000:])


def _size(texts: Mapping[str, bytes]) -> int:
    return sum(map(len, texts.values()))


def _memory() -> str | None:
    return "/dev/shm" if Path("/dev/shm").is_dir() else None


def _too_slow(_: int, __: FrameType | None) -> None:
    raise Violation(f"took more than {SECONDS_OF_A_CASE} s")


def main() -> int:
    """Run from the command line; print figures as JSON."""
    parser = argparse.ArgumentParser(description="Throw damaged dumps at the parser.")
    parser.add_argument("--cases", type=int, default=100_000)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after so long")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--largest", type=int, default=4000, help="bytes of the largest dump to start from")
    parser.add_argument("--store-every", type=int, default=2000, help="sets of one load into DuckDB")
    parser.add_argument("--keep", type=Path, default=Path("fuzz-failures"), help="folder for failed cases")
    options = parser.parse_args()
    signal.signal(signal.SIGALRM, _too_slow)
    fuzzer = Fuzzer(options.seed, options.largest, options.keep, options.store_every)
    started = time.monotonic()
    try:
        while fuzzer.cases < options.cases and time.monotonic() - started < options.seconds:
            fuzzer.step()
        fuzzer.store()
    finally:
        seconds = time.monotonic() - started
        rejects = sum(count for key, count in fuzzer.outcomes.items() if key[0] == "reject")
        print(
            json.dumps(
                {
                    "seed": options.seed,
                    "cases": fuzzer.cases,
                    "seconds": round(seconds, 1),
                    "rejected": rejects,
                    "loaded": sum(fuzzer.outcomes.values()) - rejects,
                    "stored": fuzzer.stored,
                    "outcomes": len(fuzzer.outcomes),
                    "failures": fuzzer.failures.most_common(),
                },
                indent=1,
            )
        )
        fuzzer.close()
    return 1 if fuzzer.failures else 0


if __name__ == "__main__":
    sys.exit(main())
