"""Instruction texts: name, opcode and metadata, whatever stands around them."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.dump.instructions import Instruction, parse_instruction, unescape
from tests.support.dump_sets import DATA

_FROM_INSTRUCTION = re.compile(
    r"^ from instruction: ?(.*?)(?=(?:<\d+ [^\n<>]*>)?\n(?: positions:|<|\n|\Z|HloLiveRange))",
    re.MULTILINE | re.DOTALL,
)
_HLO_LINE = re.compile(r"^\s+(?:ROOT )?%?([^\s=]+) = (.*)$", re.MULTILINE)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("%a.1 = f32[64,32]{1,0} parameter(0)", Instruction("a.1", "parameter")),
        (
            '%reduce_sum.4 = f32[] parameter(1), metadata={op_name="reduce_sum"}',
            Instruction("reduce_sum.4", "parameter", "reduce_sum"),
        ),
        (
            "%reduce.149 = s32[] reduce(s32[32]{0} %reduce-window, s32[] %constant.52), dimensions={0}, "
            'to_apply=%add_S32.145, metadata={op_type="Where" op_name="Where" source_file="/opt/xla/tfx.py" '
            "source_line=32}",
            Instruction("reduce.149", "reduce", "Where", "/opt/xla/tfx.py", 32),
        ),
        (
            "%convert_multiply_fusion = f32[257,130]{0,1:T(8,128)} fusion(%a_0_.1), kind=kLoop, "
            'calls=%fused_computation, metadata={op_name="jit(from_int2)/mul" stack_frame_id=5}, '
            'backend_config={"flag_configs":[],"aliasing_operands":{"lists":[]}}',
            Instruction("convert_multiply_fusion", "fusion", "jit(from_int2)/mul", None, None, 5),
        ),
        (
            "%custom-call.1 = (f32[16,16]{0,1}, f32[16]{0}, s32[], f32[1], f32[2], /*index=5*/s32[128]{0}) "
            "custom-call(s32[] %constant.1, /*index=5*/f32[16,16]{0,1} %copy.1), "
            'custom_call_target="lapack_sgesdd", operand_layout_constraints={s32[], f32[16,16]{0,1}}, '
            "output_to_operand_aliasing={{0}: (6, {})}, api_version=API_VERSION_STATUS_RETURNING, "
            'metadata={op_name="jit(<lambda>)/svd[full_matrices=True]" source_file="/opt/xla/jx.py" '
            'source_line=53}, backend_config="93995968246112"',
            Instruction(
                "custom-call.1", "custom-call", "jit(<lambda>)/svd[full_matrices=True]", "/opt/xla/jx.py", 53
            ),
        ),
        (
            "%loop_add_fusion.14 = f32[64,64]{1,0} fusion(%a, %b), kind=kLoop, calls=%fused_add.14, "
            'metadata={op_name="jit(f)/add_any" deduplicated_name="loop_add_fusion" '
            'scheduling_name="loop_add_fusion.14" stack_frame_id=6}, backend_config={"queue":"0"}',
            Instruction("loop_add_fusion.14", "fusion", "jit(f)/add_any", None, None, 6),
        ),
        (
            '%custom-call.1 = f32[8,8]{1,0} custom-call(%Arg_0.1), custom_call_target="foo", metadata={'
            'source_file="-" source_line=3 source_end_line=3 source_column=10 source_end_column=10}, '
            'backend_config={"a":\n "b",\n"c":{"d":"x\ny"}}',
            Instruction("custom-call.1", "custom-call", None, "-", 3),
        ),
        (
            "%slice-start = ((f32[8]{0:T(128)}), f32[4]{0:T(128)S(1)}, u32[]{:T(128)S(2)}) slice-start(%p), "
            "slice={[0:4]}",
            Instruction("slice-start", "slice-start"),
        ),
        ("%t{0} = () tuple()", Instruction("t{0}", "tuple")),
        ("%tok = token[] after-all()", Instruction("tok", "after-all")),
        ("%c = f32[8]{0:P((f32[8]{0}, s32[]))S(1)} copy(%a)", Instruction("c", "copy")),
        ("%c = b(f32[8]{0}) custom-call(%a)", Instruction("c", "custom-call")),
        (" ROOT %c = f32[<=8,?]{1,0} copy(%a)", Instruction("c", "copy")),
        ("c.1 = f32[] constant({...})", Instruction("c.1", "constant")),
    ],
)
def test_text_of_every_form_is_told(text: str, expected: Instruction) -> None:
    """Shapes, operands and attributes of all eras leave name, opcode and metadata where they are."""
    assert parse_instruction(text) == expected


def test_strings_are_unescaped_to_what_the_program_said() -> None:
    """Quotes, line breaks and the octal bytes of UTF-8 come back."""
    text = (
        "%dot = f32[32,32]{1,0} dot(%a, %b), lhs_contracting_dims={1}, rhs_contracting_dims={0}, metadata={"
        r'op_name="jit(nm)/we\"ird \\ back\tTab\nNewline \303\251\344\270\255 {x=%y} // /*index=5*/ <1 a '
        r'" source_file="params[\'b\'].py" stack_frame_id=7}'
    )
    assert parse_instruction(text) == Instruction(
        "dot",
        "dot",
        'jit(nm)/we"ird \\ back\tTab\nNewline é中 {x=%y} // /*index=5*/ <1 a ',
        "params['b'].py",
        None,
        7,
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (r"plain", "plain"),
        (r"\\n", r"\n"),
        (r"\\303\\251", r"\303\251"),
        (r"\377x\303", "\ufffdx\ufffd"),
        (r"\0001", "\x001"),
        (r"\777\8", r"\777\8"),
        (r"\x41\q", r"\x41\q"),
        ("end\\", "end\\"),
        ("\udcff\\n", "\ufffd\ufffd\ufffd\n"),
        ("é\\303\\251", "éé"),
    ],
)
def test_escapes_of_xla_alone_are_undone(text: str, expected: str) -> None:
    """Bytes that are no UTF-8 are replaced, what XLA does not write stays."""
    assert unescape(text) == expected


_FAKE = ', metadata={op_name="fake" source_line=1}'
_REAL = ', metadata={op_name="real" source_line=2}'


@pytest.mark.parametrize(
    "before",
    [
        ', custom_call_target="x"',
        r', custom_call_target="\", metadata={op_name=\"fake\"}"',
        r', custom_call_target="a{{{\\"',
        f", frontend_attributes={{a={{{_FAKE}}}}}",
        f", frontend_attributes={{a={{\n{_FAKE}\n}}}}",
        ', frontend_attributes={a="}", b="{", c={"k":"}}{"}}',
        f", sharding={{{{devices=[2,1]<=[2] metadata={{op_name=fake}}}}, {{replicated{_FAKE}}}}}",
        ", statistics={visualizing_index=0,stat-0=0.1}, control-predecessors={%a}",
    ],
)
@pytest.mark.parametrize(
    "after", ["", f', backend_config="{_FAKE}"', f', backend_config={{"a":"x{_FAKE}","b":{{{_FAKE}}}}}']
)
def test_text_that_looks_like_metadata_is_not_taken_for_it(before: str, after: str) -> None:
    """Only what stands outside strings and braces is the instruction's own."""
    head = "%c = f32[8]{0} custom-call(f32[8]{0} %a)"
    assert parse_instruction(head + before + _REAL + after) == Instruction(
        "c", "custom-call", "real", None, 2
    )
    config = after if not after.startswith(', backend_config="') else ""
    assert parse_instruction(head + before + config) == Instruction("c", "custom-call")


