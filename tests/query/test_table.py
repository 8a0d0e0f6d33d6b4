"""A table that has no room for all keeps the answer."""

from __future__ import annotations

import pytest

from ingest.query.cells import bar
from ingest.query.result import ResultColumn
from ingest.query.shorten import Kind, common_parts, least_width, shorten
from ingest.query.style import Style
from ingest.query.table import Table, lay_out

ROWS = [
    (
        "7", "jit_step", "512.00 MiB", "54.2%", "wrapped_dynamic_update_slice_fusion.12{0}",
        "/home/me/project/train.py:35", "jit(step)/transpose(jvp(Block))/attn/dot_general",
        "f32[4,16,1024,1024]{3,2,1,0:T(8,128)S(1)}", "0",
    ),
    (
        "7", "jit_step", "2.0 KiB", "0.1%", "copy.3", "/home/me/project/model/layers.py:7 (user)",
        "jit(step)/transpose(jvp(Block))/mlp/add", "(f32[8]{0}, s32[]{:T(128)}, bf16[1024,50257]{1,0})", "0",
    ),
]  # fmt: skip
KEYS = ("run_id", "bytes", "percent", "source", "shape", "op_name", "value")
NAMES = ("run_id", "module", "bytes", "percent", "value", "source", "op_name", "shape", "color")


def columns(*keys: str) -> list[ResultColumn]:
    """The columns of ROWS with these as their key."""
    return [
        ResultColumn(
            name,
            "BIGINT" if name in ("run_id", "bytes", "percent", "color") else "VARCHAR",
            rank=keys.index(name) if name in keys else None,
        )
        for name in NAMES
    ]


def table(width: int | None, keys: tuple[str, ...] = KEYS, style: Style | None = None) -> Table:
    """Lay ROWS out."""
    return lay_out(columns(*keys), ROWS, width, style=style or Style(), shares={3: [0.542, 0.001]})


def test_the_key_columns_fill_a_narrow_table() -> None:
    """File and line, dimensions and the last parts stay; what all share is said once; the rest is named."""
    found = table(80)
    assert found.caption == (
        "all rows: run_id 7, module jit_step, color 0",
        "source under /home/me/project/",
        "op_name under jit(step)/transpose(jvp(Block))/",
        "shape without layout",
    )
    assert found.lines == (
        "     bytes  percent  source                    op_name       shape",
        "----------  -------  ------------------------  ------------  -------------------",
        "512.00 MiB    54.2%  train.py:35               …dot_general  f32[4,16,1024,1024]",
        "   2.0 KiB     0.1%  model/layers.py:7 (user)  mlp/add       (f32[8], s32[],…)",
    )
    assert (found.left_out, found.said) == (("value",), ("run_id", "module", "color"))


def test_a_wide_table_is_whole() -> None:
    """With room for all nothing is cut, said once or left out, and the module stands next to the run."""
    found = table(400)
    assert (found.caption, found.left_out, found.said) == ((), (), ())
    assert found.lines[0].split() == ["run_id", "module", *NAMES[2:]]
    assert all(cell in found.lines[2] for cell in ROWS[0])
    assert table(None).lines == found.lines


def test_the_module_stands_next_to_the_run() -> None:
    """Wherever a result has it."""
    named = [ResultColumn(name, "VARCHAR") for name in ("run_id", "value", "module")]
    shown = lay_out(named, [["1", "a", "m"]], 80)
    assert shown.lines[0].split() == ["run_id", "module", "value"]


def test_a_column_without_any_cell_takes_no_room() -> None:
    """What is NULL in all rows is said once, of a key column too; a single row says all in its cells."""
    named = [ResultColumn("value", "VARCHAR", rank=0), ResultColumn("source", "VARCHAR", rank=1)]
    rows = [["a" * 60, "-"], ["b" * 60, "-"]]
    assert lay_out(named, rows, 62).caption == ("not known: source",)
    assert lay_out(named, rows[:1], 62).caption == ()


