"""Small sidecar files that once took minutes or gigabytes: work and memory grow as the file does."""

from __future__ import annotations

import gzip
import sys
import tracemalloc
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from ingest.errors import DumpError
from ingest.hlo import instruction_lines
from ingest.hlo.budget import Budget
from ingest.hlo.compare import Comparison
from ingest.hlo.frames import FrameworkRule, Stacks
from ingest.hlo.proto import read_proto
from ingest.hlo.provenance import trace_origins
from ingest.hlo.records import SourceFrame
from ingest.hlo.text import read_hlo_text
from tests.support.protobufs import field, varint

SIZES = (100, 200, 400, 800)


ARRAY = field(2, 11) + field(3, varint(8))


def tuple_of(*shapes: bytes) -> bytes:
    """Encode the shape of a tuple."""
    return field(2, 13) + b"".join(field(4, shape) for shape in shapes)


def instruction(id_: int, opcode: bytes, shape: bytes, *rest: bytes) -> bytes:
    """Encode an instruction of a computation."""
    name = b"i%d" % id_
    return field(2, field(1, name) + field(2, opcode) + field(3, shape) + field(35, id_) + b"".join(rest))


def value(id_: int, instruction_id: int) -> bytes:
    """Encode a value that an instruction defines, in allocation 0."""
    return field(1, field(1, id_) + field(2, 32) + field(3, field(4, instruction_id)))


def module(*instructions: bytes, rest: bytes = b"", assignment: bytes = b"") -> bytes:
    """Encode an HloProto whose entry computation holds these instructions."""
    body = field(1, b"main") + b"".join(instructions) + field(5, 1) + field(6, len(instructions))
    return field(1, field(1, b"m") + rest + field(3, body) + field(6, 1)) + field(3, assignment)


def chain_of_elements(size: int) -> bytes:
    """Each instruction takes an element of the one before, although none has any."""
    elements = [instruction(at + 1, b"get-tuple-element", ARRAY, field(36, at)) for at in range(1, size)]
    return module(instruction(1, b"add", ARRAY), *elements, assignment=value(0, 1))


def chain_of_nested_elements(size: int) -> bytes:
    """The same, of tuples 8 deep: each has its parts, and none of them leads anywhere."""
    shape = ARRAY
    for _ in range(8):
        shape = tuple_of(shape)
    elements = [instruction(at + 1, b"get-tuple-element", shape, field(36, at)) for at in range(1, size)]
    return module(instruction(1, b"add", ARRAY), *elements, assignment=value(0, 1))


def wide_tuple(size: int) -> bytes:
    """A tuple of many operands: each of its elements comes from one of them."""
    parameters = [instruction(at, b"parameter", ARRAY) for at in range(1, size + 1)]
    operands = b"".join(field(36, at) for at in range(1, size + 1))
    shape = tuple_of(*[ARRAY] * size)
    return module(
        *parameters,
        instruction(size + 1, b"tuple", shape, operands),
        assignment=b"".join(value(at, at) for at in range(1, size + 1)),
    )


def many_branches(size: int) -> bytes:
    """A conditional with a branch for each operand."""
    branches = b"".join(
        field(3, field(1, b"b%d" % at) + instruction(at * 1000, b"parameter", ARRAY) + field(5, at))
        for at in range(10, size + 10)
    )
    operands = b"".join(field(36, 1) for _ in range(size + 1))
    called = b"".join(field(38, at) for at in range(10, size + 10))
    return module(
        instruction(1, b"add", ARRAY),
        instruction(2, b"conditional", ARRAY, operands, called),
        rest=branches,
        assignment=value(0, 1) + b"".join(value(at, at * 1000) for at in range(10, 12)),
    )


def one_id_for_all_computations(size: int) -> bytes:
    """Many computations of one id, and one schedule for them."""
    computations = field(3, field(1, b"c") + field(5, 7)) * size
    schedule = field(7, field(1, field(1, 7) + field(2, field(1, b"\x01" * size))))
    return module(instruction(1, b"add", ARRAY), rest=computations + schedule)


def cost(function: Callable[[], Any]) -> tuple[int, int]:
    """Return the lines of Python that a call runs, and the most bytes it keeps at a time."""
    lines = 0

    def trace(frame: FrameType, event: str, _: object) -> Any:
        nonlocal lines
        lines += event == "line"
        return trace

    function()  # what is kept for later is there
    before = sys.gettrace()
    sys.settrace(trace)
    try:
        function()
    finally:
        sys.settrace(before)
    tracemalloc.start()
    try:
        function()
        return lines, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def require_linear(functions: Sequence[Callable[[], Any]]) -> None:
    """Require that twice the input costs at most 2.2 times the work; memory grows no faster over all sizes.

    Hash tables grow in steps: one doubling of the input may take 2.5 times the memory, the next 1.7 times.
    """
    costs = [cost(function) for function in functions]
    for (lines, _), (more_lines, _) in pairwise(costs):
        assert more_lines <= 2.2 * lines, costs
    (_, least), (_, most) = costs[0], costs[-1]
    assert most <= 1.5 * 2 ** (len(costs) - 1) * least, costs


def read_and_trace(path: Path) -> None:
    """Read a protobuf and find the sources of its instructions."""
    trace_origins(read_proto(path).instructions)


