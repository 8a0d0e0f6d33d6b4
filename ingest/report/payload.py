"""What the script of a page gets: buffers, uses and stacks of one run or two, as columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from ingest.report.columns import Columns
from ingest.report.compared import Comparison
from ingest.report.data import RunDetails, Texts
from ingest.report.layout import KINDS, kind_numbers, stack
from ingest.report.picture import COLORS, NAMES


def pack_runs(runs: Sequence[RunDetails], comparison: Comparison | None = None) -> str:
    """Pack one run, or two with their comparison, for the script."""
    columns = Columns()
    head = {
        "kinds": [
            {"name": NAMES.get(kind, kind), "color": "#" + bytes(COLORS[kind]).hex()} for kind in KINDS
        ],
        "runs": [_run(columns, run) for run in runs],
        "comparison": _comparison(columns, comparison) if comparison else None,
    }
    return columns.pack(head)


def _run(columns: Columns, run: RunDetails) -> dict[str, Any]:
    picture = run.picture
    buffers, allocations = picture.buffers, picture.allocations
    base, top = stack(allocations)
    spaces = sorted(set(allocations.space))
    row_of = {value_id: row for row, value_id in enumerate(buffers.value_id.tolist())}
    by_row = sorted((row_of[use.value_id], use) for use in run.uses if use.value_id in row_of)
    names = dict.fromkeys(buffers.value.names)
    for _, use in by_row:
        names.update(dict.fromkeys(use.users))
    number = {name: at for at, name in enumerate(names)}
    named, counts = np.zeros(buffers.size.size, np.int64), np.zeros(buffers.size.size, np.int64)
    for row, use in by_row:
        named[row], counts[row] = len(use.users), use.count
    figures = asdict(picture.figures)
    return {
        "figures": figures,
        "ranged": buffers.ranged,
        "top": top,
        "spaces": columns.texts(spaces),
        "allocations": {
            "index": columns.numbers(allocations.index, delta=True),
            "size": columns.numbers(allocations.size),
            "base": columns.numbers(base),
            "kind": columns.numbers(kind_numbers(allocations)),
            "space": columns.numbers([spaces.index(space) for space in allocations.space]),
        },
        "buffers": {
            "id": columns.numbers(buffers.value_id),
            "allocation": columns.numbers(buffers.allocation),
            "offset": columns.numbers(buffers.offset),
            "size": columns.numbers(buffers.size),
            "padding": columns.numbers(buffers.padding),
            "start": columns.numbers(buffers.start[: buffers.ranged], delta=True),
            "slots": columns.numbers((buffers.end - buffers.start)[: buffers.ranged]),
            "frame": columns.numbers(buffers.frame),
            "users": columns.numbers(named),
            "uses": columns.numbers(counts),
        },
        "texts": {
            "name": _texts(columns, Texts(buffers.value.number, list(names))),
            "shape": _texts(columns, buffers.shape),
            "opcode": _texts(columns, buffers.opcode),
            "op_name": _texts(columns, buffers.op_name),
            "source": _texts(columns, buffers.source),
        },
        "users": columns.numbers([number[name] for _, use in by_row for name in use.users]),
        "frames": {
            "id": columns.numbers([frame.frame_id for frame in run.frames]),
            "parent": columns.numbers([_or_less(frame.parent_frame_id) for frame in run.frames]),
            "line": columns.numbers([_or_less(frame.line) for frame in run.frames]),
            "framework": columns.numbers([int(frame.is_framework) for frame in run.frames]),
            "function": columns.texts([frame.function or "" for frame in run.frames]),
            "file": columns.texts([frame.file or "" for frame in run.frames]),
        },
    }


def _texts(columns: Columns, texts: Texts) -> dict[str, Any]:
    return {"number": columns.numbers(texts.number), "names": columns.texts(texts.names)}


def _comparison(columns: Columns, comparison: Comparison) -> dict[str, Any]:
    changes = comparison.changes
    texts = ("change", "confidence", "what", "opcode", "before_shape", "after_shape", "source")
    return {
        "count": len(changes),
        **{name: columns.texts([getattr(change, name) for change in changes]) for name in texts},
        "before": columns.numbers([change.before_bytes for change in changes]),
        "after": columns.numbers([change.after_bytes for change in changes]),
        "buffers": columns.numbers([change.buffers for change in changes]),
        "order_kept": comparison.order_kept,
        "anchors": [
            columns.numbers([pair[side] for pair in comparison.anchors], delta=True) for side in (0, 1)
        ],
    }


def _or_less(number: int | None) -> int:
    return -1 if number is None else number
