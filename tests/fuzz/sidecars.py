"""Damage what lies beside a dump, HLO text and protobuf, and judge what becomes of the set.

The dump itself is whole: whatever its siblings are, it loads, and its own rows are those that it has without
them. What cannot be read of a sibling is a notice on that file. A protobuf that lies alone is a dump: it
loads or is rejected in order.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import pyarrow as pa

from ingest.dump.parse import parse_set
from ingest.dump.parsed import ParsedDump
from ingest.errors import DumpError
from ingest.hlo.budget import Budget
from ingest.hlo.proto import read_proto
from ingest.hlo.text_module import PlacedValue, derive_of_text
from ingest.staging.arrow_rows import batch_tables
from ingest.staging.batch import Batch
from ingest.staging.dump_rows import add_dump
from ingest.staging.sidecars import (
    NO_SIDECARS,
    ROLES,
    Sidecars,
    dump_of_proto,
    note_differences,
    read_sidecars,
    sidecars_of,
)
from tests.fuzz.messages import change_message
from tests.fuzz.mutations import Texts, change_text
from tests.fuzz.outcome import Outcome, rejected, require
from tests.fuzz.stored import ENDINGS
from tests.support.dump_sets import DATA

Rows = dict[str, pa.Table]
"""Rows of a set by table."""

KINDS: Final = frozenset(
    {
        "allocation-index",
        "duplicate-value",
        "hlo-proto",
        "no-buffer-assignment",
        "number-too-large",
        "other-protobuf",
        "out-of-bounds",
        "sidecar-limit",
        "unreadable",
    }
)
"""Why a protobuf that lies alone may be rejected."""
NOTICES: Final = frozenset(
    {
        "hlo-text",
        "hlo-proto",
        "other-protobuf",
        "proto-differs",
        "sidecar-limit",
        "unreadable",
        "line-too-long",
    }
)
_OF_THE_MODULE: Final = {
    "instructions",
    "source_frames",
    "aliases",
    "buffer_donors",
    "hlo_modules",
    "heap_events",
    "peak_buffers",
    "notices",
}
"""Tables that siblings fill."""
_TOLD: Final = {
    "allocations": {
        "is_tuple", "is_aliased_with_output", "donation", "declared_donation", "fitting_value_id",
    },
    "values": {
        "source_file", "source_line", "source_via", "source_frame_id", "opcode", "op_name", "stack_frame_id",
    },
}  # fmt: skip
"""Columns of other tables to which siblings add."""


def seeds() -> list[Texts]:
    """Return the committed sets that have siblings."""
    sets: list[Texts] = []
    for primary in sorted((DATA / "hlo").rglob(f"*{ENDINGS['primary']}")):
        stem = primary.name.removesuffix(ENDINGS["primary"])
        members = {role: primary.with_name(stem + ending) for role, ending in ENDINGS.items()}
        sets.append({role: path.read_bytes() for role, path in members.items() if path.is_file()})
    return sets


def damage(chance: random.Random, texts: Texts, others: Sequence[Mapping[str, bytes]]) -> Texts:
    """Damage what lies beside; of some sets only the protobuf is left."""
    damaged = dict(texts)
    if chance.random() < 0.2:
        damaged = {"proto": texts["proto"]}
    for _ in range(chance.choice((1, 1, 1, 2, 3, 5))):
        role = chance.choice([role for role in damaged if role in ROLES])
        other = chance.choice(others)
        donor = other.get(role) or other["proto"]
        if role == "proto" and chance.random() < 0.6:
            damaged[role] = change_message(chance, damaged[role], donor)
        else:
            damaged[role] = change_text(chance, damaged[role], donor)
    return damaged


def judge(files: Mapping[str, Path], texts: Mapping[str, bytes]) -> Outcome:
    """Read a set; return what it came to.

    Raises:
        Violation: the dump lost or gained a row, or a notice is not on what was damaged.
    """
    if "primary" not in files:
        return _judge_alone(files["proto"])
    dump, own = _dump_alone({role: str(path) for role, path in files.items() if role not in ROLES}, texts)
    found = read_sidecars({role: str(path) for role, path in files.items()}, derive_lifetimes=True)
    _judge_derived(found, dump)
    notices = list(found.notices)
    if found.proto is not None:
        notices += note_differences(found.proto, dump, str(files["proto"]))
    tables = _rows(dump, found)
    for name, table in own.items():
        require(tables[name].equals(table), f"{name}: other rows than without siblings")
    require(set(tables) - set(own) <= _OF_THE_MODULE, f"new tables {sorted(set(tables) - set(own))}")
    sidecars = {str(path) for role, path in files.items() if role in ROLES}
    for notice in notices:
        require(notice.file in sidecars, f"a notice on {notice.file}")
        require(notice.kind in NOTICES, f"a notice of the kind {notice.kind}")
        require(bool(notice.message) and len(notice.message) <= 2000, "no message, or an endless one")
    for role in ROLES:
        if role in files and role not in found.sha256:
            told = any(notice.file == str(files[role]) for notice in notices)
            require(told, f"{role} was not read, and nothing is told of it")
    words = {re.sub(r"[0-9]+|'[^']*'", "#", notice.message)[:30] for notice in notices}
    return ("load", *sorted(tables), *sorted(words))


def _judge_derived(found: Sidecars, dump: ParsedDump) -> None:
    """Derive what a sidecar file implies: ranges lie within the schedule, or it does not fit the dump."""
    lifetimes = None
    if found.proto is not None:
        lifetimes = found.proto.lifetimes
    elif found.text is not None:
        values = [PlacedValue(int(line[0]), line[1], line[2], line[7]) for line in dump.values]
        try:
            derived = derive_of_text(found.text, values, Budget(), "the HLO text")
        except DumpError as error:
            require(error.kind == "sidecar-limit", f"kind {error.kind}")
            return
        lifetimes = None if isinstance(derived, str) else derived.lifetimes
    if lifetimes is not None and lifetimes.ranges:
        assert lifetimes.schedule is not None
        slots = len(lifetimes.schedule)
        for first, last in lifetimes.ranges.values():
            require(0 <= first <= last <= slots, f"a range from {first} to {last} of {slots} slots")


def _judge_alone(path: Path) -> Outcome:
    try:
        proto = read_proto(path, derive_lifetimes=True)
        dump = dump_of_proto(proto, str(path))
        found = sidecars_of(None, proto)
    except DumpError as error:
        require(error.kind in KINDS, f"kind {error.kind}")
        require(error.file in ("", str(path)), f"file {error.file!r}")
        require(bool(error.message) and len(error.message) < 2000, "no message, or an endless one")
        return rejected(error.kind, error.section, error.message)
    tables = _rows(dump, found)
    for notice in found.notices:
        require((notice.file, notice.kind) == (str(path), "hlo-proto"), f"a notice {notice}")
    return ("load", "alone", *sorted(tables), str(bool(found.notices)))


_dumps: Final[dict[bytes, tuple[ParsedDump, Rows]]] = {}


def _dump_alone(files: Mapping[str, str], texts: Mapping[str, bytes]) -> tuple[ParsedDump, Rows]:
    """Return a dump, and its rows without siblings; there are few of them, and they are never damaged."""
    content = b"".join(texts[role] for role in files)
    if content not in _dumps:
        dump = parse_set(files)
        _dumps[content] = dump, _rows(dump, NO_SIDECARS)
    return _dumps[content]


def _rows(dump: ParsedDump, found: Sidecars) -> Rows:
    """Return the rows of a set by table, without what siblings may add to those of the dump."""
    batch = Batch()
    add_dump(batch, 0, dump, found)
    return {
        name: table.select([one for one in table.column_names if one not in _TOLD.get(name, ())])
        for name, table in batch_tables(batch)
    }
