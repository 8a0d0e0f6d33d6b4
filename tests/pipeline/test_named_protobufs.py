"""Protobufs under any name, given directly."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import pytest

from ingest import import_dumps, open_database
from tests.support.dump_sets import DATA

PROTO = DATA / "hlo/jaxlib-0.10.2-cpu/module_0004.jit_cd.cpu_after_optimizations.hlo.pb"


def parts(data: bytes) -> dict[int, bytes]:
    """Return the messages of an HloProto by their numbers: 1 is the module, 3 the buffer assignment."""
    found, at = {}, 0
    while at < len(data):
        number, length, shift = data[at] >> 3, 0, 0
        while True:
            at += 1
            length |= (data[at] & 0x7F) << shift
            shift += 7
            if data[at] < 0x80:
                break
        found[number] = data[at + 1 : at + 1 + length]
        at += 1 + length
    return found


@pytest.mark.parametrize(
    ("name", "is_packed"),
    [
        pytest.param("proto", False, marks=pytest.mark.slow),
        ("module.bin", True),
        pytest.param("module_0001.jit_f.bin", False, marks=pytest.mark.slow),
        pytest.param("a.txt", False, marks=pytest.mark.slow),
        pytest.param("a.txt", True, marks=pytest.mark.slow),
    ],
)
def test_a_protobuf_is_recognised_by_its_content(
    name: str, is_packed: bool, database: Path, tmp_path: Path
) -> None:
    """In a directory it is not looked for: there only names count."""
    path = tmp_path / "given" / name
    path.parent.mkdir()
    path.write_bytes(gzip.compress(PROTO.read_bytes()) if is_packed else PROTO.read_bytes())
    assert import_dumps(path.parent, database).found == 0
    assert import_dumps(path, database).loaded == 1
    assert import_dumps(path, database).unchanged == 1
    with open_database(database, read_only=True) as connection:
        assert connection.execute("SELECT stem, ranges_from FROM runs").fetchall() == [(name, "hlo")]


def test_another_protobuf_is_named_in_one_line(database: Path, tmp_path: Path) -> None:
    """It says what is missing and how to get it."""
    proto = PROTO.read_bytes()
    module, assignment = parts(proto)[1], parts(proto)[3]
    others = {
        "module": (module, "HloModuleProto, without buffer assignment; xbuf reads the HloProto"),
        "message-like name": (b"\n\x05mnist" + module[8:], "HloModuleProto, without buffer assignment"),
        "assignment": (assignment, "BufferAssignmentProto, without its module; xbuf reads the HloProto"),
        "cut": (proto[:-9], "cut off"),
        "profile": (b"\n\x0f\x12\x09/host:CPU\x1a\x02\x08\x01", ".xplane.pb"),
        "empty": (b"\n\x00\x1a\x00", "no HloProto"),
        "descriptor": (b"\n\x05a.txt\x12\x03abc\x1a\x02xy", "no HloProto"),
        "text": (b"\nplain text\n", "nor is it a protobuf"),
    }
    for name, (content, _) in others.items():
        (tmp_path / name).write_bytes(content)
        os.utime(tmp_path / name, (1_700_000_000, 1_700_000_000))
    summary = import_dumps([tmp_path / name for name in others], database)
    assert (summary.found, summary.rejected) == (len(others), len(others))
    said = {os.path.basename(reject.file): reject.message for reject in summary.rejects}
    for name, (_, words) in others.items():
        assert words in said[name], name
        assert "\n" not in said[name]


def test_another_protobuf_is_rejected_at_once(database: Path, tmp_path: Path) -> None:
    """One that was written a moment ago is not taken to be still being written."""
    paths = [tmp_path / "module.bin", tmp_path / "assignment.bin"]
    for path, number in zip(paths, (1, 3), strict=True):
        path.write_bytes(parts(PROTO.read_bytes())[number])
    summary = import_dumps(paths, database)
    assert (summary.rejected, summary.unfinished) == (2, 0)
