"""Staging a dump in pieces gives the rows that staging it whole does."""

from __future__ import annotations

import functools
import gzip
import os
import shutil
from collections.abc import Callable
from concurrent.futures import Executor, Future
from pathlib import Path
from typing import Any

import duckdb
import pytest

from ingest.dump.find import discover
from ingest.dump.source import BlockReader
from ingest.staging import large, second_look
from ingest.staging.large import stage_large
from ingest.staging.stage import Staged, Task, stage_sets
from tests.dump_sets import DumpSet, committed_sets

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
    reader = functools.partial(BlockReader, block_bytes=size)
    monkeypatch.setattr(large, "BlockReader", reader)
    monkeypatch.setattr(second_look, "BlockReader", reader)
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
    assert whole.rejected == pieces.rejected
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
    """Both ways reject it with the same words and leave no part behind."""
    dump_set = next(one for one in SETS if "jaxlib-0.7.2" in one.name)
    (tmp_path / "dump").mkdir()
    data = dump_set.primary.read_bytes()
    (tmp_path / "dump" / dump_set.primary.name).write_bytes(data[: int(len(data) * keep)])
    whole, whole_rows, pieces, pieces_rows = stage_both_ways(tmp_path / "dump", tmp_path)
    assert (whole_rows, pieces_rows) == ({}, {})
    assert len(whole.rejected) == 1
    assert whole.rejected == pieces.rejected
    assert not list(tmp_path.glob("*.tmp"))
