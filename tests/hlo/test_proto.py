"""The compiler's protobuf: the same facts as the texts, and what hostile files are refused for."""

from __future__ import annotations

import dataclasses
import gzip
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.dump.headers import Attributes, Header
from ingest.dump.parse import parse_dump
from ingest.dump.records import Dump
from ingest.dump.shapes import ELEMENT_BITS
from ingest.errors import DumpError
from ingest.hlo import messages
from ingest.hlo.assignment import HloProto
from ingest.hlo.budget import Budget
from ingest.hlo.compare import Comparison, Difference, comparable_shape
from ingest.hlo.proto import read_proto
from ingest.hlo.records import Alias
from ingest.hlo.shape_text import PRIMITIVE_TYPES, dtype_of, part_of, shape_text
from ingest.hlo.text import read_hlo_text
from ingest.hlo.wire import LEAF_LIMIT, MAX_BYTES
from tests.support.instructions import Instruction, instructions
from tests.support.protobufs import field, varint

DATA = Path(__file__).parents[1] / "data" / "hlo"
PROTOS = sorted(DATA.rglob("*.hlo.pb"))
CONDITIONAL = DATA / "jaxlib-0.10.2-cpu" / "module_0004.jit_cd.cpu_after_optimizations.hlo.pb"
DONATION = DATA / "jaxlib-0.10.2-cpu" / "module_0010.jit_dn.cpu_after_optimizations.hlo.pb"
SORT = DATA / "jaxlib-0.4.36-cpu" / "module_0007.jit_so.cpu_after_optimizations.hlo.pb"
TENSORFLOW = DATA / "tf-1.15-cpu" / "module_0003.after_optimizations.hlo.pb"
TPU = DATA / "tpu-jaxlib-0.10.0" / "module_0024.jit_dn.cl_897798484.after_optimizations.hlo.pb"


def sibling(path: Path, ending: str) -> Path:
    """Return the file of the same stem with another ending."""
    return path.with_name(path.name.removesuffix(".hlo.pb") + ending)


def dump_of(path: Path) -> Dump:
    """Parse the dump that lies beside a protobuf."""
    return parse_dump(sibling(path, "-buffer-assignment.txt"))


def compare(proto: HloProto, dump: Dump) -> tuple[Difference, ...]:
    """Hold a dump, as records, against a protobuf; in two pieces."""
    comparison = Comparison(proto)
    comparison.take_allocations(
        Header(
            one.index,
            None,
            one.size,
            Attributes(
                one.color,
                one.page,
                one.parameter_number,
                one.parameter_shape_index,
                one.parameter_shape,
                one.output_shape,
                one.is_constant,
                one.is_thread_local,
                one.maybe_live_out,
                one.is_preallocated_temp,
                (),
                one.kind,
            ),
            0,
        )
        for one in dump.allocations
    )
    half = len(dump.values) // 2
    for values in (dump.values[:half], dump.values[half:]):
        comparison.take_values(
            [
                (
                    str(one.id),
                    one.instruction,
                    one.shape_index or "",
                    "",
                    "" if one.color is None else str(one.color),
                    str(one.size),
                    str(one.offset),
                    one.shape,
                )
                for one in values
            ],
            [one.id for one in values],
            [one.allocation_index for one in values],
            [one.offset for one in values],
            [one.size for one in values],
        )
    comparison.finish()
    return tuple(comparison.first)


def facts_of_the_text(instruction: Instruction) -> Instruction:
    """Return an instruction without what text and protobuf tell in different words."""
    return instruction._replace(shape=comparable_shape(instruction.shape))


