"""What a program compiled: its largest modules, and the line of source that holds most of each peak."""

from __future__ import annotations

import io
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ingest.display import counted
from ingest.query.cells import human_bytes
from ingest.query.formats import write_text
from ingest.query.result import Listed, ResultColumn, named_rows
from ingest.report.advice import Step, read_advice
from ingest.report.glance import read_sources

if TYPE_CHECKING:
    import duckdb

_LEAST: Final = 1 << 20
"""Bytes that a step must spare, and save, to be worth a line."""
_COLUMNS = (
    ResultColumn("run", "BIGINT", rank=0),
    ResultColumn("module", "VARCHAR", rank=1),
    ResultColumn("live peak", "BIGINT", "bytes", rank=2),
    ResultColumn("resident", "BIGINT", "bytes", rank=6),
    ResultColumn("total", "BIGINT", "bytes", rank=7),
    ResultColumn("most of the peak", "VARCHAR", rank=3),
    ResultColumn("holds", "BIGINT", "bytes", rank=4),
    ResultColumn("percent", "DOUBLE", "share", rank=5),
)


@dataclass(frozen=True, slots=True)
class Owner:
    """What holds most of a peak.

    Attributes:
        name: a source line; an op_name's scope or an opcode where the dump names no lines.
        by: line, scope or opcode.
        is_first: nothing holds more; else most of the peak has no such name.
        bytes: what it holds.
        percent: of the peak.
        largest: its largest value.
        largest_bytes: size of that.
    """

    name: str
    by: str
    is_first: bool
    bytes: int
    percent: float
    largest: str | None
    largest_bytes: int | None


@dataclass(frozen=True, slots=True)
class Compiled:
    """A module that was compiled; bytes, None for what its dump does not say."""

    run_id: int
    module: str
    live_bytes: int | None
    resident_bytes: int | None
    total_bytes: int | None
    owner: Owner | None


@dataclass(frozen=True, slots=True)
class Overview:
    """What a program compiled, the largest first.

    Attributes:
        modules: how many in all.
        largest: some of them.
        step: what would lower the peak of the first most; None where nothing is known to.
    """

    modules: int
    largest: tuple[Compiled, ...]
    step: Step | None = None


def read_overview(
    connection: duckdb.DuckDBPyConnection, runs: Sequence[int], top: int | None, *, advise: bool = False
) -> Overview:
    """Read what is to be said of runs.

    Args:
        top: how many of them in detail; None for all.
        advise: also look for what would lower the peak of the largest.
    """
    rows = connection.execute(
        "SELECT run_id, coalesce(module_name, stem), peak_bytes, resident_peak_bytes, total_bytes FROM runs"
        " WHERE run_id IN (SELECT unnest($runs))"
        " ORDER BY coalesce(resident_peak_bytes, peak_bytes, total_bytes, 0) DESC, run_id LIMIT $top",
        {"runs": list(runs), "top": top},
    ).fetchall()
    largest = tuple(
        Compiled(run, module, live, resident, total, _owner(connection, run) if live else None)
        for run, module, live, resident, total in rows
    )
    step = None
    if advise and largest and (largest[0].live_bytes or 0) >= _LEAST:
        steps = read_advice(connection, largest[0].run_id, 1, _LEAST).steps
        step = steps[0] if steps and steps[0].saves_bytes >= _LEAST else None
    return Overview(len(runs), largest, step)


def overview_text(overview: Overview, width: int | None, directory: str) -> list[str]:
    """Return lines: a table of the largest modules, and a sentence about the first.

    Args:
        width: columns of the terminal; None for any.
        directory: below it, source files are named relative to it.
    """
    rows = []
    for one in overview.largest:
        owner = one.owner
        held = (None, None, None) if owner is None else (_name(owner, directory), owner.bytes, owner.percent)
        rows.append((one.run_id, one.module, one.live_bytes, one.resident_bytes, one.total_bytes, *held))
    out = io.StringIO()
    written = write_text(Listed(_COLUMNS, rows), "table", out, width)
    lines = out.getvalue().splitlines()
    if written.left_out:
        lines.append(f"no room for: {', '.join(written.left_out)}")
    if more := overview.modules - len(overview.largest):
        lines.append(f"and {counted(more, 'smaller module')}")
    first = next((one for one in overview.largest if one.owner), None)
    if first is not None and first.owner is not None:
        lines.append(_sentence(first, first.owner, directory))
    if (step := overview.step) is not None:
        where = step.owner.removeprefix(os.path.join(directory, ""))
        lines.append(
            f"its {step.lowers} would be {human_bytes(step.saves_bytes)} lower ({step.percent:.1f}%) after:"
            f" {step.advice}, {where}"
        )
    return lines


def module_line(one: Compiled, directory: str) -> str:
    """Return one line about a module; `directory` as in `overview_text`."""
    figures = (("live peak", one.live_bytes), ("resident", one.resident_bytes), ("total", one.total_bytes))
    said = [f"{name} {human_bytes(size)}" for name, size in figures if size is not None]
    if one.owner is not None:
        said.append(f"{one.owner.percent:.1f}% of the peak {_name(one.owner, directory)}")
    return f"run {one.run_id}, {one.module}: {', '.join(said)}"


def _sentence(one: Compiled, owner: Owner, directory: str) -> str:
    whole = "the peak" if owner.is_first else f"what has a {owner.by} in the peak"
    text = (
        f"{_name(owner, directory)} holds most of {whole} of {one.module}:"
        f" {human_bytes(owner.bytes)} of {human_bytes(one.live_bytes or 0)}, {owner.percent:.1f}%"
    )
    if owner.largest is None or owner.largest_bytes is None:
        return text
    return f"{text}; its largest buffer is {owner.largest}, {human_bytes(owner.largest_bytes)}"


def _owner(connection: duckdb.DuckDBPyConnection, run: int) -> Owner | None:
    by, sources = read_sources(connection, run, 2)
    for place, row in enumerate(named_rows(sources)):
        name = row.get("owner") or row.get("opcode")
        if name is not None:
            largest = row.get("largest"), row.get("largest_bytes")
            return Owner(name, by, place == 0, row["bytes"], row["percent"], *largest)
    return None


def _name(owner: Owner, directory: str) -> str:
    if owner.by != "line":
        return f"{owner.by} {owner.name}"
    return owner.name.removeprefix(os.path.join(directory, ""))
