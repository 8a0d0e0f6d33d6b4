"""HLO texts of every era: header, tables of frames and instructions, whole and damaged."""

from __future__ import annotations

import gzip
import re
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.errors import DumpError
from ingest.hlo.blocks import LineBlocks
from ingest.hlo.header import parse_aliases, parse_header
from ingest.hlo.records import Alias, HloText, SourceFrame
from ingest.hlo.text import MAX_PROBLEMS, read_hlo_text
from tests.support.instructions import Instruction, instructions

DATA = Path(__file__).parents[1] / "data" / "hlo"
TEXTS = sorted(path for path in DATA.rglob("*_optimizations.txt"))
CONDITIONAL = DATA / "jaxlib-0.10.2-cpu" / "module_0004.jit_cd.cpu_after_optimizations.txt"
DONATION = DATA / "jaxlib-0.10.2-cpu" / "module_0010.jit_dn.cpu_after_optimizations.txt"
SORT = DATA / "jaxlib-0.4.36-cpu" / "module_0007.jit_so.cpu_after_optimizations.txt"
MULTILINE = DATA / "jaxlib-0.8.3-cpu" / "module_0001.jsonnl.cpu_after_optimizations.txt"
COMPACT = DATA / "jaxlib-0.11.2-cpu" / "module_0004.jit_cd.cpu_after_optimizations.txt"
TENSORFLOW = DATA / "tf-1.15-cpu" / "module_0003.after_optimizations.txt"
TPU = DATA / "tpu-jaxlib-0.10.0" / "module_0024.jit_dn.cl_897798484.after_optimizations.txt"
GPU = DATA / "gpu-h100-multiheap" / "module_1990.jit_cd.sm_9.0a_gpu_after_optimizations.txt"


def instruction(text: HloText, name: str) -> Instruction:
    """Return the instruction of that name."""
    return instructions(text.instructions)[text.instructions.instruction.index(name)]


def module(tmp_path: Path, *lines: str, before: str = "", after: str = "}\n\n") -> Path:
    """Write an HLO text whose entry computation has these lines."""
    path = tmp_path / "module_0001.m.cpu_after_optimizations.txt"
    body = "".join(f"  {line}\n" for line in lines)
    path.write_text(f"HloModule m, is_scheduled=true\n\n{before}ENTRY %main () -> f32[] {{\n{body}{after}")
    return path


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: f"{path.parent.name}/{path.name[:20]}")
def test_every_line_with_an_instruction_is_read(path: Path) -> None:
    """Names, opcodes and roots are those that a plain search finds; nothing is left over."""
    text = read_hlo_text(path)
    lines = [line for line in path.read_text().split("\n") if re.match(r"  (ROOT )?%?\S+ = ", line)]
    assert text.problems == ()
    assert text.instructions.instruction == [
        re.sub(r"^  (ROOT )?%?(\S+) = .*", r"\2", line) for line in lines
    ]
    assert text.instructions.is_root == [line.startswith("  ROOT ") for line in lines]
    assert all(f" {opcode}(" in line for opcode, line in zip(text.instructions.opcode, lines, strict=True))
    assert text.text_bytes == path.stat().st_size


@pytest.mark.parametrize("block_bytes", [61, 500, 4096])
@pytest.mark.parametrize("path", TEXTS, ids=lambda path: f"{path.parent.name}/{path.name[:20]}")
def test_where_blocks_end_does_not_matter(path: Path, block_bytes: int) -> None:
    """Reading in blocks that cut lines, tables and computations gives what reading at once gives."""
    assert read_hlo_text(path, block_bytes=block_bytes) == read_hlo_text(path)


def test_the_header_tells_schedule_and_donation() -> None:
    """Aliases and the layout of parameters and result come from the first line."""
    header = read_hlo_text(DONATION).header
    assert header.name == "jit_dn"
    assert header.is_scheduled
    assert header.aliases == (Alias("{0}", 0, "{}", "may"),)
    assert header.entry_computation_layout == "{(f32[64,64]{1,0}, f32[64]{0})->(f32[64,64]{1,0}, f32[])}"
    assert (header.num_partitions, header.replica_count) == (1, 1)  # not printed


def test_an_old_header_tells_little() -> None:
    """TensorFlow's module has a name and nothing else; what is not told is None."""
    header = read_hlo_text(TENSORFLOW).header
    assert header.name == "cluster_14470531997130261015__.81"
    assert header.entry_computation_layout is None
    assert (header.num_partitions, header.replica_count) == (None, None)
    assert not header.is_scheduled


