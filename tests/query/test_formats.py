"""Every format tells the same cells, and none tells a terminal or a spreadsheet what to do."""

from __future__ import annotations

import csv
import datetime
import html
import io
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet
import pytest

from ingest.errors import OutputError, UsageError
from ingest.query.catalog import shipped
from ingest.query.cells import escape, human_bytes, plain, shown
from ingest.query.formats import write_text
from ingest.query.output import choose_format, write_file
from ingest.query.result import ResultColumn
from ingest.query.run import bind, run_query, run_sql
from ingest.query.table import lay_out

ODD = """
SELECT * FROM (VALUES
    (1::BIGINT, 'plain', 1024::BIGINT, 1.5::DOUBLE, true, [1, 2], TIMESTAMP '2026-01-02 03:04:05'),
    (2, 'comma, "quote"', -5308448, 0.1, false, NULL, NULL),
    (3, NULL, NULL, NULL, NULL, NULL, NULL),
    (4, '', 0, 'nan', true, [], TIMESTAMP '1970-01-01'),
    (5, e'line\\nbreak\\ttab', 1, 1e300, true, [NULL], NULL),
    (6, e'\\x1b[31mred\\x1b[0m', 2, -1, true, [3], NULL),
    (7, '=HYPERLINK("x")', 3, 2, true, [4], NULL),
    (8, '值|宽', 4, 3, true, [5], NULL),
    (9, ' -1+2 ', 5, 3, true, [5], NULL)
) AS t(id, name, size_bytes, number, flag, list, seen)
"""


def write(connection: duckdb.DuckDBPyConnection, sql: str, format_: str, width: int | None = None) -> str:
    out = io.StringIO()
    write_text(run_sql(connection, sql), format_, out, width)
    return out.getvalue()


@pytest.fixture
def memory() -> duckdb.DuckDBPyConnection:
    """A DuckDB without a file."""
    return duckdb.connect()


