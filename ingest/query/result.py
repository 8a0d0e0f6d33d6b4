"""What a query gives: its columns, and rows that are read once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import pyarrow

_NUMBERS = frozenset(
    f"{sign}{size}INT" for sign in ("", "U") for size in ("TINY", "SMALL", "BIG", "HUGE")
) | {"INTEGER", "UINTEGER", "FLOAT", "DOUBLE"}


@dataclass(frozen=True, slots=True)
class ResultColumn:
    """A column of a result: name, DuckDB type and unit.

    Attributes:
        unit: bytes, slots, count, percent, share, ratio or None.
        label: its name at the head of a table; empty for the name itself.
        rank: its place among the key columns, from 0; None for a minor column.
    """

    name: str
    type: str
    unit: str | None = None
    label: str = ""
    rank: int | None = None

    @property
    def is_number(self) -> bool:
        """Return whether the cells are numbers."""
        return self.type in _NUMBERS or self.type.startswith("DECIMAL")


class Result(Protocol):
    """An open result: read it once, either as rows or as Arrow batches."""

    @property
    def columns(self) -> tuple[ResultColumn, ...]:
        """The columns, in order."""
        ...

    def rows(self) -> Iterator[tuple[Any, ...]]:
        """Yield the rows as Python values."""
        ...

    def batches(self) -> Iterator[pyarrow.RecordBatch]:
        """Yield the rows as Arrow batches, at least one, which may be empty."""
        ...


@dataclass(frozen=True, slots=True)
class Listed:
    """A result whose rows are at hand."""

    columns: tuple[ResultColumn, ...]
    cells: Sequence[tuple[Any, ...]]

    def rows(self) -> Iterator[tuple[Any, ...]]:
        """Yield the rows."""
        yield from self.cells

    def batches(self) -> Iterator[pyarrow.RecordBatch]:
        """Yield the rows as one Arrow batch."""
        import pyarrow  # 110 ms

        names = [column.name for column in self.columns]
        types = [_ARROW[column.type] for column in self.columns]
        columns = [[row[place] for row in self.cells] for place in range(len(names))]
        arrays = [
            pyarrow.array(cells, pyarrow.type_for_alias(type_))
            for cells, type_ in zip(columns, types, strict=True)
        ]
        yield pyarrow.RecordBatch.from_arrays(arrays, names)

    def only(self, *names: str) -> Listed:
        """Return these columns of it, in this order."""
        places = [[column.name for column in self.columns].index(name) for name in names]
        return Listed(
            tuple(self.columns[place] for place in places),
            [tuple(row[place] for place in places) for row in self.cells],
        )

    def without(self, *names: str) -> Listed:
        """Return all columns of it but these."""
        return self.only(*(column.name for column in self.columns if column.name not in names))


def named_rows(result: Result) -> Iterator[dict[str, Any]]:
    """Yield the rows of a result: cells by the names of their columns."""
    names = [column.name for column in result.columns]
    return (dict(zip(names, row, strict=True)) for row in result.rows())


_ARROW = {
    "BIGINT": "int64",
    "DOUBLE": "double",
    "VARCHAR": "string",
    "TIMESTAMP": "timestamp[us]",
    "BOOLEAN": "bool",
}
"""Arrow's names of the types that a listed result can have."""
