"""Advice in words: for a terminal, for an issue or pull request, as JSON."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING

from ingest.display import counted
from ingest.query.cells import code_span, escape, human_bytes
from ingest.query.style import PLAIN, Style
from ingest.report.advice import MEANINGS, UNKNOWN

if TYPE_CHECKING:
    from ingest.report.advice import Advice, Step


def as_text(advice: Advice, width: int = 80, style: Style = PLAIN) -> Iterator[str]:
    """Yield the lines for a terminal: two or three for each step, wrapped at `width` columns."""
    yield style.heading(escape(_title(advice)))
    yield _figures(advice)
    for number, step in enumerate(advice.steps, 1):
        yield ""
        saved = f"{human_bytes(step.saves_bytes)} less ({step.percent:.1f}%)"
        yield style.heading(f"{number:>2}. {saved}: {step.lowers} {human_bytes(step.after_bytes)}")
        yield from _wrapped(escape(_what(step)), width)
        yield from (style.faint(line) for line in _wrapped(escape(_evidence(step)), width))
    if not advice.steps:
        yield ""
        yield "No step lowers the peak or the total."
    if advice.in_vain:
        yield ""
        yield from textwrap.wrap(_in_vain(advice), width)
    words = _words(advice)
    if words:
        yield ""
        length = max(map(len, words))
        for word in words:
            yield from textwrap.wrap(
                f"{word:<{length}}  {MEANINGS[word]}", width, subsequent_indent=" " * (length + 2)
            )
    yield ""
    yield from textwrap.wrap(UNKNOWN, width)


def as_markdown(advice: Advice) -> Iterator[str]:
    """Yield the lines of a comment: the figures, a table of steps, what their words mean."""
    yield f"### {code_span(_title(advice))}"
    yield ""
    yield f"{_figures(advice)}."
    yield ""
    if advice.steps:
        yield "| saves | after | advice | for | buffers | largest | because |"
        yield "| ---: | ---: | --- | --- | ---: | --- | --- |"
        for step in advice.steps:
            saves = f"{human_bytes(step.saves_bytes)} ({step.percent:.1f}%)"
            after = f"{step.lowers} {human_bytes(step.after_bytes)}"
            texts = f"{code_span(step.owner)} | {step.buffers} | {code_span(_largest(step))} | {step.reason}"
            yield f"| {saves} | {after} | {step.advice} | {texts} |"
        yield ""
    if advice.in_vain:
        yield _in_vain(advice)
        yield ""
    for word in _words(advice):
        yield f"* *{word}*: {MEANINGS[word]}"
    yield ""
    yield UNKNOWN


def as_json(advice: Advice) -> str:
    """Write all of it as one JSON object."""
    facts = {
        name: advice.facts[name]
        for name in ("run_id", "module_name", "backend", "peak_time", "peak_bytes", "total_bytes")
    }
    return json.dumps(
        {
            **facts,
            "steps": [asdict(step) for step in advice.steps],
            "in_vain": [asdict(step) for step in advice.in_vain],
        }
    )


def _title(advice: Advice) -> str:
    facts = advice.facts
    name = facts["module_name"] or facts["stem"]
    return ", ".join([f"run {facts['run_id']}: {name}", *filter(None, [facts["backend"], *facts["labels"]])])


def _figures(advice: Advice) -> str:
    facts = advice.facts
    if facts["peak_bytes"] is None:
        return "live peak not known: the dump lacks live ranges"
    slots = f"at slot {facts['peak_time']} of {facts['schedule_length']}"
    total = "" if facts["total_bytes"] is None else f", total {human_bytes(facts['total_bytes'])}"
    return f"live peak {human_bytes(facts['peak_bytes'])} {slots}{total}"


def _what(step: Step) -> str:
    return f"{step.advice}: {step.owner}, {counted(step.buffers, 'buffer')}"


def _evidence(step: Step) -> str:
    largest = _largest(step)
    return (
        f"{'largest ' if step.buffers > 1 and largest else ''}{largest}{': ' if largest else ''}{step.reason}"
    )


def _largest(step: Step) -> str:
    return " ".join(filter(None, [step.largest, step.shape]))


def _in_vain(advice: Advice) -> str:
    most = max(step.spare_bytes for step in advice.in_vain)
    steps = counted(len(advice.in_vain), "step")
    return f"In vain: {steps} would spare up to {human_bytes(most)} at the peak, but another slot is as full."


def _words(advice: Advice) -> list[str]:
    shown = {step.advice for step in advice.steps}
    return [word for word in MEANINGS if word in shown]


def _wrapped(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, width, initial_indent="    ", subsequent_indent="    ", break_on_hyphens=False)
