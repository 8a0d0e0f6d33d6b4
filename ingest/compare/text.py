"""A comparison in words: for a terminal, for a pull request, as JSON."""

from __future__ import annotations

import json
import os
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import asdict

from ingest.compare.comparison import Change, Comparison, Figure, Pair, Run
from ingest.compare.names import named, source_place
from ingest.display import counted
from ingest.query.cells import code_span, display_width, escape, human_bytes, signed_bytes

_NARROW = 60


def percent(figure: Figure) -> str:
    """Write a change as a share of what was before; empty where there was nothing."""
    if not figure.before_bytes or figure.change_bytes is None:
        return ""
    return f"{100 * figure.change_bytes / figure.before_bytes:+.1f}%"


def what(change: Change) -> str:
    """Name a row: its operation, else its instruction."""
    return change.op_name or change.value


def shapes(change: Change) -> str:
    """Write the shape, or both where they differ; layouts only where the dimensions agree."""
    before, after = change.before_shape, change.after_shape
    if before is None or after is None or before == after:
        return _dimensions(after or before or "")
    if _dimensions(before) != _dimensions(after):
        return f"{_dimensions(before)} -> {_dimensions(after)}"
    return f"{before} -> {after}"


def headline(pair: Pair) -> str:
    """Say in one sentence what happened to the peak, and which buffer did most of it."""
    peak = pair.peak
    if peak.change_bytes is None:
        return "the live peak cannot be compared: a dump says nothing of live ranges"
    if not peak.change_bytes:
        return f"the live peak stays at {human_bytes(peak.after_bytes or 0)}"
    verb = "grows" if peak.change_bytes > 0 else "shrinks"
    text = (
        f"the live peak {verb} by {human_bytes(abs(peak.change_bytes))}"
        f" to {human_bytes(peak.after_bytes or 0)}"
    )
    along = [row for row in pair.changes if (row.change_bytes > 0) == (peak.change_bytes > 0)]
    if along:
        most = min(along, key=lambda row: (-abs(row.change_bytes), row.source is None, row.value))
        shape = most.after_shape or most.before_shape
        name = named(most.value, most.buffers, *source_place(most.source), most.op_name, shape)
        did = "grew" if peak.change_bytes > 0 else "shrank"
        text += f"; what {did} most is {escape(name)}, by {human_bytes(abs(most.change_bytes))}"
    return text


def as_text(comparison: Comparison, *, width: int = 80, top: int | None = None) -> Iterator[str]:
    """Yield the lines for a terminal: two for each row, so that the operation has the room.

    Args:
        width: columns; lines are cut to it, in the middle of names.
        top: rows for each pair; the others are summed up in one line. None for all.
    """
    width = max(width, _NARROW)
    alike = [pair for pair in comparison.pairs if not pair.differs]
    for number, pair in enumerate(pair for pair in comparison.pairs if pair.differs):
        if number:
            yield ""
        yield from _pair(pair, width, top)
    if alike:
        if len(alike) < len(comparison.pairs):
            yield ""
        yield _alike(alike, width)
    for side, runs in (("before", comparison.only_before), ("after", comparison.only_after)):
        for run in runs:
            yield _middle(
                f"only {side}: run {run.run_id} {escape(_module(run))} {escape(_near(run.place))}", width
            )


def _module(run: Run) -> str:
    return f"{run.module} ({run.backend or 'unknown backend'})"


def _alike(pairs: Sequence[Pair], width: int) -> str:
    names = ", ".join(sorted({escape(pair.after.module) for pair in pairs}))
    return _middle(f"equal: {counted(len(pairs), 'module')} ({names})", width)


def _pair(pair: Pair, width: int, top: int | None) -> Iterator[str]:
    yield _middle(escape(_module(pair.after)), width)
    for side, run in (("before", pair.before), ("after", pair.after)):
        labels = f" {escape(' '.join(run.labels))}" if run.labels else ""
        yield _middle(f"  {side:<6}  run {run.run_id}{labels} {escape(_near(run.place))}", width)
    yield ""
    yield from _figures(pair)
    yield ""
    yield from _wrapped(headline(pair), width)
    shown = pair.changes if top is None else pair.changes[:top]
    for change in shown:
        yield from _row(change, width)
    if rest := pair.changes[len(shown) :]:
        yield f"{_sum(rest):>12}  in {counted(len(rest), 'smaller row')} (--top shows more)"


def _figures(pair: Pair) -> Iterator[str]:
    shown = [figure for figure in pair.figures if figure.part == "memory" or figure.differs]
    rows = [
        (
            figure.name if figure.part == "memory" else f"{figure.part} {escape(figure.name)}",
            human_bytes(figure.before_bytes),
            human_bytes(figure.after_bytes),
            "" if figure.change_bytes is None or not figure.differs else signed_bytes(figure.change_bytes),
            percent(figure) if figure.differs else "",
        )
        for figure in shown
    ]
    wide = max(len(row[0]) for row in rows)
    yield f"  {'':<{wide}}  {'before':>10}  {'after':>10}  {'change':>11}"
    for name, before, after, change, share in rows:
        yield f"  {name:<{wide}}  {before:>10}  {after:>10}  {change:>11}  {share:>8}".rstrip()


