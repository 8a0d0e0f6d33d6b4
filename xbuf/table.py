"""A result: rows that were read once, for people and for the libraries that take frames."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from html import escape as html_escape
from typing import TYPE_CHECKING, Any, Final

from ingest.errors import UsageError
from ingest.query.cells import escape, shown
from ingest.query.formats import write_text
from ingest.query.output import terminal_width
from ingest.query.result import Listed, Result, ResultColumn

if TYPE_CHECKING:
    import duckdb
    import pandas
    import polars
    import pyarrow

__all__ = ["Table", "table_html"]

_SHOWN_ROWS: Final = 60
"""Rows that are shown of a longer table."""


class Table:
    """Rows and columns of an answer, in memory.

    print() and notebooks show sizes in words; `arrow`, `pandas`, `polars` and `rows` have the plain numbers:
    bytes, slots, percent. What a dump does not say is NULL (None, <NA>, null), never 0.

    Attributes:
        columns: names of the columns.
        notes: what the rows alone do not say: why there are none, how many there are in all, what is missing.
    """

    def __init__(
        self, result: Result, connection: duckdb.DuckDBPyConnection, notes: Sequence[str] = ()
    ) -> None:
        """Read a result to its end.

        Raises:
            UsageError: the statement failed on the way.
        """
        import pyarrow

        self._columns: tuple[ResultColumn, ...] = result.columns
        self._connection = connection
        self._table: pyarrow.Table = pyarrow.Table.from_batches(result.batches())
        self.columns: tuple[str, ...] = tuple(column.name for column in self._columns)
        self.notes: tuple[str, ...] = tuple(notes)

    def __len__(self) -> int:
        return int(self._table.num_rows)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.rows())

    def rows(self) -> list[dict[str, Any]]:
        """Return the rows as dictionaries of Python values."""
        rows: list[dict[str, Any]] = self._table.to_pylist()
        return rows

    def arrow(self) -> pyarrow.Table:
        """Return the rows as an Arrow table."""
        return self._table

    def pandas(self) -> pandas.DataFrame:
        """Return the rows as a pandas frame; whole numbers and booleans have types that know NULL.

        Raises:
            UsageError: pandas is not installed.
        """
        try:
            import pandas
        except ImportError as error:
            raise _lacks("pandas") from error
        import pyarrow

        types = {pyarrow.int64(): pandas.Int64Dtype(), pyarrow.bool_(): pandas.BooleanDtype()}
        frame: pandas.DataFrame = self._table.to_pandas(types_mapper=types.get)
        return frame

    def polars(self) -> polars.DataFrame:
        """Return the rows as a polars frame.

        Raises:
            UsageError: polars is not installed.
        """
        try:
            import polars
        except ImportError as error:
            raise _lacks("polars") from error
        frame = polars.from_arrow(self._table)
        assert isinstance(frame, polars.DataFrame)
        return frame

    def relation(self) -> duckdb.DuckDBPyRelation:
        """Return the rows as a relation of the database's connection, to filter and join with its tables."""
        return self._connection.from_arrow(self._table)

    def __str__(self) -> str:
        return self._text(terminal_width()).rstrip("\n")

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        """Return the rows as a table for notebooks; no text of a dump becomes markup."""
        return table_html(self._listed(), self._all_notes())

    def _text(self, width: int | None) -> str:
        listed = self._listed()
        out = io.StringIO()
        written = write_text(listed, "table", out, width)
        if written.left_out:
            out.write(f"no room for: {', '.join(written.left_out)}\n")
        for note in self._all_notes():
            out.write(f"{escape(note)}\n")
        return out.getvalue()

    def _listed(self) -> Listed:
        columns = [column.to_pylist() for column in self._table.slice(0, _SHOWN_ROWS).columns]
        return Listed(self._columns, list(zip(*columns, strict=True)))

    def _all_notes(self) -> tuple[str, ...]:
        shown_all = f"{len(self):,} rows, of which {_SHOWN_ROWS} are shown"
        return (*([shown_all] if len(self) > _SHOWN_ROWS else []), *self.notes) or (
            () if len(self) else ("no row",)
        )


def table_html(listed: Listed, notes: Sequence[str] = ()) -> str:
    """Write rows as an HTML table, with notes below it; no cell becomes markup."""
    head = "".join(
        f'<th title="{_html(column.name)}">{_html(column.label or column.name)}</th>'
        for column in listed.columns
    )
    body = "".join(
        "<tr>"
        + "".join(
            f'<td style="text-align: {"right" if column.is_number else "left"}">'
            f"{_html(shown(cell, column.unit))}</td>"
            for cell, column in zip(row, listed.columns, strict=True)
        )
        + "</tr>"
        for row in listed.cells
    )
    below = "".join(f"<p>{_html(note)}</p>" for note in notes)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{below}"


def _html(text: str) -> str:
    return html_escape(escape(text))


def _lacks(package: str) -> UsageError:
    return UsageError(f"{package} is not installed; `pip install {package}`, or take .arrow() or .rows()")
