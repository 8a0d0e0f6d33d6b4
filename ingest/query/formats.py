"""Write a result: for people (table, markdown) or for programs (csv, tsv, json, ndjson, parquet)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, BinaryIO, TextIO

from ingest.query.cells import escape, json_text, json_value, plain, shown
from ingest.query.run import Result, ResultColumn
from ingest.query.table import lay_out, markdown

__all__ = ["FORMATS", "Written", "write_parquet", "write_text"]

FORMATS = ("table", "csv", "tsv", "json", "ndjson", "markdown", "parquet")
_FORMULA = tuple("=+-@\t\r")
_TABLE_ROWS = 100_000


class Written:
    """What was written.

    Attributes:
        rows: number of rows.
        left_out: names of columns that a table had no room for.
        cut: the table ended before the result did.
    """

    def __init__(self, rows: int, left_out: tuple[str, ...] = (), cut: bool = False) -> None:
        self.rows, self.left_out, self.cut = rows, left_out, cut


def write_text(result: Result, format_: str, out: TextIO, width: int | None = 80) -> Written:
    """Write a result in a text format.

    A table or Markdown table without rows is not written at all, so that the caller can say why instead.

    Args:
        format_: one of FORMATS, not parquet.
        width: columns of the terminal, for tables; None for any.
    """
    if format_ in ("table", "markdown"):
        return _write_table(result, format_, out, width)
    if format_ in ("csv", "tsv"):
        line = _csv_line if format_ == "csv" else _tsv_line
        out.write(line([column.name for column in result.columns], result.columns, header=True))
        return Written(_write_lines(out, (line(row, result.columns) for row in result.rows())))
    objects = (
        json_text({c.name: json_value(cell) for c, cell in zip(result.columns, row, strict=True)})
        for row in result.rows()
    )
    if format_ == "ndjson":
        return Written(_write_lines(out, (text + "\n" for text in objects)))
    rows = 0
    out.write("[")
    for text in objects:
        out.write(("," if rows else "") + "\n  " + text)
        rows += 1
    out.write("\n]\n" if rows else "]\n")
    return Written(rows)


def write_parquet(result: Result, sink: BinaryIO) -> Written:
    """Write a result as a Parquet file; the sink need not be seekable."""
    import pyarrow.parquet

    batches = result.batches()
    first = next(batches)
    rows = 0
    with pyarrow.parquet.ParquetWriter(sink, first.schema, compression="zstd") as writer:
        for batch in batches:
            writer.write_batch(batch)
            rows += batch.num_rows
    return Written(rows)


def _write_table(result: Result, format_: str, out: TextIO, width: int | None) -> Written:
    rows = result.rows()
    units = [column.unit for column in result.columns]
    cells = [
        [shown(cell, unit) for cell, unit in zip(row, units, strict=True)]
        for row in islice(rows, _TABLE_ROWS)
    ]
    cut = next(rows, None) is not None
    if not cells:
        return Written(0)
    names = [escape(column.name) for column in result.columns]
    numbers = [column.is_number for column in result.columns]
    if format_ == "markdown":
        _write_lines(out, (line + "\n" for line in markdown(names, numbers, cells)))
        return Written(len(cells), cut=cut)
    table = lay_out(names, numbers, cells, width)
    _write_lines(out, (line + "\n" for line in table.lines))
    return Written(len(cells), table.left_out, cut)


def _write_lines(out: TextIO, lines: Iterable[str]) -> int:
    count = 0
    iterator: Iterator[str] = iter(lines)
    while block := list(islice(iterator, 1000)):
        out.write("".join(block))
        count += len(block)
    return count


def _csv_line(row: Iterable[Any], columns: tuple[ResultColumn, ...], *, header: bool = False) -> str:
    """Write a CSV line: NULL is empty, an empty text is quoted."""
    cells = []
    for cell, column in zip(row, columns, strict=True):
        text = _guarded(cell, column, header)
        empty = text == "" and cell is not None
        if empty or text != text.strip() or any(char in text for char in ',"\n\r'):
            text = '"' + text.replace('"', '""') + '"'
        cells.append(text)
    return ",".join(cells) + "\n"


def _tsv_line(row: Iterable[Any], columns: tuple[ResultColumn, ...], *, header: bool = False) -> str:
    """Write a TSV line: tabs, line breaks and backslashes are escaped with a backslash."""
    return (
        "\t".join(
            _guarded(cell, column, header, keep="").replace("\x00", "")
            for cell, column in zip(row, columns, strict=True)
        )
        + "\n"
    )


def _guarded(cell: Any, column: ResultColumn, header: bool, keep: str = "\n\t\r") -> str:
    """Write a cell so that no spreadsheet runs it as a formula and no terminal obeys it.

    A text that begins like a formula gets an apostrophe in front. Control characters other than those in
    `keep` are escaped.
    """
    text = plain(cell)
    if not header and column.is_number:
        return text
    if not keep:
        text = text.replace("\\", "\\\\")
    if not text.isprintable():
        text = "".join(char if char in keep else escape(char) for char in text)
    return "'" + text if text.startswith(_FORMULA) else text
