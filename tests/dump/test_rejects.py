"""A damaged dump is rejected whole, with the rule it breaks and the place where it breaks it."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import astuple
from pathlib import Path
from typing import NamedTuple

import pytest

from ingest.dump.parse import parse_dump
from ingest.dump.records import Dump
from ingest.errors import DumpError
from tests.fuzz.oracle import KINDS
from tests.support.dump_sets import DATA, DumpSet, committed_sets
from tests.support.render import render

WHOLE = DATA / "dumps/jaxlib-0.7.2-cpu"
"""A set of one file with every section, 1.3 KB."""
SPLIT = DATA / "dumps/jaxlib-0.10.0-cpu"
"""A set of three files."""
TOO_LARGE = str(2**63)

Mutation = Callable[[str], str]


def swap(old: str, new: str) -> Mutation:
    """Replace a text that must occur, once."""

    def mutate(text: str) -> str:
        assert old in text
        return text.replace(old, new, 1)

    return mutate


def swap_all(old: str, new: str) -> Mutation:
    """Replace a text that must occur, everywhere."""

    def mutate(text: str) -> str:
        assert old in text
        return text.replace(old, new)

    return mutate


def drop(start: str, end: str) -> Mutation:
    """Remove from `start` up to the following `end`."""

    def mutate(text: str) -> str:
        at = text.index(start)
        return text[:at] + text[text.index(end, at + len(start)) :]

    return mutate


def twice(start: str, end: str) -> Mutation:
    """Repeat what stands from `start` up to the following `end`."""

    def mutate(text: str) -> str:
        at = text.index(start)
        return text[:at] + text[at : text.index(end, at + len(start))] + text[at:]

    return mutate


def cut_before(mark: str) -> Mutation:
    """Keep what stands before a text that must occur."""
    return lambda text: text[: text.index(mark)]


class Reject(NamedTuple):
    """A way to damage a dump, and what must be told of it."""

    kind: str
    section: str | None
    mutate: Mutation
    at: str | None = None
    """How the line at fault begins; None where the fault is that a line is not there."""
    role: str = "primary"
    base: Path = WHOLE


VALUE_4 = " value: <4 x.1 @0> (size=80,offset=0): "

REJECTS = {
    "index-skipped": Reject(
        "allocation-index", "allocations", swap("allocation 1:", "allocation 2:"), "allocation 2:"
    ),
    "index-repeated": Reject(
        "allocation-index", "allocations", swap("allocation 1:", "allocation 0:"), "allocation 0:"
    ),
    "index-from-1": Reject(
        "allocation-index", "allocations", drop("allocation 0:", "allocation 1:"), "allocation 1:"
    ),
    "header-twice": Reject(
        "allocation-index", "allocations", twice("allocation 1:", "\nTotal"), "allocation 1:"
    ),
    "offset-beyond": Reject(
        "out-of-bounds", "allocations", swap("(size=80,offset=0)", "(size=80,offset=1)"), " value: <4 "
    ),
    "size-beyond": Reject(
        "out-of-bounds", "allocations", swap("(size=80,offset=0)", "(size=81,offset=0)"), " value: <4 "
    ),
    "range-beyond-schedule": Reject(
        "out-of-bounds", "ranges", swap("x.1{}:0-2", "x.1{}:0-3"), "    x.1{}:0-3"
    ),
    "range-backwards": Reject("out-of-bounds", "ranges", swap("x.1{}:0-2", "x.1{}:2-0"), "    x.1{}:2-0"),
    "id-twice": Reject("duplicate-value", "allocations", swap("value: <5 ", "value: <4 "), " value: <4 "),
    "value-line-twice": Reject(
        "duplicate-value", "allocations", twice(" value: <4 ", "\nTotal"), " value: <4 "
    ),
    "total-too-high": Reject("total-mismatch", "total", swap("used: 240 ", "used: 241 "), "Total bytes used"),
    "header-too-high": Reject("total-mismatch", "total", swap("size 160,", "size 161,"), "Total bytes used"),
    "split-total": Reject(
        "total-mismatch", "total", swap("used: ", "used: 1"), "Total bytes used", "values", SPLIT
    ),
    "split-primary-cut": Reject("total-mismatch", "total", cut_before("allocation 4:"), base=SPLIT),
    "used-id-differs": Reject("value-mismatch", "values", swap("\n<4 x.1", "\n<3 x.1"), "<3 x.1"),
    "used-name-differs": Reject("value-mismatch", "values", swap("\n<4 x.1 @0>", "\n<4 y.1 @0>"), "<4 y.1"),
    "used-index-differs": Reject(
        "value-mismatch", "values", swap("\n<4 x.1 @0>", "\n<4 x.1{} @0>"), "<4 x.1{}"
    ),
    "used-phi-differs": Reject(
        "value-mismatch", "values", swap("\n<4 x.1 @0>", "\n<4 x.1 (phi) @0>"), "<4 x.1 (phi)"
    ),
    "used-color-differs": Reject(
        "value-mismatch", "values", swap("\n<4 x.1 @0>", "\n<4 x.1 @1>"), "<4 x.1 @1"
    ),
    "used-block-missing": Reject("value-mismatch", "values", drop("<4 x.1 @0>\n", "<5 conc"), "<5 conc"),
    "used-block-twice": Reject("value-mismatch", "values", twice("<4 x.1 @0>\n", "<5 conc"), "<4 x.1"),
    "value-line-missing": Reject("value-mismatch", "values", drop(VALUE_4, "\nTotal"), "<4 x.1"),
    "max-too-high": Reject("sequence-length", "sequence", swap("(max 2)", "(max 3)"), "HloLiveRange (max 3)"),
    "slot-missing": Reject("sequence-length", "sequence", drop("    1:conc", "  Buffer"), "HloLiveRange"),
    "slot-repeated": Reject("sequence-length", "sequence", swap("    1:conc", "    0:conc"), "    0:conc"),
    "empty-file": Reject("truncated", "allocations", lambda text: ""),
    "first-line-cut": Reject("truncated", "allocations", lambda text: text[:9]),
    "cut-in-header": Reject("truncated", "allocations", cut_before(", parameter 0"), "allocation 1: size 80"),
    "cut-after-header": Reject("truncated", "allocations", cut_before(VALUE_4), "allocation 1: size 80"),
    "cut-after-allocations": Reject("truncated", "total", cut_before("Total bytes")),
    "cut-after-total": Reject("truncated", "values", cut_before("\nUsed values:")),
    "cut-in-block": Reject("truncated", "values", cut_before(" from instruction: %conc"), "<5 conc"),
    "cut-after-values": Reject("truncated", "sequence", cut_before("\n\nHloLiveRange")),
    "cut-after-sequence": Reject("truncated", "ranges", cut_before("  BufferLiveRange:")),
    "cut-in-ranges": Reject("truncated", "peak", cut_before("    concatenate_convert_fusion{}:1-2")),
    "cut-after-ranges": Reject("truncated", "peak", cut_before("  Live ranges at")),
    "cut-in-peak": Reject("truncated", "peak", cut_before("    x.1{}: 80 bytes"), "  Live ranges at 1"),
    "cut-after-tree-head": Reject("truncated", "tree", cut_before("    main.1 (")),
    "cut-in-tree": Reject("truncated", "tree", cut_before("      └── x (")),
    "cut-live-range-file": Reject(
        "truncated", "peak", cut_before("  Live ranges at"), None, "live_range", SPLIT
    ),
    "tree-missing": Reject("truncated", "tree", cut_before("  Stack trace"), None, "live_range", SPLIT),
    "empty-values-file": Reject("truncated", "total", lambda text: "", None, "values", SPLIT),
    "empty-live-range-file": Reject("truncated", "sequence", lambda text: "", None, "live_range", SPLIT),
    "allocation-2^63": Reject(
        "number-too-large", "allocations", swap("size 160,", f"size {TOO_LARGE},"), "allocation 0:"
    ),
    "value-id-2^63": Reject(
        "number-too-large", "allocations", swap_all("<5 ", f"<{TOO_LARGE} "), f" value: <{TOO_LARGE} "
    ),
    "color-2^63": Reject("number-too-large", "allocations", swap_all("@0>", f"@{TOO_LARGE}>")),
    "page-2^63": Reject("number-too-large", "allocations", swap("size 160,", f"size 160, page {TOO_LARGE},")),
    "parameter-2^63": Reject(
        "number-too-large", "allocations", swap("parameter 0,", f"parameter {TOO_LARGE},")
    ),
    "operand-2^63": Reject("number-too-large", "values", swap("operand 0", f"operand {TOO_LARGE}")),
    "peak-bytes-2^63": Reject("number-too-large", "peak", swap(": 80 bytes", f": {TOO_LARGE} bytes")),
    "peak-slot-2^63": Reject("number-too-large", "peak", swap("ranges at 1 ", f"ranges at {TOO_LARGE} ")),
    "hlo-text": Reject("not-a-dump", "allocations", lambda text: "HloModule jit_f, is_scheduled=true\n"),
    "blank-line-first": Reject("not-a-dump", "allocations", lambda text: "\n" + text),
    "values-file-as-primary": Reject("not-a-dump", "allocations", drop("BufferAssignment:", "\nTotal")),
    "header-unreadable": Reject(
        "bad-line", "allocations", swap("allocation 1: size 80", "allocation 1: size many"), "allocation 1:"
    ),
    "value-unreadable": Reject(
        "bad-line", "allocations", swap("(size=80,offset=0)", "(size=80)"), " value: <4 "
    ),
    "value-before-allocation": Reject(
        "bad-line", "allocations", swap("\nallocation 0:", f"\n{VALUE_4}u4[8]\nallocation 0:"), VALUE_4
    ),
    "total-unreadable": Reject(
        "bad-line", "total", swap("used: 240", "used: lots"), "Total bytes used: lots"
    ),
    "block-head-unreadable": Reject(
        "bad-line", "values", swap("\n<4 x.1 @0>\n", "\n<four x.1>\n"), "<four x.1>"
    ),
    "uses-missing": Reject("bad-line", "values", swap("  x.1\n uses:\n", "  x.1\n")),
    "positions-missing": Reject(
        "bad-line", "values", swap(" positions:\n  x.1\n uses:", " positions:\n uses:")
    ),
    "range-head-unreadable": Reject("bad-line", "sequence", swap("(max 2):", "(max two):"), "HloLiveRange"),
    "range-unreadable": Reject("bad-line", "ranges", swap("x.1{}:0-2", "x.1{}:0..2"), "    x.1{}:0..2"),
    "peak-head-unreadable": Reject(
        "bad-line", "peak", swap("at 1 (peak)", "at one (peak)"), "  Live ranges at"
    ),
}


def write_set(base: Path, folder: Path, role: str, mutate: Mutation) -> dict[str, Path]:
    """Write the one set of `base` to `folder` with the file of `role` changed; return its paths."""
    (dump_set,) = [one for one in committed_sets() if one.primary.parent == base]
    written = {}
    for one, path in dump_set.files.items():
        written[one] = folder / path.name
        text = path.read_bytes().decode()
        written[one].write_bytes((mutate(text) if one == role else text).encode())
    return written


@pytest.mark.parametrize("reject", REJECTS.values(), ids=REJECTS.keys())
def test_a_damaged_dump_is_rejected(reject: Reject, tmp_path: Path) -> None:
    """Each damage is told by its kind, its section and the line at fault."""
    files = write_set(reject.base, tmp_path, reject.role, reject.mutate)
    with pytest.raises(DumpError) as caught:
        parse_dump(files["primary"])
    error = caught.value
    assert (error.kind, error.section) == (reject.kind, reject.section)
    assert error.message
    assert error.file in map(os.fspath, files.values())
    if reject.at is not None:
        assert error.file == os.fspath(files[reject.role])
        assert_place(error, reject.at)


def assert_place(error: DumpError, at: str) -> None:
    """Check that line and byte offset of an error lead to a line that begins with `at`."""
    content = Path(error.file).read_bytes()
    assert error.line is not None
    assert content.split(b"\n")[error.line - 1].decode().startswith(at)
    assert error.byte_offset is not None
    assert content[error.byte_offset :].decode().startswith(at)
    assert error.byte_offset == 0 or content[error.byte_offset - 1 : error.byte_offset] == b"\n"


def test_every_agreed_kind_has_a_case() -> None:
    """No kind of reject is left without a test."""
    kinds = {reject.kind for reject in REJECTS.values()} | {"line-too-long"}
    assert kinds == KINDS - {"unreadable"}


@pytest.fixture
def _short_records(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lower the limit of a record from 64 MiB to 1000 characters."""
    monkeypatch.setattr("ingest.dump.sections.MAX_RECORD", 1000)
    monkeypatch.setattr("ingest.dump.content.MAX_RECORD", 1000)