def assert_same_module(path: Path) -> None:
    """Compare a protobuf's module with the HLO text of the same stem."""
    proto, text = read_proto(path), read_hlo_text(sibling(path, ".txt"))
    assert proto.problems == text.problems == ()
    assert proto.header.name == text.header.name
    assert proto.header.is_scheduled == text.header.is_scheduled
    assert proto.header.aliases == text.header.aliases
    assert proto.entry_computation == text.entry_computation
    if text.header.entry_computation_layout:
        # TF 2.10 parts the shapes with a comma alone.
        layouts = (proto.header.entry_computation_layout or "", text.header.entry_computation_layout)
        assert len({comparable_shape(layout).replace(", ", ",") for layout in layouts}) == 1
    if text.frames:
        assert proto.frames == text.frames
    told = {item.instruction: facts_of_the_text(item) for item in instructions(proto.instructions)}
    left_out = [name for name in told if name not in set(text.instructions.instruction)]
    assert {told[name].opcode for name in left_out} <= {"get-tuple-element"}  # since jaxlib 0.11
    for item in map(facts_of_the_text, instructions(text.instructions)):
        other = told[item.instruction]
        if not text.frames:
            other = other._replace(stack_frame_id=None)
        if left_out:
            sources = [told[name].operands[0] if name in left_out else name for name in other.operands]
            other = other._replace(operands=tuple(sources))
        assert other == item
    for computation in {item.computation for item in proto.schedule}:
        names = [
            item.instruction for item in instructions(text.instructions) if item.computation == computation
        ]
        order = [
            item.instruction for item in instructions(proto.instructions) if item.computation == computation
        ]
        assert [name for name in order if name in set(names)] == names


@pytest.mark.parametrize("path", PROTOS, ids=lambda path: f"{path.parent.name}/{path.name[:20]}")
def test_the_module_is_that_of_the_hlo_text(path: Path) -> None:
    """Header, frames, instructions in every fact, schedule and aliases agree with the text."""
    assert_same_module(path)


@pytest.mark.parametrize("path", PROTOS, ids=lambda path: f"{path.parent.name}/{path.name[:20]}")
def test_the_assignment_is_that_of_the_dump(path: Path) -> None:
    """Every allocation and value agrees with the dump; so does what the protobuf only implies."""
    proto, dump = read_proto(path), dump_of(path)
    assert compare(proto, dump) == ()
    assert [item.kind for item in proto.allocations] == [item.kind for item in dump.allocations]
    assert [item.value_id for item in proto.values] == sorted(item.id for item in dump.values)
    told = {item.value_id: item for item in proto.values}
    for value in dump.values:
        assert told[value.id].is_phi == value.is_phi
        assert told[value.id].is_array == (value.shape_index is None)
        if told[value.id].element_type:
            kind = "tuple" if value.shape.startswith("(") else value.shape.partition("[")[0]
            assert told[value.id].element_type == kind


def assert_same_rows(proto: HloProto, dump: Dump) -> None:
    """Compare what is worked out from a protobuf, and not told by it, with the dump."""
    told = {item.value_id: item for item in proto.values}
    places: dict[int, list[tuple[str, str]]] = {}
    for position in proto.positions:
        places.setdefault(position.value_id, []).append((position.instruction, position.shape_index))
    for value in dump.values:
        if value.positions is not None:  # since TF 1.15
            expected = [(place.instruction, place.shape_index or "{}") for place in value.positions]
            assert sorted(places[value.id]) == sorted(expected)
            assert places[value.id][0] == expected[0] == (value.instruction, value.shape_index or "{}")
            assert told[value.id].is_phi == value.is_phi
    has_shapes = any(item.parameter_shape for item in dump.allocations)  # since TF 2.2
    for allocation, other in zip(dump.allocations, proto.allocations, strict=True):
        assert other.kind == allocation.kind
        if has_shapes:
            for one, two in (
                (allocation.parameter_shape, other.parameter_shape),
                (allocation.output_shape, other.output_shape),
            ):
                assert comparable_shape(one or "") == comparable_shape(two or "")


@pytest.mark.parametrize("path", PROTOS, ids=lambda path: f"{path.parent.name}/{path.name[:20]}")
def test_a_protobuf_alone_gives_the_rows_of_the_text(path: Path) -> None:
    """Positions, phi, shapes of parameters and of the output are worked out as the text prints them."""
    assert_same_rows(read_proto(path), dump_of(path))


def test_donation_is_told() -> None:
    """The alias pair, the aliased parameter and its tuple table are told."""
    proto = read_proto(DONATION)
    assert proto.header.aliases == (Alias("{0}", 0, "{}", "may"),)
    assert [item.index for item in proto.allocations if item.is_parameter_aliased_with_output] == [0]
    assert [item.kind for item in proto.allocations if item.is_tuple] == ["output"]


