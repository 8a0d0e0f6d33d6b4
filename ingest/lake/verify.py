"""Check a lake: whether what its tables name is there, and what is left to do."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal, NamedTuple

from ingest.lake.batch import open_batches, read_batch
from ingest.lake.commit import complete_all, working
from ingest.lake.create import missing_fields, open_imports
from ingest.lake.files import attach
from ingest.lake.layout import BATCHES, LAKE_TABLES
from ingest.lake.snapshot import listed
from ingest.lake.store import Lake
from ingest.sql import one_number

if TYPE_CHECKING:
    import duckdb


class Finding(NamedTuple):
    """Something found.

    Attributes:
        kind: trouble, or a notice of what is no trouble.
        table: where; None for the whole lake.
        message: what it is, with the remedy.
    """

    kind: Literal["trouble", "notice"]
    table: str | None
    message: str


def verify_lake(lake: Lake, *, repair: bool = False) -> list[Finding]:
    """Check a lake.

    Args:
        lake: at head.
        repair: complete batches that were begun.

    Raises:
        DatabaseError: the store refuses.
    """
    open_imports(lake)
    found = list(_batches(lake, repair=repair))
    for name in LAKE_TABLES:
        found += _table(lake, name)
    if not any(one.kind == "trouble" for one in found):
        with working(lake) as (connection, _):
            found += _runs(lake, connection)
    return found


def _batches(lake: Lake, *, repair: bool) -> Iterator[Finding]:
    if repair:
        done = complete_all(lake)
        if done:
            yield Finding("notice", None, f"{done} batches were begun and not ended; they are complete now")
        return
    waiting = [number for number in open_batches(lake) if read_batch(lake, number) is not None]
    if waiting:
        numbers = ", ".join(map(str, waiting))
        yield Finding(
            "notice",
            None,
            f"batches {numbers} are under way, or their writers died: the next import completes them, or"
            f" xbuf lake verify --repair (see {lake.url(BATCHES)})",
        )


def _table(lake: Lake, name: str) -> Iterator[Finding]:
    """Compare the files that a table names with those that are there."""
    table = lake.table(name)
    if lacking := missing_fields(name, table):
        columns = ", ".join(sorted(field.name for field in lacking))
        yield Finding("trouble", name, f"lacks the columns {columns}; bring it up to date: xbuf lake upgrade")
    there = lake.sizes(name)
    named = {file.name: file.size for file in listed(table)}
    for path, size in named.items():
        if path not in there:
            yield Finding(
                "trouble", name, f"{path} is gone; bring it back, or export what is left: xbuf lake export"
            )
        elif there[path] != size:
            yield Finding("trouble", name, f"{path} has {there[path]} bytes and should have {size}")
    spare = there.keys() - named
    if spare:
        yield Finding("notice", name, f"{len(spare)} files do not count; xbuf lake vacuum removes old ones")


def _runs(lake: Lake, connection: duckdb.DuckDBPyConnection) -> Iterator[Finding]:
    """Look for runs that are there twice, or have no files."""
    for name in ("runs", "run_files"):
        attach(connection, lake, name)
    if twice := one_number(
        connection, "SELECT count(*) FROM (SELECT run_id FROM runs GROUP BY run_id HAVING count(*) > 1)"
    ):
        yield Finding("trouble", "runs", f"{twice} run numbers are there more than once")
    if bare := one_number(connection, "SELECT count(*) FROM runs ANTI JOIN run_files USING (run_id)"):
        yield Finding("trouble", "run_files", f"{bare} runs have no files")
