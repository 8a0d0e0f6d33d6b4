"""Odd surroundings of an import come to a clear end: clocks, names, what stands in the place of the lock."""

from __future__ import annotations

import os
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pytest

from ingest import DatabaseError, DatabaseLocked, import_dumps
from ingest.database.import_lock import lock_file, lock_holder
from ingest.maintenance.compact import compact_database
from ingest.maintenance.doctor import examine
from ingest.pipeline import journal
from ingest.pipeline.history import read_history
from tests.support.content import rows
from tests.support.dump_sets import DATA, PAST

SEEDS = sorted((DATA / "seeds").glob("*.txt"))[:3]


@pytest.fixture
def dumps(tmp_path: Path) -> Path:
    folder = tmp_path / "dumps"
    folder.mkdir()
    return folder


def add(dumps: Path, number: int, time: int = PAST) -> None:
    os.utime(shutil.copy(SEEDS[number], dumps), (time, time))


class _Clock(datetime):
    """A clock that a test sets."""

    moment = datetime(2026, 11, 20, 19, 4, 12, tzinfo=UTC)

    @classmethod
    def now(cls, tz: Any = None) -> Any:
        return cls.moment


@pytest.mark.slow
def test_imports_at_one_moment_stay_apart(
    dumps: Path, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A clock that stands still, or goes back, merges nothing: neither in the history nor in an order."""
    monkeypatch.setattr(journal, "datetime", _Clock)
    for number in range(3):
        add(dumps, number)
        assert import_dumps(dumps, database, jobs=1).import_id == number + 1
    assert rows(database, "SELECT import_id, loaded FROM imports ORDER BY ALL") == [(1, 1), (2, 1), (3, 1)]
    assert rows(database, "SELECT count(DISTINCT import_uuid), count(DISTINCT started_at) FROM imports") == [
        (3, 1)
    ]
    assert [entry.import_id for entry in read_history(str(database))] == [3, 2, 1]


@pytest.mark.slow
def test_waiting_imports_keep_their_order_by_any_clock(
    dumps: Path, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What waits for a locked database is loaded in the order in which it was read."""
    monkeypatch.setattr(journal, "datetime", _Clock)
    add(dumps, 0)
    import_dumps(dumps, database, jobs=1)
    stem = SEEDS[0].name
    holder = duckdb.connect(str(database))
    try:
        for step, hours in ((1, 0), (2, -5)):
            monkeypatch.setattr(_Clock, "moment", _Clock.moment + timedelta(hours=hours))
            shutil.copy(SEEDS[step], dumps / stem)
            os.utime(dumps / stem, (PAST + step, PAST + step))
            with pytest.raises(DatabaseLocked):
                import_dumps(dumps, database, jobs=1, wait_seconds=0)
        assert len(read_history_names(database)) == 2
    finally:
        holder.close()
    import_dumps(dumps, database, jobs=1)
    sizes = [size for (size,) in rows(database, "SELECT file_bytes FROM runs ORDER BY run_id")]
    assert sizes == [seed.stat().st_size for seed in SEEDS]


def read_history_names(database: Path) -> list[str]:
    return [one.directory.name for one in journal.read_journals(str(database))]


def test_files_of_any_year_load(dumps: Path, database: Path) -> None:
    """Their times are kept as far as 64 bits hold them, and they are not read a second time."""
    for number, year in enumerate((1890, 2262, 2400)):
        try:
            add(dumps, number, int(datetime(year, 6, 1, tzinfo=UTC).timestamp()))
        except (OSError, OverflowError):
            pytest.skip("the file system has no such times")
    assert import_dumps(dumps, database, jobs=1).loaded == 3
    assert import_dumps(dumps, database, jobs=1).unchanged == 3
    recorded = rows(database, "SELECT mtime_ns FROM run_files ORDER BY file_name")
    modified = [path.stat().st_mtime_ns for path in sorted(dumps.iterdir())]  # a file system may keep others
    assert recorded == [(max(-(2**63), min(time, 2**63 - 1)),) for time in modified]


@pytest.mark.slow
def test_what_stands_in_the_place_of_the_lock_is_named(dumps: Path, database: Path) -> None:
    """A FIFO there neither stalls a look at the lock nor an import."""
    add(dumps, 0)
    import_dumps(dumps, database, jobs=1)
    place = Path(lock_file(str(database)))
    place.unlink()
    os.mkfifo(place)
    for act in (
        lambda: lock_holder(str(database)),
        lambda: import_dumps(dumps, database, jobs=1),
        lambda: compact_database(str(database)),
    ):
        with pytest.raises(DatabaseError, match=r"\.lock: is no regular file.*remove it"):
            act()
    [finding] = [one for one in examine(str(database)) if one.check == "imports"]
    assert (finding.level, "remove it" in finding.text) == ("trouble", True)
    place.unlink()
    assert import_dumps(dumps, database, jobs=1).unchanged == 1


@pytest.mark.parametrize("length", [pytest.param(247, marks=pytest.mark.slow), 248, 250, 255])
def test_a_name_without_room_for_those_beside_it_is_refused(length: int, dumps: Path, tmp_path: Path) -> None:
    """At once, with the number of bytes that fit; one byte less works."""
    add(dumps, 0)
    name = "é" * ((length - 7) // 2) + "x" * ((length - 7) % 2) + ".duckdb"
    assert len(name.encode()) == length
    if length == 247:
        assert import_dumps(dumps, tmp_path / name, jobs=1).loaded == 1
        assert compact_database(str(tmp_path / name)).after > 0
        return
    with pytest.raises(DatabaseError, match=rf"the name has {length} bytes.*room for 247"):
        import_dumps(dumps, tmp_path / name, jobs=1)
    assert [path.name for path in tmp_path.iterdir()] == ["dumps"]


@pytest.mark.slow
def test_foreign_keys_of_the_user_are_named_by_compact(dumps: Path, database: Path) -> None:
    """DuckDB cannot copy them; the file stays as it is."""
    add(dumps, 0)
    import_dumps(dumps, database, jobs=1)
    with duckdb.connect(str(database)) as connection:
        connection.execute("CREATE TABLE reviews (run_id BIGINT REFERENCES runs (run_id), text VARCHAR)")
        connection.execute("INSERT INTO reviews VALUES (1, 'too large')")
    before = database.read_bytes()
    with pytest.raises(DatabaseError, match=r"foreign keys \(reviews\); nothing was changed"):
        compact_database(str(database))
    assert database.read_bytes() == before