@pytest.mark.parametrize(
    ("start", "aliased"),
    [
        ("jaxlib-0.4.36-cpu", {None}),
        ("tf-1.15-cpu", {None}),
        ("jaxlib-0.11.2-cpu", {False}),
        ("jaxlib-0.10.2-cpu", {False, True}),
        ("tpu-jaxlib-0.10.0", {False, True}),
    ],
)
def test_what_a_release_did_not_write_is_not_false(start: str, aliased: set[bool | None]) -> None:
    """A missing is_parameter_aliased_with_output is false only where the release shows that it has one."""
    found: set[bool | None] = set()
    for path in sorted((DATA / start).glob("*.pb")):
        found |= {item.is_parameter_aliased_with_output for item in read_proto(path).allocations}
    assert found == aliased


def test_heap_events_are_told() -> None:
    """Each value of a trace is allocated or shares, and freed in the end."""
    proto = read_proto(SORT)
    for trace in proto.heap_traces:
        begun = [event.value_id for event in trace.events if event.kind != "free"]
        freed = [event.value_id for event in trace.events if event.kind == "free"]
        assert sorted(begun) == sorted(freed)
        assert {event.kind for event in trace.events} <= {"alloc", "share", "free"}
        assert all((event.shares_with is not None) == (event.kind == "share") for event in trace.events)
    values = {value.value_id: value.allocation_index for value in proto.values}
    assert proto.heap_traces
    assert all(
        values[event.value_id] == trace.allocation_index
        for trace in proto.heap_traces
        for event in trace.events
    )


def test_peak_buffers_are_told() -> None:
    """Since jaxlib 0.10.2 the values at an allocation's peak are listed; they lie in it."""
    proto = read_proto(CONDITIONAL)
    values = {value.value_id: value.allocation_index for value in proto.values}
    assert proto.peak_buffers
    for peak in proto.peak_buffers:
        assert {values[id_] for id_ in peak.value_ids} <= {peak.allocation_index}


def test_values_that_share_a_buffer_are_told() -> None:
    """Both branches of a conditional and its result are one buffer: same allocation, same offset."""
    proto = read_proto(CONDITIONAL)
    values = {value.value_id: value for value in proto.values}
    assert proto.buffer_aliases
    for alias in proto.buffer_aliases:
        assert alias.alias_id is not None
        one, other = values[alias.value_id], values[alias.alias_id]
        assert (other.instruction, other.shape_index) == (alias.instruction, alias.shape_index)
        assert (one.allocation_index, one.offset) == (other.allocation_index, other.offset)


def test_frames_are_told_also_where_the_text_has_none() -> None:
    """jaxlib 0.4 writes stack frames to the protobuf alone."""
    proto = read_proto(SORT)
    assert [frame.function for frame in proto.frames][:2] == ["<module>", "run"]
    assert max(filter(None, proto.instructions.stack_frame_id)) <= len(proto.frames)


def test_names_stand_for_ids_in_old_files() -> None:
    """TensorFlow names the defining instruction; the computation is found by it."""
    proto = read_proto(TENSORFLOW)
    assert {value.computation for value in proto.values} <= set(proto.instructions.computation)
    assert all(value.shape for value in proto.values)
    assert proto.schedule == ()


def test_a_compressed_file_is_read_as_the_plain_one(tmp_path: Path) -> None:
    """gzip is told by the content; hash and size are those of the uncompressed bytes."""
    path = tmp_path / "module.hlo.pb.gz"
    path.write_bytes(gzip.compress(CONDITIONAL.read_bytes()))
    assert read_proto(path) == read_proto(CONDITIONAL)
    assert read_proto(path).proto_bytes == CONDITIONAL.stat().st_size


