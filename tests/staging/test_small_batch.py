"""A batch of few rows is written without Arrow, and no otherwise than with it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pytest

from ingest.dump.find import discover
from ingest.dump.parse import parse_set, text_files
from ingest.dump.sets import DumpSet
from ingest.staging import run_rows, stage
from ingest.staging.arrow_rows import TYPES, batch_tables, write_tables
from ingest.staging.batch import COLUMNS, Batch
from ingest.staging.dump_rows import add_dump
from ingest.staging.small_batch import write_small_batch
from ingest.staging.stage import stage_sets
from ingest.staging.task import Staged, Task
from tests.support.dump_sets import DATA, write_donors


def contents(directory: Path) -> dict[str, tuple[list[Any], list[Any]]]:
    """Return name and type of the columns and the rows of every Parquet file, by table."""
    found = {}
    with duckdb.connect() as connection:
        for file in sorted(directory.glob("*.parquet")):
            relation = connection.read_parquet(str(file))
            types = list(zip(relation.columns, map(str, relation.types), strict=True))
            found[file.stem] = (
                sorted(types),
                relation.order(", ".join(f'"{n}"' for n, _ in sorted(types))).fetchall(),
            )
    return found


def staged(sets: list[DumpSet], part: Path, monkeypatch: pytest.MonkeyPatch, *, few_rows: bool) -> Staged:
    """Stage sets in one of the two ways."""

    def write(directory: str, batch: Any, runs: Any, files: Any) -> None:
        if few_rows:
            more = {"runs": (run_rows.RUN_COLUMNS, runs), "run_files": (run_rows.FILE_COLUMNS, files)}
            write_small_batch(directory, batch, more)
        else:
            write_tables(batch_tables(batch), directory)
            run_rows.write_run_tables(directory, runs, files)

    monkeypatch.setattr(stage, "_write", write)
    return stage_sets([Task(number, one) for number, one in enumerate(sets)], str(part))


@pytest.mark.slow
def test_every_dump_is_staged_alike(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Same tables, types and rows: all releases, HLO texts, protobufs, hand-made and odd dumps, at once."""
    write_donors(tmp_path / "donors")
    sets = list(discover([DATA, tmp_path / "donors"], proto_alone=True).sets)
    arrow = staged(sets, tmp_path / "arrow", monkeypatch, few_rows=False)
    few = staged(sets, tmp_path / "few", monkeypatch, few_rows=True)
    assert (few.loaded, few.rows, few.rejected) == (arrow.loaded, arrow.rows, arrow.rejected)
    expected = contents(tmp_path / "arrow")
    assert contents(tmp_path / "few") == expected
    assert expected.keys() >= COLUMNS.keys() - {"notices"}


@pytest.mark.parametrize("every", [36, pytest.param(4, marks=pytest.mark.slow)])
def test_every_dump_is_staged_alike_by_itself(
    every: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A batch of one dump may lack tables, HLO module, instruction texts or sources."""
    for number, one in enumerate(discover([DATA], proto_alone=True).sets[::every]):
        arrow, few = (tmp_path / f"{way}-{number}" for way in ("arrow", "few"))
        for part, few_rows in ((arrow, False), (few, True)):
            staged([one], part, monkeypatch, few_rows=few_rows)
        assert few.exists() == arrow.exists()
        assert contents(few) == contents(arrow)


def test_texts_of_any_characters_are_staged_alike(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Quotes, backslashes, control characters, NUL and characters beyond 16 bits."""
    label = "\x00\x01\\u0041 'single' \u2028 \U0001f600 \\xff $1"
    seed = (DATA / "seeds" / "000_350494ed927c1c64.txt").read_text(encoding="utf-8")
    text = seed.replace('op_name="', f'op_name="{label}')
    assert text != seed
    dumps = tmp_path / "dumps"
    dumps.mkdir()
    (dumps / "module_0001.f.cpu_after_optimizations-buffer-assignment.txt").write_text(text, encoding="utf-8")
    sets = list(discover([dumps]).sets)
    for way in ("arrow", "few"):
        assert staged(sets, tmp_path / way, monkeypatch, few_rows=way == "few").loaded == 1
    found = contents(tmp_path / "few")
    assert found == contents(tmp_path / "arrow")
    assert any(label in str(cell) for row in found["values"][1] for cell in row)


def test_a_folder_that_cannot_be_written_is_no_fault_of_the_dump(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DuckDB's error becomes the system's, which ends the import instead of rejecting a dump."""
    from ingest.staging.batch import Batch

    batch = Batch()
    batch.add_schedule(0, 0, ["add.1"])
    with pytest.raises(OSError, match=r"schedule\.parquet"):
        write_small_batch(str(tmp_path / "missing"), batch, {})


def test_every_type_has_a_name_in_arrow() -> None:
    """Types are written as DuckDB names them."""
    named = {type_ for columns in COLUMNS.values() for type_ in columns.values()}
    assert named <= TYPES.keys()


def test_a_batch_gives_up_the_rows_that_are_arrow() -> None:
    """Workers hold the rows of a chunk as lists or as columns of Arrow, not as both."""
    batch = Batch()
    dump_set = next(one for one in discover([DATA]).sets if len(one.members) == 3)
    add_dump(batch, 1, parse_set(text_files(dump_set.paths())))
    for name, table in batch_tables(batch):
        assert len(table) == sum(rows for _, rows in batch.runs[name])
        assert not batch.rows[name]
    assert not any(column for columns in batch.rows.values() for column in columns)