def test_sizes_that_are_zero_in_all_rows_are_named_together() -> None:
    """Apart from what all rows share: they say what there is none of."""
    named = [*columns("value"), ResultColumn("fused_bytes", "BIGINT"), ResultColumn("user_bytes", "BIGINT")]
    rows = [(*row, "0 B", "0 B") for row in ROWS]
    assert lay_out(named, rows, 62).caption[:2] == (
        "all rows: run_id 7, module jit_step, color 0",
        "zero: fused_bytes, user_bytes",
    )


def test_bars_are_drawn_where_key_columns_leave_room() -> None:
    """A bar is whole or not there; its number stays right."""
    assert "███▎     54.2%" in table(400).lines[2]
    assert "█" not in "".join(table(60).lines)
    assert [bar(share, 4) for share in (0.0, 0.5, 1.0, 2.0, None)] == ["    ", "██  ", "████", "████", "    "]


@pytest.mark.parametrize(
    ("text", "kind", "width", "expected"),
    [
        ("/home/me/project/train.py:35", Kind.PARTS, 14, "…train.py:35"),
        ("jit(f)/transpose(jvp(a/b))/dot", Kind.PARTS, 24, "…transpose(jvp(a/b))/dot"),
        ("f32[4,16]{1,0:T(8,128)}", Kind.SHAPE, 10, "f32[4,16]"),
        ("(f32[4,16]{1,0}, s32[], u8[2])", Kind.SHAPE, 22, "(f32[4,16], s32[],…)"),
        ("(f32[4,16]{1,0}, s32[], u8[2])", Kind.SHAPE, 3, "(f32[4,16],…)"),
        ("bitcast_dynamic-update-slice_fusion.12{0}", Kind.NAME, 17, "bitcast_…on.12{0}"),
        ("the file ends within a section", Kind.PROSE, 12, "the file en…"),
        ("值宽值宽值宽", Kind.NAME, 7, "值…值宽"),
    ],
)  # fmt: skip
def test_a_cut_keeps_what_tells_a_text_from_others(text: str, kind: Kind, width: int, expected: str) -> None:
    """Tails of paths and op_names, dimensions of shapes, numbers of instructions, beginnings of prose."""
    found = shorten(text, kind, width)
    assert found == expected
    assert shorten(text, kind, 200) == text
    assert least_width(text, kind) <= len(text) * 2


def test_shared_parts_never_take_a_name_as_a_whole() -> None:
    """The last part stays; '/' in brackets parts nothing; the root alone is nothing to share."""
    assert common_parts(["a/b/c", "a/b/d"]) == "a/b/"
    assert common_parts(["a/b", "a/b"]) == "a/"
    assert common_parts(["jit(a/b)/x", "jit(a/c)/x"]) == ""
    assert common_parts(["/x.py:1", "/y.py:1"]) == ""
    assert common_parts([]) == ""


def test_colour_and_links_change_no_width() -> None:
    """Painted, a table says the same in the same columns; only what we send is a control sequence."""
    import re

    painted = table(80, style=Style(color=True, links=True))
    plain = table(80)
    sequence = re.compile(r"\x1b\[\d+m|\x1b\]8;;[^\x1b]*\x1b\\")
    assert tuple(sequence.sub("", line).rstrip() for line in painted.lines) == plain.lines
    assert "\x1b]8;;file:///home/me/project/train.py\x1b\\train.py:35\x1b]8;;\x1b\\" in painted.lines[2]


def test_a_link_cannot_carry_a_control_sequence() -> None:
    """Whatever a path holds is percent-encoded; a path that is not absolute is no link."""
    style = Style(links=True)
    assert style.source("x", "/a\x1b]0;t\x07 b\u202e.py:3").count("\x1b") == 4
    assert "%1B%5D0%3Bt%07%20b%E2%80%AE.py" in style.source("x", "/a\x1b]0;t\x07 b\u202e.py:3")
    assert style.source("train.py:3", "train.py:3") == "train.py:3"
