"""Write a result: for people (table, record, markdown) or for programs (csv, tsv, json, ndjson, parquet)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, BinaryIO, TextIO

from ingest.query.cells import display_width, escape, json_text, json_value, plain, shown
from ingest.query.result import Result, ResultColumn
from ingest.query.shorten import Kind, kind_of
from ingest.query.style import PLAIN, Style
from ingest.query.table import lay_out, markdown

FORMATS = ("table", "record", "csv", "tsv", "json", "ndjson", "markdown", "parquet")
_FORMULA = tuple("=+-@\t\r")
_TABLE_ROWS = 100_000


@dataclass(frozen=True, slots=True)
class Written:
    """What was written.

    Attributes:
        rows: number of rows.
        left_out: names of columns that a table had no room for.
        cut: the table ended before the result did.
    """

    rows: int
    left_out: tuple[str, ...] = ()
    said: tuple[str, ...] = ()
    cut: bool = False


def write_text(
    result: Result, format_: str, out: TextIO, width: int | None = 80, style: Style = PLAIN
) -> Written:
    """Write a result in a text format.

    A table or Markdown table without rows is not written at all, so that the caller can say why instead.

    Args:
        format_: one of FORMATS, not parquet.
        width: columns of the terminal, for tables; None for any.
        style: colour and links, for tables and records.
    """
    if format_ == "record":
        return Written(_write_records(result, out, style))
    if format_ in ("table", "markdown"):
        return _write_table(result, format_, out, width, style)
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
    import pyarrow.parquet  # 135 ms, with Arrow

    batches = result.batches()
    first = next(batches)
    rows = 0
    with pyarrow.parquet.ParquetWriter(sink, first.schema, compression="zstd") as writer:
        for batch in batches:
            writer.write_batch(batch)
            rows += batch.num_rows
    return Written(rows)


def _write_table(result: Result, format_: str, out: TextIO, width: int | None, style: Style) -> Written:
    rows = result.rows()
    columns = [replace(c, name=escape(c.name), label=escape(c.label)) for c in result.columns]
    taken = list(islice(rows, _TABLE_ROWS))
    cells = [[shown(cell, c.unit) for cell, c in zip(row, columns, strict=True)] for row in taken]
    cut = next(rows, None) is not None
    if not cells:
        return Written(0)
    if format_ == "markdown":
        names, numbers = [c.name for c in columns], [c.is_number for c in columns]
        _write_lines(out, (line + "\n" for line in markdown(names, numbers, cells)))
        return Written(len(cells), cut=cut)
    shares = {
        place: [None if row[place] is None else float(row[place]) / 100 for row in taken]
        for place, column in enumerate(columns)
        if column.unit == "share" and takes(out, "█▏")
    }
    table = lay_out(columns, cells, width, shares=shares, style=style)
    _write_lines(out, (line + "\n" for line in (*table.caption, *table.lines)))
    return Written(len(cells), table.left_out, table.said, cut)


def takes(out: TextIO, characters: str) -> bool:
    """Return whether a stream takes some characters; one without encoding takes all."""
    try:
        characters.encode(getattr(out, "encoding", None) or "utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _write_records(result: Result, out: TextIO, style: Style) -> int:
    """Write one field a line, a blank line between rows."""
    names = [escape(column.name) for column in result.columns]
    width = max(map(display_width, names))
    count = 0
    for count, row in enumerate(result.rows(), 1):
        if count > 1:
            out.write("\n")
        for name, column, value in zip(names, result.columns, row, strict=True):
            cell = shown(value, column.unit)
            if kind_of(column.name) is Kind.PARTS:
                cell = style.source(cell, cell)
            out.write(f"{style.heading(name)}{' ' * (width - display_width(name))}  {cell}\n")
    return count


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
