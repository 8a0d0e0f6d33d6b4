"""Source lines: stacks of frames, the framework's frames, and lines for what has no metadata."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from ingest.dump.parse import parse_dump
from ingest.hlo.frames import (
    ENVIRONMENT,
    FrameworkRule,
    SourceLine,
    Stacks,
    format_frame,
    format_stack,
)
from ingest.hlo.provenance import locate, trace_origins
from ingest.hlo.records import InstructionColumns, SourceFrame
from ingest.hlo.text import read_hlo_text

DATA = Path(__file__).parents[1] / "data" / "hlo"
CONDITIONAL = DATA / "jaxlib-0.10.2-cpu" / "module_0004.jit_cd.cpu_after_optimizations.txt"
SORT = DATA / "jaxlib-0.4.36-cpu" / "module_0007.jit_so.cpu_after_optimizations.txt"

SITE = "/home/u/venv/lib/python3.11/site-packages"
FRAMES = (
    SourceFrame(1, None, "<module>", "/home/u/train.py", 90, 90, 0, 12),
    SourceFrame(2, 1, "train_step", "/home/u/train.py", 52, 52, 4, 30),
    SourceFrame(3, 2, "Model.__call__.<locals>.block", "/home/u/model.py", 140, 140, 8, 30),
    SourceFrame(4, 3, "attention", "/home/u/model.py", 118, 120, 8, 30),
    SourceFrame(5, 4, "Dense.__call__", f"{SITE}/flax/linen/linear.py", 271, 271, 6, 7),
    SourceFrame(6, None, "update", f"{SITE}/optax/_src/base.py", 60, 60, 0, 1),
)


def test_a_stack_goes_from_the_innermost_frame_outwards() -> None:
    """Each frame is followed by the one that called it."""
    assert [frame.frame_id for frame in Stacks(FRAMES).stack(5)] == [5, 4, 3, 2, 1]
    assert Stacks(FRAMES).stack(99) == Stacks(FRAMES).stack(None) == ()


def test_the_source_is_the_innermost_frame_of_the_user() -> None:
    """A layer library's line is passed over for the line that calls it."""
    stacks = Stacks(FRAMES, FrameworkRule())
    assert stacks.source(5) == SourceLine("/home/u/model.py", 118)
    assert stacks.source(4) == SourceLine("/home/u/model.py", 118)


def test_a_stack_of_the_framework_alone_tells_its_innermost_frame() -> None:
    """There is a source even where no user frame is on the stack."""
    assert Stacks(FRAMES, FrameworkRule()).source(6) == SourceLine(f"{SITE}/optax/_src/base.py", 60)


def test_metadata_tells_the_source_where_no_frame_does() -> None:
    """Releases before jaxlib 0.8 print file and line in the metadata: same columns, same meaning."""
    stacks = Stacks((), FrameworkRule())
    assert stacks.source(None, "model.py", 7) == SourceLine("model.py", 7)
    assert stacks.source(3, "model.py", 7) == SourceLine("model.py", 7)
    assert stacks.source(None) == SourceLine(None, None)


@pytest.mark.parametrize(
    ("file", "is_framework"),
    [
        (f"{SITE}/jax/_src/numpy/lax_numpy.py", True),
        (f"{SITE}/flax/nnx/nn/linear.py", True),
        ("/usr/lib/python3/dist-packages/haiku/_src/module.py", True),
        ("/usr/lib/python3.12/contextlib.py", True),
        ("/opt/python/lib/python3.11/functools.py", True),
        ("C:\\venv\\Lib\\site-packages\\jax\\_src\\api.py", True),
        ("<frozen runpy>", True),
        (None, True),
        ("<string>", False),
        ("/home/u/jax/train.py", False),
        (f"{SITE}/jax_models/attention.py", False),
        (f"{SITE}/our_company/model.py", False),
        ("/home/u/site-packages.py", False),
    ],
)
def test_the_rule_tells_frameworks_from_users(file: str | None, is_framework: bool) -> None:
    """Folders of known packages and of Python itself are the framework's, all else is the user's."""
    assert FrameworkRule()(file) is is_framework


