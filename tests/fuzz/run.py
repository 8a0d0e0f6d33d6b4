"""Throw damaged dumps at xbuf for as long as you like: `python -m tests.fuzz.run --cases 1000000`.

`--target` says at what: the parser, the two ways of staging, which must agree, or the readers of what lies
beside a dump; see `tests.fuzz.targets`. The seeds are the smallest committed dumps of each release. A damaged
dump whose outcome was not seen before (kind, section and words of the reject; features and kinds of notices
of what loads) joins the seeds, so that damage is piled up where it leads somewhere new. Every so often those
that load are staged as Parquet and loaded into DuckDB together. Cases that end badly are kept with what they
came to; the exit code is 1 then. A case, of up to 300 KB, has 2 CPU seconds and 256 MiB.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import FrameType

from tests.fuzz.mutations import Texts
from tests.fuzz.outcome import Outcome, Violation, require
from tests.fuzz.stored import ENDINGS, load_together
from tests.fuzz.targets import TARGETS, Target

CPU_SECONDS_OF_A_CASE = 2
_MOST_SEEDS = 3000
MEMORY_OF_A_CASE = 256 << 20
_STEM = "module_0001.f.cpu_after_optimizations"


def write_set(folder: Path, texts: Mapping[str, bytes]) -> dict[str, Path]:
    """Write the files of a set; return their paths by role."""
    paths = {}
    for role, text in texts.items():
        path = paths[role] = folder / f"{_STEM}{ENDINGS[role]}"
        path.write_bytes(text)
    return paths


class Fuzzer:
    """One run over many cases."""

    def __init__(self, target: Target, seed: int, largest: int | None, keep: Path, store_every: int) -> None:
        self.cases = 0
        self.outcomes: Counter[Outcome] = Counter()
        self.failures: Counter[str] = Counter()
        self.stored = 0
        self.seconds = 0.0
        self._most_memory = _most_memory()
        self._chance = random.Random(seed)
        self._target = target
        self._seeds = target.seeds(largest or target.largest)
        self._keep = keep
        self._store_every = store_every
        self._waiting: list[Texts] = []
        self._folder = Path(tempfile.mkdtemp(prefix="xbuf-fuzz-", dir=_memory()))

    def step(self) -> None:
        """Make and judge one case."""
        self.cases += 1
        texts = self._target.damage(self._chance, self._chance.choice(self._seeds), self._seeds)
        if sum(map(len, texts.values())) > 300_000:
            return
        try:
            signal.setitimer(signal.ITIMER_PROF, CPU_SECONDS_OF_A_CASE)
            key = self._target.judge(write_set(self._folder, texts), texts)
            signal.setitimer(signal.ITIMER_PROF, 0)
            before, self._most_memory = self._most_memory, _most_memory()
            require(self._most_memory - before < MEMORY_OF_A_CASE, "took too much memory")
        except Exception as error:
            signal.setitimer(signal.ITIMER_PROF, 0)
            self._fail(error, texts)
            return
        self.outcomes[key] += 1
        if self.outcomes[key] == 1 and len(self._seeds) < _MOST_SEEDS and _size(texts) < 20_000:
            self._seeds.append(texts)
        if key[0] == "load" and self._chance.random() < self._target.stores:
            self._waiting.append(texts)
            if len(self._waiting) >= self._store_every:
                self.store()

    def store(self) -> None:
        """Load what is waiting into a database, together; where that fails, find the sets at fault."""
        waiting, self._waiting = self._waiting, []
        if not waiting:
            return
        self.stored += len(waiting)
        self._store(waiting)
        self._most_memory = _most_memory()

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

    def figures(self) -> dict[str, object]:
        """Return what came of the cases."""
        rejects = sum(count for key, count in self.outcomes.items() if key[0] == "reject")
        return {
            "cases": self.cases,
            "seconds": round(self.seconds, 1),
            "rejected": rejects,
            "loaded": sum(self.outcomes.values()) - rejects,
            "stored": self.stored,
            "outcomes": len(self.outcomes),
            "most_memory_MiB": _most_memory() >> 20,
            "failures": self.failures.most_common(),
        }

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


def _most_memory() -> int:
    """Return the most bytes that this process has held."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


def _too_slow(_: int, __: FrameType | None) -> None:
    raise Violation(f"took more than {CPU_SECONDS_OF_A_CASE} s of CPU")


def fuzz(
    target: Target,
    *,
    cases: int,
    seed: int,
    keep: Path,
    seconds: float = float("inf"),
    largest: int | None = None,
    store_every: int = 2000,
) -> Fuzzer:
    """Make and judge so many cases, or as many as the time allows; return what came of them."""
    before = signal.signal(signal.SIGPROF, _too_slow)
    fuzzer = Fuzzer(target, seed, largest, keep, store_every)
    started = time.monotonic()
    try:
        with suppress(KeyboardInterrupt):
            while fuzzer.cases < cases and time.monotonic() - started < seconds:
                fuzzer.step()
        fuzzer.store()
    finally:
        fuzzer.seconds = time.monotonic() - started
        fuzzer.close()
        signal.signal(signal.SIGPROF, before)
    return fuzzer


def main() -> int:
    """Run from the command line; print figures as JSON."""
    parser = argparse.ArgumentParser(description="Throw damaged dumps at xbuf.")
    parser.add_argument("--target", choices=TARGETS, default="parser")
    parser.add_argument("--cases", type=int, default=100_000)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after so long")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--largest", type=int, help="bytes of the largest dump to start from")
    parser.add_argument("--store-every", type=int, default=2000, help="sets of one load into DuckDB")
    parser.add_argument("--keep", type=Path, default=Path("fuzz-failures"), help="folder for failed cases")
    options = vars(parser.parse_args())
    name = options.pop("target")
    fuzzer = fuzz(TARGETS[name], **options)
    print(json.dumps({"target": name, "seed": options["seed"]} | fuzzer.figures(), indent=1))
    return 1 if fuzzer.failures else 0


if __name__ == "__main__":
    sys.exit(main())