def _row(change: Change, width: int) -> Iterator[str]:
    times = f" x{change.buffers}" if change.buffers > 1 else ""
    sure = "" if change.confidence == "same" else f" ({change.confidence})"
    head = f"{signed_bytes(change.change_bytes):>12}  {change.change}{times}  "
    room = width - len(head) - len(sure)
    yield f"{head}{_middle(escape(what(change)), room)}{sure}"
    about = f"{escape(shapes(change))}"
    source = escape(change.source or "")
    room = width - 14
    if source and display_width(about) + 2 + display_width(source) > room:
        source = _tail(source, max(room - 2 - display_width(about), room // 2))
        about = _middle(about, room - 2 - display_width(source))
    yield f"{'':14}{_middle(about, room)}{'  ' + source if source else ''}"


def as_markdown(comparison: Comparison, *, top: int | None = None) -> Iterator[str]:
    """Yield the lines of a comment on a pull request: a headline, the figures and the rows of each pair.

    Args:
        top: rows for each pair; the others are summed up in one. None for all.
    """
    for pair in comparison.pairs:
        if not pair.differs:
            continue
        yield f"### {_md(pair.after.module)} ({_md(pair.after.backend or 'unknown backend')})"
        yield ""
        sentence = _md(headline(pair))
        yield f"{sentence[:1].upper()}{sentence[1:]}."
        yield ""
        yield "| figure | before | after | change |"
        yield "| --- | ---: | ---: | ---: |"
        for figure in pair.figures:
            if figure.part == "memory" or figure.differs:
                name = figure.name if figure.part == "memory" else f"{figure.part} {figure.name}"
                change = "-" if figure.change_bytes is None else signed_bytes(figure.change_bytes)
                share = f" ({percent(figure)})" if figure.differs and percent(figure) else ""
                sizes = f"{human_bytes(figure.before_bytes)} | {human_bytes(figure.after_bytes)}"
                yield f"| {_md(name)} | {sizes} | {change}{share} |"
        yield ""
        if pair.changes:
            yield "| change | what | operation | shape | source | confidence |"
            yield "| ---: | --- | --- | --- | --- | --- |"
            shown = pair.changes if top is None else pair.changes[:top]
            for row in shown:
                times = f" x{row.buffers}" if row.buffers > 1 else ""
                texts = " | ".join(map(code_span, (what(row), shapes(row), row.source or "")))
                changed = f"{signed_bytes(row.change_bytes)} | {row.change}{times}"
                yield f"| {changed} | {texts} | {row.confidence} |"
            if rest := pair.changes[len(shown) :]:
                yield f"| {_sum(rest)} | {counted(len(rest), 'smaller row')} | | | | |"
            yield ""
    alike = [pair for pair in comparison.pairs if not pair.differs]
    if alike:
        yield f"Equal: {', '.join(code_span(pair.after.module) for pair in alike)}."
        yield ""
    for side, runs in (("before", comparison.only_before), ("after", comparison.only_after)):
        if runs:
            yield f"Only {side}: {', '.join(code_span(run.module) for run in runs)}."
            yield ""


def as_json(comparison: Comparison) -> str:
    """Write everything as JSON: pairs with figures and all rows, and what has no partner."""
    return json.dumps(
        {
            "differs": comparison.differs,
            "pairs": [_json_pair(pair) for pair in comparison.pairs],
            "only_before": [asdict(run) for run in comparison.only_before],
            "only_after": [asdict(run) for run in comparison.only_after],
        },
        indent=2,
        ensure_ascii=False,
    )


def _json_pair(pair: Pair) -> dict[str, object]:
    return {
        "module": pair.after.module,
        "before": asdict(pair.before),
        "after": asdict(pair.after),
        "paired_by": pair.paired_by,
        "differs": pair.differs,
        "summary": headline(pair),
        "figures": [{**asdict(figure), "change_bytes": figure.change_bytes} for figure in pair.figures],
        "changes": [asdict(change) for change in pair.changes],
    }


def _sum(rows: Sequence[Change]) -> str:
    return signed_bytes(sum(row.change_bytes for row in rows))


def _dimensions(shape: str) -> str:
    head, brace, _ = shape.partition("{")
    return shape if shape.startswith("(") or not brace else head


def _md(text: str) -> str:
    escaped = escape(text)
    for special in "\\`*_[]<>|#&":
        escaped = escaped.replace(special, f"\\{special}")
    return escaped


def _near(place: str) -> str:
    """Write a path from the working directory on, where it lies below it."""
    here = os.getcwd().rstrip("/") + "/"
    return place.removeprefix(here)


def _middle(text: str, room: int) -> str:
    """Cut a text in its middle: the ends of an op_name say the most."""
    if display_width(text) <= room:
        return text
    head = max((room - 1) // 3, 1)
    return text[:head] + "…" + text[len(text) - max(room - 1 - head, 1) :]


def _tail(text: str, room: int) -> str:
    return text if len(text) <= room else "…" + text[len(text) - max(room - 1, 1) :]


def _wrapped(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, width, break_on_hyphens=False)
