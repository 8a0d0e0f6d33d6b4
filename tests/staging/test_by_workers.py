"""Large files at URLs are read ahead by workers; what these are sent is the set's own source."""

from __future__ import annotations

import io
import pickle
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from ingest.dump.sets import DumpSet, Member
from ingest.source.address import parse_url
from ingest.source.local import source_of
from ingest.source.objects import AtUrl
from ingest.source.source import PathIn, Status, Unreachable
from ingest.staging.by_workers import read_by_workers

CONTENT = bytes(range(256)) * 5
ASKED: list[tuple[int, int]] = []


@pytest.fixture
def dump_set(monkeypatch: pytest.MonkeyPatch) -> DumpSet:
    """A set of a file at a URL whose store is here, with ranges of 100 bytes."""

    def read_version(_: AtUrl, path: str, found: Status | None, start: int, end: int) -> bytes:
        ASKED.append((start, end))
        if path.endswith("bad"):
            raise Unreachable(5, "fails", path)
        return CONTENT[start:end]

    ASKED.clear()
    monkeypatch.setattr(AtUrl, "read_version", read_version)
    monkeypatch.setattr("ingest.source.streams.RANGE_BYTES", 100)
    monkeypatch.setattr("ingest.staging.by_workers.RANGE_BYTES", 100)
    members = (Member("primary", "good", len(CONTENT), 0, '"1"'), Member("proto", "bad", 7, 0, '"1"'))
    return DumpSet("s3://b/d", "x", members, (), None, AtUrl(parse_url("s3://b")))


def opened(dump_set: DumpSet, number: int) -> Any:
    path = dump_set.path(dump_set.members[number])
    assert isinstance(path, PathIn)
    return path.source.open(path, path.found).stream


def test_a_file_is_read_whole_and_some_of_it_ahead(dump_set: DumpSet) -> None:
    """Each range once, also where a reader looks at the start and goes back to it."""
    with ThreadPoolExecutor(1) as pool:
        stream = opened(read_by_workers(dump_set, pool, 3), 0)
        start = stream.read(4)
        stream.seek(0)
        assert len(ASKED) <= 4
        assert io.BufferedReader(stream).read() == CONTENT
        assert start == CONTENT[:4]
        assert sorted(ASKED) == [(at, min(at + 100, len(CONTENT))) for at in range(0, len(CONTENT), 100)]
        with pytest.raises(Unreachable):
            opened(read_by_workers(dump_set, pool, 3), 1).read(1)


def test_what_a_worker_is_sent_has_the_source_of_the_set(dump_set: DumpSet) -> None:
    """Not the pool, which cannot be sent."""
    with ThreadPoolExecutor(1) as pool:
        by_workers = read_by_workers(dump_set, pool, 3)
        path = pickle.loads(pickle.dumps(by_workers.paths()["primary"]))
        assert not source_of(by_workers.paths()["primary"]).is_far
    assert source_of(path) == dump_set.source