def test_metadata_like_op_name_is_kept() -> None:
    """A scope that a program calls `metadata={...}` is its name."""
    text = r'%f = f32[] fusion(), metadata={op_name="jvp(metadata={op_name=\"x\"})/dot" stack_frame_id=7}'
    assert parse_instruction(text).op_name == 'jvp(metadata={op_name="x"})/dot'


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ('source_line=4 op_name="a"', ("a", None, 4, None)),
        (
            'op_name="a" profile_type={WINDOW, {1}} profile_info={a="}"} stack_frame_id=3',
            ("a", None, None, 3),
        ),
        ('op_name="a" preserve_layout=true new="x{" stack_frame_id=3', ("a", None, None, 3)),
        ('op_name="" source_file=""', (None, None, None, None)),
        ("", (None, None, None, None)),
        ("source_line=99999999999999999999 stack_frame_id=x", (None, None, None, None)),
        ("source_line=-1", (None, None, -1, None)),
        ('op_name="a', (None, None, None, None)),
        ('op_name="a" source_line=', ("a", None, None, None)),
    ],
)
def test_metadata_in_any_order_is_read(
    fields: str, expected: tuple[str | None, str | None, int | None, int | None]
) -> None:
    """Fields of later releases, other orders and cut texts leave the others readable."""
    assert parse_instruction(f"%a = f32[] add(%b), metadata={{{fields}}}")[2:] == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", Instruction()),
        ("%a", Instruction()),
        ("%a = ", Instruction("a")),
        ("%a = f32[8]{0}", Instruction("a")),
        ("%a = (f32[8], s32[])", Instruction("a")),
        ("%a = (f32[8], s32[] tuple(", Instruction("a")),
        ("%a = f32[8] %b", Instruction("a")),
        ("%a = f32[8] add(" + _REAL, Instruction("a", "add", "real", None, 2)),
    ],
)
def test_cut_text_tells_what_is_left(text: str, expected: Instruction) -> None:
    """What is missing is None."""
    assert parse_instruction(text) == expected


