"""References to runs on the command line: their parameter types, and what a shell completes them with."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import click
from click.shell_completion import CompletionItem

from ingest.cli.interrupts import reading
from ingest.errors import XbufError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import duckdb

_PLAIN = re.compile(r"-{0,2}[A-Za-z0-9_.,:=@%+/~][A-Za-z0-9_.,:=@%+/~-]*")

_RUNS: Final = "SELECT run_id::VARCHAR FROM runs ORDER BY run_id DESC LIMIT 200"
_LABELS: Final = "SELECT DISTINCT key || '=' || value FROM run_labels ORDER BY 1 LIMIT 200"
_MODULES: Final = "SELECT DISTINCT coalesce(module_name, stem) FROM runs ORDER BY 1 LIMIT 1000"


def is_plain(text: str) -> bool:
    """Return whether a shell takes a text as it is.

    Names of modules and labels come from dumps. bash puts a completion on the command line as it stands, and
    runs what `$(...)` in it says: other names are not offered.
    """
    return _PLAIN.fullmatch(text) is not None


def offered(known: Iterable[str], incomplete: str) -> list[CompletionItem]:
    """Make completions of the names that begin like what is typed and that a shell takes as they are."""
    fitting = [text for text in known if text.startswith(incomplete) and not text.startswith("-")]
    return [CompletionItem(text) for text in fitting if is_plain(text)]


def database_of(ctx: click.Context) -> str:
    """Find the --db of a command, else of the group above it."""
    current: click.Context | None = ctx
    while current is not None:
        if database := current.params.get("database"):
            return str(database)
        current = current.parent
    return os.environ.get("XBUF_DB", "xbuf.duckdb")


def known_runs(database: str) -> Sequence[str]:
    """List references to runs: the newest numbers, latest, labels, modules."""
    return [*_read(database, _RUNS), "latest", "latest~1", *known_labels(database), *known_modules(database)]


def known_labels(database: str) -> Sequence[str]:
    """List the labels as key=value."""
    return _read(database, _LABELS)


def known_modules(database: str) -> Sequence[str]:
    """List the names of modules."""
    return _read(database, _MODULES)


def _read(database: str, sql: str) -> list[str]:
    try:
        with reading(database) as connection:
            return [text for (text,) in connection.execute(sql).fetchall()]
    except XbufError:
        return []  # a completion has nowhere to say what is wrong; the command itself will


def all_runs(database: str, references: Sequence[str]) -> tuple[int, ...]:
    """Return the numbers of all runs that the references name, ascending.

    Raises:
        UsageError: one names none.
        DatabaseError: as `open_database`.
    """
    from ingest.query.references import resolve

    with reading(database) as connection:
        return tuple(sorted({run for text in references for run in resolve(connection, text)}))


@contextmanager
def reading_runs(
    database: str, *references: str
) -> Iterator[tuple[duckdb.DuckDBPyConnection, tuple[int, ...]]]:
    """Open a database for what is about one run for each reference; yield their numbers with it.

    Raises what `reading` and `ingest.query.references.resolve_one` raise.
    """
    from ingest.database.scope import narrowed
    from ingest.query.references import resolve_one

    with reading(database) as connection:
        runs = tuple(resolve_one(connection, reference) for reference in references)
        with narrowed(connection, set(runs)):
            yield connection, runs


class _Run(click.ParamType[str]):
    name = "run"

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        module, at, _ = incomplete.partition("@")
        if at:
            database = database_of(ctx)
            rest = ["latest", "latest~1", *known_labels(database)]
            return offered([f"{module}@{text}" for text in rest], incomplete)
        return offered(known_runs(database_of(ctx)), incomplete)


class _Side(_Run):
    name = "side"

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        found = super().shell_complete(ctx, param, incomplete)
        return found or [CompletionItem(incomplete, type="file")]


RUN: Final = _Run()
SIDE: Final = _Side()
