"""Staging a dump in pieces gives the rows that staging it whole does."""

from __future__ import annotations

import gzip
import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from ingest.dump import driver
from ingest.dump.content import BlockReader
from ingest.dump.find import discover
from ingest.dump.parse import parse_set
from ingest.staging.columns import are_unique
from ingest.staging.large import InThisProcess, stage_large
from ingest.staging.stage import stage_sets
from ingest.staging.task import Staged, Task
from tests.fuzz import both_ways
from tests.fuzz.run import write_set
from tests.support.dump_sets import DATA, DumpSet, committed_sets, dump_sets

CORPUS = (DATA.parents[2] / "shared" / "corpus").resolve()
Rows = dict[str, list[tuple[Any, ...]]]


def stage_both_ways(directory: Path, out: Path) -> tuple[Staged, Rows, Staged, Rows]:
    """Stage the only set of a directory whole and in pieces; return results and rows."""
    (dump_set,) = discover([directory]).sets
    for member in dump_set.members:
        os.utime(directory / member.file_name, (1_700_000_000, 1_700_000_000))
    (dump_set,) = discover([directory]).sets
    task = Task(0, dump_set)
    whole, pieces = str(out / "whole"), str(out / "pieces")
    result_whole = stage_sets([task], whole)
    result_pieces = stage_large(task, pieces, InThisProcess(), 2)
    return result_whole, rows(whole), result_pieces, rows(pieces)


def rows(part: str) -> Rows:
    """Return the rows of a part by table, in an order of their own."""
    files = os.listdir(part) if os.path.isdir(part) else []
    names = sorted(name for name in files if name.endswith(".parquet"))
    tables: dict[str, list[str]] = {}
    for name in names:
        tables.setdefault(name.removesuffix(".parquet").split("-")[0], []).append(f"{part}/{name}")
    with duckdb.connect() as connection:
        return {
            table: connection.execute("FROM read_parquet($files) ORDER BY ALL", {"files": files}).fetchall()
            for table, files in tables.items()
        }


SETS = committed_sets()
SIZES = (150, 700, 5000, 4 << 20)


def outcome(
    dump_set: DumpSet, folder: Path, texts: Mapping[str, bytes], sizes: Sequence[int] = SIZES
) -> tuple[str, ...]:
    """Return what a set comes to in plain lists and in Arrow columns, whole and in pieces: always the same.

    Pieces of a size only where they are not too many.
    """
    length = sum(map(len, texts.values()))
    few = [size for size in sizes if length < 500 * size]
    return both_ways.compare(write_set(folder, texts), *(few or SIZES[-1:]))


