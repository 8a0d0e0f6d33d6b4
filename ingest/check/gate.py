"""One gate from end to end: find runs and baseline, measure, hold to the rules."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ingest.check.baseline import Baseline, baseline_of, read_baseline
from ingest.check.findings import Finding, Outcome, Report
from ingest.check.inputs import are_paths, not_loaded, resolve_runs
from ingest.check.judge import Judge
from ingest.check.measure import measure
from ingest.check.rows import bind_query
from ingest.check.rules import NoRows, Rule
from ingest.compare.sides import Dumps, Open, Side, open_together
from ingest.display import display
from ingest.errors import ExitCode, UsageError, XbufError
from ingest.lake.reading import open_to_read
from ingest.source.kinds import shown

if TYPE_CHECKING:
    import duckdb

    from ingest.pipeline.summary import ImportSummary


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


def check(gate: Gate, *, reading: Open = open_to_read) -> Report:
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


def measure_baseline(gate: Gate, *, reading: Open = open_to_read) -> Baseline:
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
def _runs(gate: Gate, reading: Open) -> Iterator[_Runs]:
    """Open one database with the runs to check and those of the baseline, making it where dumps are named."""
    lost: list[Finding] = []

    def note_lost(summary: ImportSummary) -> None:
        lost.extend(Finding("import", "import", Outcome.UNCHECKED, reason) for reason in not_loaded(summary))

    sides: list[Side] = []
    if gate.baseline is not None and gate.baseline.is_dir():
        sides.append(Dumps([str(gate.baseline)], partial(_require_whole, gate.baseline)))
    elif gate.baseline_label is not None:
        sides.append(partial(resolve_runs, references=[gate.baseline_label]))
    if are_paths(gate.what):
        sides.append(Dumps(gate.what, note_lost))
    else:
        sides.append(partial(resolve_runs, references=gate.what))
    with open_together(gate.database, sides, reading, gate.jobs, gate.follow_symlinks) as (connection, found):
        yield _Runs(connection, found[-1], found[0] if len(found) > 1 else (), tuple(lost))


def _require_whole(folder: Path, summary: ImportSummary) -> None:
    for reason in not_loaded(summary):
        raise UsageError(f"{reason}; a baseline must be whole")
    if not summary.loaded:
        raise UsageError(
            f"{display(str(folder))}: holds no dump; name a file or a directory of dumps as baseline"
        )


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
