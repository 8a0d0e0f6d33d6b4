"""The traps of the format, each shown by a real dump, or by a hand-made one where none is at hand."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ingest.dump import features
from ingest.dump.parse import parse_dump, parse_set
from ingest.dump.records import Dump, LiveRange, Position, Use, Value
from ingest.errors import DumpError
from tests.support.dump_sets import DATA, DumpSet, committed_sets

SET_PATHS = {one.name: one.primary for one in committed_sets()}


def path_of(start: str) -> Path:
    """Return the primary file of the one committed set whose name begins so."""
    (path,) = [path for name, path in SET_PATHS.items() if name.startswith(start)]
    return path


def load(start: str) -> Dump:
    """Parse the one committed set whose name begins so."""
    return parse_dump(path_of(start))


def value_of(dump: Dump, number: int) -> Value:
    """Return the value of an id."""
    (value,) = [value for value in dump.values if value.id == number]
    return value


def notices_of(dump: Dump) -> list[tuple[str, str | None]]:
    """Return kind and text of each notice."""
    return [(notice.kind, notice.text) for notice in dump.notices]


# -- hazards A and B: the end of an instruction's text -----------------------------------------------


def test_a_glued_newline_ends_the_instruction_text() -> None:
    """Hazard A: where the newline after an instruction is missing, the next value's head is not its text."""
    dump = load("dumps/jaxlib-0.4.26-cpu/module_0023")
    assert features.GLUED_NEWLINE in dump.features
    assert value_of(dump, 4).instruction_text == "%Arg_0.1 = pred[0]{0} parameter(0)"
    constant = value_of(dump, 5)
    assert (constant.instruction, constant.shape_index, constant.color) == ("constant.6", None, 0)
    assert constant.instruction_text == "%constant.6 = s64[] constant(94846775565616)"
    assert constant.positions == (Position("constant.6", None),)


def test_a_glued_newline_is_told_by_the_only_value() -> None:
    """Hazard A: with one value nothing is glued to it, but a blank line is missing before the ranges."""
    dump = load("dumps/jaxlib-0.4.26-cpu/module_0027")
    assert [value.instruction_text for value in dump.values] == ["%tuple.1 = () tuple()"]
    assert features.GLUED_NEWLINE in dump.features


def test_instruction_text_may_take_several_lines() -> None:
    """Hazard B: raw line breaks in a backend config belong to the instruction's text."""
    dump = load("dumps/jaxlib-0.8.3-cpu/module_0001")
    text = value_of(dump, 4).instruction_text
    assert text is not None
    assert text.startswith('%custom-call.1 = f32[8,8]{1,0} custom-call(%Arg_0.1), custom_call_target="foo"')
    assert text.endswith('backend_config={"a":\n "b",\n"c":{"d":"x\ny"}}')
    assert features.MULTILINE_INSTRUCTION in dump.features
    assert [value.instruction for value in dump.values] == ["Arg_0.1", "custom-call.1", "wrapped_add"]


def test_a_head_glued_to_several_lines_is_found() -> None:
    """Hazards A and B at once: only a head that ` positions:` follows ends the text."""
    dump = load("handmade/glued-multiline/")
    assert [value.id for value in dump.values] == [3, 4, 5, 6]
    text = value_of(dump, 4).instruction_text
    assert text is not None
    assert text.endswith('{"a":\n "b <7 not.a.value @0>",\n<8 neither @0>\n"c":{"d":"x\ny"}}')
    phi = value_of(dump, 5)
    assert (phi.instruction, phi.shape_index, phi.is_phi) == ("while.3", "{0}", True)


