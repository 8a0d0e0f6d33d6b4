"""Which files a lake is made of at one moment, as its Delta log says.

Anybody may have made a lake. A log can name files anywhere: what is no plain name in the table's own folder
is refused, and so is a table that is not of the columns, or of the Delta features, that xbuf writes.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import starmap
from typing import TYPE_CHECKING, Final, NamedTuple

from ingest.errors import DatabaseError, NotADatabase
from ingest.lake.create import require_head
from ingest.lake.layout import LAKE_TABLES, delta_schema
from ingest.lake.store import Lake, in_words

if TYPE_CHECKING:
    from deltalake import DeltaTable

_PLAIN: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+=-]*")
_AT_ONCE: Final = 8
"""Tables of a store that are opened at the same time."""
_TRIALS: Final = 5


class LakeFile(NamedTuple):
    """A Parquet file of a table.

    Attributes:
        name: within the table's folder.
        size: bytes.
        rows: how many it has; None where that is not known.
        least, greatest: bounds of its run_id; None where they are not known.
    """

    name: str
    size: int
    rows: int | None
    least: int | None
    greatest: int | None


@dataclass(frozen=True, slots=True)
class TableFiles:
    """The files of a table.

    Attributes:
        files: in the order of their runs.
        absent: columns that no file has: the lake got them later.
        is_mixed: some files have columns that others lack.
    """

    files: tuple[LakeFile, ...]
    absent: frozenset[str] = frozenset()
    is_mixed: bool = False


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A lake at one moment.

    Attributes:
        lake: where it lies.
        tables: the files of each table, by its name.
    """

    lake: Lake
    tables: Mapping[str, TableFiles]

    @property
    def count(self) -> int:
        """Files of all tables."""
        return sum(len(table.files) for table in self.tables.values())


def read_snapshot(lake: Lake) -> Snapshot:
    """Look up the files of a lake at head.

    `runs` is looked up first: a writer commits it last, so every run in it is whole in the other tables. A
    run can also go, and its rows with it when the lake is compacted; so `runs` is looked up once more.

    Raises:
        NotADatabase: there is no lake, or something else.
        DatabaseTooNew: a newer xbuf made it.
        DatabaseError: it is older than this xbuf, the store is away or refuses, or the log names other files.
    """
    require_head(lake, lake.table("imports"))
    others = [name for name in LAKE_TABLES if name != "runs"]
    runs = _look_up(lake, "runs")
    for _ in range(_TRIALS):
        if lake.is_local:
            found = [_look_up(lake, name) for name in others]
        else:
            with ThreadPoolExecutor(_AT_ONCE) as threads:
                found = list(threads.map(lambda name: _look_up(lake, name), others))
        now = _look_up(lake, "runs")
        if set(runs.files) <= set(now.files):  # nothing went
            return Snapshot(lake, {"runs": runs, **dict(zip(others, found, strict=True))})
        runs = now
    raise DatabaseError(f"{lake}: is being compacted again and again; run again when that is over")


def files_of(lake: Lake, name: str, table: DeltaTable) -> TableFiles:
    """Return the files of a table at the version that is open.

    Raises:
        NotADatabase: it is no table of ours, or names files elsewhere.
    """
    place = f"{lake}/{name}"
    wanted = {field.name: field.type for field in delta_schema(name).fields}
    with in_words(lake, name):
        fields = {field.name: field.type for field in table.schema().fields}
        is_plain = table.protocol().min_reader_version == 1 and not table.metadata().partition_columns
        files = listed(table)
        actions = table.get_add_actions(flatten=True)
        names = actions.schema.names
        # A file has the columns whose NULLs its statistics count.
        lacking = {
            column: actions.column(f"null_count.{column}").null_count
            if f"null_count.{column}" in names
            else len(files)
            for column in wanted
        }
    if not is_plain or any(fields.get(column) != type_ for column, type_ in wanted.items()):
        raise NotADatabase(f"{place}: is a Delta table of something else; name another place")
    elsewhere = next((file.name for file in files if not _PLAIN.fullmatch(file.name)), None)
    if elsewhere is None and lake.is_local:
        elsewhere = next(_links(os.path.join(lake.root, name), {file.name for file in files}), None)
    if elsewhere is not None:
        raise NotADatabase(
            f"{place}: its log names {elsewhere!r}, which is no file of that folder; nothing of it is read"
        )
    absent = frozenset(column for column, count in lacking.items() if count == len(files))
    is_mixed = any(lacking[column] for column in wanted.keys() - absent)
    return TableFiles(tuple(sorted(files, key=lambda file: file.least or 0)), absent, is_mixed)


def listed(table: DeltaTable) -> list[LakeFile]:
    """Return the files of a table that count, at the version that is open."""
    actions = table.get_add_actions(flatten=True)
    names = actions.schema.names
    columns = (
        actions.column(column).to_pylist() if column in names else [None] * actions.num_rows
        for column in ("path", "size_bytes", "num_records", "min.run_id", "max.run_id")
    )
    return list(starmap(LakeFile, zip(*columns, strict=True)))


def _look_up(lake: Lake, name: str) -> TableFiles:
    return files_of(lake, name, lake.table(name))


def _links(folder: str, names: Collection[str]) -> Iterator[str]:
    """Yield what of the files of a folder is a link, the folder itself first."""
    if not names:
        return
    if os.path.islink(folder):
        yield folder
    with os.scandir(folder) as entries:
        yield from (entry.name for entry in entries if entry.name in names and entry.is_symlink())
