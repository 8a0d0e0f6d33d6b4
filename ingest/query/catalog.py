"""Find the saved queries: the shipped ones and those of a team's own folders."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ingest.errors import UsageError
from ingest.query.header import SavedQuery, read_query
from ingest.resources import queries_dir

TOPICS: Final = ("peak", "arenas", "layout", "lifetime", "sharing", "comparing", "housekeeping")
"""Topics of the shipped queries, in the order of the list."""
STARTERS: Final = ("memory_figures", "live_at_peak", "memory_by_source", "donation", "diff")
"""The queries that a new user asks first: how much, what, from where, what could be spared, what changed."""


@dataclass(frozen=True, slots=True)
class Catalog:
    """Query files by name; each is read when it is asked for."""

    paths: Mapping[str, Path]

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self.paths))

    def __contains__(self, name: object) -> bool:
        return name in self.paths

    def load(self, name: str) -> SavedQuery:
        """Read one query.

        Raises:
            UsageError: there is no such query, or its header is wrong.
        """
        path = self.paths.get(name)
        if path is None:
            raise UsageError(
                f"there is no query '{name}' (`xbuf query` lists them){did_you_mean(name, self)}"
            )
        return read_query(path)

    def load_all(self) -> tuple[SavedQuery, ...]:
        """Read all queries in order of their names.

        Raises:
            UsageError: a header is wrong.
        """
        return tuple(read_query(self.paths[name]) for name in self)


def shipped() -> Catalog:
    """Catalog of the queries that come with the tool."""
    return Catalog(_files(queries_dir()))


def find_catalog(folders: Sequence[Path] = ()) -> Catalog:
    """Catalog of the shipped queries, of `folders` and of those in XBUF_QUERIES.

    XBUF_QUERIES holds folders separated as in PATH. A user's query may not take the name of a shipped
    one: scripts rely on what a shipped name means.

    Raises:
        UsageError: a folder is missing, or two files share a name.
    """
    paths = _files(queries_dir())
    variable = os.environ.get("XBUF_QUERIES", "")
    for folder in (*folders, *(Path(part) for part in variable.split(os.pathsep) if part)):
        if not folder.is_dir():
            raise UsageError(f"{folder}: is no folder of query files (--queries, XBUF_QUERIES)")
        for name, path in _files(folder).items():
            if paths.setdefault(name, path) != path:
                raise UsageError(f"{path}: there is already a query '{name}': {paths[name]}")
    return Catalog(paths)


def by_topic(queries: Iterable[SavedQuery]) -> list[tuple[str, list[SavedQuery]]]:
    """Group queries: the topics of the shipped ones, then a team's own, then queries without a topic."""
    groups: dict[str, list[SavedQuery]] = {}
    for query in queries:
        groups.setdefault(query.topic, []).append(query)
    own = sorted(groups.keys() - {*TOPICS, ""})
    return [(topic or "other", groups[topic]) for topic in (*TOPICS, *own, "") if topic in groups]


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Say which known words look alike, as a half sentence; empty when none does."""
    candidates = list(known)
    close = difflib.get_close_matches(word, candidates, n=3, cutoff=0.6)
    if not close and len(word) >= 3:
        close = [candidate for candidate in candidates if word in candidate][:3]
    return f"; did you mean {' or '.join(close)}?" if close else ""


def _files(folder: Path) -> dict[str, Path]:
    """Map the names of the query files of a folder to their paths."""
    return {path.stem: path for path in sorted(folder.glob("*.sql"))}
