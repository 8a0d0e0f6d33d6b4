"""One gate from end to end: find runs and baseline, measure, hold to the rules."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from ingest.check.baseline import Baseline, baseline_of, read_baseline
from ingest.check.findings import Finding, Report
from ingest.check.inputs import Imported, are_paths, import_for_check, import_runs, resolve_runs
from ingest.check.judge import Judge
from ingest.check.measure import Measured, measure
from ingest.check.rows import bind_query
from ingest.check.rules import NoRows, Rule
from ingest.database.connect import open_database
from ingest.display import display
from ingest.errors import ExitCode, UsageError, XbufError
from ingest.query.blocks import create_temporary

if TYPE_CHECKING:
    import duckdb

__all__ = ["Gate", "NothingMeasured", "check", "measure_baseline"]

_Reading = Callable[[str], AbstractContextManager["duckdb.DuckDBPyConnection"]]


class NothingMeasured(XbufError):
    """There is nothing that a baseline could keep, or not all of it."""

    exit_code = ExitCode.UNCHECKED


@dataclass(frozen=True, slots=True)
class Gate:
    """What to check, and against what.

    Attributes:
        what: directories and files of dumps, or references (`ingest.query.references`) to runs.
        database: DuckDB file, for references and for `baseline_label`.
        baseline: JSON file, or directory of dumps; None for none.
        baseline_label: label of earlier runs in the database, `KEY=VALUE`; None for none.
    """

    what: tuple[str, ...]
    database: str
    rules: tuple[Rule, ...] = ()
    baseline: Path | None = None
    baseline_label: str | None = None


@dataclass(frozen=True, slots=True)
class _Runs:
    """The runs to check, and those of the baseline that lie in the same database."""

    connection: duckdb.DuckDBPyConnection
    after: tuple[int, ...]
    before: tuple[int, ...]
    lost: tuple[Finding, ...]


def _open(database: str) -> duckdb.DuckDBPyConnection:
    return open_database(database, read_only=True)


def check(gate: Gate, *, reading: _Reading = _open) -> Report:
    """Hold runs to rules.

    Dumps are imported into a temporary database, which is deleted at the end.

    Args:
        reading: opens a database to read.

    Raises:
        UsageError: a path, a reference, the baseline or the query of a rule cannot be used.
        DatabaseError: the database cannot be used.
    """
    for rule in gate.rules:
        if isinstance(rule, NoRows) and rule.query:
            bind_query(rule)  # before dumps are imported for nothing
    earlier = read_baseline(gate.baseline) if gate.baseline is not None and gate.baseline.is_file() else None
    with _runs(gate, reading) as runs:
        measured = measure(runs.connection, runs.after)
        why = "none is named; name one with --baseline"
        if gate.baseline is not None and earlier is None:
            earlier = _measured_before(gate, runs, reading)
            why = f"{display(str(gate.baseline))} does not exist; write it with --update-baseline"
        elif gate.baseline_label is not None:
            earlier = _labelled(gate, runs, reading)
            why = f"no run of {display(gate.database)} has label {display(gate.baseline_label)}"
        judge = Judge(runs.connection, measured, earlier, why)
        findings = (*runs.lost, *judge.hold(gate.rules))
    checked = tuple(map(display, gate.what))
    return Report(findings, checked, earlier.origin if earlier else None, len(measured))


def measure_baseline(gate: Gate, *, reading: _Reading = _open) -> Baseline:
    """Measure runs to keep them as a baseline.

    Raises:
        NothingMeasured: there are no runs, or a dump could not be loaded.
        UsageError: a path or a reference cannot be used.
        DatabaseError: the database cannot be used.
    """
    with _runs(Gate(gate.what, gate.database), reading) as runs:
        measured = measure(runs.connection, runs.after)
        for finding in runs.lost:
            raise NothingMeasured(f"{finding.sentence}; the baseline stays as it is")
    if not measured:
        raise NothingMeasured(
            f"{', '.join(map(display, gate.what))}: no run to keep; the baseline stays as it is"
        )
    return baseline_of(measured, ", ".join(map(display, gate.what)), is_here=False)


@contextmanager
def _runs(gate: Gate, reading: _Reading) -> Iterator[_Runs]:
    """Open the database with the runs to check, making it of dumps where these are named."""
    if not are_paths(gate.what):
        with reading(gate.database) as connection:
            create_temporary(connection)
            before = () if gate.baseline_label is None else resolve_runs(connection, [gate.baseline_label])
            yield _Runs(connection, resolve_runs(connection, gate.what), before, ())
        return
    dumps = gate.baseline if gate.baseline is not None and gate.baseline.is_dir() else None
    with TemporaryDirectory(prefix="xbuf-check-") as folder:
        imported = import_for_check(gate.what, dumps, Path(folder))
        with reading(imported.database) as connection:
            create_temporary(connection)
            yield _imported(connection, imported)


def _imported(connection: duckdb.DuckDBPyConnection, imported: Imported) -> _Runs:
    after = import_runs(connection, imported.after_import)
    return _Runs(connection, after, import_runs(connection, imported.before_import), imported.lost)


def _measured_before(gate: Gate, runs: _Runs, reading: _Reading) -> Baseline | None:
    """Measure the directory of dumps that is the baseline; None where there is none."""
    assert gate.baseline is not None
    if not gate.baseline.is_dir():
        return None
    origin = display(str(gate.baseline))
    if runs.before:
        return baseline_of(measure(runs.connection, runs.before), origin, is_here=True)
    if are_paths(gate.what):
        raise UsageError(f"{origin}: holds no dump; name a file or a directory of dumps as baseline")
    other = measure_baseline(Gate((str(gate.baseline),), gate.database), reading=reading)
    return Baseline(origin, other.entries)


def _labelled(gate: Gate, runs: _Runs, reading: _Reading) -> Baseline | None:
    """Measure the runs of the database that have the baseline's label; None where there are none."""
    label = gate.baseline_label
    assert label is not None
    if not are_paths(gate.what):
        measured: tuple[Measured, ...] = measure(runs.connection, runs.before)
        return baseline_of(measured, display(label), is_here=True) if measured else None
    with reading(gate.database) as connection:
        create_temporary(connection)
        measured = measure(connection, resolve_runs(connection, [label]))
    return baseline_of(measured, display(label), is_here=False) if measured else None
