"""Saved queries stay fast as the database grows: no join multiplies. `python -m benchmarks` times them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from ingest.database.connect import open_database
from ingest.query.blocks import create_temporary
from ingest.query.catalog import shipped
from ingest.query.run import bind
from tests.support.profiles import Plan, run_profiled
from tests.support.query_databases import load_demonstration

pytestmark = pytest.mark.usefixtures("macros")

# A query that needs a value of its own to do its work, besides its defaults.
MORE_VALUES: dict[str, dict[str, str]] = {
    "peak_growth": {"before": "batch=8", "after": "batch=32"},
    "buffer_changes": {"before": "set=devices", "after": "set=devices"},
    "diff": {"before": "10", "after": "29"},
    "largest_live_out": {"by": "tiling"},
    "in_place": {"verdict": "copied"},
    "donation": {"status": "missed"},
}


def multiply(connection: duckdb.DuckDBPyConnection, copies: int) -> None:
    """Repeat every run `copies` times under new ids, in the order of their ids as imports append them."""
    tables = [
        name
        for (name,) in connection.execute(
            "SELECT table_name FROM duckdb_columns() WHERE column_name = 'run_id' AND schema_name = 'main' "
            "AND NOT internal AND table_name IN (SELECT table_name FROM duckdb_tables())"
        ).fetchall()
    ]
    for table in tables:
        connection.execute(
            f'INSERT INTO "{table}" SELECT t.* REPLACE (t.run_id + 1000 * c.range AS run_id) '
            f'FROM "{table}" AS t, range(1, {copies}) AS c ORDER BY c.range, t.run_id'
        )
    connection.execute("CHECKPOINT")


DEEP = 900_001
"""Run in which a join of slots with values, or of values with each other, has millions of rows."""
DEEP_VALUES = 2_000
_DEEP_SQL = (
    "INSERT INTO runs SELECT r.* REPLACE ($run AS run_id, 'deep' AS stem, 'deep' AS module_name,"
    " 'tpu' AS backend, 2 * $n AS schedule_length, $n AS peak_time, $n AS printed_peak_time,"
    " 64 * $n AS peak_bytes, 64 * $n AS total_bytes, true AS has_values, true AS has_ranges)"
    " FROM (FROM runs WHERE has_ranges LIMIT 1) AS r",
    # Of four values one is a parameter, one a result and two lie in arenas; all are of one size and shape.
    "INSERT INTO allocations SELECT a.* REPLACE ($run AS run_id, i.range AS allocation_index,"
    " CASE WHEN i.range % 4 = 2 THEN 64 * $n ELSE 64 END AS size_bytes, i.range % 8 // 4 AS color,"
    " CASE i.range % 4 WHEN 0 THEN i.range END AS parameter_number,"
    " CASE i.range % 4 WHEN 0 THEN '{}' END AS parameter_shape_index,"
    " i.range % 4 = 1 AS maybe_live_out, i.range % 4 = 2 AS is_preallocated_temp, false AS is_constant,"
    " false AS is_thread_local,"
    " CASE i.range % 4 WHEN 0 THEN 'parameter' WHEN 1 THEN 'output' ELSE 'temp' END AS kind,"
    " CASE i.range % 4 WHEN 0 THEN i.range END AS parameter_value_id,"
    " CASE i.range % 4 WHEN 1 THEN i.range END AS live_out_value_id,"
    " $n AS live_peak_time, 64 AS live_peak_bytes, 64 AS released_peak_bytes,"
    " CASE i.range % 4 WHEN 0 THEN 'missed' END AS donation, NULL AS declared_donation,"
    " CASE i.range % 4 WHEN 0 THEN i.range + 1 END AS fitting_value_id)"
    " FROM (FROM allocations LIMIT 1) AS a, range($n) AS i"
    " WHERE i.range % 4 < 2 OR (i.range % 4 = 2 AND i.range < 400)",
    'INSERT INTO "values" SELECT v.* REPLACE ($run AS run_id, i.range AS value_id,'
    " CASE WHEN i.range % 4 < 2 THEN i.range ELSE i.range // 4 % 100 * 4 + 2 END AS allocation_index,"
    " 'v' || i.range AS instruction,"
    " '{}' AS shape_index, false AS is_phi, i.range % 8 // 4 AS color,"
    " CASE WHEN i.range % 4 < 2 THEN 0 ELSE 64 * i.range END AS offset_bytes, 64 AS size_bytes,"
    " [4] AS dimensions, 'f32' AS dtype, 16 AS logical_bytes, 48 AS padding_bytes,"
    " CASE i.range % 4 WHEN 0 THEN 'parameter' WHEN 1 THEN 'copy' WHEN 2 THEN 'copy-start'"
    " ELSE 'all-reduce' END AS opcode, 'jit(f)/rematted_computation/x' AS op_name)"
    " FROM (FROM \"values\" WHERE dtype = 'f32' LIMIT 1) AS v, range($n) AS i",
    "INSERT INTO ranges SELECT g.* REPLACE ($run AS run_id, i.range AS value_id,"
    " 'v' || i.range AS instruction, '{}' AS shape_index, i.range AS start_time, "
    " 2 * $n - i.range AS end_time, 0 AS handover_bytes, 64 AS gained_bytes, 64 AS peak_bytes,"
    " 64 AS value_bytes, CASE i.range % 4 WHEN 0 THEN 'parameter' ELSE 'result' END AS role)"
    " FROM (FROM ranges LIMIT 1) AS g, range($n) AS i",
    "INSERT INTO schedule SELECT $run, i.range, 'v' || (i.range % $n) FROM range(2 * $n) AS i",
    "INSERT INTO uses SELECT $run, i.range, 0, 'v' || (i.range + 1) % $n, 0, '{}' FROM range($n) AS i",
    "INSERT INTO color_peaks SELECT $run, i.range, $n, 32 * $n FROM range(2) AS i",
    "INSERT INTO positions SELECT $run, i.range, 0, 'v' || i.range, '{}' FROM range($n) AS i",
)


@pytest.fixture(scope="module")
def deep(tmp_path_factory: pytest.TempPathFactory) -> Iterator[duckdb.DuckDBPyConnection]:
    """The demonstration 12 times, and a run of 2,000 values that are all live at once, over 4,000 slots.

    With many runs the optimizer is tempted to join by run_id alone.
    """
    path = load_demonstration(tmp_path_factory.mktemp("deep"))
    with open_database(path) as connection:
        multiply(connection, 12)
        for statement in _DEEP_SQL:
            names = ("run", "n") if "$n" in statement else ("run",)
            values = {"run": DEEP, "n": DEEP_VALUES}
            connection.execute(statement, {name: values[name] for name in names})
        create_temporary(connection)
        yield connection


NESTED = ("NESTED_LOOP", "BLOCKWISE_NL", "CROSS_PRODUCT", "IE_JOIN", "PIECEWISE_MERGE", "POSITIONAL")
"""Joins that compare rows pair by pair, or may."""
FEW_ROWS = 20
"""One side of such a join may have so many rows: a scalar or a list of memory spaces."""
MOST_MATCHES = 4
"""Rows that a join may make of each row of its larger side."""
MANY_ROWS = 1_000
"""Joins that make fewer rows are not worth a look."""


def faults(plan: Plan, largest_table: int) -> list[str]:
    """Name the operators that multiply: joins pair by pair, joins of many matches, more rows than data."""
    found = []
    kind, rows = str(plan.get("operator_type", "")), int(plan.get("operator_cardinality", 0))
    below = [int(child.get("operator_cardinality", 0)) for child in plan.get("children", [])]
    # A side that is a common table expression's result counts its rows, too.
    if kind.startswith(NESTED) and len(below) == 2 and min(below) > FEW_ROWS:
        found.append(f"{kind} compares {below[0]:,} rows with {below[1]:,}")
    if "JOIN" in kind and rows > MOST_MATCHES * max([*below, MANY_ROWS // MOST_MATCHES]):
        found.append(f"{kind} makes {rows:,} rows of {below}")
    if rows > 3 * largest_table:
        found.append(f"{kind} puts out {rows:,} rows; the largest table has {largest_table:,}")
    for child in plan.get("children", []):
        found += faults(child, largest_table)
    return found


def count_largest(connection: duckdb.DuckDBPyConnection) -> int:
    """Count the rows of the largest table of a value's facts."""
    sizes = [
        int((connection.execute(f'SELECT count(*) FROM "{table}"').fetchone() or (0,))[0])
        for table in ("values", "uses", "ranges", "schedule", "allocations")
    ]
    return max(sizes)


