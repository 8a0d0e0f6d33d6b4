"""A database of dumps, or dumps without one, as an object to ask."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import warnings
import weakref
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from ingest.arguments import Labels, Paths, as_paths
from ingest.database.scope import narrowed
from ingest.display import counted
from ingest.dump.names import PROFILES, split_member
from ingest.errors import DumpError, NotADatabase, UsageError
from ingest.lake.reading import in_words_of, install_macros, open_to_read
from ingest.query.blocks import create_temporary
from ingest.query.catalog import find_catalog
from ingest.query.comparison import SIDES
from ingest.query.header import SavedQuery, Value
from ingest.query.references import names_runs, resolve, resolve_one
from ingest.query.remarks import remarks, shown_of
from ingest.query.run import bind, convert, run_query, run_sql
from ingest.query.selection import read_runs, select_runs
from ingest.source.kinds import is_lake
from ingest.sql import one_number
from xbuf.run import Run
from xbuf.table import Table

if TYPE_CHECKING:
    import duckdb

    from ingest.pipeline.summary import ImportSummary

__all__ = ["Database", "RejectedWarning", "check_loaded", "open"]

_WITH_THREADS: Final = ("jax", "tensorflow", "torch")
"""What starts threads: a forked process could wait for ever for a lock that one of them held."""
_RUNS: Final = """
SELECT run_id, coalesce(module_name, stem) AS module, backend, peak_bytes, resident_peak_bytes, total_bytes
FROM runs
ORDER BY run_id
"""


class RejectedWarning(UserWarning):
    """Some of the dumps could not be loaded; the others are there."""


class Database:
    """An open database of runs; use it with `with`, or close it.

    It is open read-only. Imports may go on meanwhile; what they load is seen when all that this process has
    open of the file is closed, and it is opened again.

    Attributes:
        path: the database file, or `lake:` and where the lake lies; a temporary one where dumps were opened.
    """

    def __init__(self, path: str | os.PathLike[str], *, folder: str | None = None) -> None:
        """Open a database file, or a lake as it is now.

        Args:
            path: the file; `lake:` with a folder or URL for a lake.
            folder: removed when the database is closed or forgotten.

        Raises what `ingest.lake.reading.open_to_read` raises.
        """
        self.path = os.fspath(path)
        self._remove = (
            weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True) if folder is not None else None
        )
        self._connection: duckdb.DuckDBPyConnection | None = open_to_read(self.path, may_fork=_may_fork())
        create_temporary(self._connection)

    @property
    def connection(self) -> duckdb.DuckDBPyConnection:
        """The DuckDB connection, for whatever is not here.

        Raises:
            UsageError: the database is closed.
        """
        if self._connection is None:
            raise UsageError(f"{self.path}: is closed; open it again")
        return self._connection

    @property
    def runs(self) -> list[Run]:
        """All runs, in the order of their numbers."""
        return [
            Run(self, int(run_id))
            for (run_id,) in self.connection.execute("SELECT run_id FROM runs ORDER BY run_id").fetchall()
        ]

    def run(self, reference: str | int) -> Run:
        """Return the run of a number or another reference, as the command line takes them.

        Args:
            reference: 17, "latest", "jit_step" (its newest run), "jit_step@jax=0.10.2", the end of a path ...

        Raises:
            UsageError: it names none, or several.
        """
        return Run(self, resolve_one(self.connection, str(reference)))

    @property
    def queries(self) -> Mapping[str, str]:
        """Names of the saved queries, and what each is about."""
        return {query.name: query.title for query in find_catalog().load_all()}

    def query(self, name: str, **parameters: Value | Run | Sequence[Run]) -> Table:
        """Answer a saved question.

        Args:
            name: of the query; `queries` lists them.
            parameters: as `xbuf query NAME --help` lists them. `run`, and `before` and `after` of
                comparisons, also take a Run or several, and references; sizes also texts such as "16MiB";
                `top=None` gives all rows.

        Raises:
            UsageError: there is no such query or parameter, or a value does not fit.
        """
        saved = find_catalog().load(name)
        values = bind(saved, {key: self._value(saved, key, value) for key, value in parameters.items()})
        with in_words_of(self.path):
            runs = select_runs(self.connection, saved, values)
            with narrowed(self.connection, read_runs(self.connection, saved, values, runs)):
                table = Table(run_query(self.connection, saved, values), self.connection)
                notes = [*shown_of(self.connection, saved, values, len(table), all_rows="top=None for all")]
            # Why there is no row may lie in other runs.
            with narrowed(self.connection, runs if len(table) else None):
                table.notes = (*notes, *remarks(self.connection, saved, values, len(table)))
        return table

    def sql(self, statement: str) -> Table:
        """Run a SELECT of your own; the saved queries are there as macros, e.g. FROM donation().

        Raises:
            UsageError: DuckDB refuses it, it changes or reaches something, or there is not exactly one.
        """
        with in_words_of(self.path):
            install_macros(self.connection, self.path, statement)
            return Table(run_sql(self.connection, statement), self.connection)

    def close(self) -> None:
        """Close it; a temporary one is removed."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        if self._remove is not None:
            self._remove()

    def __enter__(self) -> Database:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        name = self.path if self._remove is None else "of dumps"
        if self._connection is None:
            return f"<xbuf.Database {name}: closed>"
        runs = one_number(self.connection, "SELECT count(*) FROM runs")
        return f"<xbuf.Database {name}: {counted(runs, 'run')}>"

    def _repr_html_(self) -> str:
        """Return the list of runs, for notebooks."""
        return self.sql(_RUNS)._repr_html_()

    def _value(self, saved: SavedQuery, name: str, value: Any) -> Value:
        """Turn an argument into what the query's parameter takes."""
        if name == "run" or name in SIDES:
            several = value if isinstance(value, list | tuple) else [value]
            texts = [str(one.id) if isinstance(one, Run) else one for one in several]
            if all(text is None for text in texts):
                return None
            return ",".join(self._numbers(name, str(text)) for text in texts)
        parameter = saved.parameter(name)
        if parameter is not None and isinstance(value, str) and parameter.type != "VARCHAR":
            return convert(parameter, value)
        if name == "top" and value == 0:
            return None
        return value  # type: ignore[no-any-return]

    def _numbers(self, name: str, text: str) -> str:
        """Put the numbers of runs in the place of a reference."""
        if name in SIDES and not names_runs(text):
            return text  # a label or a glob, which the query understands itself
        return ",".join(map(str, resolve(self.connection, text)))


