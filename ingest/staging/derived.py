"""The columns of `values` that follow from shapes, instruction texts and the HLO module: derived here alone.

Each distinct shape and text is parsed once, and its facts are taken by number. How columns are made is left
to the caller: of Arrow (`ingest.staging.arrow_rows`) or of Python lists (`ingest.staging.small_batch`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Protocol, TypeVar

from ingest.database.tables import types_of
from ingest.dump.shapes import parse_shape
from ingest.staging.batch import Batch
from ingest.staging.sidecars import Source

_C = TypeVar("_C")
_N = TypeVar("_N")

_LOCATED: Final = frozenset(name for name in Source._fields if name.startswith("source_"))
"""Columns that the HLO module gives where it knows a source line; the other fields of `Source` fill in for a
missing instruction text."""
_NOTHING: Final = Source(*[None] * len(Source._fields))


class Columns(Protocol[_C, _N]):
    """A way to hold columns; types are DuckDB's."""

    def numbers(self, numbers: Sequence[int | None]) -> _N:
        """Return places in a list of distinct facts, None for none."""

    def column(self, facts: Sequence[Any], type_: str) -> _C:
        """Return a column of one fact a row."""

    def taken(self, distinct: Sequence[Any], type_: str, numbers: _N) -> _C:
        """Return the facts at these places."""

    def texts(self, distinct: Sequence[str], numbers: _N) -> _C:
        """Return texts that repeat by the thousand, each kept once where that can be done."""

    def difference(self, one: _C, other: _C) -> _C:
        """Return one minus the other, nothing where either is nothing."""

    def chosen(self, where: Sequence[bool], one: _C, other: _C) -> _C:
        """Return one column where a condition holds, and another elsewhere."""


def derive(batch: Batch, sizes: _C, make: Columns[_C, _N]) -> dict[str, _C]:
    """Return the derived columns of the values of a batch.

    Args:
        batch: the values, with their shapes and texts by number.
        sizes: the column `size_bytes`, bytes.
        make: how columns are made.
    """
    numbers = make.numbers(batch.shape_numbers)
    columns = {"shape": make.texts(list(batch.shapes), numbers)}
    shapes = list(map(parse_shape, batch.shapes))
    for name, type_ in types_of("values", "shape").items():
        columns[name] = make.taken([getattr(shape, name) for shape in shapes], type_, numbers)
    columns["padding_bytes"] = make.difference(sizes, columns["logical_bytes"])
    numbers = make.numbers(batch.text_numbers)
    columns["instruction_text"] = make.texts(list(batch.texts), numbers)
    texts = batch.instructions
    for name, type_ in types_of("values", "instruction").items():
        columns[name] = make.taken([getattr(text, name) for text in texts], type_, numbers)
    own = [None if text.source_file is None else "own" for text in texts]
    columns["source_via"] = make.taken(own, "VARCHAR", numbers)
    columns["source_frame_id"] = make.taken([None] * len(texts), "BIGINT", numbers)
    if any(batch.sources):
        sources = [source or _NOTHING for source in batch.sources]
        located = [source.source_file is not None for source in sources]
        without_text = [number is None for number in batch.text_numbers]
        types = types_of("values")
        for name, facts in zip(Source._fields, zip(*sources, strict=True), strict=True):
            where = located if name in _LOCATED else without_text
            columns[name] = make.chosen(where, make.column(facts, types[name]), columns[name])
    return columns