def test_every_difference_is_a_sentence_with_both_figures() -> None:
    """Each fact that both tell is compared, and only those that differ are told."""
    proto, dump = read_proto(CONDITIONAL), dump_of(CONDITIONAL)
    allocation, value = dump.allocations[0], dump.values[0]
    changes: list[tuple[str, Any]] = [
        ("size", dataclasses.replace(allocation, size=allocation.size + 1000)),
        ("color", dataclasses.replace(allocation, color=7)),
        ("flags", dataclasses.replace(allocation, is_constant=True)),
        ("flags", dataclasses.replace(allocation, is_thread_local=True)),
        ("flags", dataclasses.replace(allocation, maybe_live_out=not allocation.maybe_live_out)),
        ("parameter", dataclasses.replace(allocation, parameter_number=9)),
        ("parameter", dataclasses.replace(allocation, parameter_shape_index="{3}")),
    ]
    for kind, changed in changes:
        (difference,) = compare(
            proto, dataclasses.replace(dump, allocations=(changed, *dump.allocations[1:]))
        )
        assert (difference.kind, difference.allocation_index) == (kind, allocation.index)
        assert re.fullmatch(r"allocation 0: the .* is .* in the text, .* in the protobuf", difference.message)
    changes = [
        ("assignment", dataclasses.replace(value, allocation_index=3)),
        ("offset", dataclasses.replace(value, offset=value.offset + 8)),
        ("color", dataclasses.replace(value, color=5)),
        ("instruction", dataclasses.replace(value, instruction="other")),
        ("instruction", dataclasses.replace(value, shape_index="{1}")),
        ("shape", dataclasses.replace(value, shape="f32[1]")),
    ]
    for kind, changed in changes:
        (difference,) = compare(proto, dataclasses.replace(dump, values=(changed, *dump.values[1:])))
        assert (difference.kind, difference.value_id) == (kind, value.id)
        assert re.fullmatch(
            rf"value {value.id}: the .* is .* in the text, .* in the protobuf", difference.message
        )
    larger = dataclasses.replace(value, size=value.size + 4096)
    differences = compare(proto, dataclasses.replace(dump, values=(larger, *dump.values[1:])))
    assert [item.message for item in differences] == [
        f"value {value.id}: the size is {value.size + 4096:,} in the text, {value.size:,} in the protobuf",
        f"value {value.id}: the size of the buffer itself is {value.size + 4096:,} in the text,"
        f" {value.size:,} in the protobuf",
    ]


def test_what_only_one_of_them_has_is_a_difference() -> None:
    """Missing allocations and values are told with both numbers."""
    proto, dump = read_proto(CONDITIONAL), dump_of(CONDITIONAL)
    fewer = dataclasses.replace(dump, allocations=dump.allocations[1:], values=dump.values[2:])
    count, values = len(dump.allocations), len(dump.values)
    assert [item.message for item in compare(proto, fewer)] == [
        f"{count - 1} allocations in the text, {count} in the protobuf: the protobuf alone has 0,"
        " which the text lacks",
        f"{values - 2} values in the text, {values} in the protobuf: the protobuf alone has"
        f" {dump.values[0].id}, {dump.values[1].id}, which the text lacks",
    ]


def test_every_element_type_of_the_format_has_a_number() -> None:
    """Each type that shapes print is a number of PrimitiveType; numbers to come keep theirs."""
    assert set(ELEMENT_BITS) - {"f8e4m3b11"} | {"tuple", "token", "opaque", "buffer"} == set(
        PRIMITIVE_TYPES.values()
    )
    assert (dtype_of(11), dtype_of(0), dtype_of(99)) == ("f32", None, "type_99")


