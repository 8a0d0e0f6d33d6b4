"""Links among dumps: followed inside the directories given, never to what is no dump's file."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ingest import DumpError, ImportSummary, discover, import_dumps, open_database, parse_dump
from ingest.dump.parse import parse_set
from ingest.events import Event, LeftOut
from ingest.pipeline.reading import read_tasks
from ingest.source.local import is_of_kernel, keeping_folder, open_folder, open_regular
from ingest.staging.outcome import parse_unless_unfinished
from ingest.staging.task import Staged, Task
from tests.support.dump_sets import DATA, settle

SPLIT = DATA / "dumps" / "jaxlib-0.10.2-cpu"
STEM = "module_0002.jit_step.cpu_after_optimizations"
PRIMARY, VALUES, LIVE_RANGE = "-buffer-assignment.txt", "-buffer-assignment-values.txt", "-live-range.txt"
SECRET = "AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI"


@pytest.fixture
def dumps(tmp_path: Path) -> Path:
    """One split set in a directory of its own, and a secret beside that."""
    folder = tmp_path / "dumps"
    folder.mkdir()
    for path in SPLIT.glob(f"{STEM}*"):
        shutil.copy(path, folder)
    (tmp_path / "secret").write_text(f"{SECRET}\n")
    settle(tmp_path)
    return folder


def load(database: Path, *paths: Path, **options: Any) -> ImportSummary:
    return import_dumps(paths, database, jobs=1, **options)


def stored(database: Path) -> str:
    """Return all that the database holds of texts of files."""
    with open_database(database, read_only=True) as connection:
        return str(
            [
                connection.execute(f"SELECT * FROM {table}").fetchall()
                for table in ("notices", "rejects", "run_files", "schedule", "instructions")
            ]
        )


ENDINGS = (PRIMARY, VALUES, LIVE_RANGE, ".txt", ".hlo.pb")
FAR = ("/proc/self/environ", "/etc/passwd")


@pytest.mark.parametrize(
    ("ending", "target"),
    [
        (PRIMARY, "../secret"),
        (VALUES, FAR[0]),
        (".txt", FAR[1]),
        *(
            pytest.param(ending, target, marks=pytest.mark.slow)
            for ending in ENDINGS
            for target in ("../secret", *FAR)
        ),
    ],
)
def test_a_member_that_leads_out_is_refused(ending: str, target: str, dumps: Path, database: Path) -> None:
    """Nothing of the file behind it is read, and what lies beside it still loads where it can."""
    member = dumps / f"{STEM}{ending}"
    member.unlink(missing_ok=True)
    member.symlink_to(target)
    summary = load(database, dumps)
    [refused] = [one for one in summary.rejects if one.file == str(member)]
    assert refused.kind == "unreadable"
    assert "outside of the directories given" in refused.message
    assert summary.loaded == (ending != PRIMARY)
    text = stored(database)
    for secret in (SECRET, "root:", "PATH="):
        assert secret not in text


def test_links_inside_the_tree_are_followed(dumps: Path, tmp_path: Path, database: Path) -> None:
    """To files and to directories, relative and absolute, also into another directory that is given."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (dumps / "store").mkdir()
    for number, ending in enumerate((PRIMARY, VALUES, LIVE_RANGE)):
        path = dumps / f"{STEM}{ending}"
        target = Path(shutil.move(path, dumps / "store" / f"blob{number}"))
        path.symlink_to(target if number else f"store/blob{number}")
    (dumps / "again").symlink_to("store")
    (dumps / "further").symlink_to(elsewhere)
    (elsewhere / f"e{PRIMARY}").symlink_to(dumps / "store" / "blob0")
    settle(tmp_path)
    events: list[Event] = []
    summary = load(database, dumps, elsewhere, on_event=events.append)
    assert (summary.rejected, [one for one in events if isinstance(one, LeftOut)]) == (0, [])
    with open_database(database, read_only=True) as connection:
        rows = connection.execute("SELECT stem, has_values, has_ranges FROM runs ORDER BY stem").fetchall()
    # The first blob is a dump under another name as well.
    assert rows == [("blob0", False, False), ("e", False, False), (STEM, True, True)]
    assert load(database, dumps, elsewhere).unchanged == 3