def test_attributes_of_the_user_are_not_the_modules() -> None:
    """What stands in strings and braces of frontend attributes is stepped over."""
    header = parse_header(
        'HloModule m, is_scheduled=true, frontend_attributes={a="}, num_partitions=7",b={mesh=<["x"=1]>}},'
        " replica_count=2, num_partitions=8"
    )
    assert header is not None
    assert (header.num_partitions, header.replica_count) == (8, 2)


def test_aliases_tell_indexes_and_kinds() -> None:
    """Parts of parameters and of the result are told, and whether they must alias."""
    assert parse_aliases("{ {0}: (0, {}, may-alias), {1, 2}: (3, {0}, must-alias), {3}: (4, {}) }") == (
        Alias("{0}", 0, "{}", "may"),
        Alias("{1,2}", 3, "{0}", "must"),
        Alias("{3}", 4, "{}", "may"),
    )


def test_frames_name_file_function_and_caller() -> None:
    """The four tables are joined; the printed parent is one too high."""
    frames = read_hlo_text(CONDITIONAL).frames
    assert frames[0] == SourceFrame(1, None, "<module>", "/opt/xla/jx.py", 85, 85, 4, 17)
    assert frames[5].function == "t_cond.<locals>.cd.<locals>.<lambda>"
    assert [frame.parent_frame_id for frame in frames] == [None, 1, 2, 3, 4, 5, 5, 5, 5]


def test_a_table_that_prints_parents_as_they_are_is_read_as_it_is(tmp_path: Path) -> None:
    """A parent of 0 says that the release does not print parents one too high."""
    tables = (
        'FileNames\n1 "a.py"\n\nFunctionNames\n1 "f"\n\nFileLocations\n'
        "1 {file_name_id=1 function_name_id=1 line=3}\n\nStackFrames\n"
        "1 {file_location_id=1 parent_frame_id=0}\n2 {file_location_id=1 parent_frame_id=1}\n\n\n"
    )
    frames = read_hlo_text(module(tmp_path, "ROOT %a = f32[] constant(1)", before=tables)).frames
    assert frames == (SourceFrame(1, None, "f", "a.py", 3), SourceFrame(2, 1, "f", "a.py", 3))


def test_an_instruction_tells_its_operands_and_computations() -> None:
    """Operands, called computations, op_name and frame of a conditional are read."""
    text = read_hlo_text(CONDITIONAL)
    conditional = instruction(text, "cond.3")
    assert conditional.opcode == "conditional"
    assert conditional.operands == ("wrapped_convert", "tuple", "tuple")
    assert conditional.called_computations == ("region_0.1", "region_1.2")
    assert conditional.op_name == "jit(cd)/cond"
    assert conditional.stack_frame_id == 5
    assert conditional.is_root
    assert conditional.computation == text.entry_computation == "main.3"


def test_operands_with_shapes_are_read() -> None:
    """TensorFlow prints a shape before each operand, tuples among them."""
    text = read_hlo_text(TENSORFLOW)
    assert instruction(text, "reduce.10").operands == ("arg0.1", "constant.4")
    assert instruction(text, "get-tuple-element.39").operands == ("sort.36",)
    assert instruction(text, "sort.36").called_computations == ("compare-greater-than.14",)


def test_names_without_percent_signs_are_read() -> None:
    """From TF 2.7 to jaxlib 0.5 names stand bare, and the source line in the metadata."""
    text = read_hlo_text(SORT)
    reduce = next(item for item in instructions(text.instructions) if item.opcode == "reduce")
    assert reduce.operands == ("sort.19", "constant.0") or len(reduce.operands) == 2
    assert all(
        re.fullmatch(r"[\w.-]+", name) for item in instructions(text.instructions) for name in item.operands
    )
    assert set(text.instructions.source_file) == {None, "/opt/xla/jx.py"}
    assert text.frames == ()


def test_an_element_of_a_tuple_names_the_instruction_that_makes_it() -> None:
    """Since jaxlib 0.11 `%x.0#0` stands for a get-tuple-element that is left out."""
    text = read_hlo_text(COMPACT)
    assert "get-tuple-element" not in text.instructions.opcode
    assert instruction(text, "wrapped_cosine").operands == ("x.0",)


def test_tiled_layouts_stay_verbatim() -> None:
    """Parentheses of tiles and memory spaces do not end a shape."""
    shapes = read_hlo_text(TPU).instructions.shape
    assert "f32[64,64]{1,0:T(8,128)}" in shapes
    assert "f32[]{:T(128)}" in shapes