@pytest.mark.parametrize(
    ("expected", "fields"),
    [
        ("f32[]", {"element_type": 11, "layout": {}}),
        ("f32[2,3]", {"element_type": 11, "dimensions": [2, 3]}),
        ("f32[0,4]{1,0}", {"element_type": 11, "dimensions": [0, 4], "layout": {"minor_to_major": [1, 0]}}),
        ("token[]", {"element_type": 17, "layout": {}}),
        ("()", {"element_type": 13}),
        ("(s32[], (pred[]))", {"element_type": 13, "tuple_shapes": [
            {"element_type": 4}, {"element_type": 13, "tuple_shapes": [{"element_type": 1}]}]}),
        ("(u8[], u8[], u8[], u8[], u8[], /*index=5*/u8[])",
         {"element_type": 13, "tuple_shapes": [{"element_type": 6}] * 6}),
        ("b(f32[8]{0})", {"element_type": 34, "tuple_shapes": [
            {"element_type": 11, "dimensions": [8], "layout": {"minor_to_major": [0]}}]}),
        ("s64[<=1024,2,?]{2,1,0}", {"element_type": 5, "dimensions": [1024, 2, -(2**63)],
                                   "is_dynamic_dimension": [True, False, True],
                                   "layout": {"minor_to_major": [2, 1, 0]}}),
        ("f32[]{:T(128)}", {"element_type": 11, "layout": {"tiles": [{"dimensions": [128]}],
                                                           "tail_padding_alignment_in_elements": 1}}),
        ("bf16[30,200]{1,0:T(8,128)(2,1)L(1024)E(16)S(5)SC(0:4,8)M(8)}", {
            "element_type": 16, "dimensions": [30, 200], "layout": {
                "minor_to_major": [1, 0], "tiles": [{"dimensions": [8, 128]}, {"dimensions": [2, 1]}],
                "tail_padding_alignment_in_elements": 1024, "element_size_in_bits": 16, "memory_space": 5,
                "split_configs": [{"dimension": 0, "split_indices": [4, 8]}],
                "dynamic_shape_metadata_prefix_bytes": 8}}),
        ("f32[4,4]{1,0:D(D,C+~)T(*,2)#(u32)*(u64)P((f32[2]{0}, u32[]))}", {
            "element_type": 11, "dimensions": [4, 4], "layout": {
                "minor_to_major": [1, 0], "dim_level_types": [0, 1], "dim_unique": [True, False],
                "dim_ordered": [True, False], "tiles": [{"dimensions": [-(2**63), 2]}],
                "index_primitive_type": 8, "pointer_primitive_type": 9,
                "physical_shape": {"element_type": 13, "tuple_shapes": [
                    {"element_type": 11, "dimensions": [2], "layout": {"minor_to_major": [0]}},
                    {"element_type": 8}]}}}),
    ],
)  # fmt: skip
def test_shapes_are_printed_as_xla_does(expected: str, fields: dict[str, Any]) -> None:
    """Every attribute of a layout stands in its place and form."""
    assert shape_text(messages.Shape(**fields)) == expected


def test_parts_of_tuples_are_found_by_their_index() -> None:
    """An index that leads nowhere gives None."""
    leaf = {"element_type": 11, "dimensions": [2]}
    shape = messages.Shape(element_type=13, tuple_shapes=[leaf, {"element_type": 13, "tuple_shapes": [leaf]}])
    assert shape_text(part_of(shape, (1, 0))) == "f32[2]"
    assert part_of(shape, (2,)) is None
    assert part_of(shape, (0, 0)) is None


SHAPE = field(3, field(2, 11) + field(3, varint(8)))


def module(*instructions: bytes, name: bytes = b"m") -> bytes:
    """Encode an HloProto of one computation."""
    body = field(1, b"main") + b"".join(field(2, item) for item in instructions) + field(5, 1)
    return field(1, field(1, name) + field(3, body) + field(6, 1))


def instruction(name: bytes = b"a", *rest: bytes, id_: int = 1) -> bytes:
    """Encode an HloInstructionProto."""
    return field(1, name) + field(2, b"add") + SHAPE + field(35, id_) + b"".join(rest)


def read(
    tmp_path: Path, data: bytes, *, max_bytes: int = MAX_BYTES, budget: Budget | None = None
) -> HloProto:
    """Write and read a protobuf."""
    path = tmp_path / "module_0001.m.cpu_after_optimizations.hlo.pb"
    path.write_bytes(data)
    return read_proto(path, max_bytes=max_bytes, budget=budget)


def test_unknown_fields_are_stepped_over(tmp_path: Path) -> None:
    """Fields of a later release, in any wire type, change nothing."""
    unknown = (
        field(500, b"x" * 300)
        + field(501, 7)
        + varint(502 << 3 | 1)
        + b"8 bytes."
        + varint(503 << 3 | 5)
        + b"4444"
    )
    plain = read(tmp_path, module(instruction()))
    more = read(tmp_path, unknown + module(instruction(b"a", unknown)) + unknown)
    assert more.instructions == plain.instructions