def test_other_links_are_followed_on_request(dumps: Path, tmp_path: Path, database: Path) -> None:
    """Without it, a directory is left out with a word and no reject; with it, all is read."""
    farm = tmp_path / "farm"
    farm.mkdir()
    (farm / "all").symlink_to(dumps)
    (farm / f"one{PRIMARY}").symlink_to(dumps / f"{STEM}{PRIMARY}")
    (farm / "notes.md").symlink_to(tmp_path / "secret")
    events: list[Event] = []
    summary = load(database, farm, on_event=events.append)
    assert (summary.found, summary.rejected) == (1, 1)
    [left_out] = [event for event in events if isinstance(event, LeftOut)]
    assert left_out.path == str(farm / "all")
    assert "--follow-symlinks" in left_out.message
    assert load(database, farm, follow_symlinks=True).loaded == 2


def test_the_directory_given_may_be_a_link_itself(dumps: Path, tmp_path: Path, database: Path) -> None:
    """So may every directory on the way to it, and to a file that is given by name."""
    (tmp_path / "link").symlink_to(dumps)
    (tmp_path / "way").symlink_to(tmp_path)
    assert load(database, tmp_path / "link").loaded == 1
    assert load(database, tmp_path / "way" / "link" / f"{STEM}{PRIMARY}").unchanged == 1
    dump = parse_dump(tmp_path / "way" / "link" / f"{STEM}{PRIMARY}")
    assert dump.schedule == parse_dump(dumps / f"{STEM}{PRIMARY}").schedule is not None


def _swap_file(dumps: Path) -> Path:
    """Put a link to a file of equal size and time in the place of a member."""
    member = dumps / f"{STEM}{VALUES}"
    status = member.stat()
    secret = dumps.parent / "twin"
    secret.write_bytes(f"Total bytes used: {SECRET}\n".encode().ljust(status.st_size, b"\n"))
    os.utime(secret, ns=(status.st_atime_ns, status.st_mtime_ns))
    member.unlink()
    member.symlink_to(secret)
    return member


def _swap_folder(dumps: Path) -> Path:
    """Put a link to a folder with equal names, sizes and times in the place of the directory."""
    twin = dumps.with_name("twins")
    dumps.rename(twin)
    dumps.symlink_to(twin)
    return dumps / f"{STEM}{PRIMARY}"


