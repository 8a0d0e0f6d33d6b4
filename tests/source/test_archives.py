"""Dumps in archives: read where they lie, the same rows as from a folder, hostile archives refused."""

from __future__ import annotations

import gzip
import io
import lzma
import os
import struct
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from ingest.dump.find import discover
from ingest.dump.sets import DumpSet
from ingest.pipeline import unpack
from ingest.pipeline.importer import import_dumps
from ingest.pipeline.unpack import unpacked
from ingest.source import archive as archives
from ingest.staging.task import Task
from tests.support.elsewhere import content_of

DATA = Path(__file__).parents[1] / "data"
SETS = DATA / "hlo" / "jaxlib-0.10.2-cpu"
STEM = "module_0001.jit_f.cpu_after_optimizations"
PRIMARY, VALUES = f"{STEM}-buffer-assignment.txt", f"{STEM}-buffer-assignment-values.txt"
DUMP = (DATA / "seeds" / "001_aa093b3e4f73e23a.txt").read_bytes()

Files = list[tuple[str, bytes]]


def as_tar(files: Files, *, mtime: int = 1_600_000_000) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for name, content in files:
            entry = tarfile.TarInfo(name)
            entry.size, entry.mtime = len(content), mtime
            tar.addfile(entry, io.BytesIO(content))
    return out.getvalue()


def as_zip(files: Files) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, content in files:
            packed.writestr(zipfile.ZipInfo(name, (2020, 9, 13, 12, 26, 40)), content, zipfile.ZIP_DEFLATED)
    return out.getvalue()


