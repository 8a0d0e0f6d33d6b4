"""Real pairs of compilations, compared: the results are in tests/golden/comparisons.

`python -m tests.regenerate` writes them anew; look at the difference.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from ingest.compare.comparison import Comparison
from ingest.database.connect import open_database
from ingest.query.blocks import create_temporary
from ingest.query.cells import display_width
from tests.support.comparisons import COMPARED, FOLDER, comparison_of, load_comparisons, texts_of
from tests.support.once import made_once


@pytest.fixture(scope="module")
def connection(tmp_path_factory: pytest.TempPathFactory) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open read-only: all sides in one database."""
    path = made_once(tmp_path_factory, "comparisons", load_comparisons)
    with open_database(path, read_only=True) as opened:
        yield opened


FEW = ("cpu-0.4.38-to-0.10.2", "batch-8-to-16")


@pytest.fixture(
    scope="module",
    params=[name if name in FEW else pytest.param(name, marks=pytest.mark.slow) for name in COMPARED],
)
def compared(connection: duckdb.DuckDBPyConnection, request: pytest.FixtureRequest) -> tuple[str, Comparison]:
    """A comparison and its name."""
    return request.param, comparison_of(connection, request.param)


def test_the_comparison_is_the_golden_one(
    compared: tuple[str, Comparison], monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a terminal of 80 columns, as Markdown and as JSON."""
    monkeypatch.chdir(Path(__file__).parents[2])
    name, comparison = compared
    for ending, text in texts_of(comparison):
        assert text == (FOLDER / f"{name}.{ending}").read_text(encoding="utf-8")
        if ending == "txt":
            assert max(map(display_width, text.splitlines())) <= 80


def test_the_rows_of_every_pair_add_up(compared: tuple[str, Comparison]) -> None:
    """To the change of the live peak, exactly; all modules found their partner."""
    _, comparison = compared
    assert comparison.pairs
    assert (comparison.only_before, comparison.only_after) == ((), ())
    for pair in comparison.pairs:
        assert sum(row.change_bytes for row in pair.changes) == pair.peak.change_bytes


def test_a_conditional_hands_its_result_on(connection: duckdb.DuckDBPyConnection) -> None:
    """The branch's result and the conditional's are one buffer: which of both is at the peak is no change.

    What is one is the copy out of VMEM that jax 0.10.2 has at its peak.
    """
    pairs = {pair.after.module: pair for pair in comparison_of(connection, "tpu-0.8.3-to-0.10.2").pairs}
    large = [row for row in pairs["jit_cond1"].changes if abs(row.change_bytes) > 512]
    assert [(row.change, row.value, row.change_bytes) for row in large] == [("new", "copy-start{0}", 32768)]


def test_copies_are_matched_by_what_they_copy(connection: duckdb.DuckDBPyConnection) -> None:
    """XLA's own copies have no op_name; what they are copies of does not depend on where they lie."""
    matched = (
        "SELECT b.instruction, a.instruction, b.shape, a.shape FROM matched_buffers($1, $2) AS m"
        ' JOIN "values" AS b ON b.run_id = m.before_run_id AND b.value_id = m.before_value_id'
        ' JOIN "values" AS a ON a.run_id = m.after_run_id AND a.value_id = m.after_value_id'
        " WHERE m.matched_by = 'copy' AND b.instruction = 'copy.34'"
    )
    create_temporary(connection, matched)
    rows = connection.execute(
        matched,
        [_run(connection, place, "jit_nested_loops") for place in ("tpu-jax-0.8.3", "tpu-jax-0.10.2")],
    ).fetchall()
    assert rows == [("copy.34", "copy.34", "f32[64,64]{1,0:T(8,128)S(1)}", "f32[64,64]{1,0:T(8,128)}")]


def _run(connection: duckdb.DuckDBPyConnection, place: str, module: str) -> str:
    ((run,),) = connection.execute(
        "SELECT run_id FROM runs WHERE ends_with(dump_dir, '/' || $1) AND module_name = $2", [place, module]
    ).fetchall()
    return str(run)