# -- hazard C: the printed peak ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("start", "printed_time", "peak_time", "peak_bytes"),
    [
        # A step of a GPU scan with offloaded activations: the peak is 28 % above what is printed.
        ("dumps/gpu-h100-jaxlib-0.10.2/module_3325", 31, 71, 228_589_624),
        # Printed is the sum of unpadded sizes of values of which many share their bytes: 12 317 are held.
        ("dumps/jaxlib-0.10.0-cpu/", 14, 8, 12_317),
        # A value of 1 byte weighs 8 192 in its tile.
        ("dumps/tpu-v5e-jaxlib-0.8.3/module_0350", 17, 25, 8_192),
    ],
)
def test_the_printed_peak_stands_beside_our_own(
    start: str, printed_time: int, peak_time: int, peak_bytes: int
) -> None:
    """Hazard C: XLA chooses the slot with wrong sizes; it is kept as printed, and the peak measured anew."""
    files = next(one.files for one in committed_sets() if one.name.startswith(start))
    parsed = parse_set({role: os.fspath(path) for role, path in files.items()})
    assert parsed.peak is not None
    assert parsed.liveness is not None
    assert parsed.peak.time == printed_time
    assert (parsed.liveness.peak_time, parsed.liveness.peak_bytes) == (peak_time, peak_bytes)


# -- hazard D: raw labels ----------------------------------------------------------------------------


def test_a_label_may_hold_any_character() -> None:
    """Hazard D: newline, tab, quote, ` (` and non-ASCII letters of a name scope stay in one node."""
    dump = load("dumps/jaxlib-0.9.2-cpu/")
    assert dump.stack_nodes is not None
    labels = [node.label for node in dump.stack_nodes]
    assert labels == [
        "main.2",
        "jit(nm)/mul",
        'jit(nm)/we"ird \\ back\tTab\nNewline é中 {x=%y} // /*index=5*/ <1 a ',
        "params",
        "b,}c",
        "params['w \\'q\\' \"dq\"']['layer/0']",
        "tuple.1",
        "jit(nm)/reduce_sum",
    ]
    assert [node.parent for node in dump.stack_nodes] == [None, 0, 0, 0, 3, 0, 0, 0]


def test_a_label_may_take_three_lines() -> None:
    """Hazard D on TPU: a node reaches to its tail of figures, however many lines that takes."""
    dump = load("dumps/tpu-v5e-jaxlib-0.8.3/module_0021")
    assert dump.stack_nodes is not None
    assert len(dump.stack_nodes) == 7
    inner = dump.stack_nodes[5]
    assert inner.label == "jit(scope4)/new\nline/inner new\nline/dot_general"
    assert (inner.depth, inner.percent, inner.total, inner.current, inner.remaining) == (
        1,
        "16.7",
        8192,
        8192,
        4,
    )


def test_a_label_may_look_like_the_tree() -> None:
    """Hazard D: glyphs, half a tail and the line separators of Unicode in a label change nothing."""
    dump = load("handmade/raw-labels/")
    assert dump.stack_nodes is not None
    assert [node.label for node in dump.stack_nodes] == [
        "main.5",
        'two\nlines\tand "quotes"',
        "b (50.0%, total: 1 bytes",
        "│   └── c",
        "d\u2028\x0b\x0c\x85d",
    ]
    assert {node.depth for node in dump.stack_nodes[1:]} == {1}
    assert dump.stack_nodes[3].percent == "nan"
    assert dump.stack_nodes[4].remaining == -1000


def test_bytes_that_are_no_utf8_are_shown_and_noted(tmp_path: Path) -> None:
    """Hazard D: a byte that is no UTF-8 becomes `\\xff` and one notice."""
    path = tmp_path / "module_0001.jit_f.cpu_after_optimizations-buffer-assignment.txt"
    content = path_of("dumps/jaxlib-0.7.2-cpu/").read_bytes()
    path.write_bytes(content.replace("└── x (".encode(), "└── ".encode() + b"x\xff\xfe ("))
    dump = parse_dump(path)
    assert dump.stack_nodes is not None
    assert dump.stack_nodes[-1].label == "x\\xff\\xfe"
    assert [notice.kind for notice in dump.notices] == ["encoding"]


# -- values ------------------------------------------------------------------------------------------


