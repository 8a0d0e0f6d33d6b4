"""Which of many parameters have a result that fits: `ingest.liveness.donations` in NumPy columns."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ingest.liveness.occupancy_columns import ABSENT

Numbers = np.ndarray[Any, np.dtype[np.int64]]
Flags = np.ndarray[Any, np.dtype[np.bool_]]


class HeldColumns(NamedTuple):
    """`ingest.liveness.donations.Held` in arrays, in any order; `ABSENT` for None.

    Attributes:
        type: numbers, equal where element type and dimensions are.
    """

    allocation: Numbers
    size: Numbers
    color: Numbers
    parameter: Numbers
    leaves: Flags
    is_declared: Flags
    value: Numbers
    type: Numbers


def fitting_values(allocations: int, held: HeldColumns) -> Numbers:
    """Return, for each allocation, the value that could have had its parameter's memory, or `ABSENT`."""
    found = np.full(allocations, ABSENT)
    order = np.lexsort((held.type, held.color, held.size))
    differs = np.zeros(len(order), np.bool_)
    for column in (held.type, held.color, held.size):
        differs[1:] |= np.diff(column[order]) != 0
    fit = np.empty(len(order), np.int64)
    fit[order] = np.cumsum(differs)

    def placed(rows: Numbers, *keys: Numbers | Flags) -> tuple[Numbers, Numbers]:
        """Return rows in order of what they fit, then of the keys, and numbers for fit and place in it."""
        rows = rows[np.lexsort((*(key[rows] for key in keys), fit[rows]))]
        groups = fit[rows]
        starts = np.flatnonzero(np.diff(groups, prepend=-1))
        nth = np.arange(len(rows)) - np.repeat(starts, np.diff(starts, append=len(rows)))
        return rows, groups * len(order) + nth

    is_result = held.parameter == ABSENT
    takers, place = placed(
        np.flatnonzero(~is_result & ~held.leaves), held.allocation, held.parameter, ~held.is_declared
    )
    results, place_of_result = placed(np.flatnonzero(is_result), held.allocation)
    _, one, other = np.intersect1d(place, place_of_result, assume_unique=True, return_indices=True)
    found[held.allocation[takers[one]]] = held.value[results[other]]
    return found
