"""Ask a database for the figures of runs, and for the buffers that make them up."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ingest.check.rules import Figure
from ingest.database.scope import narrowed
from ingest.display import display
from ingest.query.blocks import execute_with_blocks

if TYPE_CHECKING:
    import duckdb

_MISSED: Final = (
    "SELECT d.parameter_number, coalesce(v.op_name, v.instruction), v.shape,"
    " value_name(f.instruction, f.shape_index), d.size_bytes"
    " FROM donations($run::VARCHAR) AS d"
    ' JOIN "values" AS v ON v.run_id = d.run_id AND v.value_id = d.value_id'
    ' LEFT JOIN "values" AS f ON f.run_id = d.run_id AND f.value_id = d.fitting_id'
    " WHERE d.status = 'missed' ORDER BY d.size_bytes DESC, d.parameter_number, d.allocation_index"
)


@dataclass(frozen=True, slots=True)
class Buffers:
    """Buffers of one name that are live at the peak: those of all layers are one.

    Attributes:
        kind: kind of their allocations.
        name: op_name, else instruction, with numbers folded.
        bytes: their bytes at the peak, each byte once.
        padding_bytes: part of these that is padding.
        number: how many they are.
        value: the largest of them; `shape`, `op_name`, `file` and `line` are its.
        file: source file; None where it is not known.
    """

    kind: str
    name: str
    bytes: int
    padding_bytes: int
    number: int
    value: str
    shape: str
    op_name: str | None
    file: str | None
    line: int | None


@dataclass(frozen=True, slots=True)
class Measured:
    """The figures of one run.

    Attributes:
        module: module name; the file's stem where it names none.
        signature: digest of types and dimensions of the parameters.
        figures: bytes; None where the dump does not say enough.
        padding_bytes: padding live at the peak; None without live ranges.
        at_peak: what is live at the peak, most bytes first; empty without live ranges.
    """

    run_id: int
    module: str
    backend: str | None
    signature: str
    figures: dict[Figure, int | None]
    padding_bytes: int | None
    at_peak: tuple[Buffers, ...]

    @property
    def shown(self) -> str:
        """Name the module and its backend."""
        return f"{self.module} ({self.backend})" if self.backend else self.module


@dataclass(frozen=True, slots=True)
class MissedDonation:
    """A parameter that could share its memory with a result, and does not; `bytes` is its size."""

    parameter: int
    name: str
    shape: str
    result: str | None
    bytes: int


def measure(connection: duckdb.DuckDBPyConnection, runs: Sequence[int]) -> tuple[Measured, ...]:
    """Measure runs; those of one module stand in order of directory and file."""
    if not runs:
        return ()
    with narrowed(connection, runs):
        return _measure(connection, runs)


def _measure(connection: duckdb.DuckDBPyConnection, runs: Sequence[int]) -> tuple[Measured, ...]:
    at_peak: dict[int, list[Buffers]] = defaultdict(list)
    for run_id, kind, name, size, padding, number, largest in _rows(connection, "at_peak", runs):
        at_peak[run_id].append(
            Buffers(
                kind,
                display(name),
                size,
                padding,
                number,
                display(largest["value"]),
                display(largest["shape"]),
                _displayed(largest["op_name"]),
                _displayed(largest["file"]),
                largest["line"],
            )
        )
    return tuple(
        Measured(
            run_id,
            display(module),
            backend,
            signature,
            {Figure.PEAK: peak, Figure.RESIDENT: resident, Figure.TOTAL: total},
            padding,
            tuple(at_peak[run_id]),
        )
        for run_id, module, backend, signature, peak, resident, total, padding in _rows(
            connection, "figures", runs
        )
    )


def missed_donations(connection: duckdb.DuckDBPyConnection, run_id: int) -> tuple[MissedDonation, ...]:
    """Find the parameters of a run that could share their memory with a result, largest first."""
    with narrowed(connection, [run_id]):
        rows = execute_with_blocks(connection, _MISSED, {"run": run_id}).fetchall()
    return tuple(
        MissedDonation(number, display(name), display(shape), _displayed(result), size)
        for number, name, shape, result, size in rows
    )


def _rows(connection: duckdb.DuckDBPyConnection, name: str, runs: Sequence[int]) -> list[tuple[Any, ...]]:
    sql = Path(__file__).with_name(f"{name}.sql").read_text(encoding="utf-8")
    return execute_with_blocks(connection, sql, {"runs": list(runs)}).fetchall()


def _displayed(text: str | None) -> str | None:
    return None if text is None else display(text)