@pytest.mark.usefixtures("_short_records")
def test_a_line_beyond_the_limit_is_rejected(tmp_path: Path) -> None:
    """A line that would take all memory rejects the dump instead."""
    files = write_set(WHOLE, tmp_path, "primary", swap('op_name="x"', f'op_name="{"x" * 2000}"'))
    with pytest.raises(DumpError) as caught:
        parse_dump(files["primary"])
    assert (caught.value.kind, caught.value.section) == ("line-too-long", "values")
    assert_place(caught.value, " from instruction: %x.1 = ")


@pytest.mark.usefixtures("_short_records")
def test_a_section_may_be_longer_than_a_record(tmp_path: Path) -> None:
    """The limit is for one record: a set whose sections are longer loads."""
    (dump_set,) = [one for one in committed_sets() if one.primary.parent == DATA / "dumps/tf-2.1-cpu"]
    assert max(map(len, dump_set.texts().values())) > 4000
    assert render(parse_dump(dump_set.primary)) == dump_set.texts()


# -- cuts ---------------------------------------------------------------------------------------------


SMALL = [one for one in committed_sets() if sum(map(len, one.texts().values())) < 9000]
FEW = [pytest.param(one, marks=[pytest.mark.slow] * (at % 5 != 0)) for at, one in enumerate(SMALL)]
"""To be cut at many places."""
"""Sets of every era that can be cut at every line in a second."""


