"""Query files: what a header may say, and what a wrong one is told."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from ingest.database.connect import open_database
from ingest.errors import UsageError
from ingest.query.blocks import create_temporary, read_blocks
from ingest.query.catalog import TOPICS, by_topic, find_catalog, shipped
from ingest.query.header import Column, Parameter, parse_query, read_query
from tests.support.query_databases import one_of_each_parameter

HEADER = """-- title: Big ones
-- question: Which are big?
-- parameter top BIGINT = 5: rows
-- column run_id BIGINT: run
"""
BODY = "SELECT run_id FROM runs LIMIT $top"


def parse(text: str, name: str = "big_ones") -> object:
    return parse_query(text, Path(f"/queries/{name}.sql"))


def test_a_header_is_read_whole() -> None:
    """Title, question, note, needs, example, parameters with units and choices, columns with units."""
    query = parse_query(
        "-- title: Big ones\n-- question: Which\n--   are big?\n-- needs: ranges, uses\n"
        "-- key: size, run_id\n-- note: Mind\n--   this.\n-- example: --top 3\n"
        "-- parameter top BIGINT = 5: rows\n-- parameter least BIGINT [bytes] = 0: smallest\n"
        "-- parameter by VARCHAR = 'size' in (size, name): order\n-- parameter x DOUBLE = NULL: a: colon\n"
        "-- column run_id BIGINT: run\n-- column size BIGINT [bytes] as big: its size\n"
        "PREPARE big_ones AS\nSELECT run_id, 1 AS size FROM selected_runs($run, $label, $module)\n"
        "WHERE $least > $x OR $by = 'it''s $not' LIMIT $top; -- not $this\n"
        "EXECUTE big_ones(top := 5, least := 0, by := 'size', x := NULL, run := NULL, label := NULL,\n"
        "    module := NULL);\n",
        Path("/queries/big_ones.sql"),
    )
    assert (query.title, query.question, query.note) == ("Big ones", "Which are big?", "Mind this.")
    assert query.needs == ("ranges", "uses")
    assert query.key == ("size", "run_id")
    assert query.parameters[:4] == (
        Parameter("top", "BIGINT", 5, "rows"),
        Parameter("least", "BIGINT", 0, "smallest", unit="bytes"),
        Parameter("by", "VARCHAR", "size", "order", choices=("size", "name")),
        Parameter("x", "DOUBLE", None, "a: colon"),
    )
    assert [parameter.name for parameter in query.parameters[4:]] == ["run", "label", "module"]
    assert query.columns == (
        Column("run_id", "BIGINT", "run", label="run"),
        Column("size", "BIGINT", "its size", unit="bytes", label="big"),
    )
    assert query.sql.startswith("SELECT run_id, 1 AS size")
    assert query.sql.endswith("LIMIT $top")


def test_the_statement_may_stand_alone() -> None:
    """PREPARE and EXECUTE are for shells; a file without them is fine."""
    assert parse_query(HEADER + BODY + ";\n", Path("/q/big_ones.sql")).sql == BODY


def test_a_file_may_have_no_header() -> None:
    """A bare statement runs as it is, without parameters."""
    query = parse_query("-- a remark\nSELECT 1 AS one\n", Path("/q/Whatever Name.sql"))
    assert (query.described, query.sql, query.parameters) == (False, "SELECT 1 AS one", ())


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (HEADER.replace("-- title: Big ones\n", "") + BODY, "has no '-- title: ...' line"),
        (HEADER.replace("-- question: Which are big?\n", "") + BODY, "has no '-- question: ...' line"),
        (HEADER.replace("-- column run_id BIGINT: run\n", "") + BODY, "has no '-- column NAME TYPE: ...'"),
        ("-- key: run_id, gone\n" + HEADER + BODY, "key: 'gone' is no column of the header"),
        ("-- title: A\n" + HEADER + BODY, ":2: a second 'title'"),
        (HEADER.replace("Big ones", "") + BODY, ":1: 'title' is empty"),
        (HEADER + "-- remark\n" + BODY, ":5: not a header line: '-- remark'"),
        (HEADER.replace("top BIGINT = 5: rows", "top BIGINT: rows") + BODY, ":3: a parameter is 'NAME TYPE"),
        (HEADER.replace("BIGINT = 5", "BIGINT = five") + BODY, ":3: five is no BIGINT literal"),
        (HEADER.replace("BIGINT = 5", "INT = 5") + BODY, ":3: type INT is none of BIGINT"),
        (HEADER.replace("top BIGINT", "Top BIGINT") + BODY, ":3: 'Top': a parameter's name is lower-case"),
        (HEADER.replace("top BIGINT", "run BIGINT") + BODY, ":3: 'run' is a parameter of every query"),
        (HEADER.replace("top BIGINT", "format BIGINT") + BODY, ":3: 'format' is an option of xbuf query"),
        (HEADER.replace("= 5:", "= 5 in (5, 6):") + BODY, ":3: choices are for VARCHAR"),
        (HEADER.replace("top BIGINT", "top BIGINT [slots]") + BODY, ":3: the unit of a parameter"),
        (HEADER.replace("run_id BIGINT:", "run_id BIGINT [miles]:") + BODY, ":4: unit [miles] is none of"),
        (HEADER.replace("run_id BIGINT: run", "run_id: run") + BODY, ":4: a column is 'NAME TYPE"),
        (HEADER + "-- needs: money\n" + BODY, "needs: 'money' is none of ranges, uses"),
        (HEADER + "-- reads: all\n" + BODY, "reads: 'all' is neither 'selected runs' nor"),
        (HEADER + "-- reads: selected runs, $most highest peaks\n" + BODY, "'$most' is no parameter"),
        (HEADER + "-- parameter top BIGINT = 6: again\n" + BODY, "parameter 'top' is there twice"),
        (HEADER + BODY.replace("$top", "$tops"), "the statement uses $tops, the header does not declare it"),
        (HEADER + BODY.replace(" LIMIT $top", ""), "the statement does not use parameter 'top'"),
        ("SELECT $x", "the statement uses $x, a file without header can use none"),
        (HEADER + "PREPARE big_ones AS " + BODY + ";", "PREPARE without 'EXECUTE big_ones(...);'"),
        (HEADER + "PREPARE other AS " + BODY + ";EXECUTE big_ones(top := 5);", "PREPARE names 'other'"),
        (
            HEADER + "PREPARE big_ones AS " + BODY + ";EXECUTE big_ones(top := 6);",
            "the last line must be: EXECUTE big_ones(top := 5);",
        ),
        (HEADER, "there is no statement below the header"),
    ],
)
def test_a_wrong_file_is_told_in_one_line(text: str, reason: str) -> None:
    """The error names the file, the line where there is one, and the reason."""
    with pytest.raises(UsageError) as caught:
        parse(text)
    assert str(caught.value).startswith("/queries/big_ones.sql:")
    assert reason in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_query_with_header_has_a_speakable_name() -> None:
    """The file name becomes the name of a command and of a macro."""
    with pytest.raises(UsageError, match="file name is lower-case"):
        parse(HEADER + BODY, "Big-Ones")


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    """A path that is no file is one line."""
    with pytest.raises(UsageError, match=r"gone\.sql: cannot be read: No such file"):
        read_query(tmp_path / "gone.sql")


@pytest.fixture(scope="module")
def with_blocks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[duckdb.DuckDBPyConnection]:
    """Connection to an empty database, with all building blocks."""
    with open_database(tmp_path_factory.mktemp("empty") / "xbuf.duckdb") as opened:
        create_temporary(opened)
        yield opened


@pytest.mark.parametrize("name", list(shipped()))
def test_header_and_statement_agree(name: str) -> None:
    """DuckDB finds the parameters in the statement that the header has; `run_query` compares the columns."""
    query = shipped().load(name)
    (statement,) = duckdb.extract_statements(query.sql)
    declared = {parameter.name for parameter in query.parameters}
    assert declared == set(statement.named_parameters)
    assert {"run", "label", "module"} <= declared
    assert query.example
    assert query.question.endswith("?")


@pytest.mark.parametrize("name", one_of_each_parameter())
def test_a_shipped_query_runs_with_read(with_blocks: duckdb.DuckDBPyConnection, name: str) -> None:
    """The text of a file is what a shell's .read runs: it prepares the query and runs its defaults."""
    with_blocks.execute(shipped().paths[name].read_text(encoding="utf-8"))
    assert with_blocks.fetchall() == []