KINDS: dict[str, Callable[[Files], bytes]] = {
    ".zip": as_zip,
    ".tar": as_tar,
    ".tar.gz": lambda files: gzip.compress(as_tar(files)),
    ".tar.xz": lambda files: lzma.compress(as_tar(files)),
    # Two frames: what several threads compress has more than one.
    ".tar.zst": lambda files: b"".join(
        pa.compress(half, codec="zstd", asbytes=True)
        for data in [as_tar(files)]
        for half in (data[: len(data) // 2], data[len(data) // 2 :])
    ),
}


@pytest.fixture(scope="module")
def files() -> Files:
    """Real sets, in two folders, and what is no dump."""
    found = [(f"./a/{path.name}", path.read_bytes()) for path in sorted(SETS.iterdir()) if path.is_file()]
    other = ("b/notes.md", b"no dump")
    return [*found, other, ("b/renamed.txt", DUMP), ("b/packed.txt.gz", gzip.compress(DUMP))]


@pytest.fixture(scope="module")
def from_folder(files: Files, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database of the same files, unpacked."""
    folder = tmp_path_factory.mktemp("folder")
    for name, content in files:
        path = folder / "dumps" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        os.utime(path, (1_600_000_000, 1_600_000_000))
    database = folder / "xbuf.duckdb"
    assert import_dumps(folder / "dumps", database, jobs=1).rejected == 0
    return database


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_archive_gives_the_content_of_its_files(
    kind: str, files: Files, tmp_path: Path
) -> None:
    """Byte for byte, in the archive's order."""
    path = tmp_path / f"DUMPS{kind.upper()}"
    path.write_bytes(KINDS[kind](files))
    names = {name.removeprefix("./") for name, _ in files}
    read = {name: packed.open().read() for name, packed in archives.read_members(str(path), names)}
    assert read == {name.removeprefix("./"): content for name, content in files}
    listing = archives.list_archive(str(path), lambda name: name.startswith("b/"))
    assert {one.name: one.status.size for one in listing.files} == {name: len(read[name]) for name in read}
    assert {one.name: one.start for one in listing.files if one.start is not None} == {
        name: read[name][:512] for name in read if name.startswith("b/")
    }


@pytest.mark.parametrize("kind", [".zip", pytest.param(".tar.zst", marks=pytest.mark.slow)])
def test_an_archive_gives_the_rows_of_its_folder(
    kind: str, files: Files, from_folder: Path, tmp_path: Path
) -> None:
    """In a second import it is not even listed, and nothing of it was written to the disk."""
    path = tmp_path / f"dumps{kind}"
    path.write_bytes(KINDS[kind](files))
    database = tmp_path / "xbuf.duckdb"
    summary = import_dumps(path, database, jobs=1)
    assert (summary.loaded, summary.rejected) == (summary.found, 0)
    assert content_of(database, str(path)) == content_of(from_folder, str(from_folder.parent / "dumps"))


def test_an_unchanged_archive_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What lies in it is remembered; without the memory it is listed anew, and nothing is loaded twice."""
    path, database = tmp_path / "dumps.tar.gz", tmp_path / "xbuf.duckdb"
    path.write_bytes(KINDS[".tar.gz"]([(PRIMARY, DUMP)]))
    assert import_dumps(path, database, jobs=1).loaded == 1
    with monkeypatch.context() as patch:
        patch.setattr(archives, "_walk", None)
        assert import_dumps(path, database, jobs=1).unchanged == 1
    (tmp_path / "xbuf.duckdb.staging" / "archives.json").write_text("{ damaged")
    assert import_dumps(path, database, jobs=1).unchanged == 1


@pytest.mark.parametrize("kind", [".zip", pytest.param(".tar.gz", marks=pytest.mark.slow)])
def test_an_archive_with_pinned_times_shows_its_changes(kind: str, tmp_path: Path) -> None:
    """Equal size and time, other content: the sum tells them apart."""
    path, database = tmp_path / f"dumps{kind}", tmp_path / "xbuf.duckdb"
    path.write_bytes(KINDS[kind]([(PRIMARY, DUMP)]))
    import_dumps(path, database, jobs=1)
    path.write_bytes(KINDS[kind]([(PRIMARY, DUMP.replace(b"fusion", b"fusiom"))]))
    summary = import_dumps(path, database, jobs=1)
    assert (summary.loaded, summary.unchanged) == (1, 0)


def problems(path: Path) -> dict[str, str]:
    found = discover([path])
    assert found.sets == ()
    return {one.path.removeprefix(f"{path.resolve()}/"): one.message for one in found.problems}


@pytest.mark.parametrize("kind", [".zip", ".tar"])
@pytest.mark.parametrize("name", ["../x/", "/etc/", "a/../../b/", "C:/"])
def test_names_that_lead_out_are_refused(kind: str, name: str, tmp_path: Path) -> None:
    """One reject each, and the archive's other sets load."""
    path = tmp_path / f"dumps{kind}"
    path.write_bytes(KINDS[kind]([(f"{name}{PRIMARY}", DUMP)]))
    assert [*problems(path).values()] == ["names a place outside of the archive"]
    path.write_bytes(KINDS[kind]([(f"{name}{PRIMARY}", DUMP), (PRIMARY, DUMP)]))
    assert [one.directory for one in discover([path]).sets] == [str(path.resolve())]


@pytest.mark.parametrize("kind", [".zip", ".tar"])
def test_two_files_of_one_name_are_refused(kind: str, tmp_path: Path) -> None:
    """Which one is meant nobody knows; `./x` and `x` are one name."""
    path = tmp_path / f"dumps{kind}"
    path.write_bytes(KINDS[kind]([(PRIMARY, DUMP), (f"./{PRIMARY}", DUMP)]))
    assert problems(path) == {PRIMARY: "is there twice; leave one of them out of the archive"}


@pytest.mark.parametrize("type_", [tarfile.SYMTYPE, tarfile.LNKTYPE])
def test_links_in_a_tar_archive_are_not_followed(type_: bytes, tmp_path: Path) -> None:
    """Neither kind, wherever it leads."""
    path = tmp_path / "dumps.tar"
    with tarfile.open(path, "w") as tar:
        entry = tarfile.TarInfo(PRIMARY)
        entry.type, entry.linkname = type_, "/etc/passwd"
        tar.addfile(entry)
    assert problems(path) == {PRIMARY: "is a link to /etc/passwd in the archive, which is not followed"}


def test_links_and_encrypted_files_in_a_zip_archive_are_refused(tmp_path: Path) -> None:
    """They carry a flag, or the mode of a link."""
    path = tmp_path / "dumps.zip"
    link = zipfile.ZipInfo(PRIMARY)
    link.create_system, link.external_attr = 3, 0o120777 << 16
    with zipfile.ZipFile(path, "w") as packed:
        packed.writestr(link, "/etc/passwd")
        packed.writestr(VALUES, b"secret")
    data = bytearray(path.read_bytes())
    second = data.index(b"PK\x01\x02", data.index(b"PK\x01\x02") + 1)
    data[second + 8] |= 1  # flags of the second entry of the directory
    path.write_bytes(data)
    found = problems(path)
    assert "is a link in the archive" in found[PRIMARY]
    assert "is encrypted" in found[VALUES]


def test_a_bomb_is_refused_before_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A zip archive says what a file stands for; of a tar archive only so much is decompressed."""
    monkeypatch.setattr("ingest.source.limits.BOMB_BYTES", 1 << 20)
    bomb = [(PRIMARY, DUMP + b"\n" * (8 << 20))]
    for kind in (".zip", ".tar.gz", ".tar.zst"):
        path = tmp_path / f"dumps{kind}"
        path.write_bytes(KINDS[kind](bomb))
        [message] = problems(path).values()
        assert "stand for" in message


def test_a_terabyte_that_is_not_there_is_refused(tmp_path: Path) -> None:
    """A header may claim any size, of a file as of the header that names it."""
    path = tmp_path / "dumps.tar"
    for type_ in (tarfile.REGTYPE, tarfile.GNUTYPE_LONGNAME, tarfile.XHDTYPE):
        entry = tarfile.TarInfo(PRIMARY)
        entry.type, entry.size = type_, 1 << 40
        path.write_bytes(entry.tobuf(tarfile.GNU_FORMAT) + DUMP.ljust(4096, b"\0"))
        [message] = problems(path).values()
        assert message.startswith("cannot be read as an archive")


@pytest.mark.parametrize("kind", KINDS)
def test_an_archive_that_is_cut_off_is_refused_as_a_whole(kind: str, files: Files, tmp_path: Path) -> None:
    """Wherever it was cut: no part of it is taken for all."""
    whole = KINDS[kind](files)
    path = tmp_path / f"dumps{kind}"
    for length in (0, 100, len(whole) // 3, len(whole) // 2, len(whole) - 11_000):
        path.write_bytes(whole[:length])
        [message] = problems(path).values()
        assert "cannot be read as an archive" in message


def test_a_damaged_header_is_not_taken_for_the_end(tmp_path: Path) -> None:
    """`tarfile` does so, and the rest would be missing without a word."""
    whole = bytearray(as_tar([("a/" + PRIMARY, DUMP), ("b/" + PRIMARY, DUMP)]))
    second = whole.index(b"b/module")
    whole[second : second + 100] = b"x" * 100
    path = tmp_path / "dumps.tar"
    path.write_bytes(whole)
    assert "cannot be read as an archive" in next(iter(problems(path).values()))


def test_a_zip_directory_without_end_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is taken into memory as a whole."""
    monkeypatch.setattr("ingest.source.zip._DIRECTORY_BYTES", 100_000)
    path = tmp_path / "dumps.zip"
    path.write_bytes(as_zip([(f"{number:05d}", b"") for number in range(3000)]))
    assert "its directory has more than" in next(iter(problems(path).values()))


def test_damaged_content_in_a_zip_archive_rejects_its_dump(tmp_path: Path) -> None:
    """The sum of the content is checked."""
    path = tmp_path / "dumps.zip"
    with zipfile.ZipFile(path, "w") as packed:
        packed.writestr(zipfile.ZipInfo(PRIMARY), DUMP)
        packed.writestr(zipfile.ZipInfo("b-buffer-assignment.txt"), DUMP)
    data = bytearray(path.read_bytes())
    data[data.index(b"allocation 0: size")] ^= 1
    path.write_bytes(data)
    summary = import_dumps(path, tmp_path / "xbuf.duckdb", jobs=1)
    assert (summary.loaded, summary.rejected) == (1, 1)
    assert "cannot be read from its archive" in summary.rejects[0].message


def tasks_of(path: Path) -> list[Task]:
    return [Task(number, one) for number, one in enumerate(discover([path]).sets)]


def content(dump_set: DumpSet) -> Iterator[bytes]:
    for member in dump_set.members:
        path = dump_set.path(member)
        with path.source.open(path, path.found).stream as stream:  # type: ignore[attr-defined]
            yield stream.read()


def test_sets_that_lie_scattered_are_taken_out_in_several_passes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No more than the limit is in memory, and each set comes once, complete, whatever the order."""
    noise = [os.urandom(1000) for _ in range(40)]
    first = [(f"{n:02d}-buffer-assignment.txt", noise[n]) for n in range(20)]
    second = [(f"{n:02d}-buffer-assignment-values.txt", noise[20 + n]) for n in range(20)]
    path = tmp_path / "dumps.tar.gz"
    path.write_bytes(gzip.compress(as_tar([*first, *second])))
    monkeypatch.setattr(unpack, "HELD_BYTES", 10_000)
    groups = list(unpacked(tasks_of(path)))
    assert len(groups) > 2
    assert sorted(task.run_no for group in groups for task in group) == list(range(20))
    for group in groups:
        for task in group:
            assert list(content(task.dump_set)) == [noise[task.run_no], noise[20 + task.run_no]]


def test_a_set_larger_than_the_memory_is_read_where_it_lies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By going through the archive for each of its files."""
    data = os.urandom(300_000)
    path = tmp_path / "dumps.tar.xz"
    path.write_bytes(lzma.compress(as_tar([(PRIMARY, data), ("b-buffer-assignment.txt", b"b")])))
    monkeypatch.setattr(unpack, "HELD_BYTES", 10_000)
    tasks = [task for some in unpacked(tasks_of(path)) for task in some]
    found = {task.dump_set.stem: [*content(task.dump_set)] for task in tasks}
    assert found == {STEM: [data], "b": [b"b"]}


def test_an_archive_that_changes_after_the_search_is_left_for_the_next_import(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was listed is not what is read."""
    path, database = tmp_path / "dumps.zip", tmp_path / "xbuf.duckdb"
    path.write_bytes(as_zip([(PRIMARY, DUMP)]))

    def changed_first(tasks: list[Task]) -> Iterator[list[Task]]:
        path.write_bytes(as_zip([(VALUES, DUMP), ("other", b"x")]))
        return unpacked(tasks)

    monkeypatch.setattr("ingest.pipeline.unpack.unpacked", changed_first)
    monkeypatch.setattr("ingest.pipeline.reading.RETRY_SECONDS", 0)
    summary = import_dumps(path, database, jobs=1)
    assert (summary.loaded, summary.unfinished + summary.rejected) == (0, 1)


def test_packed_content_can_be_sought(tmp_path: Path) -> None:
    """Forward, and back to the start, as readers of compressed files do."""
    data = struct.pack("<40000Q", *range(40000))
    path = tmp_path / "a.tar"
    path.write_bytes(as_tar([("x", data)]))
    [(name, packed)] = archives.read_members(str(path), {"x"})
    assert name == "x"
    assert packed.size == len(data) > len(packed.data)
    with packed.open() as stream:
        assert stream.read(4) == data[:4]
        stream.seek(200_000)
        assert stream.read(8) == data[200_000:200_008]
        stream.seek(0)
        assert stream.read() == data
