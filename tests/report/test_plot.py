"""Static pictures of a run: the curve, the arena's pixels, SVG, PNG and the line in `xbuf show`."""

from __future__ import annotations

import base64
import struct
import zlib
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import duckdb
import numpy as np
import pytest
from click.testing import CliRunner

from ingest.cli.plot import plot
from ingest.cli.show import show
from ingest.errors import UsageError
from ingest.report.curve import column_peaks, live_curve, read_curve, sparkline, stacked, time_span
from ingest.report.data import RunPicture, read_run
from ingest.report.layout import KINDS, kind_numbers, stack
from ingest.report.picture import draw_png, draw_svg
from ingest.report.raster import SHADES, arena_pixels, paletted_png

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module", params=[3, pytest.param(1, marks=pytest.mark.slow)])
def pictures(demonstration: duckdb.DuckDBPyConnection, request: pytest.FixtureRequest) -> list[RunPicture]:
    """The largest run of the demonstration and every third with live ranges after it; all in the slow run."""
    runs = demonstration.execute(
        "SELECT run_id FROM runs LEFT JOIN ranges USING (run_id) WHERE has_ranges GROUP BY 1"
        " ORDER BY count(*) DESC, 1"
    ).fetchall()
    assert len(runs) > 20
    return [read_run(demonstration, run_id) for (run_id,) in runs[:: request.param]]


@pytest.fixture(scope="module")
def path(demonstration: duckdb.DuckDBPyConnection) -> str:
    """File of the demonstration."""
    [[name]] = demonstration.execute("SELECT path FROM duckdb_databases() WHERE path IS NOT NULL").fetchall()
    return str(name)


def test_the_curve_is_the_databases(
    demonstration: duckdb.DuckDBPyConnection, pictures: list[RunPicture]
) -> None:
    """Its greatest figure, and the first slot with it, are the run's peak; after the end nothing is live."""
    for picture in pictures:
        curve = live_curve(picture.buffers)
        first = int(curve.live.argmax())
        assert curve.live[first] == picture.figures.peak_bytes
        if picture.figures.peak_bytes:
            assert curve.time[first] == picture.figures.peak_time
        assert curve.live[-1] == 0
        stored = read_curve(demonstration, picture.figures.run_id)
        at = np.searchsorted(stored.time, curve.time, "right") - 1
        assert (stored.live[at] == curve.live).all()


@pytest.mark.parametrize("columns", [1, 2, 7, 60, 960, 5000])
def test_no_number_of_columns_loses_the_peak(pictures: list[RunPicture], columns: int) -> None:
    """Each column shows its greatest slot, and the stack there adds up to the figure of the curve."""
    for picture in pictures:
        buffers = picture.buffers
        curve = live_curve(buffers)
        chosen = column_peaks(curve, time_span(buffers), columns)
        assert curve.live[chosen].max() == picture.figures.peak_bytes
        assert (np.diff(chosen) >= 0).all()
        kinds = kind_numbers(picture.allocations)[buffers.allocation]
        parts = stacked(buffers, kinds, len(KINDS), curve.time[chosen])
        assert (parts >= 0).all()
        assert (parts.sum(axis=0) == curve.live[chosen]).all()


def test_allocations_stand_above_each_other(pictures: list[RunPicture]) -> None:
    """They fill the axis of addresses without a gap, arenas at its foot."""
    for picture in pictures:
        base, top = stack(picture.allocations)
        sizes = picture.allocations.size
        assert top == sizes.sum()
        order = np.argsort(base, kind="stable")
        filled = order[sizes[order] > 0]
        assert (base[filled][1:] == (base[filled] + sizes[filled])[:-1]).all()
        kinds = kind_numbers(picture.allocations)[filled]
        assert (np.diff(kinds) >= 0).all()


def test_every_buffer_has_a_pixel(pictures: list[RunPicture]) -> None:
    """In a picture of any size something is drawn where a buffer lies, and no kind that is not there."""
    for picture in pictures:
        buffers = picture.buffers
        for width, height in ((3, 2), (200, 100)):
            pixels = arena_pixels(picture, width, height)
            has_size = buffers.size[: buffers.ranged] > 0
            assert pixels.any() == has_size.any()
            kinds = kind_numbers(picture.allocations)[buffers.allocation[: buffers.ranged][has_size]]
            drawn = (pixels[pixels > 0].astype(int) - 1) // SHADES
            assert set(drawn.tolist()) <= set(kinds.tolist())


def test_a_small_buffer_is_drawn_above_a_large_one(pictures: list[RunPicture]) -> None:
    """Where two share a pixel, the smaller one is seen."""
    picture = max(pictures, key=lambda one: one.buffers.ranged)
    buffers = picture.buffers
    area = (buffers.end - buffers.start + 1)[: buffers.ranged] * buffers.size[: buffers.ranged].astype(float)
    smallest = int(np.where(area > 0, area, np.inf).argmin())
    kind = kind_numbers(picture.allocations)[buffers.allocation[smallest]]
    paint = 1 + kind * SHADES + buffers.value_id[smallest] % SHADES
    assert arena_pixels(picture, 1, 1).tolist() == [[paint]]