def test_metadata_of_gpu_texts_is_read_around_its_other_fields() -> None:
    """Fields before the frame (`deduplicated_name`, `scheduling_name`) are stepped over."""
    text = read_hlo_text(GPU)
    lines = {
        match[1]: match[2]
        for match in re.finditer(
            r"^  (?:ROOT )?%(\S+) = .*stack_frame_id=(\d+)", GPU.read_text(), re.MULTILINE
        )
    }
    found = {
        item.instruction: str(item.stack_frame_id)
        for item in instructions(text.instructions)
        if item.stack_frame_id
    }
    assert found == lines
    assert len(found) == 10


def test_a_configuration_over_several_lines_belongs_to_its_instruction() -> None:
    """Lines within a `backend_config` are no instructions, and what follows them is read."""
    text = read_hlo_text(MULTILINE)
    assert text.problems == ()
    custom = instruction(text, "custom-call.1")
    assert (custom.operands, custom.source_line) == (("Arg_0.1",), 3)
    assert instruction(text, "wrapped_add").operands == ("custom-call.1", "Arg_0.1")


def test_a_closing_brace_within_a_configuration_ends_no_computation(tmp_path: Path) -> None:
    """A line `}` ends a computation only where an empty line, another computation or nothing follows."""
    path = module(
        tmp_path,
        '%a = f32[] custom-call(), custom_call_target="t", backend_config={\n"x": {\n}\n}',
        "ROOT %b = f32[] add(%a, %a)",
    )
    text = read_hlo_text(path)
    assert text.problems == ()
    assert text.instructions.instruction == ["a", "b"]


def test_what_looks_like_metadata_within_a_string_is_none(tmp_path: Path) -> None:
    """The target of a custom call and the computations before it are told from the real attributes."""
    path = module(
        tmp_path,
        '%a = f32[] custom-call(), custom_call_target="x, calls=%no, metadata={op_name=\\"fake\\"}",'
        ' called_computations={%one, %two}, metadata={op_name="true" stack_frame_id=3}',
        'ROOT %b = f32[] add(%a, %a), sharding={replicated}, metadata={stack_frame_id=4 op_name="late"}',
    )
    first, second = instructions(read_hlo_text(path).instructions)
    assert (first.op_name, first.stack_frame_id) == ("true", 3)
    assert first.called_computations == ("one", "two")
    assert (second.op_name, second.stack_frame_id) == ("late", 4)


@pytest.mark.parametrize(
    ("attributes", "called"),
    [
        (", kind=kLoop, calls=%f", ("f",)),
        (", condition=%c, body=%b", ("c", "b")),
        (", true_computation=%t, false_computation=%f", ("t", "f")),
        (", window={size=3}, select=%ge, scatter=%add", ("ge", "add")),
        (', async_execution_thread="host", calls=%f', ("f",)),
        (", dimensions={0}, to_apply=max.1", ("max.1",)),
        (", control-predecessors={%x, %y}", ()),
        (', backend_config={"calls":", calls=%no"}', ()),
    ],
)
def test_called_computations_are_told_in_their_order(
    tmp_path: Path, attributes: str, called: tuple[str, ...]
) -> None:
    """Every attribute that names computations is known, and no other."""
    path = module(tmp_path, f"ROOT %a = f32[] fusion(%x){attributes}")
    assert read_hlo_text(path).instructions.called_computations == [called]


@pytest.mark.parametrize(
    ("shape", "opcode", "inside", "operands"),
    [
        ("((f32[2]{0}, s32[]), /*index=5*/u8[])", "tuple", "%x, /*index=5*/%y", ("x", "y")),
        ("f32[<=8,?]{1,0:T(8,128)(2,1)E(4)SC(0:4)}", "add", "(f32[2], (s32[])) %x, token[] %y", ("x", "y")),
        ("b(f32[2]{0})", "add", "f32[2] x, (s32[], u8[]) y", ("x", "y")),
        ("f32[2]{0}", "negate", "((((((f32[])))))) %x", ("x",)),
        ("f32[2]{0:P((f32[2]{0}, s32[]))}", "add", "%x#0#1, %y", ("x", "y")),
        ("c64[2]{0}", "constant", "{(1, 2), (3, 4)}", ()),
        ("token[]", "after-all", "", ()),
    ],
)
def test_shapes_and_operands_of_any_form_are_told_apart(
    tmp_path: Path, shape: str, opcode: str, inside: str, operands: tuple[str, ...]
) -> None:
    """Tuples, tiles, comments, bare names and deep parentheses are taken apart at the right places."""
    text = read_hlo_text(module(tmp_path, f"ROOT %a = {shape} {opcode}({inside})"))
    assert text.problems == ()
    columns = text.instructions
    assert (columns.shape, columns.opcode, columns.operands) == ([shape], [opcode], [operands])