@given(
    st.text(max_size=80)
    | st.lists(
        st.sampled_from(["%a", " = ", "f32[8]{0}", "(", ")", " ", "add(", '"', "\\", "{", "}", ", metadata={",
                         "op_name=", "source_line=", "9", "\n", ", ", "stack_frame_id=1", "\\303", "\udc80"])
    ).map("".join)
)  # fmt: skip
def test_no_text_breaks_the_parser(text: str) -> None:
    """Any text tells something or nothing, without an error, as text that a database takes."""
    for part in (text, "%a = f32[8]{0} add(%b)" + text):
        instruction = parse_instruction(part)
        assert all(isinstance(fact, str | int | None) for fact in instruction)


@pytest.mark.parametrize(
    "text",
    [
        "%a = f32[] add(%b), custom_call_target=\"" + '\\"' * 200_000 + ", metadata={",
        "%a = f32[] add(%b), x=" + "{, metadata={" * 50_000,
        "%a = f32[] add(%b), metadata={op_name=\"" + '\\"' * 200_000,
        "%a = f32[] add(%b), metadata={" + 'a="' * 100_000,
        "%a = f32[] add(%b), metadata={" + "a={ " * 100_000,
        "%a = f32[] add(%b), metadata={" + "a={}" * 100_000,
        "%" + "a" * 400_000,
        " " * 400_000,
        "%a = f32[]{0:P(" + "(" * 200_000 + ")" * 200_000,
        "%a = " + "(" * 400_000,
        "%a = (" + "f32[8]{0}, " * 40_000,
    ],
    ids=range(11),
)  # fmt: skip
def test_hostile_text_costs_linear_time(text: str) -> None:
    """Neither quotes that never end nor a hundred thousand braces make the search quadratic."""
    started = time.process_time()
    parse_instruction(text)
    assert time.process_time() - started < 2  # at most 0.1 s measured; quadratic would take minutes


def _texts(folder: Path) -> list[tuple[Path, set[str]]]:
    """Return the instruction texts of each dump, cut out by a scan of its own."""
    found = []
    for path in sorted([*folder.rglob("*-buffer-assignment.txt"), *folder.rglob("*-values.txt")]):
        texts = set(_FROM_INSTRUCTION.findall(path.read_text(encoding="utf-8", errors="replace")))
        if texts:
            found.append((path, texts))
    return found


def _hlo_opcodes(path: Path) -> dict[str, str]:
    """Return opcode by instruction of the HLO text beside a dump, told by counting brackets."""
    hlo = path.with_name(re.sub(r"-buffer-assignment(-values)?\.txt$", ".txt", path.name))
    opcodes: dict[str, str] = {}
    if hlo.exists():
        for name, rest in _HLO_LINE.findall(hlo.read_text(encoding="utf-8", errors="replace")):
            depth = 0
            for at, character in enumerate(rest):
                depth += (character in "([{") - (character in ")]}")
                if character == " " and depth == 0:
                    opcodes[name] = rest[at + 1 : rest.find("(", at)]
                    break
    return opcodes


def test_every_committed_text_tells_its_instruction() -> None:
    """Each text of the bundled dumps has a name and an opcode, and its metadata is found."""
    count = 0
    for path, texts in _texts(DATA):
        for text in texts:
            instruction = parse_instruction(text)
            count += 1
            assert instruction.name, (path, text)
            assert instruction.opcode, (path, text)
            if metadata := re.search(r'metadata=\{op_name="([^"\\]+)"', text):
                assert instruction.op_name == metadata[1], (path, text)
            if frame := re.search(r"stack_frame_id=(\d+)\}", text):
                assert instruction.stack_frame_id == int(frame[1]), (path, text)
    assert count > 1000


def test_opcodes_agree_with_the_hlo_text_of_the_corpus(shared_corpus: Path) -> None:
    """The compiler's own HLO text names the same opcodes; it writes async-start for `slice-start` and kin."""
    equal = asynchronous = 0
    for path, texts in _texts(shared_corpus):
        opcodes = _hlo_opcodes(path)
        for text in texts:
            name, opcode = parse_instruction(text)[:2]
            assert name, text
            assert opcode, text
            if name in opcodes:
                equal += opcode == opcodes[name]
                if opcode != opcodes[name]:
                    assert opcodes[name] == "async-start", text
                    assert opcode.endswith("-start"), text
                    asynchronous += 1
    assert equal > 7_000
    assert asynchronous < equal / 100
