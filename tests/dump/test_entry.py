"""What a module is called with stands in two numbers, by which compilations are paired."""

from __future__ import annotations

import shutil
from pathlib import Path

import duckdb
import pytest

from ingest.database.connect import open_database
from ingest.dump.entry import digest, layout_digest, parameters_digest, without_layouts
from ingest.pipeline.importer import import_dumps
from ingest.query.blocks import execute_with_blocks
from tests.support.query_databases import DATA

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
    """Of whole texts and of texts in three files, of many releases."""
    found = execute_with_blocks(
        demonstration,
        "SELECT r.parameters_digest, p.shapes FROM runs AS r LEFT JOIN ("
        "  SELECT a.run_id,"
        "   string_agg(shapes_only(a.parameter_shape), ', ' ORDER BY a.parameter_number) AS shapes"
        "  FROM allocations AS a WHERE a.parameter_shape_index = '{}' GROUP BY a.run_id"
        " ) AS p USING (run_id)",
    ).fetchall()
    assert any(shapes for _, shapes in found)
    assert [row for row in found if row[0] != (row[1] and digest(row[1]))] == []


def test_module_and_protobuf_alone_have_the_digests_of_the_text(tmp_path: Path) -> None:
    """By them, compilations are paired whatever is left of their dumps."""
    folder = DATA / "hlo" / "jaxlib-0.10.2-cpu"
    alone = tmp_path / "alone"
    alone.mkdir()
    for proto in folder.glob("*.pb"):
        shutil.copy(proto, alone)
    import_dumps([folder, alone], tmp_path / "xbuf.duckdb", jobs=1)
    with open_database(tmp_path / "xbuf.duckdb", read_only=True) as connection:
        found = connection.execute(
            "SELECT r.stem, r.parameters_digest, m.layout_digest, m.entry_computation_layout"
            " FROM runs AS r JOIN hlo_modules AS m USING (run_id) ORDER BY 1"
        ).fetchall()
    assert len(found) == 4
    assert [row for row in found if row[2] is None or row[2] != layout_digest(row[3])] == []
    assert len({row[1:3] for row in found}) == len({row[0] for row in found}) == 2
