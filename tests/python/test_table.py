"""`xbuf.Table`: one result in every form."""

from __future__ import annotations

import sys

import pytest

import xbuf
from ingest.report.glance import Finding
from tests.python.conftest import HOSTILE


def test_arrow_rows_and_relation_are_the_same_rows(dumped: xbuf.Database) -> None:
    """A relation goes on in SQL, with the tables of the dumped."""
    table = dumped.query("live_at_peak", top=None)
    assert table.columns == tuple(table.arrow().column_names)
    assert list(table) == table.rows() == table.arrow().to_pylist()
    assert len(table) == len(table.rows()) > 3
    largest = table.relation().aggregate("max(bytes) AS largest").fetchall()
    assert largest == [(table.rows()[0]["bytes"],)]
    joined = table.relation().set_alias("t").join(dumped.connection.table("runs").set_alias("r"), "run_id")
    assert len(joined.fetchall()) == len(table)


def test_pandas_and_polars_keep_whole_numbers_and_null(dumped: xbuf.Database) -> None:
    """A number that may be NULL does not become a float."""
    pandas = pytest.importorskip("pandas")
    table = dumped.sql(
        "SELECT range / 2 AS f, range AS n, nullif(range, 1) AS m, range > 0 AS b FROM range(3)"
    )
    frame = table.pandas()
    assert list(map(str, frame.dtypes)) == ["float64", "Int64", "Int64", "boolean"]
    assert frame["m"][1] is pandas.NA
    polars = pytest.importorskip("polars")
    assert table.polars()["m"].to_list() == [0, None, 2]
    assert table.polars().schema["m"] == polars.Int64


@pytest.mark.parametrize("package", ["pandas", "polars"])
def test_a_missing_library_is_named(
    dumped: xbuf.Database, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With what else there is."""
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(xbuf.UsageError, match=f"pip install {package}"):
        getattr(dumped.sql("SELECT 1 AS one"), package)()


def test_no_text_becomes_markup(dumped: xbuf.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither names of columns nor cells nor labels; control characters are shown."""
    monkeypatch.setattr("ingest.report.glance._findings", lambda *_: [Finding(HOSTILE, None)])
    html = dumped.sql('SELECT value AS "<b>" FROM run_labels')._repr_html_()
    assert "&lt;script&gt;alert(1)&lt;/script&gt;\\x1b[31m" in html
    assert "&lt;b&gt;" in html
    run = dumped.run(1)
    for text in (html, run._repr_html_(), dumped._repr_html_()):
        assert "<script>" not in text
        assert "\x1b" not in text
    assert run._repr_html_().count("&lt;script&gt;") == 2


def test_long_and_empty_tables_say_so(dumped: xbuf.Database) -> None:
    """On paper and in a notebook."""
    many = dumped.sql("FROM range(100)")
    assert "100 rows, of which 60 are shown" in str(many)
    assert "100 rows, of which 60 are shown" in many._repr_html_()
    none = dumped.sql("FROM runs WHERE false")
    assert repr(none) == "no row"
    nothing = dumped.query("live_at_peak", module="other")
    assert str(nothing) == "no run matches --module other"
