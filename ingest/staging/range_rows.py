"""The live ranges of a large dump as rows, some at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ingest.dump.live_range import PeakScan
from ingest.liveness.measure import Liveness
from ingest.staging.batch import Batch
from ingest.staging.columns import Numbers, as_list, spread
from ingest.staging.peak_list import PeakMatcher

_ROWS_AT_ONCE: Final = 50_000


class RangedValues(NamedTuple):
    """What the rows of live ranges repeat of values.

    Attributes:
        ids: of all values, ascending.
        allocations: index of the allocation of each.
        sizes: bytes of each.
        parameters: ids of those that parameter instructions define.
        roles: of the values within each allocation, see `role_within`.
    """

    ids: Numbers
    allocations: pa.ChunkedArray
    sizes: pa.ChunkedArray
    parameters: Numbers
    roles: Sequence[str]


def range_batches(
    run_no: int,
    ranges: pa.Table,
    rows: pa.Array,
    values: RangedValues,
    liveness: Liveness,
    peak: PeakScan | None,
) -> Iterator[Batch]:
    """Yield the rows of live ranges, in their order.

    Args:
        run_no: run that they belong to.
        ranges: name, index, start and end of each.
        rows: row of the value of each, null for none.
        values: what is known of them.
        liveness: of the ranges that have a value.
        peak: the printed peak list.
    """
    ids = pa.array(values.ids)
    within = np.array(values.roles, object)
    counted = 0
    matcher = PeakMatcher(peak)
    for start in range(0, len(ranges), _ROWS_AT_ONCE):
        columns = [as_list(one) for one in ranges.slice(start, _ROWS_AT_ONCE).columns]
        some = rows.slice(start, _ROWS_AT_ONCE)
        is_present = pc.is_valid(some).to_numpy(zero_copy_only=False)
        until = counted + int(is_present.sum())
        shares = [spread(column[counted:until], is_present) for column in liveness.shares()]
        counted = until
        present = some.drop_null()
        owners = values.allocations.take(present).to_numpy()
        is_parameter = np.isin(ids.take(present).to_numpy(), values.parameters)
        roles = np.full(len(some), None, object)
        roles[is_present] = np.where(is_parameter, "parameter", within[owners])
        batch = Batch()
        batch.add_ranges(
            run_no,
            ids.take(some).to_pylist(),
            columns,
            matcher.match(*columns),
            shares,
            (values.sizes.take(some).to_pylist(), roles.tolist()),
        )
        yield batch