@pytest.mark.parametrize(
    "make",
    [
        chain_of_elements,
        pytest.param(chain_of_nested_elements, marks=pytest.mark.slow),
        wide_tuple,
        pytest.param(many_branches, marks=pytest.mark.slow),
        one_id_for_all_computations,
    ],
    ids=lambda make: make.__name__,
)
def test_a_protobuf_costs_what_its_size_does(make: Callable[[int], bytes], tmp_path: Path) -> None:
    """At 1, 2, 4 and 8 times the size, lines run and bytes kept grow as the file does."""
    functions = []
    for size in SIZES:
        path = tmp_path / f"{size}.hlo.pb"
        path.write_bytes(make(size))
        functions.append(partial(read_and_trace, path))
    require_linear(functions)


def test_a_chain_of_framework_frames_is_walked_once() -> None:
    """Each frame leads to the one before, and none is the user's: no stack is walked twice."""

    def locate(size: int) -> None:
        frames = [
            SourceFrame(at, at - 1 or None, "f", "/x/site-packages/jax/a.py", at) for at in range(1, size)
        ]
        found = Stacks(frames, FrameworkRule()).sources(
            range(1, size), [None] * (size - 1), [None] * (size - 1)
        )
        assert found[1] == list(range(1, size))

    require_linear([partial(locate, size) for size in SIZES])


def test_frames_that_call_one_another_end() -> None:
    """In a circle of frames each finds the user's frame; without one, each is its own."""
    user = [SourceFrame(1, 2, "f", "/x/site-packages/jax/a.py", 1), SourceFrame(2, 1, "g", "mine.py", 2)]
    alone = [SourceFrame(1, 2, "f", "/x/site-packages/jax/a.py", 1), SourceFrame(2, 1, "g", None, 2)]
    for frames, expected in ((user, [2, 2]), (alone, [1, 2])):
        stacks = Stacks(frames, FrameworkRule())
        assert [getattr(stacks.user_frame(at), "frame_id", None) for at in (1, 2)] == expected


def test_every_quote_of_an_attribute_is_consumed() -> None:
    """Where no string fails to match, none is looked at twice: escaped quotes without end took hours."""
    for text in ('\\"' * 200, '"' + '\\"' * 200, '"a\\', '"', '""\\"', '"a\nb', '", to_apply=%f"'):
        for at in (at for at, character in enumerate(text) if character == '"'):
            assert instruction_lines._STRINGS.match(text, at), (text, at)


def test_escaped_quotes_without_end_are_read_at_once(tmp_path: Path) -> None:
    """2 MB of them; read again from each quote to the end they would take days."""
    path = tmp_path / "m.txt"
    path.write_text(
        f"HloModule m\n\nENTRY main {{\n  ROOT %a = f32[] add(), x={chr(92) + chr(34)}"
        + '\\"' * 1_000_000
        + "\n}\n"
    )
    assert read_hlo_text(path).instructions.instruction == ["a"]


@pytest.mark.slow
def test_a_shape_of_millions_of_parts_is_not_parsed(tmp_path: Path) -> None:
    """Two bytes stand for a part of a tuple, and zeros compress: 7 KB came to a gigabyte."""
    path = tmp_path / "wide.hlo.pb.gz"
    shape = tuple_of(*[b""] * 1_000_000)
    path.write_bytes(gzip.compress(module(instruction(1, b"add", shape))))
    with pytest.raises(DumpError, match="larger than any that XLA writes"):
        read_proto(path)


def test_differences_keep_a_few_messages_only(tmp_path: Path) -> None:
    """However many values differ, and however long their shapes are, 20 messages are kept."""
    path = tmp_path / "wide.hlo.pb"
    path.write_bytes(wide_tuple(800))
    proto = read_proto(path)
    comparison = Comparison(proto)
    ids = list(range(1, 801))
    comparison.take_values([("", "i", "", "", "", "", "", "s" * 1000)] * 800, ids, [0] * 800, ids, ids)
    comparison.finish()
    assert comparison.count >= 800 or not proto.values
    assert len(comparison.first) <= 20


def test_a_budget_ends_the_reading_of_a_text_and_of_a_protobuf(tmp_path: Path) -> None:
    """Too many records are refused, with the limit and the remedy; so is what takes too long."""
    proto, text = tmp_path / "m.hlo.pb", tmp_path / "m.txt"
    proto.write_bytes(module(*[instruction(at, b"add", ARRAY) for at in range(1, 7000)]))
    lines = "".join(f"  %a{at} = f32[] add()\n" for at in range(7000))
    text.write_text(f"HloModule m\n\nENTRY main {{\n{lines}}}\n")
    ticks = iter(range(0, 1000, 61))
    for read, path in ((read_proto, proto), (read_hlo_text, text)):
        assert len(read(path, budget=Budget()).instructions) >= 6999
        with pytest.raises(DumpError, match="more than 1,000 instructions") as caught:
            read(path, budget=Budget(records=1000))
        assert (caught.value.kind, caught.value.file) == ("sidecar-limit", str(path))
        with pytest.raises(DumpError, match="more than 60 s of CPU time"):
            read(path, budget=Budget(seconds=60, clock=lambda: float(next(ticks))))
