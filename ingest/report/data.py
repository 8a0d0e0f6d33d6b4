"""What pictures of a run are made of, read from the database."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from ingest.errors import UsageError
from ingest.query.blocks import execute_with_blocks

if TYPE_CHECKING:
    import duckdb
    import pyarrow

Ints = npt.NDArray[np.int64]

USES_SHOWN: Final = 8
"""Uses of a value that a page names; one real value has 12,000."""

_FOLDER: Final = Path(__file__).resolve().parent


@dataclass(frozen=True, slots=True)
class Figures:
    """The run and its figures; None is what its dump does not say. Bytes, and slots of the schedule."""

    run_id: int
    module: str
    backend: str | None
    target: str | None
    total_bytes: int | None
    resident_peak_bytes: int | None
    peak_bytes: int | None
    peak_time: int | None
    schedule_length: int | None
    peak_instruction: str | None
    arena_bytes: int | None
    unused_bytes: int | None
    padding_bytes: int | None
    dump_dir: str
    stem: str
    labels: list[str] | None


@dataclass(frozen=True, slots=True)
class Allocations:
    """The allocations of a run, column-wise, in order of `index`.

    Attributes:
        index: number in the dump, shape (allocations,).
        size: bytes.
        color: memory space.
        kind: parameter, parameter+output, output, constant, temp or thread-local.
        space: name of the memory space.
    """

    index: Ints
    size: Ints
    color: Ints
    kind: list[str]
    space: list[str]


@dataclass(frozen=True, slots=True)
class Texts:
    """A column of texts: `names[number[i]]`, and none where `number[i]` is -1. Names are distinct."""

    number: Ints
    names: list[str]


@dataclass(frozen=True, slots=True)
class Buffers:
    """The values of a run, column-wise, in order of start; all arrays have shape (values,).

    The first `ranged` of them have a live range; `start`, `end`, `gained` and `handover` of others are -1.

    Attributes:
        allocation: row in `Allocations`.
        offset: start within the allocation, bytes.
        size: bytes.
        padding: bytes of it that are padding; -1 where that is not known.
        start: first slot at which it is live.
        end: last slot at which it is live.
        gained: bytes that become live at `start`.
        handover: bytes that stay live after `end`, as other values'.
        at_peak: its bytes that count at the run's peak, 0 if none.
        frame: its frame (`Frame.frame_id`), -1 for none.
    """

    ranged: int
    value_id: Ints
    allocation: Ints
    offset: Ints
    size: Ints
    padding: Ints
    start: Ints
    end: Ints
    gained: Ints
    handover: Ints
    at_peak: Ints
    frame: Ints
    value: Texts
    shape: Texts
    opcode: Texts
    op_name: Texts
    source: Texts


@dataclass(frozen=True, slots=True)
class RunPicture:
    """One run: what its curve and its arena are drawn from."""

    figures: Figures
    allocations: Allocations
    buffers: Buffers


@dataclass(frozen=True, slots=True)
class Frame:
    """A Python stack frame."""

    frame_id: int
    parent_frame_id: int | None
    function: str | None
    file: str | None
    line: int | None
    is_framework: bool


@dataclass(frozen=True, slots=True)
class Uses:
    """Who reads a value: the first USES_SHOWN instructions, and how many uses there are."""

    value_id: int
    users: list[str]
    count: int


@dataclass(frozen=True, slots=True)
class Notice:
    """A warning about the dump, and where."""

    kind: str
    message: str
    file: str | None
    line: int | None


@dataclass(frozen=True, slots=True)
class RunDetails:
    """One run with all that a page shows of it."""

    picture: RunPicture
    uses: list[Uses]
    frames: list[Frame]
    notices: list[Notice]


@cache
def statement(name: str) -> str:
    """Return the SQL of `NAME.sql`."""
    return (_FOLDER / f"{name}.sql").read_text(encoding="utf-8")


def read_run(connection: duckdb.DuckDBPyConnection, run: int) -> RunPicture:
    """Read a run's figures, allocations and values.

    Raises:
        UsageError: there is no such run.
    """
    row = execute_with_blocks(connection, statement("figures"), {"run": run}).fetchone()
    if row is None:
        raise UsageError(f"there is no run {run}; `xbuf runs` lists them")
    allocations = _allocations(connection, run)
    return RunPicture(Figures(*row), allocations, _buffers(connection, run, allocations))


def read_details(connection: duckdb.DuckDBPyConnection, run: int) -> RunDetails:
    """Read all that a page shows of a run; raises as `read_run` does."""
    picture = read_run(connection, run)
    uses = connection.execute(statement("uses"), {"run": run, "most": USES_SHOWN}).fetchall()
    frames = connection.execute(statement("frames"), {"run": run}).fetchall()
    notices = connection.execute(statement("notices"), {"run": run}).fetchall()
    return RunDetails(
        picture,
        [Uses(*row) for row in uses],
        [Frame(*row) for row in frames],
        [Notice(*row) for row in notices],
    )


def _allocations(connection: duckdb.DuckDBPyConnection, run: int) -> Allocations:
    table = execute_with_blocks(connection, statement("allocations"), {"run": run}).to_arrow_table()
    return Allocations(
        _ints(table, "allocation_index"),
        _ints(table, "size_bytes"),
        _ints(table, "color"),
        table.column("kind").to_pylist(),
        table.column("space").to_pylist(),
    )


def _buffers(connection: duckdb.DuckDBPyConnection, run: int, allocations: Allocations) -> Buffers:
    table = execute_with_blocks(connection, statement("buffers"), {"run": run}).to_arrow_table()
    start = _ints(table, "start_time")
    return Buffers(
        int(np.count_nonzero(start >= 0)),
        _ints(table, "value_id"),
        np.searchsorted(allocations.index, _ints(table, "allocation_index")),
        _ints(table, "offset_bytes"),
        _ints(table, "size_bytes"),
        _ints(table, "padding_bytes"),
        start,
        _ints(table, "end_time"),
        _ints(table, "gained_bytes"),
        _ints(table, "handover_bytes"),
        np.maximum(_ints(table, "peak_bytes"), 0),
        _ints(table, "frame_id"),
        *(_texts(table, name) for name in ("value", "shape", "opcode", "op_name", "source")),
    )


def _ints(table: pyarrow.Table, name: str) -> Ints:
    """Take a column of whole numbers; NULL becomes -1."""
    import pyarrow.compute

    column = pyarrow.compute.fill_null(table.column(name), -1)
    array: Any = column.to_numpy()
    return np.asarray(array, np.int64)


def _texts(table: pyarrow.Table, name: str) -> Texts:
    import pyarrow.compute

    column = table.column(name).combine_chunks().dictionary_encode()
    if hasattr(column, "combine_chunks"):
        column = column.combine_chunks()
    number = pyarrow.compute.fill_null(column.indices, -1).to_numpy(zero_copy_only=False)
    return Texts(np.asarray(number, np.int64), column.dictionary.to_pylist())
