"""What a module is called with stands in two numbers, by which compilations are paired."""

from __future__ import annotations

import duckdb
import pytest

from ingest.dump.entry import digest, layout_digest, parameters_digest, without_layouts
from ingest.query.blocks import execute_with_blocks

_LONG = "(f32[8,4]{1,0:T(8,128)S(1)}, /*index=5*/s32[])->(f32[<=8]{0}, pred[])"


def test_layouts_and_numbers_of_elements_are_left_out() -> None:
    assert without_layouts(_LONG) == "(f32[8,4], s32[])->(f32[<=8], pred[])"


def test_parameters_stand_in_order_of_their_numbers() -> None:
    shapes = [(0, "f32[8]"), (1, "s32[]"), (10, "f32[4]")]
    assert parameters_digest(shapes[::-1]) == digest("f32[8], s32[], f32[4]")
    assert parameters_digest([]) is None


@pytest.mark.parametrize("other", ["(f32[8,4])->f32[9]", "(f32[8,5])->f32[8]", "(f32[8,4]{0,1})->(f32[8])"])
def test_layouts_have_one_digest_only_where_all_shapes_are_equal(other: str) -> None:
    plain = layout_digest("{(f32[8,4])->f32[8]}")
    assert layout_digest("{(f32[8,4]{1,0:T(8,128)})->f32[8]{0}}") == plain
    assert layout_digest(f"{{{other}}}") != plain
    assert layout_digest(None) is None


def test_stored_digests_are_of_the_shapes_that_are_stored(demonstration: duckdb.DuckDBPyConnection) -> None:
    """Whole dumps, dumps in pieces and protobufs alone, against the tables."""
    found = execute_with_blocks(
        demonstration,
        "SELECT r.parameters_digest, p.shapes, m.layout_digest, m.entry_computation_layout FROM runs AS r"
        " LEFT JOIN hlo_modules AS m USING (run_id) LEFT JOIN ("
        "  SELECT a.run_id,"
        "   string_agg(shapes_only(a.parameter_shape), ', ' ORDER BY a.parameter_number) AS shapes"
        "  FROM allocations AS a WHERE a.parameter_shape_index = '{}' GROUP BY a.run_id"
        " ) AS p USING (run_id)",
    ).fetchall()
    assert any(shapes for _, shapes, _, _ in found)
    assert any(layout for _, _, _, layout in found)
    assert [row for row in found if row[0] != (row[1] and digest(row[1]))] == []
    assert [row for row in found if row[2] != layout_digest(row[3])] == []
