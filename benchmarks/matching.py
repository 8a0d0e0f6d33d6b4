"""How well buffers of two compilations are matched: `python -m benchmarks.matching FOLDER...`.

Each folder holds dumps of one release or chip. Every two that have a module in common are compared.
"""

from __future__ import annotations

import argparse
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from benchmarks.table import table
from ingest.database.connect import open_database
from ingest.pipeline.importer import import_dumps
from ingest.query.blocks import create_temporary

if TYPE_CHECKING:
    import duckdb

HEAD: Final = ("sets", "pairs", "rows", "change", "same", "likely", "guess", "none")

_SHARED: Final = """
    SELECT DISTINCT b.value, a.value
    FROM runs AS r
    JOIN run_labels AS b ON b.run_id = r.run_id
    JOIN runs AS s ON s.module_name = r.module_name AND s.backend = r.backend
    JOIN run_labels AS a ON a.run_id = s.run_id
    WHERE b.value < a.value AND r.peak_bytes > 0 AND s.peak_bytes > 0
    ORDER BY ALL
"""
_MATCHED: Final = """
    SELECT
        m.before_run_id,
        m.after_run_id,
        sum(m.before_peak_bytes)::BIGINT,
        sum(m.after_peak_bytes)::BIGINT,
        (sum(m.bytes) FILTER (m.confidence = 'same'))::BIGINT,
        (sum(m.bytes) FILTER (m.confidence = 'likely'))::BIGINT,
        (sum(m.bytes) FILTER (m.confidence = 'guess'))::BIGINT
    FROM (
        SELECT
            b.* EXCLUDE (confidence),
            b.before_peak_bytes + b.after_peak_bytes AS bytes,
            CASE WHEN b.matched_by IS NOT NULL THEN b.confidence END AS confidence
        FROM matched_buffers($1, $2) AS b
    ) AS m
    GROUP BY m.before_run_id, m.after_run_id
"""
_CHANGED: Final = """
    SELECT
        c.before_run_id,
        c.after_run_id,
        sum(abs(c.after_peak_bytes - c.before_peak_bytes))::BIGINT,
        sum(c.after_peak_bytes - c.before_peak_bytes)::BIGINT
    FROM changed_buffers($1, $2) AS c
    GROUP BY ALL
"""


@dataclass(frozen=True, slots=True)
class Matching:
    """How two runs of one module were matched; bytes, of the peaks of both together but for the first four.

    Attributes:
        sets: the two folders.
        runs: the two runs.
        before_bytes, after_bytes: the peaks, as the matched buffers add up.
        rows_bytes: sum of the absolute changes of all rows.
        change_bytes: sum of the changes.
    """

    sets: tuple[str, str]
    runs: tuple[int, int]
    before_bytes: int
    after_bytes: int
    rows_bytes: int
    change_bytes: int
    same_bytes: int
    likely_bytes: int
    guess_bytes: int

    @property
    def peak_bytes(self) -> int:
        """The larger peak."""
        return max(self.before_bytes, self.after_bytes)

    @property
    def both_bytes(self) -> int:
        """Both peaks."""
        return self.before_bytes + self.after_bytes


def load(folders: Iterable[Path], database: Path) -> None:
    """Load each folder as a set of its name."""
    for folder in folders:
        import_dumps([folder], database, labels={"set": folder.name})


def shared(connection: duckdb.DuckDBPyConnection) -> list[tuple[str, str]]:
    """Return every two sets that have a module in common."""
    return connection.execute(_SHARED).fetchall()


def measure(connection: duckdb.DuckDBPyConnection, pairs: Iterable[tuple[str, str]]) -> Iterator[Matching]:
    """Compare pairs of sets, module by module."""
    create_temporary(connection)
    for sets in pairs:
        sides = [f"set={name}" for name in sets]
        changed = {(b, a): sums for b, a, *sums in connection.execute(_CHANGED, sides).fetchall()}
        for before, after, *peaks_and_shares in connection.execute(_MATCHED, sides).fetchall():
            before_bytes, after_bytes, *shares = (number or 0 for number in peaks_and_shares)
            rows, change = changed.get((before, after), (0, 0))
            yield Matching(sets, (before, after), before_bytes, after_bytes, rows, change, *shares)


def rows_of(measured: Iterable[Matching]) -> list[tuple[object, ...]]:
    """Return a row for each two sets, and one for all; percentages are means over pairs of modules."""
    by_sets: dict[str, list[Matching]] = defaultdict(list)
    for one in measured:
        by_sets[f"{one.sets[0]} -> {one.sets[1]}"].append(one)
    everything = [one for some in by_sets.values() for one in some]
    return [_row(sets, some) for sets, some in [*by_sets.items(), ("all", everything)]]


def _row(sets: str, some: Sequence[Matching]) -> tuple[object, ...]:
    def mean(part: Callable[[Matching], float]) -> float:
        return 100 * sum(map(part, some)) / max(len(some), 1)

    shares = [
        mean(lambda one: one.same_bytes / one.both_bytes),
        mean(lambda one: one.likely_bytes / one.both_bytes),
        mean(lambda one: one.guess_bytes / one.both_bytes),
    ]
    return (
        sets,
        len(some),
        mean(lambda one: one.rows_bytes / one.peak_bytes),
        mean(lambda one: abs(one.after_bytes - one.before_bytes) / one.peak_bytes),
        *shares,
        100 - sum(shares),
    )


def main(arguments: list[str] | None = None) -> None:
    """Load, compare, print."""
    parser = argparse.ArgumentParser("python -m benchmarks.matching", description="Measure the matching.")
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER", help="of one release or chip")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="xbuf-matching-") as folder:
        database = Path(folder) / "xbuf.duckdb"
        load(options.folders, database)
        with closing(open_database(database, read_only=True)) as connection:
            measured = [one for one in measure(connection, shared(connection)) if one.peak_bytes]
    print(table("Matching of buffers, % of the larger peak, or of both peaks", HEAD, rows_of(measured)))


if __name__ == "__main__":
    main()
