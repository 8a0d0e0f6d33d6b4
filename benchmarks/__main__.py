"""`python -m benchmarks [RUN ...]`: run benchmarks and print tables.

python -m benchmarks                      everything, some 20 minutes
python -m benchmarks throughput memory    two of the runs
python -m benchmarks --small              everything on small data, for a look
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from benchmarks.machine import describe
from benchmarks.runs import FULL, NAMES, SMALL, Runs, save
from benchmarks.table import table


def main(arguments: list[str] | None = None) -> None:
    """Parse the arguments, run, print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Run the benchmarks of xbuf.")
    parser.add_argument("runs", nargs="*", metavar="RUN", help=f"one of {', '.join(NAMES)}; default: all")
    parser.add_argument("--folder", type=Path, help="keep data and databases here, for the next time")
    parser.add_argument("--repeat", type=int, default=3, help="runs of which the median counts (default 3)")
    parser.add_argument("--small", action="store_true", help="small generated data only")
    parser.add_argument("--json", type=Path, help="also put the results into this file")
    options = parser.parse_args(arguments)
    if unknown := [name for name in options.runs if name not in NAMES]:
        parser.error(f"no such run: {', '.join(unknown)}; there are {', '.join(NAMES)}")
    machine = describe()
    print(f"{machine}\n", flush=True)
    with tempfile.TemporaryDirectory(prefix="xbuf-benchmarks-") as scratch:
        runs = Runs(
            options.folder or Path(scratch),
            options.repeat,
            SMALL if options.small else FULL,
            lambda text: print(text, file=sys.stderr, flush=True),
        )
        for name in options.runs or NAMES:
            for one in getattr(runs, name)():
                print(table(one.title, one.head, one.rows), flush=True)
                if options.json:
                    save([one], machine, options.json)


if __name__ == "__main__":
    main()