def test_values_of_2019_are_read() -> None:
    """TF 1.14 prints `name[index](#id @color) [offset,size]: shape`, TF before 2018 no color."""
    dump = load("dumps/tf-1.14-cpu/")
    assert {features.POINTER, features.LOGICAL_BUFFERS} <= dump.features
    value = value_of(dump, 2)
    assert (value.instruction, value.shape_index, value.color) == ("arg_tuple.7", "{1}", 0)
    assert (value.offset, value.size, value.shape) == (0, 4096, "f32[32,32]{1,0}")
    assert dump.allocations[2].address == "0x7ff794057c80"
    assert (dump.total_bytes, dump.schedule, value.positions) == (None, None, None)
    assert {one.is_phi for one in dump.values} == {None}
    oldest = load("handmade/oldest/")
    assert oldest.allocations[0].parameter_number == 0
    assert oldest.allocations[0].parameter_shape_index is None
    assert (value_of(oldest, 0).color, value_of(oldest, 1).shape_index) == (None, "{0,1}")


def test_values_of_tf_1_15_carry_their_uses() -> None:
    """TF 1.15 prints positions and uses inside the allocation, and `PHI` before the name."""
    dump = load("dumps/tf-1.15-cpu/")
    assert features.EMBEDDED_VALUES in dump.features
    phi = value_of(dump, 20)
    assert (phi.instruction, phi.shape_index, phi.is_phi) == ("arg_tuple.7", "{1}", True)
    assert phi.positions == (Position("arg_tuple.7", "{1}"), Position("get-tuple-element.7", None))
    assert phi.uses == (Use("copy.4", 0, None),)
    assert value_of(dump, 14).uses == (Use("copy.2", 0, None), Use("while.29", 0, "{1}"))


def test_phi_values_are_kept() -> None:
    """`(phi)` stands between name and color; such a value is one like every other."""
    dump = load("dumps/jaxlib-0.10.0-cpu/")
    phis = {value.id: (value.instruction, value.shape_index) for value in dump.values if value.is_phi}
    assert phis == {22: ("cond.3", "{}"), 23: ("cond.3", "{0}"), 24: ("cond.3", "{1}")}


def test_nested_indices_are_kept() -> None:
    """An index may go several tuples deep, for values, positions and ranges."""
    dump = load("dumps/jaxlib-0.4.38-cpu/module_0001")
    value = value_of(dump, 4)
    assert (value.instruction, value.shape_index, value.offset) == ("infeed.3", "{0,0}", 192)
    assert value.positions is not None
    assert value.positions[0] == Position("infeed.3", "{0,0}")
    assert dump.ranges is not None
    assert LiveRange("infeed.3", "{0,0}", 1, 5) in dump.ranges


def test_tuple_shapes_keep_their_index_comments() -> None:
    """`/*index=5*/` is part of the shape's text, in value lines and headers."""
    dump = load("dumps/tf-2.5-cpu/1795194692089446")
    leaf = "f32[32,32]{1,0}"
    assert (
        value_of(dump, 26).shape
        == f"({leaf}, {leaf}, {leaf}, {leaf}, {leaf}, /*index=5*/{leaf}, {leaf}, {leaf})"
    )
    shape = dump.allocations[9].output_shape
    assert shape is not None
    assert shape.startswith("(f32[32,32], ")
    assert ", /*index=5*/f32[32,32], " in shape


def test_none_is_no_use() -> None:
    """`(none)` under `uses:` means no use, not one by an instruction of that name."""
    dump = load("dumps/jaxlib-0.11.2-cpu/module_0066")
    assert features.USES_NONE in dump.features
    assert [value.uses for value in dump.values] == [()]


# -- allocations -------------------------------------------------------------------------------------


def test_page_and_color_of_a_header() -> None:
    """Since jaxlib 0.11.1 each header prints its page; a color is printed unless it is 0."""
    dump = load("dumps/tpu-v6e/module_0104")
    assert features.PAGE in dump.features
    assert {allocation.page for allocation in dump.allocations} == {0}
    assert {allocation.color for allocation in dump.allocations} == {0, 1, 2, 5}
    assert load("handmade/no-live-range/").allocations[0].page == 2


