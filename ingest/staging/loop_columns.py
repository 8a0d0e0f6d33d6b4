"""Loops, as `ingest.staging.loops` finds them, over the columns of a large dump."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ingest.liveness.addresses import Loop
from ingest.staging.columns import Numbers, as_list, joined
from ingest.staging.loops import Part, loops_of


def loops_of_many(
    loop_results: Mapping[Part, int], first_operands: list[pa.Table], ids: Numbers
) -> list[Loop]:
    """Return the parts of loops.

    Args:
        loop_results: parts of loops' results, each with the id of its value.
        first_operands: name, index and id of parts of first operands; the list is emptied.
        ids: of all values, ascending.
    """
    if not loop_results or not first_operands:
        return []
    operands = joined(first_operands)
    rows = np.searchsorted(ids, list(loop_results.values())).tolist()
    results = dict(zip(loop_results, rows, strict=True))
    names = pa.array({name for name, _ in results}, pa.string())
    some = operands.filter(pc.is_in(operands["name"], names))
    parts = zip(as_list(some["name"]), as_list(some["index"]), strict=True)
    of_operands = np.searchsorted(ids, some["id"].to_numpy()).tolist()
    return loops_of(results, zip(parts, of_operands, strict=True))
