"""Databases that the tests and the documentation of the saved queries run on."""

from __future__ import annotations

import os
import shutil
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import duckdb
import pytest

from ingest.pipeline.importer import import_dumps
from ingest.query.catalog import shipped
from ingest.query.header import Value
from ingest.query.install import install_queries
from ingest.query.run import bind, run_query

TESTS = Path(__file__).resolve().parents[1]
DATA = TESTS / "data"
GOLDEN = TESTS / "golden"
_OF_AN_IMPORT = {"ingested_at", "started_at", "finished_at", "seconds", "sources", "import_uuid"}
Answers = dict[str, list[tuple[Any, ...]]]
"""Rows of saved queries, by name."""

IMPORTS: tuple[tuple[tuple[tuple[str, str], ...], tuple[str, ...]], ...] = (
    ((("set", "seeds"),), ("data/seeds",)),
    ((("jax", "0.4.13"),), ("data/dumps/jaxlib-0.4.13-cpu",)),
    ((("jax", "0.6.2"),), ("data/dumps/jaxlib-0.6.2-cpu",)),
    ((("jax", "0.10.0"),), ("data/dumps/jaxlib-0.10.0-cpu",)),
    ((("batch", "8"),), ("golden/dumps/batch-8",)),
    ((("batch", "16"),), ("golden/dumps/batch-16",)),
    (
        (("set", "devices"),),
        (
            "data/dumps/tpu-v5e-jaxlib-0.8.3",
            "data/dumps/tpu-v5e-jaxlib-0.10.2",
            "data/dumps/tpu-v6e",
            "data/dumps/gpu-h100-jaxlib-0.10.2",
            "data/dumps/gpu-h100-multiheap",
            "data/handmade/color-reuse",
            "data/handmade/no-live-range",
            "data/dumps/tf-1.14-cpu",
        ),
    ),
    ((("set", "more"),), ("more",)),
    ((("batch", "32"),), ("golden/dumps/batch-32",)),
)
"""The imports of the demonstration database, oldest first: labels, and paths below tests/."""


_OF_EACH_PARAMETER = ("donation", "fits_in_memory", "live_curve", "memory_by_source", "padding")


def one_of_each_parameter(names: Collection[str] | None = None) -> list[Any]:
    """Name saved queries (all), for `parametrize`: those but one of each type of parameter are slow."""
    return [
        name if name in _OF_EACH_PARAMETER else pytest.param(name, marks=pytest.mark.slow)
        for name in shipped()
        if names is None or name in names
    ]


def load_seeds(folder: Path) -> Path:
    """Load the five seeds as runs 1 to 5."""
    path = folder / "seeds.duckdb"
    import_dumps([DATA / "seeds"], path, jobs=1)
    return path


def load_demonstration(folder: Path) -> Path:
    """Load dumps of many releases, one of them twice, and a broken one.

    What differs from machine to machine and from day to day (paths, times) is made the same.
    """
    path = folder / "xbuf.duckdb"
    more = folder / "more"
    more.mkdir()
    seed = (DATA / "seeds/001_aa093b3e4f73e23a.txt").read_text()
    broken = more / "module_0002.jit_broken.cpu_after_optimizations-buffer-assignment.txt"
    broken.write_text(seed.replace("Total bytes used: 41943040", "Total bytes used: 41943041"))
    os.utime(broken, (0, 0))  # a fresh one would pass for a dump that is still being written
    again = next((GOLDEN / "dumps/batch-8").iterdir())
    shutil.copy(again, more / again.name.replace("0001.jit_step", "0007.jit_again"))
    for labels, paths in IMPORTS:
        import_dumps([more if p == "more" else TESTS / p for p in paths], path, labels=labels, jobs=1)
    with duckdb.connect(str(path)) as connection:
        connection.execute(
            "UPDATE imports SET started_at = TIMESTAMP '2026-01-01' + to_days(import_id::INTEGER)"
        )
        connection.execute(
            "UPDATE runs SET ingested_at = TIMESTAMP '2026-01-01' + to_days(import_id::INTEGER)"
        )
        for root in (TESTS, folder):
            connection.execute("UPDATE runs SET dump_dir = replace(dump_dir, ?, '')", [f"{root}/"])
        connection.execute("UPDATE rejects SET file = replace(file, ?, '')", [f"{folder}/"])
        connection.execute(
            "DELETE FROM saved_queries"
        )  # new databases of tests list them without their macros
        install_queries(connection)
    shutil.rmtree(more)
    return path


def ask(
    connection: duckdb.DuckDBPyConnection, name: str, *columns: str, **values: Value
) -> list[tuple[Any, ...]]:
    """Run a saved query and return the named columns of all its rows."""
    query = shipped().load(name)
    if query.parameter("top") is not None:
        values.setdefault("top", None)
    result = run_query(connection, query, bind(query, values))
    names = [column.name for column in result.columns]
    chosen = [names.index(column) for column in columns or names]
    return [tuple(row[index] for index in chosen) for row in result.rows()]


def answers(connection: duckdb.DuckDBPyConnection, *, without: Collection[str] = ()) -> Answers:
    """Return the rows of every saved query, but for what differs between two imports, and some columns."""
    found = {}
    for query in shipped().load_all():
        given: dict[str, Value] = {"top": None} if query.parameter("top") is not None else {}
        result = run_query(connection, query, bind(query, given))
        kept = [
            at
            for at, column in enumerate(result.columns)
            if column.name not in _OF_AN_IMPORT and column.name not in without
        ]
        found[query.name] = [tuple(row[at] for at in kept) for row in result.rows()]
    return found


def rows_as_dicts(connection: duckdb.DuckDBPyConnection, sql: str) -> list[Mapping[str, Any]]:
    """Run a statement and return its rows by column name."""
    cursor = connection.execute(sql)
    names = [column[0] for column in cursor.description or []]
    return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