def test_escapes_are_undone(tmp_path: Path) -> None:
    """op_name and file come as they were before XLA printed them."""
    path = module(
        tmp_path,
        r'ROOT %a = f32[] constant(1), metadata={op_name="caf\303\251\n\"x\""'
        r' source_file="a\\b.py" source_line=7}',
    )
    (only,) = instructions(read_hlo_text(path).instructions)
    assert (only.op_name, only.source_file, only.source_line) == ('café\n"x"', "a\\b.py", 7)


def test_a_constant_of_many_megabytes_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The middle of a line beyond the limit is dropped; its metadata and the lines after it are read."""
    monkeypatch.setattr("ingest.hlo.blocks._MAX_LINE", 1 << 20)
    path = module(
        tmp_path,
        f'%a = f32[9999999]{{0}} constant({{{"1.25, " * 300_000}2}}), metadata={{op_name="big"}}',
        "ROOT %b = f32[] reduce(%a)",
    )
    text = read_hlo_text(path)
    assert text.instructions.op_name == ["big", None]
    assert text.instructions.operands == [(), ("a",)]
    assert ["shortened" in problem.message for problem in text.problems] == [True]


def test_long_lines_keep_both_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Start and end of a long line stay, whatever the blocks; its neighbours stay whole."""
    path = tmp_path / "lines"
    path.write_bytes(b"first\n" + b"a" * 1000 + b"z" * 70_000 + b"end\nlast\n")
    monkeypatch.setattr("ingest.hlo.blocks._MAX_LINE", 500)
    for block_bytes in (7, 100, 5000, 1 << 20):
        blocks = LineBlocks(str(path), block_bytes)
        first, long, last, nothing = "".join(blocks).split("\n")
        assert (first, last, nothing) == ("first", "last", "")
        if blocks.shortened:
            assert len(long) < 500 + block_bytes + 65_536 + 10
            assert long.startswith("a" * 400)
        assert long.endswith("zzzend")
        assert (blocks.text_bytes, blocks.ends_with_newline) == (path.stat().st_size, True)
    assert blocks.shortened == 0  # the whole file is one block


@pytest.mark.parametrize("path", [COMPACT, SORT, MULTILINE], ids=lambda path: path.parent.name)
def test_a_text_cut_anywhere_gives_what_stands_before_the_cut(tmp_path: Path, path: Path) -> None:
    """No cut raises once the module has a name; all whole instructions are there, and a problem is told."""
    whole = read_hlo_text(path)
    data = path.read_bytes()
    cut = tmp_path / path.name
    for length in range(len("HloModule m"), data.rindex(b"\n}") + 1, 37):
        cut.write_bytes(data[:length])
        text = read_hlo_text(cut)
        count = len(text.instructions)
        lines = data[:length].decode(errors="replace").split("\n")[:-1]
        complete = sum(re.match(r"  (ROOT )?%?\S+ = ", line) is not None for line in lines)
        assert complete <= count <= complete + 1
        assert (
            instructions(text.instructions)[: max(0, complete - 1)]
            == instructions(whole.instructions)[: max(0, complete - 1)]
        )
        assert text.problems


def test_damage_costs_only_its_line(tmp_path: Path) -> None:
    """A line that cannot be read is told with its number; its neighbours are read."""
    path = module(tmp_path, "%a = f32[] constant(1)", "%b = f32[] add(%a", "ROOT %c = f32[] negate(%a)")
    text = read_hlo_text(path)
    assert text.instructions.instruction == ["a", "c"]
    (problem,) = text.problems
    assert (problem.file, problem.line, problem.kind) == (str(path), 5, "hlo-text")
    assert problem.text is not None
    assert "%b = f32[] add(%a" in problem.text


def test_many_problems_are_told_as_a_number(tmp_path: Path) -> None:
    """After 20 problems only their number grows: a damaged file does not flood the notices."""
    lines = [f"%x{number} = f32[] add(%a" for number in range(100)]
    text = read_hlo_text(module(tmp_path, *lines, "ROOT %c = f32[] negate(%a)"))
    assert len(text.problems) == MAX_PROBLEMS + 1
    assert text.problems[-1].message == "80 more places cannot be read"