@pytest.mark.parametrize("swap", [_swap_file, _swap_folder])
def test_a_link_that_comes_after_the_search_is_not_followed(
    swap: Callable[[Path], Path], dumps: Path, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither in the place of a file nor of a directory on the way to it."""
    swapped: list[Path] = []

    def swap_first(*arguments: Any, **options: Any) -> None:
        swapped.append(swap(dumps))
        read_tasks(*arguments, **options)

    monkeypatch.setattr("ingest.pipeline.importer.read_tasks", swap_first)
    summary = load(database, dumps)
    assert (summary.loaded, summary.rejected) == (0, 1)
    assert summary.rejects[0].file == str(swapped[0])
    assert SECRET not in stored(database)


def test_the_kernel_is_asked_nothing(tmp_path: Path, database: Path) -> None:
    """Files of /proc look regular; they are refused even where links are followed, and by path."""
    for number, target in enumerate(("/proc/self/environ", "/sys/kernel/notes")):
        if os.path.exists(target):
            (tmp_path / f"{number}{PRIMARY}").symlink_to(target)
    (tmp_path / "proc").symlink_to("/proc/self")
    summary = load(database, tmp_path, follow_symlinks=True)
    assert summary.loaded == 0
    assert {one.kind for one in summary.rejects} == {"unreadable"}
    assert all("file system of the kernel" in one.message for one in summary.rejects)
    assert "file system of the kernel" in discover("/proc/self/fdinfo").left_out[0].message
    with pytest.raises(DumpError, match="file system of the kernel"):
        parse_dump("/proc/self/environ")
    assert not is_of_kernel(tmp_path.stat().st_dev)


@pytest.mark.parametrize(
    "ending",
    [PRIMARY, ".txt", *(pytest.param(one, marks=pytest.mark.slow) for one in (VALUES, LIVE_RANGE))],
)
def test_no_text_is_kept_of_a_file_that_is_no_dump(ending: str, dumps: Path, database: Path) -> None:
    """It may have come under a member's name by mistake."""
    (dumps / f"{STEM}{ending}").write_text(f"{SECRET}\n" * 3)
    settle(dumps)
    summary = load(database, dumps)
    assert (summary.loaded, summary.rejected) == ((1, 0) if ending == ".txt" else (0, 1))
    text = stored(database)
    assert str(dumps / f"{STEM}{ending}") in text
    assert SECRET not in text


def test_a_path_is_opened_without_following_links(tmp_path: Path) -> None:
    """In any part of it; `.` and `..` and relative paths are no links."""
    (tmp_path / "a/b").mkdir(parents=True)
    (tmp_path / "a/b/file").write_text("text")
    (tmp_path / "link").symlink_to("a")
    (tmp_path / "a/b/link").symlink_to("file")

    def size(path: str | Path) -> int:
        descriptor, status = open_regular(str(path))
        os.close(descriptor)
        return status.st_size

    assert size(tmp_path / "a/b/file") == size(f"{tmp_path}/./a//b/../b/file") == 4
    assert size(os.path.relpath(tmp_path / "a/b/file")) == 4
    for path in (tmp_path / "link/b/file", tmp_path / "a/b/link", tmp_path / "a/b", tmp_path / "nothing"):
        with pytest.raises(OSError, match=r"."):
            size(path)
    for folder in (tmp_path / "link", tmp_path / "link/b", tmp_path / "a/b/file"):
        with pytest.raises(OSError, match=r"."):
            open_folder(str(folder))
    os.close(open_folder("/"))
    os.close(open_folder(""))


def test_files_of_one_folder_share_the_way_to_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One call of the system opens each but the first; no link is followed, and none of it stays open."""
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text(name)
        (tmp_path / name / "link").symlink_to("file")
    calls: list[object] = []
    open_ = os.open

    def counted(path: Any, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        calls.append(path)
        return open_(path, flags, mode, dir_fd=dir_fd)

    def text(path: Path) -> str:
        calls.clear()
        descriptor, _ = open_regular(str(path))
        with open(descriptor, encoding="utf-8") as file:
            return file.read()

    monkeypatch.setattr(os, "open", counted)
    with keeping_folder():
        assert text(tmp_path / "one/file") == "one"
        assert len(calls) > 2
        assert text(tmp_path / "one/file") == "one"
        assert calls == ["file"]
        with pytest.raises(OSError, match=r"."):
            text(tmp_path / "one/link")
        assert text(tmp_path / "other/file") == "other"
        assert len(calls) > 2
        with pytest.raises(FileNotFoundError):
            text(tmp_path / "nothing/file")
        assert text(tmp_path / "other/file") == "other"
        kept = {entry for entry in os.listdir("/proc/self/fd") if leads_to(entry) == str(tmp_path / "other")}
        assert len(kept) == 1
    assert not any(leads_to(entry) == str(tmp_path / "other") for entry in os.listdir("/proc/self/fd"))
    text(tmp_path / "other/file")
    assert len(calls) > 2


def test_a_folder_that_takes_the_place_of_another_is_noticed(dumps: Path, tmp_path: Path) -> None:
    """What was read of the old one while it was kept is not loaded: the paths lead to other versions."""
    [found] = discover([dumps]).sets
    with keeping_folder():
        descriptor, _ = open_regular(found.path(found.members[0]))
        os.close(descriptor)
        dumps.rename(tmp_path / "old")
        shutil.copytree(tmp_path / "old", dumps)
        settle(dumps)
        (dumps / found.members[-1].file_name).write_text("HloLiveRange (max 0):\n")
        result = Staged()
        task = Task(1, found)
        assert parse_unless_unfinished(task, result, lambda one: parse_set(one.paths())) is None
    assert result.unfinished == [task]


def leads_to(descriptor: str) -> str | None:
    """Return where a descriptor of this process leads; None for the one that listed them."""
    try:
        return os.readlink(f"/proc/self/fd/{descriptor}")
    except FileNotFoundError:
        return None