def test_reuse_by_another_color_is_told_not_noted() -> None:
    """The block `reused by buffers of a different color` is kept and explains the value's color."""
    dump = load("handmade/color-reuse/")
    assert [(line.allocation_index, line.value_id, line.color) for line in dump.color_reuse] == [(2, 22, 0)]
    assert (dump.color_reuse[0].instruction, dump.color_reuse[0].shape_index) == ("fusion", "{0}")
    assert value_of(dump, 22).color == 0
    assert dump.allocations[2].color == 1
    assert notices_of(dump) == []


def test_another_color_without_that_block_is_noted_once() -> None:
    """A GPU temp arena of its own color holds values of color 0: legal, and noted once an allocation."""
    dump = load("handmade/separate-color/")
    assert [notice.kind for notice in dump.notices] == ["color-differs"]


def test_several_arenas_of_one_color() -> None:
    """A limited heap is printed as several temp arenas; values lie at offsets in their own arena."""
    dump = load("dumps/gpu-h100-multiheap/module_14587")
    arenas = [allocation for allocation in dump.allocations if allocation.is_preallocated_temp]
    assert len(arenas) == 11
    assert {arena.color for arena in arenas} == {0}
    assert dump.total_bytes == sum(allocation.size for allocation in dump.allocations)


def test_an_empty_arena_has_no_values() -> None:
    """TPU prints arenas of no bytes and no values; also a total and a peak of 0."""
    dump = load("dumps/tpu-v5e-jaxlib-0.8.3/module_0001")
    assert dump.allocations[3].size == 0
    assert dump.allocations[3].is_preallocated_temp
    assert all(value.allocation_index != 3 for value in dump.values)
    assert (dump.total_bytes, dump.stack_total, dump.stack_nodes) == (0, 0, ())


def test_sizes_beyond_32_bits() -> None:
    """Sizes of 16 GiB are real; those of 4 EiB still fit."""
    dump = load("dumps/tpu-v5e-jaxlib-0.10.2/module_0106")
    assert dump.allocations[0].size == 17_179_869_184
    assert dump.allocations[0].kind == "parameter+output"
    assert load("handmade/over-long-name/").total_bytes == 2**62 + 2**20


def test_an_unknown_parameter_shape_is_kept() -> None:
    """`|<unknown shape>|` is text like any other."""
    assert load("handmade/unknown-shape/").allocations[0].parameter_shape == "<unknown shape>"


# -- live ranges -------------------------------------------------------------------------------------


def test_an_unbounded_shape_leaves_no_peak() -> None:
    """Where XLA cannot tell the peak, ranges are there and the peak is not."""
    dump = load("handmade/unbounded-peak/")
    assert features.PEAK_UNBOUNDED in dump.features
    assert dump.ranges is not None
    assert len(dump.ranges) == 2
    assert (dump.peak_time, dump.peak_lines, dump.stack_nodes) == (None, None, None)
    assert value_of(dump, 4).shape == "s64[?]{0}"


def test_a_live_range_file_may_say_that_there_is_none() -> None:
    """`HloLiveRange not available` ends without a newline and is neither an error nor a range."""
    dump = load("handmade/no-live-range/")
    assert features.LIVE_RANGE_UNAVAILABLE in dump.features
    assert (dump.schedule, dump.ranges, dump.schedule_length, dump.notices) == (None, None, None, ())


def test_missing_siblings_are_missing_facts(tmp_path: Path) -> None:
    """A primary file of a split set loads alone; what stood in its siblings is None."""
    source = path_of("dumps/jaxlib-0.10.0-cpu/")
    path = tmp_path / source.name
    path.write_bytes(source.read_bytes())
    dump = parse_dump(path)
    assert len(dump.values) == 13
    assert dump.values[0].positions is None
    assert (dump.total_bytes, dump.schedule, dump.ranges, dump.peak_lines) == (None, None, None, None)
    assert features.SPLIT_FILES not in dump.features
    live_range = source.with_name(source.name.replace("-buffer-assignment", "-live-range"))
    with_ranges = parse_dump(path, live_range=live_range)
    assert with_ranges.schedule_length == 15
    assert (with_ranges.total_bytes, with_ranges.values[0].uses) == (None, None)


