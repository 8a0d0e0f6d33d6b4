"""Other engines read a lake: Polars and Spark count and add up what DuckDB does.

Spark needs the extra `engines` and Java, and is skipped without them. Delta's jar is not on the package
registry, so Spark reads the files that the log names.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ingest import import_dumps
from ingest.database.tables import TABLES
from ingest.lake.layout import TABLES_OF_RUNS
from ingest.lake.opened import open_lake
from ingest.lake.store import Lake
from tests.support.dump_sets import DATA
from tests.support.lakes import in_process
from tests.support.once import made_once

pytestmark = pytest.mark.slow

EXAMPLES = DATA.parent.parent / "examples" / "dumps"
NAMES = ("runs", *TABLES_OF_RUNS)
Sums = dict[str, tuple[int, ...]]
"""Of each table: rows that count, and the sum of each column of whole numbers, 0 without any."""


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """Dumps of three backends, by two imports; the second completes runs of the first with their HLO text."""

    def make(folder: Path) -> Path:
        dumps = folder / "dumps"
        for source in (EXAMPLES, *(DATA / "dumps" / name for name in ("gpu-h100-multiheap", "tpu-v6e"))):
            shutil.copytree(source, dumps / source.name)
        for path in dumps.rglob("*"):
            os.utime(path, (1_700_000_000, 1_700_000_000))
        for read_hlo in (False, True):
            import_dumps(
                dumps, lake=folder / "lake", staging=folder / "staging", read_hlo=read_hlo, labels={"of": "x"}
            )
        return folder / "lake"

    return Lake(str(made_once(tmp_path_factory, "lake-of-all", make)), True)


@pytest.fixture(scope="module")
def by_duckdb(lake: Lake) -> Sums:
    """What DuckDB finds."""
    found = {}
    with open_lake(lake) as connection:
        for name in NAMES:
            sums = "".join(f', coalesce(sum("{column}"), 0)' for column in numbers(name))
            rows = connection.execute(f'SELECT count(*){sums} FROM "{name}"').fetchall()
            found[name] = tuple(map(int, rows[0]))
    return found


@pytest.fixture(scope="module")
def by_type(lake: Lake) -> dict[str, tuple[int, int]]:
    """Values and bytes by element type, as DuckDB finds them."""
    with open_lake(lake) as connection:
        rows = connection.execute(
            'SELECT dtype, count(*), sum(size_bytes) FROM "values" GROUP BY ALL'
        ).fetchall()
    return {name: (count, int(total)) for name, count, total in rows}


def example(engine: str, lake: Lake) -> str:
    """Return the Python of docs/engines.md that uses an engine, on this lake."""
    page = (DATA.parent.parent / "docs" / "engines.md").read_text(encoding="utf-8")
    [code] = [code for code in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if engine in code]
    assert '"/data/xbuf-lake"' in code
    return str(code).replace('"/data/xbuf-lake"', repr(lake.root))


def numbers(table: str) -> list[str]:
    return [column.name for column in TABLES[table].columns if column.type == "BIGINT"]


def test_a_lake_has_rows_that_do_not_count(lake: Lake, by_duckdb: Sums) -> None:
    """Those of runs that were completed: an engine that forgets the condition counts them too."""
    rows = in_process(lambda: lake.table("values").to_pyarrow_dataset().count_rows())
    assert rows > by_duckdb["values"][0] > 0
    assert all(by_duckdb[name][0] for name in ("runs", "run_labels", "ranges", "hlo_modules", "uses"))


def test_polars_counts_and_adds_up_what_duckdb_does(lake: Lake, by_duckdb: Sums) -> None:
    polars = pytest.importorskip("polars")

    def ask() -> Sums:
        found = {}
        runs = polars.scan_delta(lake.url("runs")).select("run_id")
        for name in NAMES:
            rows = polars.scan_delta(lake.url(name)).join(runs, on="run_id", how="semi")
            # A sum of 64 bits goes over its edge without a word.
            sums = [polars.col(column).cast(polars.Int128).sum() for column in numbers(name)]
            found[name] = tuple(map(int, rows.select(polars.len().alias("rows"), *sums).collect().row(0)))
        return found

    assert in_process(ask) == by_duckdb


def test_the_example_with_polars_runs(lake: Lake, by_type: dict[str, tuple[int, int]]) -> None:
    pytest.importorskip("polars")

    def run() -> dict[str, tuple[int, int]]:
        names: dict[str, Any] = {}
        exec(example("polars", lake), names)
        return {name: (count, total) for name, count, total in names["by_type"].collect().rows()}

    assert in_process(run) == by_type


_ALL_IN_SPARK = """
import json
from pyspark.sql import functions

found = {}
for name, columns in json.loads(NUMBERS).items():
    if not DeltaTable(f"{lake}/{name}").file_uris():
        found[name] = [0] * (1 + len(columns))
        continue
    rows = read(name).join(runs.select("run_id"), "run_id", "left_semi")
    sums = [functions.sum(functions.col(column).cast("decimal(20,0)")) for column in columns]
    found[name] = [int(cell or 0) for cell in rows.agg(functions.count("*"), *sums).first()]
latest = runs.selectExpr("unix_micros(max(ingested_at))").first()[0]
print(json.dumps({"found": found, "latest": latest}))
"""


def test_spark_counts_and_adds_up_what_duckdb_does(
    lake: Lake, by_duckdb: Sums, by_type: dict[str, tuple[int, int]]
) -> None:
    """So does the example, and a moment in UTC is the same to both.

    All in a process of its own: Spark and the opened tables stand no fork.
    """
    pytest.importorskip("pyspark", reason="pip install -e '.[engines]'")
    if not (os.environ.get("JAVA_HOME") or shutil.which("java")):
        pytest.skip("Spark needs Java")
    with open_lake(lake) as connection:
        latest = connection.execute("SELECT epoch_us(max(ingested_at)) FROM runs").fetchone()
    columns = json.dumps({name: numbers(name) for name in NAMES})
    code = f"{example('pyspark', lake)}\nNUMBERS = {columns!r}\n{_ALL_IN_SPARK}"
    process = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    *shown, last = process.stdout.splitlines()
    result = json.loads(last)
    assert {name: tuple(row) for name, row in result["found"].items()} == by_duckdb
    assert (result["latest"],) == latest
    head, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in shown if "|" in line]
    assert by_type == {
        row["dtype"]: (int(row["count(1)"]), int(row["sum(size_bytes)"]))
        for row in (dict(zip(head, cells, strict=True)) for cells in rows)
    }
