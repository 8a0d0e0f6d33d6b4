"""The query `same_program` over real dumps that were changed in one place."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ingest import import_dumps
from ingest.database.connect import open_database
from ingest.query.blocks import create_temporary
from ingest.query.catalog import shipped
from ingest.query.run import bind
from tests.support.dump_sets import DATA

FOLDER = DATA / "hlo" / "jaxlib-0.10.2-cpu"
STEM = "module_0010.jit_dn.cpu_after_optimizations"
SUM = "f32[] add(%reduce_sum.3, %reduce_sum.4)"
FUSED = "f32[64,64]{1,0} multiply(%param_0.2, %mul.1)"


def write_sets(folder: Path, hlo: tuple[str, ...]) -> None:
    """Write the set as it is, renumbered, with another reduction, and with another fused operation.

    The last differs from the first in the HLO text alone.
    """
    changes = {
        "a": ("", ""),
        "b": (".5", ".55"),
        "c": (SUM, SUM.replace("add", "subtract")),
        "d": (FUSED, FUSED.replace("multiply", "divide")),
    }
    endings = ("-buffer-assignment.txt", "-buffer-assignment-values.txt", "-live-range.txt", *hlo)
    for name, (old, new) in changes.items():
        (folder / name).mkdir(parents=True)
        for ending in endings:
            text = (FOLDER / f"{STEM}{ending}").read_text()
            path = folder / name / f"{STEM}{ending}"
            path.write_text(text.replace(old, new) if old else text)
            os.utime(path, (1_600_000_000, 1_600_000_000))


@pytest.mark.parametrize(
    ("hlo", "based_on", "expected"),
    [
        ((), "dump", {("a", "b", "d"), ("c",)}),
        ((".txt",), "text", {("a", "b"), ("c",), ("d",)}),
    ],
    ids=["dump alone", "with HLO text"],
)
def test_other_operations_are_other_programs(
    hlo: tuple[str, ...], based_on: str, expected: set[tuple[str, ...]], tmp_path: Path
) -> None:
    """Addition and subtraction are told apart, and what fusions compute where the HLO text is there."""
    write_sets(tmp_path / "dumps", hlo)
    assert import_dumps([tmp_path / "dumps"], tmp_path / "x.duckdb").loaded == 4
    query = shipped().load("same_program")
    with open_database(tmp_path / "x.duckdb", read_only=True) as connection:
        create_temporary(connection)
        found = connection.execute(query.sql, bind(query, {"min_runs": 1})).fetchall()
        names = dict(
            connection.execute("SELECT run_id::VARCHAR, parse_filename(dump_dir) FROM runs").fetchall()
        )
    column = {one.name: at for at, one in enumerate(query.columns)}
    groups = {
        tuple(sorted(names[run] for run in row[column["run_ids"]].split(","))): row[column["based_on"]]
        for row in found
    }
    assert groups.keys() == expected
    assert set(groups.values()) == {based_on}
    assert len({row[column["fingerprint"]] for row in found}) == len(expected)