def test_a_literal_of_megabytes_is_not_parsed(tmp_path: Path) -> None:
    """A large instruction is read without its constant, also where its fields come in odd order."""
    literal = field(8, b"\x00" * (LEAF_LIMIT + (1 << 20)))
    proto = read(tmp_path, module(literal + instruction(b"big"), instruction(b"b", field(36, 1), id_=2)))
    assert proto.instructions.instruction == ["big", "b"]
    assert proto.instructions.shape == ["f32[8]"] * 2
    assert proto.instructions.operands == [(), ("big",)]


def test_bytes_that_are_no_utf8_are_replaced(tmp_path: Path) -> None:
    """XLA writes op_names of any bytes; the file is read all the same."""
    proto = read(tmp_path, module(instruction(b"a", field(7, field(2, b"op\xff")))))
    assert proto.instructions.op_name == ["op\ufffd"]


def test_ids_of_two_halves_are_found_by_the_lower_one(tmp_path: Path) -> None:
    """An operand told by its number within the computation is the one of that computation."""
    first = instruction(b"a", id_=(1 << 32) | 5)
    proto = read(tmp_path, module(first, instruction(b"b", field(36, 5), id_=(1 << 32) | 6)))
    assert proto.instructions.operands == [(), ("a",)]


def test_what_does_not_fit_together_is_a_problem_not_an_error(tmp_path: Path) -> None:
    """Unknown ids of operands, computations and values leave the rest as it is."""
    value = field(1, field(1, 3) + field(2, 32) + field(3, field(4, 99)))
    assigned = field(
        3, field(1, 0) + field(2, 32) + field(9, field(1, 3) + field(3, 32)) + field(9, field(1, 4))
    )
    odd = instruction(b"a", field(36, 77), field(38, 78))
    proto = read(tmp_path, module(odd, instruction(b"b")) + field(3, value + assigned))
    assert [problem.message for problem in proto.problems] == [
        "1 instructions have the id of another one",
        "a has an operand with the unknown id 77",
        "a calls a computation with the unknown id 78",
        "value 3 is defined by an instruction that the module lacks",
        "allocation 0 holds the unknown value 4",
    ]
    (value_read,) = proto.values
    assert (value_read.size, value_read.shape, value_read.allocation_index) == (32, None, 0)


def attempt(path: Path, data: bytes) -> tuple[HloProto | None, DumpError | None]:
    """Write and read a protobuf that may be refused."""
    path.write_bytes(data)
    try:
        return read_proto(path), None
    except DumpError as error:
        return None, error


def nested(depth: int, *numbers: int) -> bytes:
    """Encode a message that holds itself many times over, by way of these fields."""
    data = b""
    for _ in range(depth):
        for number in reversed(numbers):
            data = field(number, data)
    return data


GOOD = module(instruction())


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "no HLO module"),
        (b"HloModule m\n\nENTRY main {\n", "wire type|reaches beyond|cut off"),
        (b"BufferAssignment:\n", "wire type|reaches beyond|cut off"),
        (field(1, b""), "no HLO module"),
        (module(), "no HLO module"),
        (module(instruction(), name=b""), "no HLO module"),
        (module(b"\x0a\x01a"), "no name or opcode"),
        (module(b""), "no name or opcode"),
        (field(1, 5), "wire type"),
        (field(1, field(3, 5)), "no HLO module"),
        (field(1, field(500, bytes(1 << 20)) + field(3, 5) + b"\x1a\x7f"), "reaches beyond"),
        (GOOD[:-1], "cut off"),
        (GOOD + b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\x7f", "cut off"),
        (GOOD + b"\x0a" + b"\xff" * 20, "more than 64 bits"),
        (GOOD + b"\x0b", "wire type 3"),
        (field(1, field(1, b"m") + varint(3 << 3 | 2) + varint(1 << 40)), "damaged"),
        (module(field(1, b"a") + field(2, b"b") + field(3, nested(200, 4))), "damaged"),
        (module(field(1, b"a") + field(2, b"b") + field(3, nested(100, 5, 10))), "damaged"),
        (field(3, field(4, field(1, field(1, 9)))) + GOOD, "unknown kind 9"),
        (module(field(1, b"a" * (17 << 20)) + field(2, b"b")), "larger than any"),
    ],
)
def test_what_is_no_protobuf_of_a_module_is_refused(tmp_path: Path, data: bytes, message: str) -> None:
    """Other files, impossible lengths, deep nesting and cuts give DumpError with file and place."""
    with pytest.raises(DumpError, match=message) as caught:
        read(tmp_path, data)
    assert caught.value.kind == "hlo-proto"
    assert caught.value.file.endswith(".hlo.pb")


