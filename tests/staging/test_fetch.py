"""Dumps at URLs are fetched ahead, by the workers alone, and an answer counts as progress."""

from __future__ import annotations

import io
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from ingest.dump.sets import DumpSet, Member
from ingest.errors import SourceError
from ingest.source.address import parse_url
from ingest.source.objects import AtUrl
from ingest.source.source import APART, OpenFile, Status, Unreachable
from ingest.staging import at_hand
from ingest.staging.at_hand import AtHand, reading, still_reading, take_slot
from ingest.staging.fetch import AHEAD, fetched, is_far
from ingest.staging.task import Task


@dataclass
class Far:
    """A source that is far away, in memory."""

    files: dict[str, bytes | Exception]
    asked: list[str] = field(default_factory=list)
    terms = APART
    is_far = is_remote = True
    rereads_ranges = False

    def open(self, path: str, found: Status | None) -> OpenFile:
        self.asked.append(path)
        content = self.files[path]
        if isinstance(content, Exception):
            raise content
        return OpenFile(io.BytesIO(content), len(content))

    def status(self, path: str) -> Status | None:
        raise NotImplementedError

    def read_range(self, path: str, offset: int, length: int) -> bytes:
        raise NotImplementedError


def task(number: int, source: Far | AtUrl) -> Task:
    member = Member("primary", f"{number}-buffer-assignment.txt", 3, 0, "etag")
    return Task(number, DumpSet("s3://b/d", str(number), (member,), (), None, source))


def content(one: Task) -> bytes:
    assert one.dump_set.source is not None
    path = one.dump_set.path(one.dump_set.members[0])
    return one.dump_set.source.open(path, None).stream.read()


def test_small_sets_come_with_their_content_in_order_and_only_some_ahead() -> None:
    """Memory is bounded by what is asked for before it is wanted."""
    far = Far({f"s3://b/d/{n}-buffer-assignment.txt": b"%d" % n for n in range(500)})
    tasks = fetched([task(number, far) for number in range(500)], lambda _: False)
    first = next(tasks)
    assert content(first) == b"0"
    assert len(far.asked) <= AHEAD + 1
    rest = list(tasks)
    assert [content(one) for one in rest] == [b"%d" % n for n in range(1, 500)]
    assert not any(is_far(one.dump_set) for one in rest)


def test_what_cannot_be_fetched_costs_its_own_dump() -> None:
    """A file that failed for good is not asked for again. A store that is away ends all."""
    paths = [f"s3://b/d/{number}-buffer-assignment.txt" for number in range(4)]
    errors = PermissionError(13, "no"), Unreachable(5, "fails"), FileNotFoundError(2, "gone")
    far = Far(dict(zip(paths, (*errors, b"x"), strict=True)))
    *failed, gone, fine = fetched([task(number, far) for number in range(4)], lambda _: False)
    for one, error in zip(failed, errors, strict=False):
        with pytest.raises(type(error)):
            content(one)
    assert gone.dump_set.source is not None
    assert gone.dump_set.source.is_far
    assert content(fine) == b"x"
    assert far.asked == paths
    first = paths[0]
    away = Far({first: SourceError("away")})
    with pytest.raises(SourceError, match="away"):
        list(fetched([task(0, away)], lambda _: False))


def test_large_sets_are_not_fetched_and_each_answer_counts_as_progress(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker is ended that is at one set for too long: at a slow store, too long without any answer."""
    [large] = fetched([task(0, AtUrl(parse_url("s3://b")))], lambda _: True)
    assert isinstance(large.dump_set.source, AtUrl)
    assert large.dump_set.source.heard is still_reading
    monkeypatch.setattr(at_hand, "_slot", None)
    still_reading()  # nothing is at hand, and nowhere to note it
    now = 1000.0
    monkeypatch.setattr("ingest.staging.at_hand.time.monotonic", lambda: now)
    notes = AtHand.create(tmp_path / "at-hand", 1)
    take_slot(notes, 0)
    with reading(large.dump_set):
        now = 1250.0
        assert [one and one.seconds for one in notes.read()] == [250.0]
        still_reading()
        now = 1260.0
        assert [one and (one.place, one.seconds) for one in notes.read()] == [("s3://b/d/0", 10.0)]
    still_reading()
    assert notes.read() == [None]