def legal_cuts(dump_set: DumpSet, role: str) -> set[int]:
    """Return after how many lines of a file a cut leaves a dump that another release prints whole.

    What tells a cut (FORMAT 0, 0.1; counted on 2,961 sets):

    - An allocation that is not empty has values. TF 1.15 ends a value with its `[offset,size]` line.
    - Headers with an address and ` value:` lines (TF 2.1 to 2.10) are followed by a total. Without
      address, later allocations may be alone: since jaxlib 0.10 the rest lies in siblings.
    - With siblings, total and value blocks tell whether allocations are missing, but for empty ones. A
      block of reused buffers may be missing whole; the dump then carries a notice of its colors.
    - `Used values:` without ` from instruction:` (TF 2.1 to 2.6) may end the file with any use of the
      last value; with it (TF 2.7 on), `HloLiveRange` follows in the same file.
    - The cumulative peak list may end the file (jaxlib 0.6.2 to 0.7.0), but not in split sets.
    """
    lines = dump_set.files[role].read_bytes().decode().split("\n")[:-1]
    if role != "primary":
        return set()
    allocations = lines.index("") if "" in lines else len(lines)
    if len(dump_set.files) > 1:
        return {
            cut
            for cut in range(2, len(lines))
            if not lines[cut - 1].startswith(" reused by")
            and all(": size 0," in one or one.startswith((" reused by", "  value: <")) for one in lines[cut:])
        }
    legal = set()
    has_address = ", size " in lines[1]
    has_modern_values = any(line.startswith(" value: <") for line in lines)
    if not (has_address and has_modern_values):
        legal |= {cut for cut in range(2, allocations + 1) if _ends_allocation(lines[cut - 1])}
    uses = [number for number, line in enumerate(lines) if line == " uses:" and number > allocations]
    if uses and not any(line.startswith(" from instruction:") for line in lines):
        end = lines.index("", uses[-1]) if "" in lines[uses[-1] :] else len(lines)
        legal |= set(range(uses[-1] + 1, end + 1))
    legal |= {number for number, line in enumerate(lines) if line.startswith("  Stack trace breakdown")}
    return legal - {len(lines)}


