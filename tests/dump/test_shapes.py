"""Shape texts: what they tell, what an array takes, and that no text breaks the parser."""

from __future__ import annotations

import re
import time
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.dump.shapes import ELEMENT_BITS, Shape, parse_shape
from tests.support.dump_sets import DATA
from tests.support.padded_bytes import padded_bytes

_MODERN_VALUE = re.compile(r"^ value: <[^>\n]*> \(size=(\d+),offset=\d+\): (.*)$", re.MULTILINE)
_OLD_VALUE = re.compile(r"^ {1,2}(?:\S+\(#[^)\n]*\) )?\[\d+,(\d+)\]: (.*)$", re.MULTILINE)


def _array(
    dtype: str,
    dimensions: tuple[int, ...],
    order: tuple[int, ...] | None,
    bits: int,
    logical: int,
    tiling: str | None = None,
    space: int = 0,
) -> Shape:
    return Shape(dtype, dimensions, order, tiling, bits, space, logical)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("f32[]", _array("f32", (), None, 32, 4)),
        ("f32[8]{0}", _array("f32", (8,), (0,), 32, 32)),
        ("f32[0,4]{1,0}", _array("f32", (0, 4), (1, 0), 32, 0)),
        ("f32[4,4]", _array("f32", (4, 4), None, 32, 64)),
        ("pred[50]{0:T(512)(128)(4,1)S(1)}", _array("pred", (50,), (0,), 8, 50, "T(512)(128)(4,1)", 1)),
        ("f32[]{:T(128)}", _array("f32", (), (), 32, 4, "T(128)")),
        ("u32[]{:S(2)}", _array("u32", (), (), 32, 4, space=2)),
        ("s32[2]{0:S(4)}", _array("s32", (2,), (0,), 32, 8, space=4)),
        ("f32[8]{0:S(-1)}", _array("f32", (8,), (0,), 32, 32, space=-1)),
        (
            "f32[8,128,4096]{2,1,0:T(8,128)S(1)}",
            _array("f32", (8, 128, 4096), (2, 1, 0), 32, 16777216, "T(8,128)", 1),
        ),
        ("bf16[30,200]{1,0:T(8,128)(2,1)}", _array("bf16", (30, 200), (1, 0), 16, 12000, "T(8,128)(2,1)")),
        ("s4[30,200]{1,0:T(8,128)(8,1)E(4)}", _array("s4", (30, 200), (1, 0), 4, 3000, "T(8,128)(8,1)")),
        (
            "s2[257,130]{0,1:T(16,128)(16,1)E(2)}",
            _array("s2", (257, 130), (0, 1), 2, 8353, "T(16,128)(16,1)"),
        ),
        ("u4[3]{0:E(4)}", _array("u4", (3,), (0,), 4, 2)),
        ("u4[3]{0}", _array("u4", (3,), (0,), 8, 3)),
        ("f32[1024,256]{1,0:T(1)L(1024)}", _array("f32", (1024, 256), (1, 0), 32, 1048576, "T(1)")),
        ("s64[<=1024,2]{1,0}", _array("s64", (1024, 2), (1, 0), 64, 16384)),
        ("c128[2]{0}", _array("c128", (2,), (0,), 128, 32)),
        ("f8e4m3b11fnuz[3]{0}", _array("f8e4m3b11fnuz", (3,), (0,), 8, 3)),
        # Attributes of the eras that no dump at hand shows: sparse, split, physical, dynamic.
        ("f32[8,8]{1,0:D(D,C+~)#(u32)*(u64)}", _array("f32", (8, 8), (1, 0), 32, 256)),
        (
            "f32[8,8]{1,0:D(C,S)#(invalid)*(invalid)E(32)S(3)}",
            _array("f32", (8, 8), (1, 0), 32, 256, space=3),
        ),
        (
            "f32[8,8]{1,0:T(*,128)(2,1)SC(0:4)(1:2,6)M(8)}",
            _array("f32", (8, 8), (1, 0), 32, 256, "T(*,128)(2,1)"),
        ),
        ("f32[8,8]{1,0:SC(0:4)S(5)}", _array("f32", (8, 8), (1, 0), 32, 256, space=5)),
        ("f32[8,8]{1,0:S(5)P((f32[8]{0}, s32[]))}", _array("f32", (8, 8), (1, 0), 32, 256, space=5)),
        ("f32[8]{0:P((f32[8]{0:T(128)}, (s32[])))M(16)}", _array("f32", (8,), (0,), 32, 32)),
        ("b(f32[8]{0})", _array("f32", (8,), (0,), 32, 32)),
    ],
)
def test_array_shape_of_every_form_is_told(text: str, expected: Shape) -> None:
    """Type, dimensions, layout and each layout attribute of every era are understood."""
    assert parse_shape(text) == expected


