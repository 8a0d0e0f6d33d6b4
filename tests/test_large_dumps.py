"""Staging a dump in pieces gives the rows that staging it whole does."""

from __future__ import annotations

import gzip
import os
import shutil
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Executor, Future
from pathlib import Path
from typing import Any

import duckdb
import pytest

from ingest.dump import driver
from ingest.dump.find import discover
from ingest.dump.source import BlockReader
from ingest.staging.large import stage_large
from ingest.staging.stage import Staged, Task, stage_sets
from tests.dump_sets import DATA, DumpSet, committed_sets

Rows = dict[str, list[tuple[Any, ...]]]


class Inline(Executor):
    """Run calls at once, so that a failure keeps its traceback."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future


@pytest.fixture(params=[700, 5000, 1 << 20])
def block_bytes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """Read files in blocks so small that even small dumps have many pieces; one size takes them whole."""
    size = int(request.param)
    monkeypatch.setattr(driver, "BlockReader", lambda path, _: BlockReader(path, size))
    return size


def stage_both_ways(directory: Path, out: Path) -> tuple[Staged, Rows, Staged, Rows]:
    """Stage the only set of a directory whole and in pieces; return results and rows."""
    (dump_set,) = discover([directory]).sets
    for member in dump_set.members:
        os.utime(directory / member.file_name, (1_700_000_000, 1_700_000_000))
    (dump_set,) = discover([directory]).sets
    task = Task(0, dump_set)
    whole, pieces = str(out / "whole"), str(out / "pieces")
    result_whole = stage_sets([task], whole)
    result_pieces = stage_large(task, pieces, Inline(), 2)
    return result_whole, rows(whole), result_pieces, rows(pieces)


def rows(part: str) -> Rows:
    """Return the rows of a part by table, in an order of their own."""
    names = sorted(os.listdir(part)) if os.path.isdir(part) else []
    tables: dict[str, list[str]] = {}
    for name in names:
        tables.setdefault(name.removesuffix(".parquet").split("-")[0], []).append(f"{part}/{name}")
    with duckdb.connect() as connection:
        return {
            table: connection.execute("FROM read_parquet($files) ORDER BY ALL", {"files": files}).fetchall()
            for table, files in tables.items()
        }


def assert_same(directory: Path, out: Path) -> Staged:
    """Compare both ways of staging."""
    whole, whole_rows, pieces, pieces_rows = stage_both_ways(directory, out)
    assert whole_rows.keys() == pieces_rows.keys()
    for table, expected in whole_rows.items():
        assert expected == pieces_rows[table], table
    assert (whole.loaded, whole.rows) == (pieces.loaded, pieces.rows)
    assert len(whole.rejected) == len(pieces.rejected)
    return pieces


def copy_set(dump_set: DumpSet, to: Path) -> None:
    """Copy the files of a set into a directory of their own."""
    to.mkdir()
    for path in dump_set.files.values():
        shutil.copy(path, to)


SETS = committed_sets()


@pytest.mark.usefixtures("block_bytes")
@pytest.mark.parametrize("dump_set", SETS, ids=lambda dump_set: dump_set.name)
def test_pieces_and_whole_give_the_same_rows(dump_set: DumpSet, tmp_path: Path) -> None:
    """Every table and every notice is the same, however the file is cut."""
    copy_set(dump_set, tmp_path / "dump")
    assert assert_same(tmp_path / "dump", tmp_path).loaded == 1


def _with_crlf(data: bytes) -> bytes:
    return data.replace(b"\n", b"\r\n")


def _with_mark(data: bytes) -> bytes:
    return b"\xef\xbb\xbf" + data


def _with_accents(data: bytes) -> bytes:
    return data.replace(b'op_name="', 'op_name="naïve/✓/'.encode())


def _with_bad_bytes(data: bytes) -> bytes:
    """Damage the text of one instruction late, so that pieces before it are verbatim."""
    at = data.rindex(b'op_name="') + 9
    return data[:at] + b"\xff\xfe" + data[at:]


@pytest.mark.usefixtures("block_bytes")
@pytest.mark.parametrize("change", [gzip.compress, _with_crlf, _with_mark, _with_accents, _with_bad_bytes])
def test_what_a_copy_did_to_a_text_is_mended_in_pieces_too(
    change: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    """Compressed, re-encoded and damaged copies give the same rows and notices both ways."""
    dump_set = next(one for one in SETS if "jaxlib-0.7.2" in one.name)
    (tmp_path / "dump").mkdir()
    data = dump_set.primary.read_bytes()
    changed = change(data)
    assert changed != data
    (tmp_path / "dump" / dump_set.primary.name).write_bytes(changed)
    assert assert_same(tmp_path / "dump", tmp_path).loaded == 1


@pytest.mark.usefixtures("block_bytes")
@pytest.mark.parametrize("keep", [0.2, 0.5, 0.7, 0.9])
def test_a_dump_that_is_cut_off_is_rejected_in_pieces_too(keep: float, tmp_path: Path) -> None:
    """Both ways reject it and leave no part behind."""
    dump_set = next(one for one in SETS if "jaxlib-0.7.2" in one.name)
    (tmp_path / "dump").mkdir()
    data = dump_set.primary.read_bytes()
    (tmp_path / "dump" / dump_set.primary.name).write_bytes(data[: int(len(data) * keep)])
    whole, whole_rows, pieces, pieces_rows = stage_both_ways(tmp_path / "dump", tmp_path)
    assert (whole_rows, pieces_rows) == ({}, {})
    assert len(whole.rejected) == len(pieces.rejected) == 1
    assert not list(tmp_path.glob("*.tmp"))


@pytest.mark.parametrize("size", [150, 1 << 20])
def test_differences_from_the_protobuf_are_noted_whatever_the_size(
    size: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The text of one module beside the protobuf of another: the same notices both ways, and only those."""
    monkeypatch.setattr(driver, "BlockReader", lambda path, _: BlockReader(path, size))
    folder = DATA / "hlo" / "jaxlib-0.10.2-cpu"
    proto = next(folder.glob("*.hlo.pb"))
    stem = proto.name.removesuffix(".hlo.pb")
    (tmp_path / "dump").mkdir()
    text = (folder / f"{stem}-buffer-assignment.txt").read_bytes()
    at = text.rindex(b"offset=0)")
    shape = text[at : text.index(b"\n", at)]
    (tmp_path / "dump" / f"{stem}-buffer-assignment.txt").write_bytes(text.replace(shape, shape + b"x"))
    for ending in (".hlo.pb", "-buffer-assignment-values.txt", "-live-range.txt"):
        shutil.copy(folder / f"{stem}{ending}", tmp_path / "dump")
    _, whole, _, pieces = stage_both_ways(tmp_path / "dump", tmp_path)
    kinds = [row[3] for row in pieces["notices"]]
    assert "proto-differs" in kinds
    assert pieces["notices"] == whole["notices"]


def test_of_each_kind_of_notice_so_many_are_kept(tmp_path: Path) -> None:
    """Unknown lines and unknown attributes by the thousand: which are kept does not depend on the pieces."""
    lines = b"".join(
        b"allocation %d: size 4, novel-%d:\n value: <%d v.%d @0> (size=4,offset=0): f32[]{}\n(odd %d)\n"
        % (number, number, number, number, number)
        for number in range(1500)
    )
    (tmp_path / "dump").mkdir()
    name = "module_0001.f.cpu_after_optimizations-buffer-assignment.txt"
    (tmp_path / "dump" / name).write_bytes(b"BufferAssignment:\n" + lines)
    _, whole, _, _ = stage_both_ways(tmp_path / "dump", tmp_path)
    shutil.rmtree(tmp_path / "whole")
    shutil.rmtree(tmp_path / "pieces")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(driver, "BlockReader", lambda path, _: BlockReader(path, 3000))
        _, _, _, pieces = stage_both_ways(tmp_path / "dump", tmp_path)
    kinds = Counter(row[3] for row in whole["notices"])
    assert kinds == {"unknown-line": 1000, "unknown-attribute": 1000, "too-many-notices": 2}
    assert whole["notices"] == pieces["notices"]