def _ends_allocation(line: str) -> bool:
    if line.startswith("allocation "):
        return " size 0," in line
    return "offset=" in line or "](#" in line or line.startswith((" [", "  value: <"))


@pytest.mark.parametrize("dump_set", FEW, ids=lambda dump_set: dump_set.name)
def test_a_cut_at_any_line_is_told(dump_set: DumpSet, tmp_path: Path) -> None:
    """A file cut between two lines is rejected, or what is left is a whole dump of another release."""
    whole = parse_dump(dump_set.primary)
    for path in dump_set.files.values():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    primary = tmp_path / dump_set.primary.name
    wrong: list[str] = []
    for role, path in dump_set.files.items():
        content = path.read_bytes()
        lines = content.split(b"\n")[:-1]
        legal = legal_cuts(dump_set, role)
        for kept in range(len(lines)):
            left = b"".join(line + b"\n" for line in lines[:kept])
            (tmp_path / path.name).write_bytes(left)
            try:
                dump = parse_dump(primary)
            except DumpError as error:
                if kept in legal:
                    wrong.append(f"{role} cut after line {kept} is whole but rejected: {error}")
            else:
                if kept not in legal:
                    wrong.append(f"{role} cut after line {kept} is taken for whole: {lines[kept - 1]!r}")
                else:
                    assert render(dump)[role] == left
                    assert_prefix(dump, whole)
        (tmp_path / path.name).write_bytes(content)
    assert wrong == []


