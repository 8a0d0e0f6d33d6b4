"""What changed between two compilations, as records.

    with open_sides("xbuf.duckdb", "jax=0.10.1", "jax=0.10.2") as sides:
        comparison = compare(sides.connection, sides.before, sides.after)
    for pair in comparison.pairs:
        print(pair.after.module, pair.peak.change_bytes, [row.op_name for row in pair.changes[:3]])

The work is done by the saved query `diff` and the macros `run_pairs` and `run_figures`, so a DuckDB shell
gives the same answers. Sizes are bytes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ingest.database.scope import narrowed
from ingest.query.blocks import execute_with_blocks
from ingest.query.catalog import shipped
from ingest.query.result import named_rows
from ingest.query.run import bind, run_query

if TYPE_CHECKING:
    import duckdb

_PARTS: Final = ("memory", "memory space", "kind")
_MEMORY: Final = ("total", "resident peak", "live peak", "padding at the peak", "unused in arenas")


@dataclass(frozen=True, slots=True)
class Run:
    """A run that is compared.

    Attributes:
        run_id: its number; of a dump that was read for the comparison alone, one above all in the database.
        module: module name, else the file's stem.
        backend: cpu, gpu or tpu; None if unknown.
        place: directory and stem of its dump.
        labels: key=value, by key.
    """

    run_id: int
    module: str
    backend: str | None
    place: str
    labels: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure on both sides, bytes; None where a dump does not say it.

    Attributes:
        part: memory, memory space or kind.
        name: total, resident peak, live peak, padding at the peak, unused in arenas; a space; a kind.
    """

    part: str
    name: str
    before_bytes: int | None
    after_bytes: int | None

    @property
    def change_bytes(self) -> int | None:
        """After minus before."""
        if self.before_bytes is None or self.after_bytes is None:
            return None
        return self.after_bytes - self.before_bytes

    @property
    def differs(self) -> bool:
        """Whether the two sides differ, also in what they say."""
        return self.before_bytes != self.after_bytes


@dataclass(frozen=True, slots=True)
class Change:
    """A row of `diff`: buffers that change the peak; the columns are described in `queries/diff.sql`."""

    change: str
    change_bytes: int
    buffers: int
    confidence: str
    op_name: str | None
    source: str | None
    before_shape: str | None
    after_shape: str | None
    before_bytes: int
    after_bytes: int
    opcode: str | None
    kind: str
    color: int
    value: str


@dataclass(frozen=True, slots=True)
class Pair:
    """Two runs of one module.

    Attributes:
        paired_by: signature, parameters, name or only run (`run_pairs`).
        figures: in a fixed order, those of memory first.
        changes: rows that add up to the change of the live peak, the largest first; none where a side has no
            live ranges.
    """

    before: Run
    after: Run
    paired_by: str
    figures: tuple[Figure, ...]
    changes: tuple[Change, ...]

    @property
    def peak(self) -> Figure:
        """The live peak."""
        return next(figure for figure in self.figures if figure.name == "live peak")

    @property
    def differs(self) -> bool:
        """Whether any figure differs, or buffers at the peak do."""
        return bool(self.changes) or any(figure.differs for figure in self.figures)


@dataclass(frozen=True, slots=True)
class Comparison:
    """All modules of two sides.

    Attributes:
        pairs: those that are on both, the largest change of the peak first.
        only_before, only_after: modules without a partner, by run_id.
    """

    pairs: tuple[Pair, ...]
    only_before: tuple[Run, ...]
    only_after: tuple[Run, ...]

    @property
    def differs(self) -> bool:
        """Whether there is anything to say."""
        return bool(self.only_before or self.only_after) or any(pair.differs for pair in self.pairs)


def compare(connection: duckdb.DuckDBPyConnection, before: Sequence[int], after: Sequence[int]) -> Comparison:
    """Compare two sides of runs.

    Args:
        connection: a database at head.
        before, after: numbers of runs, at least one each.
    """
    with narrowed(connection, {*before, *after}):
        return _compare(connection, before, after)


def _compare(
    connection: duckdb.DuckDBPyConnection, before: Sequence[int], after: Sequence[int]
) -> Comparison:
    sides = {"before": ",".join(map(str, before)), "after": ",".join(map(str, after))}
    found = execute_with_blocks(
        connection,
        "SELECT before_run_id, after_run_id, paired_by FROM run_pairs($before, $after) ORDER BY ALL",
        sides,
    ).fetchall()
    numbers = {run for pair in found for run in pair[:2] if run is not None}
    runs = _runs(connection, numbers)
    figures = _figures(connection, numbers)
    changes = _changes(connection, sides)
    pairs = [
        Pair(
            runs[b],
            runs[a],
            paired_by,
            _on_both_sides(figures[b], figures[a]),
            tuple(changes[b, a]),
        )
        for b, a, paired_by in found
        if b is not None and a is not None
    ]
    pairs.sort(key=_size, reverse=True)
    return Comparison(
        tuple(pairs),
        tuple(runs[b] for b, a, _ in found if a is None),
        tuple(runs[a] for b, a, _ in found if b is None),
    )


def _size(pair: Pair) -> tuple[int, int]:
    total = next(figure for figure in pair.figures if figure.name == "total")
    return abs(pair.peak.change_bytes or 0), abs(total.change_bytes or 0)


def _runs(connection: duckdb.DuckDBPyConnection, numbers: set[int]) -> dict[int, Run]:
    rows = connection.execute(
        "SELECT r.run_id, coalesce(r.module_name, r.stem), r.backend, r.dump_dir || '/' || r.stem,"
        " list(l.key || '=' || l.value ORDER BY l.key) FILTER (l.key IS NOT NULL)"
        " FROM runs AS r LEFT JOIN run_labels AS l USING (run_id) WHERE r.run_id IN $runs GROUP BY ALL",
        {"runs": sorted(numbers)},
    ).fetchall()
    return {
        run: Run(run, module, backend, place, tuple(labels or ()))
        for run, module, backend, place, labels in rows
    }


def _figures(
    connection: duckdb.DuckDBPyConnection, numbers: set[int]
) -> dict[int, dict[tuple[str, str], int | None]]:
    found: dict[int, dict[tuple[str, str], int | None]] = {run: {} for run in numbers}
    rows = execute_with_blocks(
        connection,
        "SELECT run_id, part, figure, bytes FROM run_figures(?)",
        [",".join(map(str, sorted(numbers)))],
    ).fetchall()
    for run, part, name, size in rows:
        found[run][part, name] = size
    return found


def _on_both_sides(
    before: dict[tuple[str, str], int | None], after: dict[tuple[str, str], int | None]
) -> tuple[Figure, ...]:
    def order(key: tuple[str, str]) -> tuple[int, int, str]:
        part, name = key
        return _PARTS.index(part), _MEMORY.index(name) if part == "memory" else 0, name

    keys = sorted(before.keys() | after.keys(), key=order)
    # A space or kind that a program does not use is 0 bytes there.
    return tuple(Figure(*key, before.get(key, 0), after.get(key, 0)) for key in keys)


def _changes(
    connection: duckdb.DuckDBPyConnection, sides: dict[str, str]
) -> dict[tuple[int, int], list[Change]]:
    query = shipped().load("diff")
    found: dict[tuple[int, int], list[Change]] = defaultdict(list)
    for cells in named_rows(run_query(connection, query, bind(query, dict(sides)))):
        pair = cells.pop("before_run_id"), cells.pop("after_run_id")
        del cells["module"]
        found[pair].append(Change(**cells))
    return found