def test_blocks_tell_every_column(with_blocks: duckdb.DuckDBPyConnection) -> None:
    """Each view has a comment for each of its columns."""
    for block in read_blocks():
        if block.kind == "VIEW":
            columns = [row[0] for row in with_blocks.execute(f"DESCRIBE {block.name}").fetchall()]
            assert columns == [name for name, _ in block.columns], block.name


def test_users_folders_stand_beside_the_shipped_queries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """--queries and XBUF_QUERIES add files; a name is taken once."""
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    second.mkdir()
    (first / "big_ones.sql").write_text(HEADER + BODY)
    (second / "small_ones.sql").write_text(HEADER + BODY)
    monkeypatch.setenv("XBUF_QUERIES", str(second))
    catalog = find_catalog([first])
    assert {"big_ones", "small_ones", "largest_live_out"} <= set(catalog)
    assert catalog.load("big_ones").title == "Big ones"
    (second / "big_ones.sql").write_text(HEADER + BODY)
    with pytest.raises(UsageError, match="already a query 'big_ones'"):
        find_catalog([first])
    monkeypatch.setenv("XBUF_QUERIES", str(tmp_path / "gone"))
    with pytest.raises(UsageError, match="is no folder of query files"):
        find_catalog()


def test_an_unknown_query_gets_suggestions() -> None:
    """A name with a slip is answered with those that look like it."""
    with pytest.raises(UsageError, match="did you mean largest_live_out"):
        shipped().load("largest_liveout")


def test_a_query_is_listed_under_its_topic(tmp_path: Path) -> None:
    """Topics of the shipped queries first, a team's own after them, queries without a topic last."""
    files = {"a": "", "b": "-- topic: copies\n", "c": "-- topic: sharing\n", "d": "-- topic: peak\n"}
    for name, topic in files.items():
        text = f"-- title: T\n{topic}-- question: Q?\n-- column i BIGINT: a number\nSELECT 1 AS i\n"
        (tmp_path / f"{name}.sql").write_text(text)
    queries = [read_query(tmp_path / f"{name}.sql") for name in files]
    assert [(topic, [query.name for query in group]) for topic, group in by_topic(queries)] == [
        ("peak", ["d"]),
        ("sharing", ["c"]),
        ("copies", ["b"]),
        ("other", ["a"]),
    ]


@pytest.mark.parametrize("name", list(shipped()))
def test_every_shipped_query_has_a_topic(name: str) -> None:
    """The list of queries has no group of leftovers."""
    assert shipped().load(name).topic in TOPICS


@pytest.mark.parametrize("name", list(shipped()))
def test_a_shipped_query_fits_on_a_page(name: str) -> None:
    """A reader sees the question; what takes long is measured by the import or named in a building block."""
    assert len(shipped().load(name).sql.splitlines()) <= 60