@pytest.mark.slow
@pytest.mark.parametrize("name", list(shipped()))
def test_no_join_multiplies(deep: duckdb.DuckDBPyConnection, name: str, tmp_path: Path) -> None:
    """Slots times values would be 8 million rows here; three changes for each range are fine."""
    query = shipped().load(name)
    values = bind(query, dict(MORE_VALUES.get(name, {})))
    for given in [values, *([{**values, "top": None}] if "top" in values else [])]:
        plan = run_profiled(deep, query.sql, given, tmp_path)
        assert faults(plan, count_largest(deep)) == []


@pytest.mark.slow
def test_matching_two_deep_runs_does_not_multiply(deep: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    """2,000 buffers of equal operation and dimensions are numbered, not joined with each other."""
    other = deep.execute("SELECT max(run_id) FROM runs WHERE run_id < ? AND has_ranges", [DEEP]).fetchone()
    assert other is not None
    query = shipped().load("diff")
    values = bind(query, {"before": str(DEEP), "after": str(other[0])})
    assert faults(run_profiled(deep, query.sql, values, tmp_path), count_largest(deep)) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "sql",
    [
        pytest.param(
            "SELECT s.time, sum(v.size_bytes) FROM schedule AS s JOIN ranges AS g ON g.run_id = s.run_id "
            'AND s.time BETWEEN g.start_time AND g.end_time JOIN "values" AS v ON v.run_id = g.run_id '
            "AND v.value_id = g.value_id GROUP BY s.time",
            id="times x values",
        ),
        pytest.param(
            "SELECT count(*) FROM ranges AS a JOIN ranges AS b ON a.start_time < b.end_time "
            "AND a.end_time > b.start_time AND a.handover_bytes = b.end_time % 2",
            id="ranges x ranges",
        ),
        pytest.param(
            'SELECT count(*) FROM "values" AS p LEFT JOIN "values" AS r ON p.is_phi AND r.run_id = p.run_id '
            "AND r.value_id = p.value_id + 1",
            id="condition on one side of an outer join",
        ),
        pytest.param(
            'SELECT count(v.shape || w.shape) FROM "values" AS v JOIN "values" AS w USING (run_id, shape)',
            id="alike x alike",
        ),
        pytest.param(
            "SELECT sum(s.time * g.end_time) FROM schedule AS s, ranges AS g", id="everything x everything"
        ),
    ],
)
def test_joins_that_multiply_are_found(deep: duckdb.DuckDBPyConnection, sql: str, tmp_path: Path) -> None:
    """The check above fails on queries that must not be shipped."""
    assert faults(run_profiled(deep, sql, {}, tmp_path), count_largest(deep)) != []
