"""Let imports run out of disk, at many sizes, and look at what is left.

    python -m tests.reliability.disk             # a file-size limit, as ulimit -f
    python -m tests.reliability.disk --tmpfs     # a small file system of its own; needs root and unshare

Each import ends with exit code 3 and one line that says what to do, or well; the database opens and holds
whole runs; with space again the next import makes it equal to an undisturbed one.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from tests.reliability.kills import ROOT, Site, compare_whole, run_victim
from tests.support.content import content, differences
from tests.support.shells import Shell


@dataclass(frozen=True)
class Ending:
    """How one import ended: its exit code and the last line that it said."""

    code: int
    said: str


def run_short_of_space(
    site: Site, folder: Path, *, file_bytes: int | None = None, reader: bool = False, publish: bool = False
) -> Ending:
    """Import into a copy of the first database where files cannot grow beyond `file_bytes`, and check it.

    Afterwards the import is run again without the limit, and the result compared.
    """
    database, snapshot = folder / "xbuf.duckdb", folder / "team.duckdb"
    shutil.copy(site.start, database)
    shell = Shell(database, read_only=True) if reader else None

    options = ["--publish", str(snapshot)] if publish else []
    options += [] if file_bytes is None else ["--file-bytes", str(file_bytes)]
    done = run_victim(site.dumps, database, *options)
    if shell is not None:
        shell.run("SELECT count(*), sum(size_bytes) FROM values")
        shell.kill()
    assert done.returncode in (0, 3), (done.returncode, done.stderr)
    assert "Traceback" not in done.stderr, done.stderr
    if done.returncode:
        assert len(done.stderr.splitlines()) == 1, done.stderr
    for path in (database, snapshot):
        if path.exists():
            found = content(path)
            assert found.orphans == {}
            assert differences(found, site.whole_content, runs_of_first=True) == {}
    return Ending(done.returncode, done.stderr.strip())


def finish(site: Site, folder: Path) -> None:
    """Import once more, with space, and compare with an undisturbed import."""
    database = folder / "xbuf.duckdb"
    done = run_victim(site.dumps, database)
    assert done.returncode == 0, done.stderr
    compare_whole(site, database)
    assert [path.name for path in (folder / "xbuf.duckdb.staging").iterdir()] == ["manifest.duckdb"]


def _limits(site: Site, tmpfs: bool) -> list[int]:
    """Return sizes from less than a Parquet file to more than the database, or than all files together."""
    first, whole = site.start.stat().st_size, site.whole.stat().st_size
    if tmpfs:
        return list(range(first + 200_000, 4 * whole, 700_000))
    return [2_000, 20_000, 100_000, *range(500_000, whole + 1_500_000, 500_000)]


def main() -> None:
    """Try every size and print how the imports ended."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tmpfs", action="store_true")
    parser.add_argument("--inside", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.tmpfs and not arguments.inside:
        # In a mount namespace of its own, so that nothing is left mounted whatever happens.
        with tempfile.TemporaryDirectory() as place:
            again = [sys.executable, "-m", "tests.reliability.disk", "--tmpfs", "--inside", place]
            sys.exit(subprocess.run(["unshare", "--mount", *again], check=False, cwd=ROOT).returncode)
    endings: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as outside:
        site = Site(Path(outside))
        for size in _limits(site, arguments.tmpfs):
            for reader in (False, True):
                if arguments.inside:
                    ending = _on_tmpfs(site, Path(arguments.inside), size, reader)
                else:
                    folder = Path(tempfile.mkdtemp(dir=outside))
                    ending = run_short_of_space(site, folder, file_bytes=size, reader=reader, publish=True)
                    finish(site, folder)
                    shutil.rmtree(folder)
                endings["ended well" if ending.code == 0 else "said that space is short"] += 1
                print(
                    f"{size:>12,} {'by copy' if reader else 'in place'} {ending.code} {ending.said}",
                    flush=True,
                )
    print(dict(endings))


def _on_tmpfs(site: Site, place: Path, size: int, reader: bool) -> Ending:
    """Import on a file system with this much space, then make it larger and go on."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(place)], check=True)
    try:
        ending = run_short_of_space(site, place, reader=reader, publish=True)
        subprocess.run(["mount", "-o", f"remount,size={1 << 28}", str(place)], check=True)
        finish(site, place)
        return ending
    finally:
        os.chdir("/")
        subprocess.run(["umount", str(place)], check=True)


if __name__ == "__main__":
    main()
