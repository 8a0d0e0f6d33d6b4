"""What DuckDB cannot keep in memory goes to a directory of one process."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from ingest.database.connect import open_database
from ingest.database.spill import remove_left_over, spill_directory, spill_root
from ingest.maintenance.doctor import examine

_SPILL = """
import sys
from ingest.database.connect import open_database
with open_database(sys.argv[1], read_only=True, memory_limit="40MB", threads=1) as connection:
    connection.execute("CREATE TEMP TABLE a AS SELECT hash(range) AS h FROM range(8_000_000)")
    print(connection.execute("SELECT current_setting('temp_directory')").fetchone()[0], flush=True)
    sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = tmp_path / "spill"
    root.mkdir()
    monkeypatch.setenv("TMPDIR", str(root))
    monkeypatch.setattr("ingest.database.spill._own", {})
    return root


def _reader(database: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", _SPILL, str(database)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def _line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().rstrip()


@pytest.mark.slow
def test_two_readers_spill_apart_and_a_killed_one_is_cleaned_up_after(database: Path, root: Path) -> None:
    """Two processes share nothing; one that ends takes its directory along, one that is killed leaves it."""
    before = sorted(os.listdir(database.parent))
    own = os.path.basename(os.path.dirname(spill_directory(str(database))))
    first, second = _reader(database), _reader(database)
    try:
        places = [Path(_line(process)) for process in (first, second)]
        assert places[0] != places[1]
        assert {place.parent.parent for place in places} == {root}
        assert {stat.S_IMODE(place.stat().st_mode) for place in places} == {0o700}
        assert all(any(place.iterdir()) for place in places), "nothing was spilled"
        assert remove_left_over() == []
        first.communicate("")
        assert first.returncode == 0
        second.kill()
    finally:
        for process in (first, second):
            process.kill()
            process.communicate()
    assert [name for name in os.listdir(root) if name != own] == [places[1].parent.name]
    findings = {one.check: one for one in examine(str(database))}
    assert findings["spill"].level == "note"
    assert findings["spill"].text.startswith("removed ")
    assert findings["spill"].text.endswith(" bytes that a killed process left")
    (database.parent / f"{database.name}.tmp").mkdir()
    findings = {one.check: one for one in examine(str(database))}
    assert "files of DuckDB shells" in findings["spill"].text
    (database.parent / f"{database.name}.tmp").rmdir()
    assert places[1].parent.name not in os.listdir(root)
    assert sorted(os.listdir(database.parent)) == before


def test_nothing_but_left_over_directories_of_ones_own_is_removed(root: Path, tmp_path: Path) -> None:
    """A link, a file, and a directory that others may enter stay."""
    target = tmp_path / "target"
    target.mkdir(mode=0o700)
    (target / "kept").touch()
    (root / "xbuf-spill-link").symlink_to(target)
    (root / "xbuf-spill-file").touch()
    (root / "xbuf-spill-open").mkdir(mode=0o755)
    live = spill_directory(str(tmp_path / "x.duckdb"))
    assert remove_left_over() == []
    assert sorted(os.listdir(root)) == sorted(
        ["xbuf-spill-link", "xbuf-spill-file", "xbuf-spill-open", os.path.basename(os.path.dirname(live))]
    )
    assert (target / "kept").exists()


def test_connections_of_one_process_share_a_directory(database: Path) -> None:
    """They are one DuckDB instance; another database has its own."""
    assert spill_directory(str(database)) == spill_directory(str(database))
    assert spill_directory(str(database)) != spill_directory(str(database) + "2")
    descriptors = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    for number in range(20):
        spill_directory(f"{database}.{number}")
    assert descriptors in (0, len(os.listdir("/proc/self/fd")))
    with open_database(database, read_only=True) as connection:
        row = connection.execute("SELECT current_setting('temp_directory')").fetchone()
    assert row == (spill_directory(str(database)),)


def test_a_folder_that_is_not_there_is_passed_over(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A TMPDIR of an earlier job must not keep anybody from reading."""
    monkeypatch.setenv("TMPDIR", str(tmp_path / "gone"))
    assert os.access(spill_root(), os.W_OK)
