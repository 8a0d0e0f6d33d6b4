"""What the uses of many values come to: `ingest.staging.program_digest` and `.loops` over Arrow columns."""

from __future__ import annotations

from array import array
from collections.abc import Collection, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ingest.staging.columns import as_list
from ingest.staging.program_digest import print_of_use, without_numbers


def prints_with_uses(prints: array[int], use_counts: Sequence[int], uses: pa.Table) -> array[int]:
    """Return what values count with their uses, as `ingest.staging.program_digest.Prints.of_values` does.

    Args:
        prints: what each value counts without.
        use_counts: how many uses each has.
        uses: rows of `uses`, in the order of the values.
    """
    users, parts = (
        uses[name].combine_chunks().dictionary_encode() for name in ("instruction", "operand_index")
    )
    stems = pa.array(without_numbers(users.dictionary.to_pylist())).dictionary_encode()
    operands = uses["operand_number"].combine_chunks().dictionary_encode()
    numbers = stems.indices.to_numpy()[users.indices.to_numpy()].astype(np.int64)
    for column in (operands, parts):  # numbered anew each time: two numbers make one that fits
        both = pa.array(numbers * len(column.dictionary) + column.indices.to_numpy()).dictionary_encode()
        numbers = both.indices.to_numpy()
    first = np.empty(len(both.dictionary), np.int64)
    first[numbers[::-1]] = np.arange(len(numbers))[::-1]
    distinct = uses.take(pa.array(first))
    operand, part, name = (
        as_list(distinct[name]) for name in ("operand_number", "operand_index", "instruction")
    )
    of_distinct = map(print_of_use, map(str, operand), part, without_numbers(name))
    sums = np.zeros(len(numbers) + 1, np.uint64)
    np.cumsum(np.fromiter(of_distinct, np.uint64, len(first))[numbers], out=sums[1:])
    until = np.cumsum([0, *use_counts])
    with_uses = np.frombuffer(prints, np.uint64) * (np.uint64(1) + np.diff(sums[until]))
    return array("Q", with_uses.tobytes())


def first_operand_table(uses: pa.Table, instructions: Collection[str] | None) -> pa.Table:
    """Return which parts of first operands values are: name and index of the part, id of the value.

    Args:
        uses: rows of the table `uses`.
        instructions: those of interest; None for all.
    """
    is_wanted = pc.equal(uses["operand_number"], 0)
    if instructions is not None:
        is_wanted = pc.and_(is_wanted, pc.is_in(uses["instruction"], pa.array(instructions, pa.string())))
    wanted = uses.filter(is_wanted)
    names, indices = (wanted[name].dictionary_encode() for name in ("instruction", "operand_index"))
    return pa.table({"name": names, "index": indices, "id": wanted["value_id"]})
