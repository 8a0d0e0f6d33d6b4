"""One reader of bytes below every reader: the same limits for dumps, HLO texts and protobufs."""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from ingest.dump.content import BlockReader, Content
from ingest.errors import DumpError
from ingest.hlo.proto import read_proto
from ingest.hlo.text import read_hlo_text

READERS: dict[str, tuple[Callable[[str], object], bytes]] = {
    "dump": (lambda path: list(BlockReader(path)), b"BufferAssignment:\n"),
    "hlo-text": (read_hlo_text, b"HloModule m\n\n"),
    "protobuf": (read_proto, b"\x0a\x03\x0a\x01m" + b"\xa2\x1f\xff\xff\xff\x7f"),  # field 500, of any length
}
COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": lambda data: gzip.compress(data, 1),
    "zstd": lambda data: pa.compress(data, codec="zstd", asbytes=True),
}


@pytest.mark.parametrize("compression", COMPRESS)
@pytest.mark.parametrize("reader", READERS)
def test_no_reader_goes_beyond_the_expansion_limit(
    reader: str, compression: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A few KB that stand for 24 MB are refused by every reader, with the remedy, soon after the limit."""
    monkeypatch.setattr("ingest.dump.content.BOMB_BYTES", 100_000)
    monkeypatch.setattr("ingest.dump.content.BOMB_TIMES", 5)
    taken: list[int] = []
    read = Content.read

    def counting(self: Content, size: int) -> bytes:
        data = read(self, size)
        taken.append(len(data))
        return data

    monkeypatch.setattr(Content, "read", counting)
    function, start = READERS[reader]
    path = tmp_path / "file"
    path.write_bytes(COMPRESS[compression](start + b"\n" * (24 << 20)))
    with pytest.raises(DumpError, match="decompress it first") as caught:
        function(str(path))
    assert (caught.value.kind, caught.value.file) == ("unreadable", str(path))
    assert sum(taken) < 8 << 20


def test_a_source_counts_and_hashes_what_it_gives(tmp_path: Path) -> None:
    """Count and hash are of the uncompressed bytes; a plain file ends where it ended when it was opened."""
    content = bytes(range(256)) * 100
    plain, packed = tmp_path / "plain", tmp_path / "packed"
    plain.write_bytes(content)
    packed.write_bytes(gzip.compress(content))
    for path in (plain, packed):
        with Content(str(path)) as opened:
            start = opened.read(1000)
            if opened.is_plain:
                with path.open("ab") as more:
                    more.write(b"grown")
            opened.finish()
        assert start == content[:1000]
        assert (opened.count, opened.sha256) == (len(content), hashlib.sha256(content).hexdigest())
