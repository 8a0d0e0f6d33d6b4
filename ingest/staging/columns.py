"""Work on the columns of a large dump's values, holding little twice."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ingest.dump.shapes import parse_shape
from ingest.liveness.measure import NOT_LIVE
from ingest.liveness.occupancy_columns import ABSENT
from ingest.staging.memory import release_freed

Numbers = np.ndarray[Any, np.dtype[np.int64]]

_PARTS: Final = 8
_DIGITS: Final = pa.array("0123456789")


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
        del column
        release_freed()
    return pa.table(columns)


def joined(pieces: list[pa.Table]) -> pa.Table:
    """Put the rows of all pieces together, as `sorted_by_id` does, in their order."""
    whole = pa.concat_tables(pieces)
    pieces.clear()
    columns = {}
    for name in whole.column_names:
        columns[name] = whole[name].unify_dictionaries().combine_chunks()
        whole = whole.drop_columns([name])
        release_freed()
    return pa.table(columns)


def rows_in(wanted: pa.Table, keys: pa.Table) -> pa.Array:
    """Return the row in `keys` of each live range in `wanted`: same `name` and `index`; null for none.

    Rows are numbers of 32 bits. A range always prints its index, a value no `{}`. It joins an eighth of the
    texts at a time: a hash table of them all takes more memory than anything else of a large dump.
    """
    keys = with_printed_index(keys)
    rows = np.full(len(wanted), -1, np.int32)  # a dump of a terabyte has fewer values
    parts = [_parts(table) for table in (wanted, keys)]
    for part in range(_PARTS):
        of_wanted, of_keys = (np.flatnonzero(lengths == part) for lengths in parts)
        found = pc.index_in(_texts(wanted, of_wanted), value_set=_texts(keys, of_keys))
        is_found = found.is_valid().to_numpy(zero_copy_only=False)
        rows[of_wanted[is_found]] = of_keys[found.drop_null().to_numpy()]
        release_freed()
    return pa.array(rows, mask=rows < 0)


def with_printed_index(table: pa.Table) -> pa.Table:
    """Return `name` and `index` of values, the index also where the text leaves it out."""
    index = table["index"].combine_chunks()
    texts = pa.array([text or "{}" for text in index.dictionary.to_pylist()], pa.string())
    index = pa.DictionaryArray.from_arrays(index.indices, texts)
    return pa.table({"name": table["name"], "index": index})


def _parts(table: pa.Table) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """Return in which part each text is, by its length and the last digit of its name: most are as long."""
    index = table["index"].combine_chunks()
    of_index = pc.binary_length(index.dictionary).to_numpy()[index.indices.to_numpy()]
    parts = pc.binary_length(table["name"]).to_numpy() + of_index
    last = pc.index_in(pc.utf8_slice_codeunits(table["name"], -1), value_set=_DIGITS)
    parts = (parts + last.fill_null(len(_DIGITS)).to_numpy()) % _PARTS
    return np.asarray(parts, np.uint8)


def _texts(table: pa.Table, rows: Numbers) -> pa.Array:
    some = table.take(pa.array(rows))
    return pc.binary_join_element_wise(some["name"], some["index"].cast(pa.string()), "").combine_chunks()


def compact(table: pa.Table) -> pa.Table:
    """Return a copy of a slice without what lies outside of it: pickled, a slice is as large as the whole."""
    columns = []
    for column in table.take(pa.array(range(len(table)), pa.int64())).columns:
        is_text = pa.types.is_dictionary(column.type)
        columns.append(column.cast(pa.string()).dictionary_encode() if is_text else column)
    return pa.table(columns, names=table.column_names)


def plain_array(numbers: Numbers) -> array[int]:
    """Return a plain array: indexing one is as fast as a list, at a fifth of its memory."""
    result = array("q")
    result.frombytes(np.ascontiguousarray(numbers, np.int64).view(np.uint8).data)
    return result


def are_unique(rows: pa.Array, count: int) -> bool:
    """Return whether no row comes twice, of a table with so many; a byte each, as a set takes much more."""
    seen = np.zeros(count, np.bool_)
    seen[rows.to_numpy()] = True
    return int(np.count_nonzero(seen)) == len(rows)


def starting(texts: pa.DictionaryArray, start: str) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Return which of some texts start so."""
    return _where(pc.starts_with(texts.dictionary, start), texts)


def filled(texts: pa.DictionaryArray) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Return which of some texts are not empty."""
    return _where(pc.not_equal(texts.dictionary, ""), texts)


def _where(distinct: pa.BooleanArray, texts: pa.DictionaryArray) -> np.ndarray[Any, np.dtype[np.bool_]]:
    if not len(texts):
        return np.zeros(0, np.bool_)
    found: np.ndarray[Any, np.dtype[np.bool_]] = distinct.to_numpy(zero_copy_only=False)[
        texts.indices.to_numpy()
    ]
    return found


def array_types(shapes: pa.DictionaryArray) -> Numbers:
    """Return numbers for the element types and dimensions of shapes, `ABSENT` for what is no array."""
    numbers: dict[object, int] = {}
    codes = [
        ABSENT if type_ is None else numbers.setdefault(type_, len(numbers))
        for type_ in (parse_shape(text).array_type for text in shapes.dictionary.to_pylist())
    ]
    found: Numbers = np.array(codes, np.int64)[shapes.indices.to_numpy()]
    return found


def spread(column: Sequence[int], present: np.ndarray[Any, np.dtype[np.bool_]]) -> list[int | None]:
    """Put the cells of a column at the rows that are present; None at the others, and for `NOT_LIVE`."""
    cells = np.full(len(present), NOT_LIVE)
    cells[present] = column
    spread: list[int | None] = pa.array(cells, mask=cells == NOT_LIVE).to_pylist()
    return spread