def _with_sizes() -> Iterator[Any]:
    """Yield each committed set with sizes of a piece: one for a third of them, two in the slow run, all."""
    for number, one in enumerate(SETS):
        another = SIZES[1 + number % 3]
        if number % 3 == 0:
            yield pytest.param(one, (SIZES[number // 3 % 3],), id=one.name)
        yield pytest.param(one, (SIZES[0], another), id=f"{one.name}-two", marks=pytest.mark.slow)
        yield pytest.param(one, SIZES, id=f"{one.name}-all", marks=pytest.mark.long)


@pytest.mark.parametrize(("dump_set", "sizes"), list(_with_sizes()))
def test_every_piece_size_gives_the_same_rows(
    dump_set: DumpSet, sizes: Sequence[int], tmp_path: Path
) -> None:
    """Every table and every notice is the same, however the file is cut and whatever holds the rows."""
    assert outcome(dump_set, tmp_path, dump_set.texts(), sizes)[0] == "load"


CORPUS_IS_HERE = pytest.mark.skipif(not CORPUS.is_dir(), reason="the dumps beside the checkout are not there")


def cut_off(texts: Mapping[str, bytes], keep: float) -> dict[str, bytes]:
    """Return a set whose last file has only this part of its bytes."""
    last, text = list(texts.items())[-1]
    return {**texts, last: text[: int(len(text) * keep)]}


@pytest.mark.slow
@CORPUS_IS_HERE
def test_pieces_of_the_corpus_give_the_same_rows(tmp_path: Path) -> None:
    """Of each kind of real dumps the smallest, cut at every record, in some 16 pieces, and cut off in some 8.

    A kind is what a dump shows: its features and the notices of it. Blocks are a share of the dump, so that
    of no two dumps the cuts lie at the same places.
    """
    kinds: dict[tuple[str, ...], list[tuple[int, str, DumpSet]]] = {}
    for dump_set in dump_sets(CORPUS):
        dump = parse_set({role: str(path) for role, path in dump_set.files.items()})
        kind = (*dump.features, *sorted({notice.kind for notice in dump.notices}))
        length = sum(path.stat().st_size for path in dump_set.files.values())
        kinds.setdefault(kind, []).append((length, dump_set.name, dump_set))
    assert len(kinds) > 20
    for number, alike in enumerate(kinds.values()):
        length, name, dump_set = min(alike)
        texts = dump_set.texts()
        assert outcome(dump_set, tmp_path, texts, [SIZES[0], max(SIZES[0], length // 16)])[0] == "load", name
        outcome(dump_set, tmp_path, cut_off(texts, (0.3, 0.8)[number % 2]), [max(SIZES[0], length // 8)])


@pytest.mark.long
@CORPUS_IS_HERE
def test_every_piece_size_gives_the_same_rows_of_the_corpus(tmp_path: Path) -> None:
    """So it is with every real dump at hand at every size, whole and cut off at two places."""
    for dump_set in dump_sets(CORPUS):
        texts = dump_set.texts()
        assert outcome(dump_set, tmp_path, texts)[0] == "load", dump_set.name
        for keep in (0.3, 0.8):
            outcome(dump_set, tmp_path, cut_off(texts, keep))


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


@pytest.mark.parametrize("change", [gzip.compress, _with_crlf, _with_mark, _with_accents, _with_bad_bytes])
def test_what_a_copy_did_to_a_text_is_undone_in_pieces_too(
    change: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    """Compressed, re-encoded and damaged copies give the same rows and notices both ways."""
    dump_set = next(one for one in SETS if "jaxlib-0.7.2" in one.name)
    data = dump_set.primary.read_bytes()
    changed = change(data)
    assert changed != data
    assert outcome(dump_set, tmp_path, {"primary": changed})[0] == "load"


@pytest.mark.parametrize("keep", [0.2, 0.5, 0.7, 0.9])
def test_a_dump_that_is_cut_off_is_rejected_in_pieces_too(keep: float, tmp_path: Path) -> None:
    """Both ways reject it and leave no part behind."""
    dump_set = next(one for one in SETS if "jaxlib-0.7.2" in one.name)
    data = dump_set.primary.read_bytes()
    (tmp_path / "dump").mkdir()
    texts = {"primary": data[: int(len(data) * keep)]}
    assert outcome(dump_set, tmp_path / "dump", texts)[1] == "truncated"
    whole, whole_rows, pieces, pieces_rows = stage_both_ways(tmp_path / "dump", tmp_path)
    assert (whole_rows, pieces_rows) == ({}, {})
    assert whole.rejected == pieces.rejected
    assert [one.kind for one in whole.rejected] == ["truncated"]
    assert not list(tmp_path.glob("*.tmp"))


@pytest.mark.parametrize("size", [150, 1 << 20])
def test_differences_from_the_protobuf_are_noted_whatever_the_size(
    size: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The text of one module beside the protobuf of another: the same notices both ways, and only those."""
    monkeypatch.setattr(driver, "BlockReader", lambda path, *_: BlockReader(path, size))
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


def test_of_each_kind_of_notice_so_many_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """More unknown lines and attributes than the limit: which are kept does not depend on the pieces."""
    monkeypatch.setattr("ingest.dump.notices.MAX_NOTICES", 100)
    lines = b"".join(
        b"allocation %d: size 4, novel-%d:\n value: <%d v.%d @0> (size=4,offset=0): f32[]{}\n(odd %d)\n"
        % (number, number, number, number, number)
        for number in range(110)
    )
    (tmp_path / "dump").mkdir()
    name = "module_0001.f.cpu_after_optimizations-buffer-assignment.txt"
    (tmp_path / "dump" / name).write_bytes(b"BufferAssignment:\n" + lines)
    os.utime(tmp_path / "dump" / name, (1_700_000_000, 1_700_000_000))
    [task] = [Task(0, one) for one in discover([tmp_path / "dump"]).sets]
    stage_sets([task], str(tmp_path / "whole"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(driver, "BlockReader", lambda path, *_: BlockReader(path, 1000))
        stage_large(task, str(tmp_path / "pieces"), InThisProcess(), 2)
    whole, pieces = rows(str(tmp_path / "whole")), rows(str(tmp_path / "pieces"))
    kinds = Counter(row[3] for row in whole["notices"])
    assert kinds == {"unknown-line": 100, "unknown-attribute": 100, "too-many-notices": 2}
    assert whole["notices"] == pieces["notices"]


@pytest.mark.parametrize("lost", [("values",), ("live_range",), ("values", "live_range")])
def test_what_lost_files_said_is_derived_in_pieces_too(lost: tuple[str, ...], tmp_path: Path) -> None:
    """From the protobuf, for the same rows as of a small set."""
    folder = tmp_path / "dump"
    folder.mkdir()
    for path in (DATA / "hlo/jaxlib-0.10.2-cpu").glob("module_0004*"):
        if not any(
            path.name.endswith({"values": "-values.txt", "live_range": "-live-range.txt"}[one])
            for one in lost
        ):
            shutil.copy(path, folder)
    whole, rows_whole, pieces, rows_pieces = stage_both_ways(folder, tmp_path)
    assert whole.loaded == pieces.loaded == 1
    assert rows_pieces == rows_whole
    [run] = rows_pieces["runs"]
    assert run.count("hlo") == len(lost)
    assert {"positions", "uses", "ranges", "schedule"} <= rows_pieces.keys()


def test_without_ranges_the_module_says_what_leaves(tmp_path: Path) -> None:
    """Not the last of equally large values in an allocation, but that of the entry result; in pieces, too."""
    folder, source = tmp_path / "dump", DATA / "hlo/tf-1.15-cpu"
    folder.mkdir()
    text = (source / "module_0003.after_optimizations-buffer-assignment.txt").read_text()
    inner, leaving = "  15 negate.44 @0,", "  16 negate.76 @0,"
    blocks = text[text.index(inner) : text.index("allocation 1:")]
    at = blocks.index(leaving)
    turned = blocks[at:].replace("16 ", "15 ", 1) + blocks[:at].replace("15 ", "16 ", 1)
    name = "module_0003.after_optimizations"
    (folder / f"{name}-buffer-assignment.txt").write_text(text.replace(blocks, turned))
    shutil.copy(source / f"{name}.txt", folder)
    _, whole, _, pieces = stage_both_ways(folder, tmp_path)
    assert pieces == whole
    with duckdb.connect() as connection:
        found = connection.execute(
            "SELECT live_out_value_id FROM read_parquet($file) WHERE maybe_live_out"
            " ORDER BY allocation_index",
            {"file": str(tmp_path / "whole" / "allocations*.parquet")},
        ).fetchall()
    assert found == [(15,), (14,), (10,), (17,)]


def test_nothing_is_derived_from_a_protobuf_of_another_dump(tmp_path: Path) -> None:
    """Whole and in pieces; the warnings say how they differ."""
    folder = tmp_path / "dump"
    folder.mkdir()
    source = DATA / "hlo/jaxlib-0.10.2-cpu"
    stem = "module_0004.jit_cd.cpu_after_optimizations"
    shutil.copy(source / f"{stem}-buffer-assignment.txt", folder)
    shutil.copy(source / "module_0010.jit_dn.cpu_after_optimizations.hlo.pb", folder / f"{stem}.hlo.pb")
    _, rows_whole, _, rows_pieces = stage_both_ways(folder, tmp_path)
    assert rows_pieces == rows_whole
    assert not {"positions", "uses", "ranges"} & rows_pieces.keys()
    assert rows_pieces["notices"]


@pytest.mark.parametrize(("rows", "expected"), [([0, 2, 1], True), ([0, 2, 0], False), ([], True)])
def test_two_ranges_of_one_value_are_seen(rows: list[int], expected: bool) -> None:
    assert are_unique(pa.array(rows, pa.int32()), 3) == expected