# -- odd but legal: notices --------------------------------------------------------------------------


def write_changed(tmp_path: Path, old: str, new: str) -> Path:
    """Write the set of jaxlib 0.7.2 with one text changed."""
    path = tmp_path / "module_0001.jit_f.cpu_after_optimizations-buffer-assignment.txt"
    text = path_of("dumps/jaxlib-0.7.2-cpu/").read_bytes().decode()
    assert text.count(old) == 1
    path.write_bytes(text.replace(old, new).encode())
    return path


NEWS = {
    "allocations": (
        "allocation 1: size 80",
        "a new kind of line\nallocation 1: size 80",
        "a new kind of line",
    ),
    "allocations-indented": (
        "\nTotal bytes",
        "  fragmentation: 3 bytes\n\nTotal bytes",
        "  fragmentation: 3 bytes",
    ),
    "total": ("\nUsed values:", "Total bytes reserved: 3\n\nUsed values:", "Total bytes reserved: 3"),
    "sequence": ("    1:concat", "    note\n    1:concat", "    note"),
    "ranges": (
        "    concatenate_convert_fusion{}:1-2",
        "  New:\n    concatenate_convert_fusion{}:1-2",
        "  New:",
    ),
    "peak": ("  Stack trace", "  Reserved: 3 bytes\n  Stack trace", "  Reserved: 3 bytes"),
}


@pytest.mark.parametrize(("old", "new", "line"), NEWS.values(), ids=NEWS.keys())
def test_an_unknown_line_is_noted(old: str, new: str, line: str, tmp_path: Path) -> None:
    """A line of a release to come is kept as a notice with its place; all else loads as before."""
    path = write_changed(tmp_path, old, new)
    dump = parse_dump(path)
    assert notices_of(dump) == [("unknown-line", line)]
    (notice,) = dump.notices
    assert notice.file == os.fspath(path)
    assert notice.line == path.read_bytes().decode().split("\n").index(line) + 1
    plain = load("dumps/jaxlib-0.7.2-cpu/")
    assert (dump.allocations, dump.values) == (plain.allocations, plain.values)
    assert (dump.schedule, dump.ranges, dump.peak_lines) == (plain.schedule, plain.ranges, plain.peak_lines)
    assert dump.stack_nodes == plain.stack_nodes


@pytest.mark.parametrize(
    ("old", "new", "attribute"),
    [
        ("size 80,", "size 80, numa node 3,", "numa node 3"),
        (" at ShapeIndex {}:", " at ShapeIndex {}, pinned:", "pinned"),
        ("size 160, output", "size 160, shard |f32[2], s32[]|, output", "shard |f32[2], s32[]|"),
    ],
)
def test_an_unknown_attribute_is_noted(old: str, new: str, attribute: str, tmp_path: Path) -> None:
    """An attribute of a release to come is kept with the allocation and as a notice."""
    dump = parse_dump(write_changed(tmp_path, old, new))
    assert notices_of(dump) == [("unknown-attribute", attribute)]
    assert attribute in [text for allocation in dump.allocations for text in allocation.unknown]
    plain = load("dumps/jaxlib-0.7.2-cpu/")
    assert [one.parameter_shape for one in dump.allocations] == [
        one.parameter_shape for one in plain.allocations
    ]
    assert [one.kind for one in dump.allocations] == [one.kind for one in plain.allocations]


def test_a_range_without_a_value_is_noted(tmp_path: Path) -> None:
    """A live range of a value that has no allocation is kept and noted."""
    dump = parse_dump(write_changed(tmp_path, "    x.1{}:0-2\n", "    x.1{}:0-2\n    ghost.1{}:0-0\n"))
    assert notices_of(dump) == [("range-without-value", "ghost.1{}")]
    assert dump.ranges is not None
    assert LiveRange("ghost.1", "{}", 0, 0) in dump.ranges


