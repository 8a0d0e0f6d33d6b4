"""The page of a run: what lies in the file, and what a real browser makes of it."""

from __future__ import annotations

import base64
import gzip
import hashlib
import html
import json
import re
import shutil
import subprocess
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import numpy.typing as npt
import pytest
from click.testing import CliRunner

from ingest.cli.report import report
from ingest.errors import UsageError
from ingest.query.cells import human_bytes
from ingest.report import payload
from ingest.report.advice import Advice, Step
from ingest.report.columns import Columns
from ingest.report.compared import compare_runs
from ingest.report.curve import live_curve
from ingest.report.data import RunDetails, Texts, read_details
from ingest.report.page import write_page
from ingest.report.payload import pack_runs
from tests.support.waiting import HANGING_SECONDS

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="no chromium here; apt-get install chromium")

STEPS = Path(__file__).parent
LOOK, ACT, DRIVER = ((STEPS / name).read_text() for name in ("look.js", "act.js", "driver.js"))
ASSETS = Path(payload.__file__).parent / "assets"
HOSTILE = "\"'/><script>alert(1)</script><img src=x onerror=alert(2)></pre>${1}$data {{x}}\u202e\x1b&lt;"
WIDTH, HEIGHT = 1400, 1900


class _Elements(HTMLParser):
    """Collects the elements of a page, and the text of each script."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, list[str]] = {}
        self._open = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._open = tag
        self.texts.setdefault(tag, []).append("")

    def handle_endtag(self, tag: str) -> None:
        self._open = ""

    def handle_data(self, data: str) -> None:
        if self._open:
            self.texts[self._open][-1] += data


@pytest.fixture(scope="module")
def largest(demonstration: duckdb.DuckDBPyConnection) -> RunDetails:
    """The run of the demonstration with the most values that have live ranges."""
    return read_details(demonstration, _largest(demonstration))


def _largest(connection: duckdb.DuckDBPyConnection) -> int:
    rows = connection.execute("SELECT run_id FROM ranges GROUP BY 1 ORDER BY count(*) DESC, 1").fetchall()
    return int(rows[0][0])


def hostile(details: RunDetails) -> RunDetails:
    """Give a run names that try to become markup, everywhere."""
    picture = details.picture
    texts: dict[str, Any] = {
        name: Texts(column.number, [f"{HOSTILE}{at}" for at in range(len(column.names))])
        for name in ("value", "shape", "opcode", "op_name", "source")
        if (column := getattr(picture.buffers, name))
    }
    figures = replace(
        picture.figures, module=HOSTILE, target=HOSTILE, peak_instruction=HOSTILE, dump_dir=HOSTILE,
        stem=HOSTILE, labels=[HOSTILE],
    )  # fmt: skip
    return replace(
        details,
        picture=replace(picture, figures=figures, buffers=replace(picture.buffers, **texts)),
        uses=[replace(use, users=[HOSTILE] * len(use.users)) for use in details.uses],
        frames=[replace(frame, function=HOSTILE, file=HOSTILE) for frame in details.frames],
        notices=[replace(notice, kind=HOSTILE, message=HOSTILE, file=HOSTILE) for notice in details.notices],
    )


def advise(text: str) -> Advice:
    """Make an advice of one step with this text in every place that a dump fills."""
    step = Step("recompute", text, 2, 3 << 20, 12.5, 4 << 20, 21 << 20, "peak", text, text, text, text)
    return Advice({}, (step,), (), 0)


def test_the_page_says_what_would_lower_the_peak(largest: RunDetails) -> None:
    """With what each step saves and what shows it; of two runs for each."""
    one = write_page([largest], advice=[advise("train.py:52")])
    assert "<h2>What would lower the peak</h2>" in one
    assert '<td class="number">3.00 MiB (12.5 %)</td><td class="number">peak 21.00 MiB</td>' in one
    assert '<td class="text" title="train.py:52">train.py:52</td>' in one
    two = write_page([largest, largest], advice=[advise("a.py:1"), Advice({}, (), (), 0)])
    assert re.findall(r"<h2>(.: What[^<]*)</h2>", two) == [
        "A: What would lower the peak", "B: What would lower the peak",
    ]  # fmt: skip
    assert "No step that was looked for lowers it by itself." in two
    assert "would lower the peak" not in write_page([largest])


def test_the_heading_says_what_is_padding(demonstration: duckdb.DuckDBPyConnection) -> None:
    """As the saved query of the same figures: XProf shows it beside the peak."""
    [(run, padding, peak)] = demonstration.execute(
        "SELECT run_id, bytes, peak_bytes FROM run_figures((SELECT string_agg(run_id, ',') FROM runs WHERE"
        " backend = 'tpu')) JOIN runs USING (run_id) WHERE figure = 'padding at the peak' AND bytes > 0"
        " ORDER BY ALL LIMIT 1"
    ).fetchall()
    page = write_page([read_details(demonstration, run)])
    assert f"<dt>padding</dt><dd>{human_bytes(padding)} <small>{100 * padding / peak:.1f} % of the" in page


def test_columns_hold_what_was_put_in() -> None:
    """Every size of number, ascending numbers, and texts; what does not print is escaped."""
    columns = Columns()
    cases = [
        ([], "u1"), ([0, 255], "u1"), ([0, 256], "u2"), ([0, 65536], "u4"), ([-1, 65536], "i4"),
        ([-1, 2**32], "f8"), ([0, 2**53 - 1], "f8"),
    ]  # fmt: skip
    head = {
        "numbers": [columns.numbers(values) for values, _ in cases],
        "ascending": columns.numbers([5, 5, 7, 100_000], delta=True),
        "texts": columns.texts(["a\nb", "é", ""]),
    }
    block = gzip.decompress(base64.b64decode(columns.pack(head)))
    length = int.from_bytes(block[:4], "little")
    assert length % 8 == 0
    read = json.loads(block[4 : 4 + length])
    body = block[4 + length :]
    for (values, type_), told in zip(cases, read["numbers"], strict=True):
        assert (told["type"], told["count"]) == (type_, len(values))
        assert _numbers(body, told).tolist() == values
    assert read["ascending"]["type"] == "u4"
    assert np.cumsum(_numbers(body, read["ascending"])).tolist() == [5, 5, 7, 100_000]
    texts = read["texts"]
    assert body[texts["at"] : texts["at"] + texts["bytes"]].decode().split("\n") == ["a\\nb", "é", ""]
    assert texts["count"] == 3


def _numbers(body: bytes, told: dict[str, Any]) -> npt.NDArray[Any]:
    size = np.dtype(told["type"]).itemsize
    planes = np.frombuffer(body, np.uint8, told["count"] * size, told["at"])
    return planes.reshape(size, told["count"]).T.copy().view(f"<{told['type']}").ravel()


def test_figures_and_picture_come_before_any_script(largest: RunDetails) -> None:
    """Where no script runs, the figures, a picture, the notices and the SQL are there."""
    page = write_page([largest])
    plain = page[: page.index("<script")]
    figures = largest.picture.figures
    assert f"<h1>{html.escape(figures.module)}</h1>" in plain
    for name in ("live peak", "resident peak", "total", "fragmentation"):
        assert f"<dt>{name}</dt><dd>" in plain
    assert "data:image/png;base64," in plain
    assert f"r.run_id = {figures.run_id};" in plain
    assert "$run" not in plain


def test_the_statements_of_a_page_run(demonstration: duckdb.DuckDBPyConnection, largest: RunDetails) -> None:
    """Each one, as it stands, gives rows or none, but no error."""
    page = write_page([largest])
    statements = [html.unescape(text) for text in re.findall(r"<pre><code>(.*?)</code></pre>", page, re.S)]
    assert len(statements) == 10
    rows = [len(demonstration.execute(statement).fetchall()) for statement in statements]
    assert rows[0] == 1
    assert rows[1] == largest.picture.buffers.size.size


def test_a_page_may_load_nothing(largest: RunDetails) -> None:
    """Its policy names the hashes of its own script and style alone; no address is in it."""
    elements = _Elements(page := write_page([largest]))
    [policy] = [tag["content"] for _, tag in elements.tags if "http-equiv" in tag]
    [script] = [text for text in elements.texts["script"] if "'use strict'" in text]
    [style] = elements.texts["style"]
    hashes = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in (script, style)]
    assert policy == (
        f"default-src 'none'; script-src 'sha256-{hashes[0]}'; style-src 'sha256-{hashes[1]}'; img-src data:;"
        " base-uri 'none'; form-action 'none'"
    )
    assert not [tag for _, tag in elements.tags for name in ("src", "style", "onclick") if name in tag]
    assert set(re.findall(r"https?://[\w./]+", page)) == {"http://www.w3.org/2000/svg"}


def test_no_text_of_a_dump_becomes_markup(largest: RunDetails) -> None:
    """Hostile names change no element: the page has those of the same run with plain names."""
    expected = _Elements(write_page([largest], advice=[advise("train.py:52")]))
    found = _Elements(write_page([hostile(largest)], advice=[advise(HOSTILE)]))
    assert [name for name, _ in found.tags] == [name for name, _ in expected.tags]
    [title] = found.texts["title"]
    assert title.startswith("\"'/><script>alert(1)")
    assert "\\u202e\\x1b&lt;" in title


@pytest.mark.parametrize("runs", [["5"], pytest.param(["4", "5"], marks=pytest.mark.slow)])
def test_report_takes_one_run_or_two(
    demonstration: duckdb.DuckDBPyConnection, tmp_path: Path, runs: list[str]
) -> None:
    """Three are refused, a run that is not there, and a file that is no page; nothing is written then."""
    [[path]] = demonstration.execute("SELECT path FROM duckdb_databases() WHERE path IS NOT NULL").fetchall()
    page = tmp_path / "page.html"
    for arguments, message in ((["1", "2", "3"], "3 runs given"), (["1", "999"], "no run 999")):
        with pytest.raises(UsageError, match=message):
            CliRunner().invoke(report, [*arguments, "--db", path, "-o", str(page)], catch_exceptions=False)
    itself = tmp_path / "itself.html"
    itself.symlink_to(path)
    for output, message in (
        (itself, "is the database itself"),
        (tmp_path / "page.txt", r"ends in \.html or \.htm"),
    ):
        with pytest.raises(UsageError, match=message):
            CliRunner().invoke(report, ["1", "--db", path, "-o", str(output)], catch_exceptions=False)
    assert [one.name for one in tmp_path.iterdir()] == ["itself.html"]
    assert CliRunner().invoke(report, [*runs, "--db", path, "-o", str(page)]).exit_code == 0
    assert page.read_text().startswith("<!DOCTYPE html>")
    assert page.read_text().count("What would lower the peak</h2>") == len(runs)


def browse(
    page: str, folder: Path, steps: str, *options: str, before: str = ""
) -> tuple[dict[str, Any], str]:
    """Open a page from disk in a browser, run steps in it; return what they found and the console's lines.

    The steps are a second script, for which the page's policy gets its hash. A request that the policy
    refuses is a line of the console.
    """
    driver = before + DRIVER.replace("STEPS;", steps)
    digest = base64.b64encode(hashlib.sha256(driver.encode()).digest()).decode()
    page = page.replace("script-src ", f"script-src 'sha256-{digest}' ", 1)
    page = page.replace("</body>", f"<script>{driver}</script></body>")
    (folder / "page.html").write_text(page)
    done = _chromium(folder, "--virtual-time-budget=60000", "--dump-dom", *options)
    console = "\n".join(line for line in done.stderr.splitlines() if "CONSOLE" in line)
    found = re.search(r'<pre id="result">(.*?)</pre>', done.stdout, re.S)
    assert found, (console, done.stdout[-2000:], done.stderr[-2000:])
    result = json.loads(html.unescape(found[1]))
    assert "error" not in result, result["error"]
    return result, console


def _chromium(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    assert CHROMIUM is not None
    return subprocess.run(
        [
            CHROMIUM, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
            "--no-first-run", "--disable-background-networking", "--disable-component-update",
            "--enable-logging=stderr", f"--user-data-dir={folder / 'profile'}",
            f"--window-size={WIDTH},{HEIGHT}", *options,
            (folder / "page.html").as_uri(),
        ],
        capture_output=True, text=True, timeout=HANGING_SECONDS, check=False,
    )  # fmt: skip


@needs_chromium
def test_a_browser_shows_the_page(
    demonstration: duckdb.DuckDBPyConnection, largest: RunDetails, tmp_path: Path
) -> None:
    """Charts are drawn, the page's own peak is the database's, keys, search, colors, table and pane work."""
    result, console = browse(write_page([largest]), tmp_path, LOOK + ACT)
    buffers = largest.picture.buffers
    assert console == ""
    assert (result["state"], result["agrees"]) == ("ready", "true")
    assert f"({largest.picture.figures.peak_bytes:,} bytes)" in result["check"]
    assert all(result["static"])
    assert min(result["ink"]) > 0.1
    assert min(result["colors"]) > 4
    assert result["rowcount"] == buffers.size.size + 1
    assert 10 < result["rows"] < 30
    assert result["zoomed"]
    assert result["reset"]
    word = result["word"].lower()
    matching = {
        row
        for texts in (buffers.value, buffers.shape, buffers.opcode, buffers.op_name, buffers.source)
        for row, number in enumerate(texts.number.tolist())
        if number >= 0 and word in texts.names[number].lower()
    }
    assert result["found"] == len(matching) > 0
    assert result["count"].startswith(f"{len(matching)} buffers, ")
    assert result["dimmed"]
    for full, shown in result["cells"]:
        assert full.endswith(shown)
        assert not shown.startswith(("jit(", "/"))
    assert result["legends"]["kind"] != result["legends"]["op"] != result["legends"]["space"]
    assert min(result["modes"].values()) > 0.1
    assert all(result["feet"])  # each as high as it has levels
    assert "[" in result["shapes"][0]
    assert not any("{" in shape for shape in result["shapes"])
    name, cell = result["end"]
    assert 0 < cell - name < 20
    assert result["last"] == f"row-{buffers.size.size - 1}"
    assert result["lastThere"]
    assert result["pinned"] == result["word"]
    assert {"size", "shape", "live", "at peak", "lies in", "opcode"} <= set(result["pane"])
    assert set(result["sorted"]) == {"ascending", "descending"}


@pytest.mark.slow
@needs_chromium
def test_a_browser_sees_hostile_names_as_text(largest: RunDetails, tmp_path: Path) -> None:
    """They run nothing, load nothing and end nothing: no dialog, no complaint of the policy."""
    result, console = browse(write_page([hostile(largest)]), tmp_path, LOOK + ACT)
    assert console == ""
    assert (result["agrees"], result["markup"]) == ("true", 0)
    assert result["pinned"].startswith("\"'/><script>alert(1)</script>")


@pytest.mark.slow
@needs_chromium
def test_the_script_finds_the_peak_of_every_run(
    demonstration: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    """From addresses and slots alone, by another way than the import: bytes, slot and whose they are."""
    runs = demonstration.execute("SELECT run_id FROM runs WHERE has_ranges ORDER BY 1").fetchall()
    details = [read_details(demonstration, run) for (run,) in runs]
    scripts = "".join((ASSETS / name).read_text() for name in ("data.js", "model.js", "charts.js"))
    steps = """
    result.ticks = [9 * 2 ** 27, -(2 ** 28), 2 ** 30, 1536, 10, 0].map(shortBytes);
    const { runs } = await readBlock(document.getElementById("data").textContent);
    const sum = list => Array.from(list).reduce((a, b) => a + b, 0);
    result.peaks = runs.map(prepare).map(run => [run.agrees, run.peak.bytes, sum(run.atPeak)]);
    result.unpadded = runs.map(run => run.curve.unpadded[run.curve.time.indexOf(run.peak.time)]);
    result.live = runs.map(run => [Array.from(run.curve.time), Array.from(run.curve.live)]);
    """
    page = f"<body><script type='text/plain' id='data'>{pack_runs(details)}</script></body>"
    ready = "document.documentElement.dataset.state = 'ready';"
    result, console = browse(page, tmp_path, steps, before=f"{scripts}\n{ready}")
    assert console == ""
    assert result["ticks"] == ["1.125 GiB", "−256 MiB", "1 GiB", "1.5 KiB", "10 B", "0 B"]  # noqa: RUF001
    peaks = [one.picture.figures.peak_bytes for one in details]
    assert result["peaks"] == [[True, peak, peak] for peak in peaks]
    # Whole bytes of padding for each buffer there, and none for the sizes of dynamic shapes.
    padded = [one.picture.figures.padding_bytes or 0 for one in details]
    assert max(padded) > 1 << 20
    for one, peak, padding, unpadded in zip(details, peaks, padded, result["unpadded"], strict=True):
        assert abs((peak or 0) - unpadded - padding) <= 8 * one.picture.buffers.ranged
    for one, (time, live) in zip(details, result["live"], strict=True):
        curve = live_curve(one.picture.buffers)
        at = np.searchsorted(curve.time, time, "right") - 1
        assert curve.live[at].tolist() == live


@pytest.mark.slow
@needs_chromium
def test_a_browser_compares_two_runs(demonstration: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    """Both curves, two arenas, and the difference as a table of rows that add up."""
    pair = demonstration.execute(
        "SELECT run_id FROM run_labels WHERE key = 'batch' AND value IN ('8', '16') ORDER BY value DESC"
    ).fetchall()
    [before], [after] = pair
    details = [read_details(demonstration, run) for run in (before, after)]
    comparison = compare_runs(demonstration, before, after)
    changes = comparison.changes
    steps = (
        LOOK
        + """
    result.arenas = document.querySelectorAll(".arena").length;
    result.difference = document.querySelectorAll("#difference tbody tr").length;
    result.sum = Number(document.getElementById("difference").dataset.sum);
    const line = () => pixels(document.querySelector(".curve canvas")).join();
    const aligned = line();
    document.querySelector('[data-choice="B"]').click(); await next();
    result.shown = Number(grid.getAttribute("aria-rowcount"));
    result.redrawn = line() !== aligned;
    document.querySelectorAll('[aria-label="show"] button')[2].click(); await next();
    result.legend = [...document.querySelectorAll(".legend li")].slice(0, 2).map(one => one.textContent);
    result.note = document.getElementById("check").textContent;
    const curve = document.querySelector(".curve canvas");
    const { data } = curve.getContext("2d").getImageData(0, 0, curve.width, curve.height);
    const has = color => {
      const [red, green, blue] = color;
      for (let at = 0; at < data.length; at += 4) {
        if (data[at] === red && data[at + 1] === green && data[at + 2] === blue) return true;
      }
      return false;
    };
    result.more = has([0xcf, 0x22, 0x2e]);
    result.less = has([0x1a, 0x7f, 0x37]);
    document.querySelector('[data-choice="A"]').click(); await next();
    result.back = line() === aligned;
    """
    )
    result, console = browse(write_page(details, comparison), tmp_path, steps)
    assert (console, result["agrees"], result["arenas"]) == ("", "true", 2)
    assert result["difference"] == len(changes)
    assert result["sum"] == sum(row.after_bytes - row.before_bytes for row in changes) != 0
    assert "aligned where the same buffers start" in result["check"]
    assert result["redrawn"]
    assert result["back"]
    assert result["legend"] == ["B holds more", "B holds less"]
    assert "Above zero B holds more than A, aligned where" in result["note"]
    assert (result["more"], result["less"]) == (True, False)  # twice the batch, at every slot
    assert result["rowcount"] == details[0].picture.buffers.size.size + 1
    assert result["shown"] == details[1].picture.buffers.size.size + 1
    assert min(result["ink"]) > 0.1


@pytest.mark.slow
@needs_chromium
def test_a_browser_shows_a_run_without_live_ranges(
    demonstration: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    """The table is there, and a sentence that says why there is no curve."""
    rows = demonstration.execute("SELECT run_id FROM runs WHERE NOT has_ranges ORDER BY 1").fetchall()
    details = read_details(demonstration, rows[0][0])
    result, console = browse(write_page([details]), tmp_path, LOOK)
    assert (console, result["agrees"]) == ("", "true")
    assert "no live ranges" in result["check"]
    assert result["rowcount"] == details.picture.buffers.size.size + 1


@pytest.mark.slow
@needs_chromium
def test_the_page_follows_the_systems_colors(largest: RunDetails, tmp_path: Path) -> None:
    """Dark where the system is; the charts are drawn on either."""
    steps = LOOK + "result.back = getComputedStyle(document.body).backgroundColor;"
    dark = "--blink-settings=preferredColorScheme=0"
    result, console = browse(write_page([largest]), tmp_path, steps, dark)
    assert (console, result["back"]) == ("", "rgb(13, 17, 23)")
    assert min(result["ink"]) > 0.1
    assert min(result["colors"]) > 4