def test_a_damaged_table_of_frames_costs_only_its_lines(tmp_path: Path) -> None:
    """A frame without location stands with nothing known of it."""
    tables = "FileNames\nnonsense\n\nFileLocations\n1 {file_name_id=1 line=2}\n\nStackFrames\n1 {file_location_id=9 parent_frame_id=1}\n\n\n"  # noqa: E501
    text = read_hlo_text(module(tmp_path, "ROOT %a = f32[] constant(1)", before=tables))
    assert text.frames == (SourceFrame(1, None, None, None, None),)
    assert [(problem.line, problem.text) for problem in text.problems] == [(4, "nonsense")]
    assert text.instructions.instruction == ["a"]


@pytest.mark.parametrize(
    "content", [b"", b"BufferAssignment:\nallocation 0: size 4:\n", b"\xff\xfe", b"HloModule"]
)
def test_what_is_no_hlo_text_is_refused(tmp_path: Path, content: bytes) -> None:
    """Only a file that is something else raises."""
    path = tmp_path / "module_0001.m.cpu_after_optimizations.txt"
    path.write_bytes(content)
    with pytest.raises(DumpError) as caught:
        read_hlo_text(path)
    assert (caught.value.kind, caught.value.file, caught.value.line) == ("hlo-text", str(path), 1)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    """A file that cannot be opened raises DumpError, not OSError."""
    with pytest.raises(DumpError):
        read_hlo_text(tmp_path / "missing.txt")


def test_a_compressed_text_is_read_as_the_plain_one(tmp_path: Path) -> None:
    """gzip is told by the content; figures are those of the uncompressed bytes."""
    path = tmp_path / "module.txt.gz"
    path.write_bytes(gzip.compress(CONDITIONAL.read_bytes()))
    assert read_hlo_text(path) == read_hlo_text(CONDITIONAL)
    path.write_bytes(gzip.compress(CONDITIONAL.read_bytes())[:-20])
    with pytest.raises(DumpError, match="cannot be read"):
        read_hlo_text(path)


def test_windows_line_ends_are_read(tmp_path: Path) -> None:
    """A copy with CR LF tells the same."""
    path = tmp_path / "module.txt"
    path.write_bytes(CONDITIONAL.read_bytes().replace(b"\n", b"\r\n"))
    assert read_hlo_text(path).instructions == read_hlo_text(CONDITIONAL).instructions


_PIECES = st.sampled_from(
    [
        "ENTRY %main () -> f32[] {\n", "%f (a: f32[]) -> f32[] {\n", "}\n", "}\n\n", "\n", "  ", "%a", " = ",
        "f32[2]{0}", " add(", "%b, %c", ")", "(", "{", '"', "\\", ", metadata={", 'op_name="', "}", ", ",
        "ROOT ", "stack_frame_id=1", ", calls=%f", ", backend_config={", "StackFrames\n", "x\u2028y",
        "1 {file_location_id=1 parent_frame_id=1}\n",
    ]
)  # fmt: skip


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for the one file of each example."""
    return tmp_path_factory.mktemp("hlo")


@settings(deadline=None)
@given(pieces=st.lists(_PIECES, max_size=60), block_bytes=st.integers(1, 80))
def test_no_text_raises(scratch: Path, pieces: list[str], block_bytes: int) -> None:
    """Whatever follows the name of a module, columns of equal length come back."""
    path = scratch / "module.txt"
    path.write_text("HloModule m\n" + "".join(pieces))
    columns = read_hlo_text(path, block_bytes=block_bytes).instructions
    assert len(instructions(columns)) == len(columns) == len(columns.computation) == len(columns.source_line)


@pytest.mark.parametrize(
    "unit", ["(", "{", '"', "a, ", ") -> ", "%a = ", "\n  %a = ", ', metadata={op_name="']
)
def test_time_is_linear_in_hostile_texts(tmp_path: Path, unit: str) -> None:
    """A megabyte of what a regular expression could stumble over takes no longer than other text."""
    path = module(tmp_path, "%a = f32[] add(%b" + unit * (1_000_000 // len(unit)), after="")
    started = time.process_time()
    read_hlo_text(path)
    assert time.process_time() - started < 5


def test_every_text_of_the_corpus_is_read(shared_corpus: Path) -> None:
    """329 texts from TF 1.14 to jaxlib 0.11.2 give 35,409 instructions and no problem."""
    texts = [read_hlo_text(path) for path in sorted(shared_corpus.rglob("*_optimizations.txt"))]
    assert [text.problems for text in texts if text.problems] == []
    assert len(texts) == 329
    assert sum(len(text.instructions) for text in texts) == 35_409
    assert sum(len(text.frames) for text in texts) == 1_569