def open(path: Paths, *, labels: Labels = (), jobs: int | None = None) -> Database:
    """Open a database, or dumps.

    Dumps are imported into a temporary database, which goes when it is closed; `import_dumps` loads them into
    one that stays.

    Args:
        path: a database file; `lake:` with the folder or URL of a lake; or directories and files of dumps,
            one or several, as for `xbuf-ingest`.
        labels: put on the runs of dumps.
        jobs: worker processes for dumps, 0 for none; by default one for each core, and none where JAX,
            TensorFlow or PyTorch are imported, whose threads forbid to fork.

    Raises:
        UsageError: there is no dump, or one of several paths is not there.
        DumpError: not one of the dumps could be loaded.
        NotADatabase: the file is neither a database nor a dump.
        DatabaseError: there is nothing at the path, or the database cannot be used; see its kinds.
        TypeError: `path` is no path.

    Warns:
        RejectedWarning: some of the dumps could not be loaded; `xbuf.open(path).sql("FROM rejects")` has why.
    """
    paths = as_paths(path)
    if len(paths) == 1 and _may_be_database(paths[0]):
        try:
            return Database(paths[0])
        except NotADatabase:
            if not os.path.isfile(paths[0]):
                raise
            try:
                return _import(paths, labels, jobs)
            except UsageError:
                pass
            raise
    return _import(paths, labels, jobs)


def _may_be_database(path: str) -> bool:
    """Say whether a path is no dump by its name; opened and closed, a database would lose DuckDB's locks."""
    name = os.path.basename(path)
    is_dump = "://" in path or os.path.isdir(path) or split_member(name)
    return is_lake(path) or not (is_dump or name.endswith(PROFILES))


def _may_fork() -> bool:
    return sys.modules.keys().isdisjoint(_WITH_THREADS)


def _import(paths: Sequence[str], labels: Labels, jobs: int | None) -> Database:
    from ingest.pipeline.importer import import_dumps

    folder = tempfile.mkdtemp(prefix="xbuf-")
    try:
        path = os.path.join(folder, "xbuf.duckdb")
        if jobs is None and not _may_fork():
            jobs = 0
        check_loaded(import_dumps(paths, path, labels=labels, jobs=jobs), paths)
        return Database(path, folder=folder)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def check_loaded(summary: ImportSummary, paths: Sequence[str]) -> None:
    """Raise where nothing was loaded, warn where something was not.

    Raises:
        UsageError: there was nothing to load.
        DumpError: all was rejected.
    """
    if not summary.found:
        raise UsageError(f"{', '.join(paths)}: no dump found; `xbuf-ingest PATH` says what it looks for")
    if summary.rejects:
        one = summary.rejects[0]
        first = DumpError(one.kind, one.message, file=one.file, line=one.line)
    elif summary.unfinished_sets:
        file = summary.unfinished_sets[0]
        first = DumpError("unfinished", "is still being written; open it later", file=file)
    else:
        return
    if not summary.loaded:
        raise first
    lost = summary.rejected + summary.unfinished
    message = f"{lost:,} of {summary.found:,} dumps could not be loaded, first {first}"
    warnings.warn(message, RejectedWarning, stacklevel=4)
