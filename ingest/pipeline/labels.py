"""Labels that an import puts on runs: the same on all, and by the path of each dump."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import duckdb

Label = tuple[int, str, str]
"""Run, key and value."""
Place = tuple[str, str]
"""Directory and stem of a dump, as `display` shows them."""

_NEWEST: Final = """
    WITH places AS (
        SELECT unnest(place.dump_dir) AS dump_dir, unnest(place.stem) AS stem
        FROM (SELECT from_json_strict($places, '{"dump_dir": ["VARCHAR"], "stem": ["VARCHAR"]}') AS place)
    )
    SELECT r.run_id, r.dump_dir, r.stem, map_from_entries(list((l.key, l.value)) FILTER (l.key IS NOT NULL))
    FROM (
        SELECT max(run_id) AS run_id, dump_dir, stem
        FROM runs
        SEMI JOIN places USING (dump_dir, stem)
        GROUP BY ALL
    ) AS r
    LEFT JOIN run_labels AS l USING (run_id)
    GROUP BY ALL
"""


@dataclass(frozen=True, slots=True)
class Labelling:
    """Which labels the dumps of an import get.

    Attributes:
        fixed: key and value, on every dump; they win over those of the path.
        pattern: searched in directory/stem of each dump; what its named groups match are values, the names
            are keys. None for no labels of paths.
    """

    fixed: tuple[tuple[str, str], ...] = ()
    pattern: str | None = None

    def __bool__(self) -> bool:
        """Whether there is any label to put on."""
        return bool(self.fixed or self.pattern)

    def of(self, directory: str, stem: str) -> dict[str, str]:
        """Return the labels of the dump at a place."""
        found = re.search(self.pattern, f"{directory}/{stem}") if self.pattern else None
        groups = {key: value for key, value in found.groupdict().items() if value} if found else {}
        return {**groups, **dict(self.fixed)}


def lacking_labels(
    connection: duckdb.DuckDBPyConnection, places: Sequence[Place], labelling: Labelling
) -> list[Label]:
    """Find the labels that the newest runs of these places should have and do not."""
    if not places or not labelling:
        return []
    directories, stems = zip(*places, strict=True)
    asked = {"places": json.dumps({"dump_dir": directories, "stem": stems})}
    return [
        (run, key, value)
        for run, directory, stem, has in connection.execute(_NEWEST, asked).fetchall()
        for key, value in labelling.of(directory, stem).items()
        if (has or {}).get(key) != value
    ]


def put_labels(connection: duckdb.DuckDBPyConnection, labels: Iterable[Label]) -> None:
    """Put labels on runs; a key has one value, the old one goes."""
    rows = sorted(labels)
    if rows:
        runs, keys, values = zip(*rows, strict=True)
        connection.execute(
            "INSERT OR REPLACE INTO run_labels SELECT unnest($runs), unnest($keys), unnest($values)",
            {"runs": list(runs), "keys": list(keys), "values": list(values)},
        )
