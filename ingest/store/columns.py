"""Work on the columns of a large dump's values, holding little twice."""

from __future__ import annotations

from array import array
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


def as_list(column: pa.ChunkedArray) -> list[Any]:
    """Return a column without nulls as `to_pylist` does, in a tenth of its time."""
    array = column.combine_chunks()
    if pa.types.is_dictionary(array.type):
        texts = array.dictionary.to_pylist()
        return [texts[number] for number in array.indices.to_numpy().tolist()]
    return list(array.to_numpy(zero_copy_only=False).tolist())


def sorted_by_id(pieces: list[pa.Table]) -> pa.Table:
    """Put the value lines of all pieces together; column by column, so as to hold little twice.

    The list is emptied.
    """
    chunks = {name: [piece[name].chunks for piece in pieces] for name in pieces[0].column_names}
    pieces.clear()
    order = None
    columns = {}
    for name in list(chunks):
        column = pa.chunked_array([chunk for piece in chunks.pop(name) for chunk in piece])
        if order is None:  # the ids come first
            order = pc.sort_indices(column)
        columns[name] = column.unify_dictionaries().combine_chunks().take(order)
    return pa.table(columns)


def range_keys(values: pa.Table) -> pa.Array:
    """Return the name and index of each value as a live range prints them."""
    index = values["index"].combine_chunks()
    texts = pa.array([text or "{}" for text in index.dictionary.to_pylist()], pa.string())
    index = pa.DictionaryArray.from_arrays(index.indices, texts).cast(pa.string())
    return pc.binary_join_element_wise(values["name"].combine_chunks(), index, "")


def index_in(wanted: pa.Array, keys: pa.Array) -> pa.Array:
    """Return the row of each wanted text in `keys`, null for none.

    It looks up texts of like length at a time: a table of them all takes more memory than anything else.
    """
    rows = np.full(len(wanted), -1, np.int64)
    parts = [pc.binary_length(texts).to_numpy() % 8 for texts in (wanted, keys)]
    for part in range(8):
        of_wanted, of_keys = (np.flatnonzero(lengths == part) for lengths in parts)
        found = pc.index_in(wanted.take(pa.array(of_wanted)), value_set=keys.take(pa.array(of_keys)))
        is_found = found.is_valid().to_numpy(zero_copy_only=False)
        rows[of_wanted[is_found]] = of_keys[found.drop_null().to_numpy()]
    return pa.array(rows, mask=rows < 0)


def compact(table: pa.Table) -> pa.Table:
    """Return a copy of a slice without what lies outside of it: pickled, a slice is as large as the whole."""
    columns = []
    for column in table.take(pa.array(range(len(table)))).columns:
        is_text = pa.types.is_dictionary(column.type)
        columns.append(column.cast(pa.string()).dictionary_encode() if is_text else column)
    return pa.table(columns, names=table.column_names)


def plain_array(numbers: np.ndarray[Any, np.dtype[np.int64]]) -> array[int]:
    """Return a plain array: indexing one is as fast as a list, at a fifth of its memory."""
    result = array("q")
    result.frombytes(np.ascontiguousarray(numbers, np.int64).tobytes())
    return result