def test_the_environment_adds_patterns(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pattern is a folder or has wildcards; the default rule stays."""
    monkeypatch.setenv(ENVIRONMENT, "/opt/ourlib/:*/third_party/*.py:")
    rule = FrameworkRule.from_environment()
    assert rule("/opt/ourlib/layers/dense.py")
    assert rule("/src/third_party/moe/router.py")
    assert rule(f"{SITE}/jax/_src/api.py")
    assert not rule("/opt/ourlibrary/dense.py")
    assert not rule("/home/u/train.py")


def test_stacks_take_the_rule_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a user sets counts without a word in the code."""
    monkeypatch.setenv(ENVIRONMENT, "*/model.py")
    assert Stacks(FRAMES).source(5) == SourceLine("/home/u/train.py", 52)


def test_frames_in_a_circle_end() -> None:
    """A damaged table in which frames call each other gives a finite stack."""
    frames = (SourceFrame(1, 2, "f", "a.py", 1), SourceFrame(2, 1, "g", "a.py", 2))
    assert [frame.frame_id for frame in Stacks(frames).stack(1)] == [1, 2]


def test_a_stack_is_shown_in_one_line() -> None:
    """Function and file are shortened to what people look for; inner frames come first."""
    stacks = Stacks(FRAMES)
    assert format_stack(stacks.stack(4)) == (
        "attention() model.py:118 ← block() model.py:140 ← train_step() train.py:52 ← <module> train.py:90"
    )
    loop = [SourceFrame(number, None, "step", "a.py", 29, column=number) for number in range(3)]
    caller = SourceFrame(3, None, "main", "a.py", 31)
    assert format_stack([*loop, caller, loop[0]]) == "step() a.py:29 ← main() a.py:31 ← step() a.py:29"
    assert format_frame(SourceFrame(1, None, "f.<locals>.<lambda>", "C:\\a\\b.py", 3)) == "<lambda> b.py:3"
    assert format_frame(SourceFrame(1, None, None, None, None)) == "? ?"


def columns(
    *rows: tuple[str, str, str, tuple[str, ...], int | None, tuple[str, ...], bool],
) -> InstructionColumns:
    """Make instructions of computation, name, opcode, operands, frame, called computations and root mark."""
    made = InstructionColumns()
    for computation, name, opcode, operands, frame, called, is_root in rows:
        made.computation.append(computation)
        made.instruction.append(name)
        made.opcode.append(opcode)
        made.shape.append("f32[]")
        made.operands.append(operands)
        made.op_name.append(None)
        made.stack_frame_id.append(frame)
        made.called_computations.append(called)
        made.is_root.append(is_root)
        made.source_file.append(None)
        made.source_line.append(None)
    return made


STEP = columns(
    ("fused", "p0", "parameter", (), None, (), False),
    ("fused", "mul", "multiply", ("p0", "p0"), 4, (), False),
    ("fused", "convert", "convert", ("mul",), None, (), True),
    ("body", "arg", "parameter", (), None, (), False),
    ("body", "lonely", "constant", (), None, (), True),
    ("main", "weights", "parameter", (), None, (), False),
    ("main", "unused", "parameter", (), None, (), False),
    ("main", "fusion", "fusion", ("weights",), None, ("fused",), False),
    ("main", "copy", "copy", ("fusion",), None, (), False),
    ("main", "loop", "while", ("copy",), 2, ("body",), False),
    ("main", "result", "copy", ("loop",), None, (), True),
)


def test_what_has_no_source_takes_that_of_its_neighbours() -> None:
    """A fusion takes what it computes, a copy what it copies, a parameter its first use, a body its loop."""
    rows, via = trace_origins(STEP)
    found = {
        name: (None if row is None else STEP.instruction[row], how)
        for name, row, how in zip(STEP.instruction, rows, via, strict=True)
    }
    assert found == {
        "p0": ("mul", "user"),
        "mul": ("mul", "own"),
        "convert": ("mul", "operand"),
        "arg": ("loop", "caller"),
        "lonely": ("loop", "caller"),
        "weights": ("mul", "user"),
        "unused": (None, None),
        "fusion": ("mul", "fused"),
        "copy": ("mul", "operand"),
        "loop": ("loop", "own"),
        "result": ("loop", "operand"),
    }


def test_located_columns_tell_line_frame_and_way() -> None:
    """Every instruction gets the innermost user line of the frame that it takes."""
    sources = locate(STEP, Stacks(FRAMES, FrameworkRule()))
    at = STEP.instruction.index("weights")
    assert (sources.file[at], sources.line[at], sources.frame_id[at], sources.via[at]) == (
        "/home/u/model.py",
        118,
        4,
        "user",
    )
    at = STEP.instruction.index("unused")
    assert (sources.file[at], sources.line[at], sources.frame_id[at], sources.via[at]) == (None,) * 4


def test_sources_from_metadata_are_handed_on_too() -> None:
    """Before jaxlib 0.8 what has no source takes file and line of its neighbour."""
    text = read_hlo_text(SORT)
    own = text.instructions.source_file
    sources = locate(text.instructions, Stacks(text.frames))
    assert own.count(None) > sources.file.count(None) == 0
    assert set(sources.frame_id) == {None}


def test_an_instruction_out_of_order_does_not_matter() -> None:
    """An operand or computation that a damaged file lacks is passed over."""
    odd = columns(
        ("main", "a", "add", ("missing", "b"), None, ("nowhere",), True), ("main", "b", "f", (), 1, (), False)
    )
    assert trace_origins(odd).via == ["operand", "own"]


def test_a_real_stack_leads_to_the_users_function() -> None:
    """The frames of a branch lead from the lambda to the script."""
    text = read_hlo_text(CONDITIONAL)
    row = text.instructions.instruction.index("cos.0")
    stack = Stacks(text.frames).stack(text.instructions.stack_frame_id[row])
    assert format_stack(stack).startswith(
        "<lambda> jx.py:24 ← cd() jx.py:24 ← comp() jx.py:12 ← t_cond() jx.py:25"
    )


def peak_bytes(text_path: Path) -> Counter[str]:
    """Return the bytes of a set's values that are live at its peak: all, with own and with any source."""
    text = read_hlo_text(text_path)
    dump = parse_dump(text_path.with_name(text_path.name[:-4] + "-buffer-assignment.txt"))
    sources = locate(text.instructions, Stacks(text.frames))
    row_of = {name: row for row, name in enumerate(text.instructions.instruction)}
    ranges = {(item.instruction, item.shape_index): item for item in dump.ranges or ()}
    live = [(ranges.get((value.instruction, value.shape_index or "{}")), value) for value in dump.values]
    change: Counter[int] = Counter()
    for interval, value in live:
        if interval is not None:
            change[interval.start] += value.size
            change[interval.end + 1] -= value.size
    held, best = 0, (0, 0)
    for slot in sorted(change):
        held += change[slot]
        best = max(best, (held, -slot))
    counts: Counter[str] = Counter()
    for interval, value in live:
        if interval is not None and interval.start <= -best[1] <= interval.end:
            row = row_of[value.instruction]
            counts["all"] += value.size
            if sources.line[row] is not None:
                counts["own" if sources.via[row] == "own" else "taken"] += value.size
    return counts


def test_all_bytes_at_the_peak_have_a_source() -> None:
    """In the committed sets with tables of frames every live byte has a file and line."""
    for path in (CONDITIONAL, *DATA.glob("*/module_00*.jit_dn.*_optimizations.txt")):
        counts = peak_bytes(path)
        assert counts["all"] == counts["own"] + counts["taken"] > 0


def test_the_model_sets_of_the_corpus_have_sources(shared_corpus: Path) -> None:
    """Since jaxlib 0.8 over 99.9 % of the bytes at the peak have a source, 28 % by their own metadata."""
    total: Counter[str] = Counter()
    for path in sorted((shared_corpus / "models").rglob("*_optimizations.txt")):
        if "\nStackFrames\n" in path.read_text(errors="replace"):
            counts = peak_bytes(path)
            total += counts
            # Raw MLIR without locations has nothing to tell.
            if counts["all"] and "tupled_params" not in path.name:
                assert counts["own"] + counts["taken"] > 0.95 * counts["all"], path.name
    assert total["own"] + total["taken"] > 0.999 * total["all"]
    assert 0.27 < total["own"] / total["all"] < 0.30
