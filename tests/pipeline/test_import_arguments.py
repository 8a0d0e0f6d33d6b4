"""What an import is called with, and the account that it gives of everything found."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import ingest.pipeline.reading
from ingest import UsageError, discover, import_dumps, open_database
from ingest.cli.ingest import ingest as command
from ingest.events import Event, NothingFound
from tests.support.dump_sets import DATA, PRIMARY

SMALL = DATA / "seeds" / "000_350494ed927c1c64.txt"
DUMP = b"BufferAssignment:\nallocation 0: size 4, thread-local:\n value: <0 a @0> (size=4,offset=0): f32[]\n"
LONG_AGO = (1_700_000_000, 1_700_000_000)


def write(path: Path, content: bytes = DUMP) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    os.utime(path, LONG_AGO)
    return path


@pytest.mark.parametrize("as_argument", [str, Path, lambda path: [path], lambda path: (str(path),)])
def test_one_path_is_not_taken_apart(as_argument: Callable[[Path], Any], tmp_path: Path) -> None:
    """A path alone, as text or as an object, is one place to search."""
    write(tmp_path / "dumps" / f"a{PRIMARY}")
    assert len(discover(as_argument(tmp_path / "dumps")).sets) == 1
    assert import_dumps(as_argument(tmp_path / "dumps"), tmp_path / "a.duckdb", dry_run=True).found == 1


@pytest.mark.parametrize("paths", [b"/tmp", [b"/tmp"], 3, [3], None])
def test_what_is_no_path_is_a_type_error(paths: Any, database: Path) -> None:
    """It is refused before anything is searched."""
    with pytest.raises(TypeError):
        discover(paths)
    with pytest.raises(TypeError):
        import_dumps(paths, database)


def test_labels_are_a_mapping_or_pairs(tmp_path: Path, database: Path) -> None:
    """Both put the same labels on the runs."""
    given: list[Any] = [{"bs": "16", "jax": ""}, [("bs", "16"), ("jax", "")]]
    for number, labels in enumerate(given):
        place = write(tmp_path / str(number) / f"a{PRIMARY}")
        assert import_dumps(place, database, labels=labels, jobs=1).loaded == 1
    with open_database(database, read_only=True) as connection:
        found = connection.execute("SELECT key, value FROM run_labels ORDER BY ALL").fetchall()
    assert found == [("bs", "16")] * 2 + [("jax", "")] * 2


@pytest.mark.parametrize(
    "labels", ["bs", ["bs"], ["bs=16"], {"bs": 16}, [("bs",)], [("a", "b", "c")], [(1, "b")], {1: "b"}, 7]
)
def test_other_labels_are_a_type_error(labels: Any, tmp_path: Path, database: Path) -> None:
    """Two letters are no key and value."""
    with pytest.raises(TypeError):
        import_dumps(tmp_path, database, labels=labels)


def test_everything_found_is_accounted_for(
    tmp_path: Path, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Found is the sum of loaded, unchanged, rejected and unfinished, also where there is no set."""
    monkeypatch.setattr(ingest.pipeline.reading, "RETRY_SECONDS", 0)
    dumps = tmp_path / "dumps"
    write(dumps / f"old{PRIMARY}")
    import_dumps(dumps, database, jobs=1)
    write(dumps / f"new{PRIMARY}")
    write(dumps / f"damaged{PRIMARY}", DUMP[:40])
    write(dumps / "lone-live-range.txt")  # a member without its primary
    no_dump = write(dumps / "notes.md", b"text")
    (dumps / f"young{PRIMARY}").write_bytes(DUMP[:40])
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    for dry_run in (True, False):
        summary = import_dumps([dumps, no_dump, fifo], database, jobs=1, dry_run=dry_run)
        parts = (summary.loaded, summary.unchanged, summary.rejected, summary.unfinished)
        assert summary.found == sum(parts) == 7
        assert parts == ((3, 1, 3, 0) if dry_run else (1, 1, 4, 1))
    with open_database(database, read_only=True) as connection:
        [row] = connection.execute(
            "SELECT found, loaded + unchanged + rejected + unfinished FROM imports WHERE import_id = 2"
        ).fetchall()
    assert row == (7, 7)


def test_a_file_that_may_not_be_read_is_rejected_at_once(
    tmp_path: Path, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However young it is: nobody is still writing what cannot be opened."""
    closed = tmp_path / "dumps" / f"closed{PRIMARY}"
    write(closed)
    os.utime(closed)
    real = os.open

    def refuse(path: Any, *arguments: Any, **options: Any) -> int:
        if os.path.basename(os.fspath(path)) == closed.name:
            raise PermissionError(13, "Permission denied", path)
        return real(path, *arguments, **options)

    monkeypatch.setattr(ingest.pipeline.reading, "RETRY_SECONDS", 300)
    monkeypatch.setattr(os, "open", refuse)
    summary = import_dumps(closed.parent, database, jobs=1)
    assert (summary.found, summary.rejected, summary.unfinished) == (1, 1, 0)
    assert "Permission denied" in summary.rejects[0].message


@pytest.mark.slow
def test_a_search_without_result_says_what_it_looked_for(tmp_path: Path) -> None:
    """Names, the switches that write them, and the exit code that --fail-if-empty asks for."""
    write(tmp_path / "dumps" / "readme.md", b"text")
    place, database = str(tmp_path / "dumps"), ["--db", str(tmp_path / "a.duckdb")]
    runner = CliRunner()

    def run(*arguments: str) -> tuple[int, str, str]:
        done = runner.invoke(command, [place, *database, *arguments], standalone_mode=False)
        return int(done.return_value), done.stdout, done.stderr

    for arguments, code in (([], 0), (["--fail-if-empty"], 1), (["--dry-run", "--fail-if-empty"], 1)):
        found, out, err = run(*arguments)
        assert found == code
        assert out.startswith("0 dumps found")
        for word in (place, "*-buffer-assignment.txt", "*-live-range.txt", "*.hlo.pb", "--xla_dump_to=DIR"):
            assert word in err
    assert run("--quiet") == (0, "", "")
    assert "*-buffer-assignment.txt" in run("--quiet", "--fail-if-empty")[2]
    events = [json.loads(line) for line in run("--log-format", "json", "--quiet")[2].splitlines()]
    assert [event["event"] for event in events].count("nothing-found") == 1
    write(tmp_path / "dumps" / f"a{PRIMARY}", b"BufferAssignment:\n")
    assert run("--max-rejects", "1")[0] == 0
    assert run("--max-rejects", "1", "--fail-if-empty")[0] == 1
    write(tmp_path / "dumps" / f"b{PRIMARY}")
    code, out, err = run("--max-rejects", "1", "--fail-if-empty")
    assert (code, "looked for" in err) == (0, False)


def test_nothing_found_is_an_event_of_its_own(tmp_path: Path, database: Path) -> None:
    """A path that is not there is wrong usage instead."""
    events: list[Event] = []
    import_dumps(tmp_path, database, on_event=events.append)
    [event] = [one for one in events if isinstance(one, NothingFound)]
    assert event.sources == (str(tmp_path),)
    with pytest.raises(UsageError):
        import_dumps(tmp_path / "nowhere", database)
