"""What a table and a column are: the records that `ingest.database.tables` is made of."""

from __future__ import annotations

from typing import Literal, NamedTuple

Type = Literal["BIGINT", "BOOLEAN", "DOUBLE", "TIMESTAMP", "VARCHAR", "BIGINT[]", "VARCHAR[]"]
"""DuckDB's names of the types in use."""

Origin = Literal["row", "text", "shape", "instruction", "module", "computed", "load"]
"""Where the cells of a column come from:

* row: given with the row, which a scanner read or the importer made;
* text: a shape or an instruction text, verbatim, kept once for each distinct one;
* shape: the field of the same name of `ingest.dump.shapes.Shape`;
* instruction: the field of the same name of `ingest.dump.instructions.Instruction`, or what the HLO module
  says where that knows better (`ingest.staging.sidecars.Source`);
* module: the HLO module alone;
* computed: other columns of the row;
* load: numbers that the database gives, and the time.
"""


Rows = Literal["dump", "set", "import"]
"""Where the rows of a table come from:

* dump: collected by `ingest.staging.batch`, and staged;
* set: of the files of a dump set (`ingest.staging.run_rows`), staged too;
* import: written by an import itself.
"""


class Column(NamedTuple):
    """A column.

    Attributes:
        name: as users type it.
        type: DuckDB's type.
        comment: what a cell says, with its unit; shown by `duckdb_columns()`.
        key: part of the primary key.
        required: NOT NULL; a key is so anyway.
        compressed: stored with ZSTD. DuckDB leaves long, distinct strings uncompressed: 141 MB against 9.7 MB
            for the instruction texts of 7,551 dumps, at the same load and scan speed.
        long: a text can be longer than a few KB; a load plans its memory by these.
        origin: where its cells come from.
    """

    name: str
    type: Type
    comment: str
    key: bool = False
    required: bool = False
    compressed: bool = False
    long: bool = False
    origin: Origin = "row"


class Table(NamedTuple):
    """A table.

    Attributes:
        name: as users type it.
        comment: what a row is.
        rows: where its rows come from.
        columns: in the order of the database.
    """

    name: str
    comment: str
    rows: Rows
    columns: tuple[Column, ...]
