"""The fingerprint of a program: what is another program, and what is only another compilation."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from ingest.hlo.proto import read_proto
from ingest.hlo.records import Donor
from ingest.hlo.text import read_hlo_text
from tests.hlo.test_hostile_sidecars import ARRAY, instruction, module
from tests.support.dump_sets import DATA
from tests.support.protobufs import field

TEXT = """HloModule jit_f, is_scheduled=true, buffer_donor={ (1, {}), (2, {0}) }

%add_region (x: f32[], y: f32[]) -> f32[] {
  %x = f32[] parameter(0)
  %y = f32[] parameter(1)
  ROOT %sum.1 = f32[] add(%x, %y)
}

%fused (p: f32[8]) -> f32[8] {
  %p = f32[8]{0} parameter(0)
  ROOT %e = f32[8]{0} exponential(%p)
}

ENTRY %main (a: f32[8], b: f32[8]) -> (f32[8], f32[]) {
  %a = f32[8]{0} parameter(0), sharding={replicated}, metadata={op_name="a"}
  %b = f32[8]{0} parameter(1)
  %one = f32[] constant(1)
  %f.2 = f32[8]{0} fusion(%a), kind=kLoop, calls=%fused, metadata={op_name="jit(f)/exp" stack_frame_id=3}
  %lt = pred[8]{0} compare(%f.2, %b), direction=LT
  %g = (f32[8]{0}, f32[8]{0}) custom-call(%b), custom_call_target="go", backend_config={"n":["1"]}
  %all = f32[8]{0} all-reduce(%g#1), channel_id=7, to_apply=%add_region, frontend_attributes={k="v, {"}
  %r = f32[] reduce(%all, %one), dimensions={0}, to_apply=%add_region, control-predecessors={%lt}
  ROOT %t = (f32[8]{0}, f32[]) tuple(%f.2, %r)
}
"""

OF_THE_PROGRAM = [
    (" add(", " subtract("),
    ("exponential(", "sqrt("),
    ("direction=LT", "direction=GT"),
    ("dimensions={0}", "dimensions={1}"),
    ("constant(1)", "constant(2)"),
    ("kind=kLoop", "kind=kInput"),
    ('target="go"', 'target="stop"'),
    ('{"n":["1"]}', '{"n":["2"]}'),
    ("compare(%f.2, %b)", "compare(%b, %f.2)"),
    ("%g#1", "%g#0"),
    ("reduce(%all, %one)", "reduce(%f.2, %one)"),
    ("%e = f32[8]{0}", "%e = f32[8]{0:S(1)}"),
    ("  %lt = pred[8]{0} compare(%f.2, %b), direction=LT\n", ""),
    ("(2, {0})", "(2, {1})"),
    ("is_scheduled=true", "is_scheduled=true, num_partitions=2"),
    ("ROOT %e = f32[8]{0} exponential(%p)", "%e = f32[8]{0} exponential(%p)\n  ROOT %c = f32[8]{0} copy(%p)"),
]
OF_THE_COMPILATION = [
    ("jit_f", "jit_g"),
    ("%f.2", "%fusion.77"),
    ("%fused", "%fused.clone"),
    ("channel_id=7", "channel_id=70"),
    ('op_name="jit(f)/exp" stack_frame_id=3', 'op_name="other"'),
    ("sharding={replicated}, ", ""),
    ('k="v, {"', 'k="}}, dimensions={3}"'),
    (", control-predecessors={%lt}", ""),
]


def of_text(tmp_path: Path, text: str) -> str | None:
    """Return the fingerprint of an HLO text."""
    path = tmp_path / "m.txt"
    path.write_text(text)
    return read_hlo_text(path).program_sha256


@pytest.mark.parametrize(("old", "new"), OF_THE_PROGRAM, ids=[old.strip() for old, _ in OF_THE_PROGRAM])
def test_what_a_program_does_is_in_its_fingerprint(old: str, new: str, tmp_path: Path) -> None:
    """Another opcode, however deep, attribute, constant, operand, layout or donation: another program."""
    assert old in TEXT
    assert of_text(tmp_path, TEXT)
    assert of_text(tmp_path, TEXT.replace(old, new)) not in (None, of_text(tmp_path, TEXT))


@pytest.mark.parametrize(("old", "new"), OF_THE_COMPILATION, ids=[old for old, _ in OF_THE_COMPILATION])
def test_names_numbers_and_metadata_are_not(old: str, new: str, tmp_path: Path) -> None:
    """What changes from one compilation to the next does not change the fingerprint."""
    assert old in TEXT
    assert of_text(tmp_path, TEXT.replace(old, new)) == of_text(tmp_path, TEXT)


def test_a_text_with_an_unread_part_has_no_fingerprint(tmp_path: Path) -> None:
    """What is cut off may be any program."""
    assert of_text(tmp_path, TEXT[: TEXT.index("ROOT %t")]) is None


def test_donors_are_read_from_the_text(tmp_path: Path) -> None:
    """buffer_donor of the header: parameter and part."""
    path = tmp_path / "m.txt"
    path.write_text(TEXT)
    assert read_hlo_text(path).header.donors == (Donor(1, "{}"), Donor(2, "{0}"))


def of_proto(tmp_path: Path, data: bytes) -> str | None:
    """Return the fingerprint of a protobuf."""
    path = tmp_path / "m.hlo.pb"
    path.write_bytes(data)
    return read_proto(path).program_sha256


def a_module(
    opcode: bytes = b"add", name: bytes = b"m", *, of_third: bytes = b"", donor: int = 1, channel: int = 5
) -> bytes:
    """Encode three instructions, of which the third takes the second twice."""
    donors = field(18, field(1, field(1, donor) + field(2, b"\x00")))
    return module(
        instruction(1, b"parameter", ARRAY),
        instruction(2, opcode, ARRAY, field(36, 1), field(26, channel)),
        instruction(3, b"multiply", ARRAY, field(36, 2), field(36, 2), of_third),
        rest=field(1, name) + donors,
    )


@pytest.mark.parametrize(
    "other",
    [
        a_module(b"subtract"),
        a_module(of_third=field(36, 1)),
        a_module(of_third=field(14, b"\x01")),
        a_module(of_third=field(63, b"LT")),
        a_module(of_third=field(8, b"literal")),
        a_module(of_third=field(8, bytes(300_000))),
        a_module(donor=2),
    ],
    ids=["opcode", "operand", "dimensions", "direction", "constant", "large constant", "donor"],
)
def test_a_protobuf_of_another_program_has_another_fingerprint(other: bytes, tmp_path: Path) -> None:
    """Fields that this version does not know count too."""
    assert of_proto(tmp_path, other) not in (None, of_proto(tmp_path, a_module()))


def test_large_constants_count_by_their_content(tmp_path: Path) -> None:
    """A constant that is stepped over is hashed on the way."""
    zeros, ones = (a_module(of_third=field(8, value * 300_000)) for value in (b"\x00", b"\x01"))
    assert of_proto(tmp_path, zeros) != of_proto(tmp_path, ones)


@pytest.mark.parametrize(
    "change",
    [
        lambda: a_module(name=b"other"),
        lambda: a_module(channel=500),
        lambda: a_module(of_third=field(7, field(2, b"op"))),
        lambda: a_module(of_third=field(40, b"\x08\x01") + field(68, b"") + field(37, b"\x01")),
    ],
)
def test_a_protobuf_of_another_compilation_has_the_same(change: Callable[[], bytes], tmp_path: Path) -> None:
    """Module name, channel number, metadata, sharding and control dependencies do not count."""
    assert of_proto(tmp_path, change()) == of_proto(tmp_path, a_module())


def test_donors_are_read_from_the_protobuf(tmp_path: Path) -> None:
    """Field 18 of the module."""
    path = tmp_path / "m.hlo.pb"
    path.write_bytes(a_module(donor=4))
    assert read_proto(path).header.donors == (Donor(4, "{0}"),)


def test_renamed_real_modules_keep_their_fingerprint(tmp_path: Path) -> None:
    """The names of all instructions and computations are others: still the same programs."""
    texts = [path.read_text() for path in sorted((DATA / "hlo").rglob("*after_optimizations.txt"))]
    texts = [text for text in texts if "  ROOT %" in text]
    assert len(texts) > 3
    for text in texts:
        renamed = re.sub(r"%([A-Za-z][\w.-]*)", r"%\1.99", text)
        assert of_text(tmp_path, renamed) == of_text(tmp_path, text) is not None