@pytest.mark.parametrize("text", ["()", "(f32[2]{0})", "(bf16[4,8]{1,0}, s32[])", "((s32[]), ())"])
def test_tuple_is_told_and_not_taken_apart(text: str) -> None:
    """A tuple has no facts but that it is one."""
    assert parse_shape(text) == Shape("tuple", None, None, None, None, None, None, is_tuple=True)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("f32[8,2]{1,0:T(8,128)}", ("f32", (8, 2))),
        ("s32[]", ("s32", ())),
        ("token[]", None),
        ("opaque[]", None),
        ("(f32[8])", None),
        ("f32[?]", None),
    ],
)
def test_only_arrays_have_an_array_type(text: str, expected: object) -> None:
    """What could take the memory of what."""
    assert parse_shape(text).array_type == expected


@pytest.mark.parametrize("dtype", ["token", "opaque"])
def test_token_and_opaque_hold_no_data(dtype: str) -> None:
    """They are known, and have neither bits nor bytes."""
    assert parse_shape(f"{dtype}[]") == Shape(dtype, (), None, None, None, 0, None)


@pytest.mark.parametrize("text", ["f32[?,4]{1,0}", "f32[?]", "f32[<=?,4]"])
def test_unbounded_dimension_leaves_dimensions_and_bytes_unknown(text: str) -> None:
    """A list with a hole would mislead sums, so there is none."""
    shape = parse_shape(text)
    assert shape.is_known
    assert (shape.dtype, shape.dimensions, shape.element_bits, shape.logical_bytes) == ("f32", None, 32, None)


def test_type_of_a_later_release_keeps_what_the_text_tells() -> None:
    """Without the type's width there are no bytes; with E(n) there are."""
    assert parse_shape("f3e1m1[8,2]{1,0:T(8)S(1)}") == Shape(
        "f3e1m1", (8, 2), (1, 0), "T(8)", None, 1, None, is_known=False
    )
    assert parse_shape("f3e1m1[8,2]{1,0:E(3)}") == _array("f3e1m1", (8, 2), (1, 0), 3, 6)


def test_attribute_of_a_later_release_leaves_type_and_dimensions() -> None:
    """What follows an unknown attribute may be anything, so nothing of the attributes is told."""
    assert parse_shape("f32[8]{0:T(8)Q(1)S(1)}") == Shape(
        "f32", (8,), (0,), None, None, None, None, is_known=False
    )


@pytest.mark.parametrize(
    "text",
    ["", "f32", "f32[", "f32[]]", "f32[8]{0", "f32[8]{0} ", " f32[8]", "F32[8]", "f32[-1]", "(",
     "(f32[]), s32[]", "f32[8]{0}\n", "f32[a]", "b()", "b(", "\x00", "f32[8]{0:}"],
)  # fmt: skip
def test_text_that_is_no_shape_is_not_known(text: str) -> None:
    """Nothing is guessed and nothing is raised."""
    assert parse_shape(text) == Shape(None, None, None, None, None, None, None, is_known=False)


@pytest.mark.parametrize(
    "text",
    ["f32[,]", "f32[8,]{0}", "f32[<=]", "f32[8]{0:T(8)P(}", "f32[8]{0:P}", "f32[8]{0:E(0)}", "f32[8]{0:L(0)}",
     "f32[8]{0:S()}", "f32[8]{0,}", "f32[8=]"],
)  # fmt: skip
def test_malformed_parts_make_a_shape_not_known(text: str) -> None:
    """A flaw inside is told as one."""
    shape = parse_shape(text)
    assert not shape.is_known
    assert shape.dtype == "f32"


@pytest.mark.parametrize(
    ("text", "dimensions"),
    [
        (f"f32[{2**61}]", (2**61,)),
        ("f32[4294967296,4294967296]", (4294967296, 4294967296)),
        (f"s8[{2**63}]", None),
        ("f32[" + "9" * 5000 + "]", None),
        ("f32[" + "9," * 100_000 + "9]", (9,) * 100_001),
        (f"f32[8]{{{2**64}}}", (8,)),
    ],
)
def test_numbers_beyond_bigint_are_left_out(text: str, dimensions: tuple[int, ...] | None) -> None:
    """What the database cannot hold is None and told as not known; there is no error and no delay."""
    shape = parse_shape(text)
    assert not shape.is_known
    assert shape.dimensions == dimensions
    assert shape.minor_to_major is None
    assert shape.logical_bytes in (None, 32)


def test_largest_sizes_that_fit_are_told() -> None:
    """Sizes over 4 GiB are ordinary, and a zero dimension makes any product zero."""
    assert parse_shape("s8[9223372036854775807]").logical_bytes == 2**63 - 1
    assert parse_shape("bf16[163840,32768]{1,0}").logical_bytes == 10 * 2**30
    assert parse_shape(f"f32[{2**62},{2**62},0]").logical_bytes == 0


def test_deep_nesting_costs_neither_stack_nor_time() -> None:
    """100,000 parentheses are a tuple like any other."""
    deep = "(" * 100_000 + ")" * 100_000
    started = time.process_time()
    assert parse_shape(deep).is_tuple
    assert not parse_shape("f32[8]{0:P" + deep[:-1] + "}").is_known
    assert not parse_shape("b(" * 50_000 + ")" * 50_000).is_known
    assert time.process_time() - started < 5