@pytest.mark.parametrize("step", [31, pytest.param(3, marks=pytest.mark.slow)])
@pytest.mark.parametrize("path", [CONDITIONAL, TENSORFLOW], ids=lambda path: path.parent.name)
def test_a_cut_is_always_seen(tmp_path: Path, path: Path, step: int) -> None:
    """A file cut anywhere is refused, save between module and assignment, where the assignment is missed."""
    data = path.read_bytes()
    for length in range(0, len(data), step):
        proto, error = attempt(tmp_path / path.name, data[:length])
        assert error or (proto and not proto.has_assignment)


def test_a_compressed_bomb_ends_at_the_limit(tmp_path: Path) -> None:
    """A few KB that stand for more than the limit are refused when it is reached: the end is not read."""
    path = tmp_path / "module.hlo.pb.gz"
    bomb = gzip.compress(GOOD + field(500, b"\x00" * (8 << 20)), 1)
    path.write_bytes(bomb[: len(bomb) // 2])
    with pytest.raises(DumpError, match="more than 1,000,000 bytes"):
        read_proto(path, max_bytes=1_000_000)
    path.write_bytes(bomb)
    assert read_proto(path).proto_bytes > 8 << 20


def test_a_damaged_compressed_file_is_refused(tmp_path: Path) -> None:
    """A gzip stream that ends early or fails its checksum is no module."""
    data = gzip.compress(CONDITIONAL.read_bytes())
    for damaged in (data[:-30], data[:100] + b"\x00\x00\x00" + data[103:], data[:3]):
        with pytest.raises(DumpError):
            read(tmp_path, damaged)


@pytest.mark.parametrize(
    "flood",
    [
        field(1, field(3, b"") * 2000),
        field(1, field(17, field(4, b"") * 2000)),
        field(1, field(7, field(1, b"") * 2000)),
        field(3, field(1, b"") * 2000),
        field(3, field(3, field(9, b"") * 2000)),
        field(3, field(3, field(10, b"\x01" * 2000))),
        field(3, field(4, field(1, b"") * 2000)),
    ],
)
def test_floods_of_small_messages_are_refused(tmp_path: Path, flood: bytes) -> None:
    """Two bytes may stand for a record of hundreds; their number is limited."""
    assert read(tmp_path, GOOD + flood).instructions.instruction
    with pytest.raises(DumpError, match="more than 1,000 instructions, values and events"):
        read(tmp_path, GOOD + flood, budget=Budget(records=1000))


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for the one file of each example."""
    return tmp_path_factory.mktemp("proto")


@settings(deadline=None)
@given(data=st.data())
def test_no_change_of_bytes_raises_anything_else(scratch: Path, data: st.DataObject) -> None:
    """A real file with some bytes changed is read or refused with DumpError."""
    content = bytearray(data.draw(st.sampled_from(PROTOS)).read_bytes())
    places = st.integers(0, len(content) - 1)
    for place, byte in data.draw(st.lists(st.tuples(places, st.integers(0, 255)), min_size=1, max_size=8)):
        content[place] = byte
    proto, error = attempt(scratch / "module.hlo.pb", bytes(content))
    assert error or (proto and len(instructions(proto.instructions)) == len(proto.instructions))


def test_every_protobuf_of_the_corpus_agrees_with_its_texts(shared_corpus: Path) -> None:
    """206 pairs from TF 1.14 to jaxlib 0.11.2 with 5,065 values: not one difference."""
    paths = sorted(shared_corpus.rglob("*.hlo.pb"))
    instructions = allocations = values = 0
    for path in paths:
        assert_same_module(path)
        proto, dump = read_proto(path), dump_of(path)
        assert compare(proto, dump) == (), path
        assert_same_rows(proto, dump)
        instructions += len(proto.instructions)
        allocations += len(proto.allocations)
        values += len(proto.values)
    assert (len(paths), instructions, allocations, values) == (206, 13_142, 2_470, 5_065)