def test_values_that_share_bytes_in_time_are_noted(tmp_path: Path) -> None:
    """Two values on the same bytes, live together beyond a touching slot, are a notice."""
    path = tmp_path / "module_0001.jit_f.cpu_after_optimizations-buffer-assignment.txt"
    text = path_of("handmade/raw-labels/").read_bytes().decode()
    path.write_bytes(text.replace("(size=10,offset=10)", "(size=10,offset=5)").encode())
    assert "overlap" in [notice.kind for notice in parse_dump(path).notices]


def test_a_peak_list_that_does_not_add_up_is_noted(tmp_path: Path) -> None:
    """Printed peak bytes are kept as they are; that they contradict their own sums is told."""
    dump = parse_dump(write_changed(tmp_path, "x.1{}: 80 bytes (cum", "x.1{}: 88 bytes (cum"))
    assert notices_of(dump) == [("peak-list", None), ("stack-tree", None)]
    assert dump.peak_lines is not None
    assert [line.bytes for line in dump.peak_lines] == [160, 88]


def test_line_ends_of_windows_are_mended(tmp_path: Path) -> None:
    """A copy with CR LF and a byte order mark loads with the same facts and two notices."""
    path = tmp_path / "copy.txt"
    content = path_of("dumps/jaxlib-0.7.2-cpu/").read_bytes()
    path.write_bytes(b"\xef\xbb\xbf" + content.replace(b"\n", b"\r\n"))
    dump = parse_dump(path)
    assert sorted(kind for kind, _ in notices_of(dump)) == ["byte-order-mark", "line-ends"]
    assert dump.values == load("dumps/jaxlib-0.7.2-cpu/").values


def test_a_dump_of_values_only_is_no_dump() -> None:
    """A sibling given as the primary file is refused with its name."""
    source = path_of("dumps/jaxlib-0.10.0-cpu/")
    sibling = source.with_name(source.name.replace("-assignment", "-assignment-values"))
    with pytest.raises(DumpError, match="no buffer-assignment dump") as caught:
        parse_dump(sibling)
    assert caught.value.file == os.fspath(sibling)


def test_each_feature_has_a_dump() -> None:
    """Every feature that a text can show is shown by a committed dump."""
    names = {value for name, value in vars(features).items() if name.isupper()}
    shown = {feature for path in SET_PATHS.values() for feature in parse_dump(path).features}
    assert names - {features.PROTOBUF_ALONE} == shown
    assert (DATA / "README.md").is_file()


# -- the end of a file --------------------------------------------------------------------------------


@pytest.mark.parametrize("dump_set", committed_sets(), ids=lambda dump_set: dump_set.name)
def test_a_complete_dump_may_end_in_a_blank_line(dump_set: DumpSet, tmp_path: Path) -> None:
    """What ranks leave that wrote one file at once: nothing can follow, so it loads, with a notice.

    Only allocations as jaxlib 0.10 prints them, and values of TF 2.1 to 2.6, could as well be cut off before
    the next section.
    """
    whole = parse_dump(dump_set.primary)
    for path in dump_set.files.values():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    for role, path in dump_set.files.items():
        content = path.read_bytes()
        if not content.endswith(b"\n"):
            continue  # 'HloLiveRange not available' ends in no line end at all
        (tmp_path / path.name).write_bytes(content + b"\n")
        is_cut = (
            role == "primary"
            and "values" not in dump_set.files
            and not whole.features & {features.LOGICAL_BUFFERS, features.EMBEDDED_VALUES, features.LIVE_RANGE}
        )
        if is_cut:
            with pytest.raises(DumpError, match="blank line before another section"):
                parse_dump(tmp_path / dump_set.primary.name)
        else:
            dump = parse_dump(tmp_path / dump_set.primary.name)
            (line,) = [one.line for one in dump.notices if one.kind == "blank-lines"]
            assert line == content.count(b"\n") + 1
            assert (dump.values, dump.ranges, dump.peak_lines) == (
                whole.values,
                whole.ranges,
                whole.peak_lines,
            )
            assert (dump.features, dump.stack_nodes) == (whole.features, whole.stack_nodes)
        (tmp_path / path.name).write_bytes(content)
