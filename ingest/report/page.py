"""The report: one HTML file that loads nothing, with figures and a picture before any script runs."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Sequence
from functools import cache
from html import escape
from pathlib import Path
from string import Template
from typing import Final

from ingest.display import display, place_in
from ingest.query.catalog import shipped
from ingest.query.cells import human_bytes
from ingest.query.header import Value
from ingest.query.run import bind, sql_text
from ingest.report.advice import MEANINGS, UNKNOWN, Advice
from ingest.report.compared import Comparison
from ingest.report.data import USES_SHOWN, Figures, RunDetails, statement
from ingest.report.payload import pack_runs
from ingest.report.picture import draw_svg
from ingest.version import VERSION

_ASSETS: Final = Path(__file__).resolve().parent / "assets"
_SCRIPTS: Final = (
    "data",
    "model",
    "charts",
    "curve",
    "arena",
    "icicle",
    "table",
    "pane",
    "difference",
    "events",
    "page",
)
"""Files of the script; the last one starts it."""
_NOTICES: Final = 200
"""Notices that a page lists of one run; a damaged protobuf can lead to 1,000 of each kind."""


def write_page(
    runs: Sequence[RunDetails], comparison: Comparison | None = None, advice: Sequence[Advice] = ()
) -> str:
    """Write the page of one run, or of two with what changed from the first to the second.

    Args:
        advice: of each run, in their order; none leaves it out.
    """
    modules = [display(run.picture.figures.module) for run in runs]
    style, script = _asset("report.css"), _script()
    # The policy lets this script and this style work, and keeps the page from loading anything at all.
    policy = (
        f"default-src 'none'; script-src {_source(script)}; style-src {_source(style)}; img-src data:;"
        " base-uri 'none'; form-action 'none'"
    )
    return Template(_asset("report.html")).substitute(
        policy=policy,
        version=escape(VERSION),
        title=escape(f"{' and '.join(dict.fromkeys(modules))} · xbuf"),
        style=style,
        figures=_headings(runs),
        picture="\n".join(_static(run) for run in runs),
        advice="".join(_advice(one, letter) for one, letter in zip(advice, _letters(advice), strict=True)),
        notices="".join(_notices(run) for run in runs),
        sql=_statements(runs),
        data=pack_runs(runs, comparison),
        script=script,
    )


def _headings(runs: Sequence[RunDetails]) -> str:
    headings = "".join(_heading(run, letter) for run, letter in zip(runs, _letters(runs), strict=True))
    return f'<div class="runs">{headings}</div>'


def _letters(runs: Sequence[object]) -> Sequence[str]:
    return ("A: ", "B: ") if len(runs) == 2 else ("",) * len(runs)


def _heading(run: RunDetails, letter: str) -> str:
    figures = run.picture.figures
    about = [
        figures.backend,
        figures.target if figures.target != figures.backend else None,
        f"run {figures.run_id}",
        *(figures.labels or []),
        f"{run.picture.buffers.size.size:,} buffers",
        f"{figures.schedule_length:,} slots" if figures.schedule_length is not None else None,
        f"{figures.dump_dir}/{figures.stem}",
    ]
    items = "".join(
        f"<div><dt>{escape(name)}</dt><dd>{escape(value)} <small>{escape(note)}</small></dd></div>"
        for name, value, note in _figures(figures)
    )
    return (
        f"<div><h1>{escape(letter + display(figures.module))}</h1>"
        f'<p class="about">{escape(" · ".join(display(part) for part in about if part))}</p>'
        f'<dl class="figures">{items}</dl></div>'
    )


def _figures(figures: Figures) -> Iterator[tuple[str, str, str]]:
    """Yield name, value and note of each figure; one that is not known is a dash."""
    instruction = figures.peak_instruction
    at = "" if figures.peak_time is None else f"at slot {figures.peak_time:,}"
    yield (
        "live peak",
        human_bytes(figures.peak_bytes),
        at + (f", {display(instruction)}" if instruction else ""),
    )
    yield "resident peak", human_bytes(figures.resident_peak_bytes), "XProf's peak heap"
    yield "total", human_bytes(figures.total_bytes), "all allocations"
    if figures.arena_bytes and figures.unused_bytes is not None:
        share = 100 * figures.unused_bytes / figures.arena_bytes
        note = f"{human_bytes(figures.unused_bytes)} of {human_bytes(figures.arena_bytes)} of arenas"
        yield "fragmentation", f"{share:.1f} %", note
    if figures.padding_bytes and figures.peak_bytes:
        share = 100 * figures.padding_bytes / figures.peak_bytes
        yield "padding", human_bytes(figures.padding_bytes), f"{share:.1f} % of the peak"


def _static(run: RunDetails) -> str:
    if run.picture.buffers.ranged:
        return draw_svg(run.picture, scale=1, alone=False)
    number = run.picture.figures.run_id
    return f"<p>The dump of run {number} has no live ranges, so there is nothing to draw over time.</p>"


def _advice(advice: Advice, letter: str) -> str:
    """List the most helpful steps as a table, what their words mean as tips."""
    title = f"<h2>{letter}What would lower the peak</h2>"
    if not advice.steps:
        none = "No step that was looked for lowers it by itself."
        return f'<section class="advice">{title}<p class="hint">{none}</p></section>'
    rows = "".join(
        f'<tr><td class="number">{human_bytes(step.saves_bytes)} ({step.percent:.1f} %)</td>'
        f'<td class="number">{escape(step.lowers)} {human_bytes(step.after_bytes)}</td>'
        f'<td title="{escape(MEANINGS[step.advice])}">{escape(step.advice)}</td>'
        + "".join(
            f'<td class="text" title="{text}">{text}</td>'
            for text in (escape(display(text or "")) for text in (step.owner, step.largest, step.reason))
        )
        + "</tr>"
        for step in advice.steps
    )
    heads = '<th scope="col" class="number">saves</th><th scope="col" class="number">after</th>' + "".join(
        f'<th scope="col">{name}</th>' for name in ("advice", "where", "largest", "because")
    )
    return (
        f'<section class="advice">{title}<div class="changes-frame" tabindex="0"><table class="changes">'
        f"<thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table></div>"
        f'<p class="hint">{escape(UNKNOWN)}</p></section>'
    )


def _notices(run: RunDetails) -> str:
    if not run.notices:
        return ""
    items = "".join(
        f"<li><b>{escape(notice.kind)}</b> {escape(display(notice.message))}"
        f' <span class="hint">{escape(display(place_in(notice.file or "", notice.line)))}</span></li>'
        for notice in run.notices[:_NOTICES]
    )
    if (more := len(run.notices) - _NOTICES) > 0:
        items += f"<li>and {more:,} more: FROM notices WHERE run_id = {run.picture.figures.run_id}</li>"
    title = f"{len(run.notices):,} notices of run {run.picture.figures.run_id}"
    return f"<details><summary>{title}</summary><ul>{items}</ul></details>"


def _statements(runs: Sequence[RunDetails]) -> str:
    """Show the SQL behind the figures, with the numbers of the runs filled in."""
    parts = []
    for run in runs:
        number = run.picture.figures.run_id
        for title, text in _statements_of(number):
            parts.append(f"<h3>{escape(title)}, run {number}</h3><pre><code>{escape(text)}</code></pre>")
    return (
        "<details><summary>SQL behind the figures</summary>"
        "<p>For <code>xbuf sql</code>, <code>xbuf shell</code> or any DuckDB shell on the database.</p>"
        f"{''.join(parts)}</details>"
    )


def _statements_of(run: int) -> Iterator[tuple[str, str]]:
    for title, name in (("Heading", "figures"), ("Buffers", "buffers"), ("Allocations", "allocations")):
        yield title, _filled(name, run)
    for name in ("live_curve", "live_at_peak", "memory_figures", "fragmentation"):
        query = shipped().load(name)
        given: dict[str, Value] = {"run": str(run)}
        yield f"{query.title} (xbuf query {name} --run {run})", sql_text(query, bind(query, given))
    for title, name in (("Uses", "uses"), ("Stack frames", "frames"), ("Notices", "notices")):
        yield title, _filled(name, run)


def _filled(name: str, run: int) -> str:
    return statement(name).replace("$run", str(run)).replace("$most", str(USES_SHOWN)).strip()


@cache
def _asset(name: str) -> str:
    return (_ASSETS / name).read_text(encoding="utf-8")


@cache
def _script() -> str:
    """Return the script: its files, in one scope."""
    return "(() => {\n'use strict';\n" + "\n".join(_asset(f"{name}.js") for name in _SCRIPTS) + "\n})();"


def _source(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"
