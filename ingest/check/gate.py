"""One gate from end to end: find runs and baseline, measure, hold to the rules."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from ingest.check.baseline import Baseline, baseline_of, read_baseline
from ingest.check.findings import Finding, Report
from ingest.check.inputs import Imported, are_paths, import_for_check, resolve_runs
from ingest.check.judge import Judge
from ingest.check.measure import measure
from ingest.check.rows import bind_query
from ingest.check.rules import NoRows, Rule
from ingest.compare.sides import Source, gather
from ingest.display import display
from ingest.errors import ExitCode, UsageError, XbufError
from ingest.lake.reading import open_to_read
from ingest.source.kinds import shown

if TYPE_CHECKING:
    import duckdb

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
        jobs, follow_symlinks: for dumps, as `import_dumps` takes them.
    """

    what: tuple[str, ...]
    database: str
    rules: tuple[Rule, ...] = ()
    baseline: Path | None = None
    baseline_label: str | None = None
    jobs: int | None = None
    follow_symlinks: bool = False


@dataclass(frozen=True, slots=True)
class _Runs:
    """The runs to check, and those of the baseline that lie in the same database."""

    connection: duckdb.DuckDBPyConnection
    after: tuple[int, ...]
    before: tuple[int, ...]
    lost: tuple[Finding, ...]


def _open(database: str) -> duckdb.DuckDBPyConnection:
    return open_to_read(database)


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
        if earlier is None:
            earlier = _measured_before(gate, runs)
        judge = Judge(runs.connection, measured, earlier, _why_none(gate))
        findings = (*runs.lost, *judge.hold(gate.rules))
    checked = tuple(map(shown, gate.what))
    return Report(findings, checked, earlier.origin if earlier else None, len(measured))


def measure_baseline(gate: Gate, *, reading: _Reading = _open) -> Baseline:
    """Measure runs to keep them as a baseline.

    Raises:
        NothingMeasured: there are no runs, or a dump could not be loaded.
        UsageError: a path or a reference cannot be used.
        DatabaseError: the database cannot be used.
    """
    with _runs(replace(gate, baseline=None, baseline_label=None), reading) as runs:
        measured = measure(runs.connection, runs.after)
        for finding in runs.lost:
            raise NothingMeasured(f"{finding.sentence}; the baseline stays as it is")
    if not measured:
        raise NothingMeasured(
            f"{', '.join(map(shown, gate.what))}: no run to keep; the baseline stays as it is"
        )
    return baseline_of(measured, ", ".join(map(shown, gate.what)))


@contextmanager
def _runs(gate: Gate, reading: _Reading) -> Iterator[_Runs]:
    """Open one database with the runs to check and those of the baseline, making it where dumps are named."""
    dumps = are_paths(gate.what)
    label = () if gate.baseline_label is None else (gate.baseline_label,)
    folder = gate.baseline if gate.baseline is not None and gate.baseline.is_dir() else None
    if not dumps and folder is None:
        with reading(gate.database) as connection:
            yield _Runs(connection, resolve_runs(connection, gate.what), resolve_runs(connection, label), ())
        return
    with TemporaryDirectory(prefix="xbuf-check-") as name:
        imported = import_for_check(
            gate.what if dumps else (),
            folder,
            Path(name),
            jobs=gate.jobs,
            follow_symlinks=gate.follow_symlinks,
        )
        if folder is not None and not imported.before:
            raise UsageError(
                f"{display(str(folder))}: holds no dump; name a file or a directory of dumps as baseline"
            )
        both = imported if dumps and not label else _with_named(gate, imported, label, Path(name), reading)
        with reading(both.database) as connection:
            yield _Runs(connection, both.after, both.before, both.lost)


def _with_named(
    gate: Gate, imported: Imported, label: tuple[str, ...], folder: Path, reading: _Reading
) -> Imported:
    """Put the runs of the user's database that one side names together with the dumps of the other."""
    with reading(gate.database) as connection:
        named = resolve_runs(connection, label or gate.what)
    target = str(folder / "both.duckdb")
    dumps = Source(imported.database, imported.after if label else imported.before, max(named, default=0))
    gather(target, [Source(gate.database, named), dumps])
    before, after = (named, dumps.numbers) if label else (dumps.numbers, named)
    return Imported(target, before, after, imported.lost)


def _measured_before(gate: Gate, runs: _Runs) -> Baseline | None:
    """Measure the earlier runs; None where there are none."""
    if not runs.before:
        return None
    origin = gate.baseline_label if gate.baseline is None else str(gate.baseline)
    return baseline_of(measure(runs.connection, runs.before), display(origin or ""))


def _why_none(gate: Gate) -> str:
    if gate.baseline is not None:
        return f"{display(str(gate.baseline))} does not exist; write it with --update-baseline"
    if gate.baseline_label is not None:
        return f"no run of {display(gate.database)} has label {display(gate.baseline_label)}"
    return "none is named; name one with --baseline"