def test_large_tuple_is_told_without_reading_its_leaves() -> None:
    """A shape of 100,000 leaves costs no more than a small one."""
    leaf = "f32[8,128]{1,0:T(8,128)}"
    text = f"({', '.join([leaf] * 100_000)})"
    started = time.process_time()
    for _ in range(1000):
        parse_shape(text)
    assert time.process_time() - started < 1  # 0.0002 s measured; reading the leaves takes 20 s


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("bf16[30,200]{1,0:T(8,128)(2,1)}", 16384),
        ("f32[]{:T(128)}", 512),
        ("s32[1000]{0:T(1024)}", 4096),
        ("s4[30,200]{1,0:T(8,128)(8,1)E(4)}", 4096),
        ("u32[4,2]{0,1:T(2,128)}", 1024),
        ("u32[4,2]", 32),
        ("f32[3,5]{1,0:L(8)}", 64),
        ("f32[10,8]{1,0:T(8,128)SC(0:4)}", 4096),
        ("f32[10]{0:SC(0:4)}", 24),
        ("f32[8,8]{1,0:T(*,128)}", None),
        ("f32[8,8]{1,1}", None),
        ("f32[8]{0:SC(1:4)}", None),
        ("token[]", None),
        ("(f32[8])", None),
        ("f32[?]", None),
    ],
)
def test_padded_bytes_follow_the_tiles(text: str, expected: int | None) -> None:
    """The first tile and the tail padding round up; where no rule is known there is no answer."""
    assert padded_bytes(text) == expected


def test_width_of_every_type_is_the_number_in_its_name() -> None:
    """The name tells the bits; types narrower than a byte are stored in whole ones."""
    for name, bits in ELEMENT_BITS.items():
        number = re.match(r"[a-z]+([0-9]+)", name)
        assert bits == (max(8, int(number[1])) if number else 8), name
    assert "token" not in ELEMENT_BITS


@given(
    st.text(max_size=40)
    | st.text("f32[]{}()<=?,:TSELMPCD#*b 0123456789", max_size=60)
    | st.from_regex(
        r"(f32|s4|q7)\[[0-9,<=?]{0,20}\](\{[0-9,]{0,9}(:([TSELMPD]|SC)\([^x]{0,9}\)){0,3}\})?", fullmatch=True
    )
)
def test_no_text_breaks_the_parser(text: str) -> None:
    """Any text gives a shape; what it tells fits the database."""
    shape = parse_shape(text)
    numbers = (shape.element_bits, shape.memory_space, shape.logical_bytes, *(shape.dimensions or ()))
    assert all(number is None or abs(number) < 2**63 for number in (*numbers, *(shape.minor_to_major or ())))


def _explained(text: str, size: int) -> bool:
    """Tell whether FORMAT 9 names the difference between a size and the formula."""
    shape = parse_shape(text)
    if shape.dtype == "token":
        return size == 0
    logical = shape.logical_bytes or 0
    if "<=" in text:
        return size == logical + 4 * len(shape.dimensions or ())
    if shape.tiling is None:
        # TPU: scratch of scalars is 2 KiB or 4 KiB.
        return size in (2048, 4096)
    return shape.memory_space == 2 and size == logical  # TPU: sync flags


def _printed_sizes(folder: Path) -> Counter[tuple[str, int]]:
    found: Counter[tuple[str, int]] = Counter()
    for path in folder.rglob("*.txt"):
        text = path.read_text(encoding="utf-8", errors="replace")
        if text.startswith("BufferAssignment:"):
            for pattern in (_MODERN_VALUE, _OLD_VALUE):
                found.update((shape, int(size)) for size, shape in pattern.findall(text))
    return found


def _check_sizes(folder: Path) -> tuple[int, int]:
    """Return the array values whose printed size is the formula's, and the explained exceptions."""
    equal = explained = 0
    for (text, size), count in _printed_sizes(folder).items():
        shape = parse_shape(text)
        assert shape.is_known, text
        if shape.dimensions is None:
            continue
        if padded_bytes(text) == size:
            equal += count
        else:
            assert _explained(text, size), (text, size)
            explained += count
    return equal, explained


def test_every_committed_value_has_the_size_of_its_shape() -> None:
    """The shapes of the bundled dumps are known and give the printed sizes, bar the known exceptions."""
    equal, explained = _check_sizes(DATA)
    assert equal > 1000
    assert explained < equal / 50


def test_every_value_of_the_corpus_has_the_size_of_its_shape(shared_corpus: Path) -> None:
    """The same on the whole corpus: CPU, GPU and TPU, TensorFlow 1.14 to jaxlib 0.12."""
    equal, explained = _check_sizes(shared_corpus)
    assert equal > 13_000
    assert explained < equal / 200