def test_all_formats_agree_cell_for_cell(demonstration: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    """A real result is the same in csv, tsv, json, ndjson, parquet, and, shown for people, in both tables."""
    query = shipped().load("largest_live_out")

    def text(format_: str) -> str:
        out = io.StringIO()
        write_text(run_query(demonstration, query, bind(query, {"top": None})), format_, out, None)
        return out.getvalue()

    units = [column.unit for column in query.columns]
    names = [column.name for column in query.columns]
    expected = list(run_query(demonstration, query, bind(query, {"top": None})).rows())
    assert len(expected) > 50
    cells = [[plain(cell) for cell in row] for row in expected]
    assert list(csv.reader(io.StringIO(text("csv")))) == [names, *cells]
    escaped = [[cell.replace("\\", "\\\\").replace("\n", "\\n") for cell in row] for row in cells]
    assert [line.split("\t") for line in text("tsv").splitlines()] == [names, *escaped]
    objects = [dict(zip(names, row, strict=True)) for row in expected]
    assert json.loads(text("json")) == objects
    assert [json.loads(line) for line in text("ndjson").splitlines()] == objects
    path = tmp_path / "result.parquet"
    write_file(run_query(demonstration, query, bind(query, {"top": None})), "parquet", path, None)
    assert pyarrow.parquet.read_table(path).to_pylist() == objects
    people = [[shown(cell, unit) for cell, unit in zip(row, units, strict=True)] for row in expected]
    lines = text("table").splitlines()
    rule = next(number for number, line in enumerate(lines) if set(line) <= {"-", " "})
    starts = [0] + [i + 2 for i, char in enumerate(lines[rule]) if char == " " and lines[rule][i + 1] == " "]
    read = [
        [line[a:b].strip() for a, b in zip(starts, [*starts[1:], None], strict=True)]
        for line in lines[rule + 1 :]
    ]
    module = names.index("module")  # next to the run in a table
    assert read == [[row[0], row[module], *row[1:module], *row[module + 1 :]] for row in people]
    assert [
        [
            html.unescape(cell.strip()).replace("\\|", "|").replace("\\\\", "\\")
            for cell in line[1:-1].split(" | ")
        ]
        for line in text("markdown").splitlines()[2:]
    ] == people


def test_csv_holds_plain_numbers_and_tells_null_from_empty(memory: duckdb.DuckDBPyConnection) -> None:
    """Sizes are bytes, NULL is nothing, an empty text is quoted."""
    lines = write(memory, ODD, "csv").split("\n")
    assert lines[0] == "id,name,size_bytes,number,flag,list,seen"
    assert lines[1] == '1,plain,1024,1.5,true,"[1,2]",2026-01-02 03:04:05'
    assert lines[2] == '2,"comma, ""quote""",-5308448,0.1,false,,'
    assert lines[3] == "3,,,,,,"
    assert lines[4] == '4,"",0,nan,true,[],1970-01-01 00:00:00'


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r"])
@pytest.mark.parametrize("format_", ["csv", "tsv"])
def test_a_text_never_becomes_a_formula(memory: duckdb.DuckDBPyConnection, start: str, format_: str) -> None:
    """A text that a spreadsheet would run gets an apostrophe; a negative number stays a number."""
    result = run_sql(memory, f"SELECT {start!r} || 'cmd' AS text, -1 AS number")
    out = io.StringIO()
    write_text(result, format_, out)
    body = out.getvalue().split("\n", 1)[1]
    assert body.lstrip('"').startswith("'") or not body.startswith(start)
    assert body.rstrip().endswith("-1")


@pytest.mark.parametrize("format_", ["table", "record", "markdown", "csv", "tsv", "json", "ndjson"])
def test_control_characters_are_never_sent(memory: duckdb.DuckDBPyConnection, format_: str) -> None:
    """Escape sequences and characters that reorder text are shown, not obeyed, also in column names."""
    odd = "a\x1b]0;title\x07\x9b31m\u202eb"
    memory.execute("CREATE TABLE t AS SELECT ? AS c", [odd])
    text = write(memory, 'SELECT c, c AS "x\x1b[2J" FROM t', format_)
    assert not {"\x1b", "\x07", "\x9b", "\u202e"} & set(text)
    if format_.endswith("json"):
        found: Any = json.loads(text)
        assert (found[0] if format_ == "json" else found)["c"] == odd


def test_a_table_fits_and_aligns(memory: duckdb.DuckDBPyConnection) -> None:
    """Numbers stand right, sizes are readable, long texts are cut in the middle, NULL is a dash."""
    sql = (
        "SELECT * FROM (VALUES (1::BIGINT, repeat('ab', 40), 5308448::BIGINT), (20, NULL, NULL)) "
        "AS t(run_id, op_name, size_bytes)"
    )
    assert write(memory, sql, "table", 48).splitlines() == [
        "run_id  op_name                       size_bytes",
        "------  ----------------------------  ----------",
        "     1  ababababababa…ababababababab    5.06 MiB",
        "    20  -                                      -",
    ]


def test_wide_characters_take_two_columns() -> None:
    """Alignment counts columns of the terminal, not characters."""
    columns = [ResultColumn("a", "VARCHAR"), ResultColumn("b", "BIGINT")]
    table = lay_out(columns, [["值宽", "1"], ["x", "22"]], 80)
    assert table.lines == ("a      b", "----  --", "值宽   1", "x     22")


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (5308448, "5.06 MiB"), (-5308448, "-5.06 MiB"),
        (2**30, "1.00 GiB"), (2**63 - 1, "8.00 EiB"),
    ],
)  # fmt: skip
def test_sizes_are_binary(size: int, text: str) -> None:
    """KiB, MiB and GiB are powers of 1024."""
    assert human_bytes(size) == text


def test_cells_of_every_type_are_written(memory: duckdb.DuckDBPyConnection) -> None:
    """Types that a query of one's own may give have a text and a JSON form."""
    sql = (
        "SELECT 170141183460469231731687303715884105727::HUGEINT AS h, 1.50::DECIMAL(9,2) AS d, "
        "DATE '2026-01-02' AS day, INTERVAL 1 DAY AS i, 'ab'::BLOB AS b, {'x': 1, 'y': [NULL]} AS s, "
        "MAP {'k': 1.5} AS m, uuid '00000000-0000-0000-0000-000000000001' AS u"
    )
    (found,) = json.loads(write(memory, sql, "json"))
    assert found == {
        "h": 2**127 - 1, "d": 1.5, "day": "2026-01-02", "i": "1 day, 0:00:00", "b": "6162",
        "s": {"x": 1, "y": [None]}, "m": {"k": 1.5}, "u": "00000000-0000-0000-0000-000000000001",
    }  # fmt: skip
    assert plain(Decimal("1.50")) == "1.50"
    assert plain(datetime.date(2026, 1, 2)) == "2026-01-02"
    assert escape("a\u200bb") == "a\\u200bb"