def assert_prefix(part: Dump, whole: Dump) -> None:
    """Check that what is left of a dump tells nothing that the whole does not."""
    assert part.features <= whole.features
    assert part.allocations == whole.allocations[: len(part.allocations)]
    told = {value.id: value for value in whole.values}
    for value in part.values:
        for mine, other in zip(astuple(value), astuple(told[value.id]), strict=True):
            assert mine is None or mine == other or mine == other[: len(mine)]
    for mine, other in (
        (part.schedule, whole.schedule),
        (part.ranges, whole.ranges),
        (part.peak_lines, whole.peak_lines),
        (part.stack_nodes, whole.stack_nodes),
    ):
        assert mine is None or mine == other


@pytest.mark.parametrize("dump_set", FEW, ids=lambda dump_set: dump_set.name)
def test_a_cut_inside_a_line_is_told(dump_set: DumpSet, tmp_path: Path) -> None:
    """A file that ends in the middle of a line is truncated, and the error leads to that line."""
    for path in dump_set.files.values():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    for path in dump_set.files.values():
        content = path.read_bytes()
        if not content.endswith(b"\n"):
            continue  # 'HloLiveRange not available': the one text that ends so
        step = 1 if path.parent == WHOLE else 61
        for size in range(1, len(content), step):
            left = content[:size]
            if left.endswith(b"\n"):
                continue
            (tmp_path / path.name).write_bytes(left)
            with pytest.raises(DumpError) as caught:
                parse_dump(tmp_path / dump_set.primary.name)
            error = caught.value
            assert (error.kind, error.file) == ("truncated", os.fspath(tmp_path / path.name)), left[-80:]
            assert error.line == left.count(b"\n") + 1
            assert error.byte_offset == left.rfind(b"\n") + 1
        (tmp_path / path.name).write_bytes(content)