def test_png_holds_the_pixels() -> None:
    """What was written is read back, line by line; number 0 is transparent."""
    pixels = np.arange(6, dtype=np.uint8).reshape(2, 3)
    png = paletted_png(pixels, [(n, n, n) for n in range(1, 6)])
    chunks, at = {}, 8
    while at < len(png):
        [length] = struct.unpack_from(">I", png, at)
        name, body = png[at + 4 : at + 8], png[at + 8 : at + 8 + length]
        assert struct.unpack_from(">I", png, at + 8 + length) == (zlib.crc32(name + body),)
        chunks[name] = body
        at += 12 + length
    assert list(chunks) == [b"IHDR", b"PLTE", b"tRNS", b"IDAT", b"IEND"]
    assert struct.unpack(">IIBBBBB", chunks[b"IHDR"]) == (3, 2, 8, 3, 0, 0, 0)
    assert zlib.decompress(chunks[b"IDAT"]) == b"\0\0\1\2\0\3\4\5"
    assert chunks[b"tRNS"] == b"\0"


def test_svg_has_labels_curve_and_arena(pictures: list[RunPicture]) -> None:
    """One file: two images within it, the figures as text, nothing from elsewhere, small."""
    picture = max(pictures, key=lambda one: one.buffers.ranged)
    text = draw_svg(picture)
    assert len(text) < 30_000
    root = ElementTree.fromstring(text)
    words = " ".join(element.text or "" for element in root.iter(f"{SVG}text"))
    assert picture.figures.module in words
    assert f"at slot {picture.figures.peak_time:,}" in words
    images = [element.attrib["href"] for element in root.iter(f"{SVG}image")]
    assert len(images) == 2
    for image in images:
        head, _, data = image.partition(",")
        assert head == "data:image/png;base64"
        assert base64.b64decode(data).startswith(b"\x89PNG")
    assert "http" not in text.replace("http://www.w3.org/2000/svg", "")


def test_names_of_a_dump_cannot_become_markup(pictures: list[RunPicture]) -> None:
    """A hostile module name stays text, in elements and in attributes."""
    hostile = '"/><script>alert(1)</script>\x1b&lt;'
    picture = replace(pictures[0], figures=replace(pictures[0].figures, module=hostile))
    root = ElementTree.fromstring(draw_svg(picture))
    assert not list(root.iter(f"{SVG}script"))
    shown = hostile.replace("\x1b", "\\x1b")
    assert any(element.text == shown for element in root.iter(f"{SVG}text"))
    assert shown in root.attrib["aria-label"]


def test_png_is_the_svg_in_pixels(pictures: list[RunPicture]) -> None:
    """Twice the size of the drawing."""
    pytest.importorskip("resvg_py")
    png = draw_png(pictures[0])
    assert png.startswith(b"\x89PNG")
    assert struct.unpack_from(">II", png, 16) == (1920, 1160)


def test_plot_writes_what_the_ending_says(path: str, tmp_path: Path) -> None:
    """An .svg is written; another ending, or the database itself, is refused, and nothing is written."""
    run = CliRunner()
    svg = tmp_path / "a.svg"
    assert run.invoke(plot, ["5", "--db", path, "-o", str(svg)]).exit_code == 0
    assert ElementTree.parse(svg).getroot().tag == f"{SVG}svg"
    with pytest.raises(UsageError, match=r"ends in \.svg or \.png"):
        run.invoke(plot, ["5", "--db", path, "-o", str(tmp_path / "a.gif")], catch_exceptions=False)
    with pytest.raises(UsageError, match="there is no run 999"):
        run.invoke(plot, ["999", "--db", path, "-o", str(tmp_path / "b.svg")], catch_exceptions=False)
    assert [one.name for one in tmp_path.iterdir()] == ["a.svg"]


def test_a_run_without_live_ranges_has_no_picture(demonstration: duckdb.DuckDBPyConnection) -> None:
    """The error says what its dump lacks."""
    [run, *_] = demonstration.execute("SELECT run_id FROM runs WHERE NOT has_ranges ORDER BY 1").fetchall()
    with pytest.raises(UsageError, match=r"no live ranges.*HloLiveRange"):
        draw_svg(read_run(demonstration, run[0]))


def test_show_draws_the_curve_in_one_line(
    demonstration: duckdb.DuckDBPyConnection, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As many blocks as fit, the tallest one at the peak; none for a terminal that lacks them."""
    monkeypatch.setattr("ingest.report.glance._findings", lambda *_: [])  # five queries, which others try
    monkeypatch.setenv("COLUMNS", "80")
    output = CliRunner().invoke(show, ["5", "--db", path]).output
    [line] = [line for line in output.splitlines() if line.startswith("live bytes ")]
    assert line.split()[2] == sparkline(read_curve(demonstration, 5), 60)[: len(line.split()[2])]
    assert "█" in line
    assert len(line) <= 80
    ascii_only = CliRunner(charset="ascii").invoke(show, ["5", "--db", path]).output
    assert "live bytes " not in ascii_only


def test_a_sparkline_is_in_proportion() -> None:
    """Eight levels from 0 to the peak; each block stands for the greatest figure of its slots."""
    from ingest.report.curve import Curve

    curve = Curve(np.array([0, 1, 2, 3, 4]), np.array([10, 80, 40, 20, 0]))
    assert sparkline(curve, 4) == "▂█▅▃"
    assert sparkline(curve, 2) == "█▅"
    assert sparkline(curve, 100) == "▂█▅▃"
    assert sparkline(Curve(np.array([0]), np.array([0])), 10) == ""