def test_an_empty_result_is_valid_in_every_format(memory: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    """csv and tsv keep their header, json is an empty list, a table prints nothing, parquet has columns."""
    sql = "SELECT 1 AS a, 'x' AS b WHERE false"
    texts = {format_: write(memory, sql, format_) for format_ in ("csv", "tsv", "json", "ndjson", "table")}
    assert texts == {"csv": "a,b\n", "tsv": "a\tb\n", "json": "[]\n", "ndjson": "", "table": ""}
    write_file(run_sql(memory, sql), "parquet", tmp_path / "x.parquet", None)
    assert pyarrow.parquet.read_table(tmp_path / "x.parquet").column_names == ["a", "b"]


def test_the_ending_names_the_format() -> None:
    """-o result.csv needs no --format; Parquet needs a file."""
    assert choose_format(None, Path("a.CSV")) == "csv"
    assert choose_format(None, Path("a.jsonl")) == "ndjson"
    assert choose_format("tsv", Path("a.csv")) == "tsv"
    assert choose_format(None, None) == "table"
    assert [choose_format(None, Path(name)) for name in ("a.txt", "/dev/stdout")] == ["table", "table"]
    with pytest.raises(UsageError, match=r"a\.html: no format has that ending; use one of \.csv, "):
        choose_format(None, Path("a.html"))
    assert choose_format("table", Path("a.html")) == "table"
    with pytest.raises(UsageError, match="name a file with -o"):
        choose_format("parquet", None)


def test_a_file_appears_only_when_complete(memory: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    """A statement that fails half-way leaves the earlier file as it was and nothing beside it."""
    path = tmp_path / "result.csv"
    path.write_text("earlier")
    memory.execute("SET threads = 1")  # with several, DuckDB sometimes tells another thread's interruption
    late = "SELECT CASE range WHEN 150000 THEN error('too late') ELSE 'a' END AS a FROM range(160000)"
    for format_ in ("csv", "parquet"):
        with pytest.raises(UsageError, match="too late"):
            write_file(run_sql(memory, late), format_, path, None)
        assert path.read_text() == "earlier"
    write_file(run_sql(memory, "SELECT 1 AS a"), "csv", path, None)
    assert path.read_text() == "a\n1\n"
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_that_cannot_be_written_is_no_wrong_usage(
    memory: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    """But where the path itself is a mistake."""
    with pytest.raises(OutputError, match="/dev/full: cannot be written: No space left on device") as caught:
        write_file(run_sql(memory, "SELECT 1 AS a"), "csv", Path("/dev/full"), None)
    assert caught.value.exit_code == 3
    for place in (tmp_path / "gone" / "x.csv", tmp_path):
        with pytest.raises(UsageError, match=r"cannot be written: (No such file|Is a directory)"):
            write_file(run_sql(memory, "SELECT 1 AS a"), "csv", place, None)


@pytest.mark.parametrize("format_", ["csv", "parquet"])
def test_what_is_no_regular_file_is_written_to_and_stays(
    memory: duckdb.DuckDBPyConnection, tmp_path: Path, format_: str
) -> None:
    """A device, a FIFO and a link are what they were; the reader of the FIFO gets the result."""
    write_file(run_sql(memory, "SELECT 1 AS a"), format_, Path("/dev/null"), None)
    assert Path("/dev/null").is_char_device()
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with ThreadPoolExecutor(1) as reader:
        read = reader.submit(pipe.read_bytes)
        write_file(run_sql(memory, "SELECT 1 AS a"), format_, pipe, None)
        assert read.result() == b"a\n1\n" if format_ == "csv" else read.result().startswith(b"PAR1")
    assert pipe.is_fifo()
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_text("earlier")
    link.symlink_to("target")
    write_file(run_sql(memory, "SELECT 1 AS a"), format_, link, None)
    assert link.is_symlink()
    assert target.read_bytes() != b"earlier"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "pipe", "target"]


def test_a_standard_stream_may_be_named(tmp_path: Path) -> None:
    """`-o /dev/stdout > FILE` writes to the file that the shell opened, which keeps its inode."""
    code = (
        "import duckdb; from pathlib import Path; from ingest.query.output import write_file;"
        "from ingest.query.run import run_sql;"
        # Not checked, as the check hands a parameter to DuckDB, which looks for pandas: 0.4 s.
        "result = run_sql(duckdb.connect(), 'SELECT 1 AS a', unsafe=True);"
        "write_file(result, 'csv', Path('/dev/stdout'), None)"
    )
    with (tmp_path / "out").open("wb") as out:
        inode = os.fstat(out.fileno()).st_ino
        subprocess.run([sys.executable, "-c", code], stdout=out, check=True)
    assert (tmp_path / "out").read_text() == "a\n1\n"
    assert (tmp_path / "out").stat().st_ino == inode
