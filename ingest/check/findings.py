"""What became of the rules."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from ingest.display import counted
from ingest.errors import ExitCode


class Outcome(StrEnum):
    """What became of a rule for a run."""

    PASSED = "passed"
    BROKEN = "broken"
    UNCHECKED = "unchecked"
    """Nothing to hold it to, or what it is about is not known; never taken for passed."""


@dataclass(frozen=True, slots=True)
class Cause:
    """Buffers that a finding comes from.

    Attributes:
        value: the largest of them; `shape`, `op_name`, `file` and `line` are its.
        number: how many they are.
        bytes: what they have, or what of them is padding or not donated.
        before_bytes: what they had in the baseline; None where it does not say, or nothing is compared.
        growth_bytes: by how much they grew, at least; None where nothing is compared.
        file: source file, relative where it lies below the working directory.
    """

    value: str
    shape: str | None
    op_name: str | None
    file: str | None
    line: int | None
    number: int
    bytes: int
    before_bytes: int | None = None
    growth_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Finding:
    """What became of one rule, for one run or for all that it covers.

    Attributes:
        rule: the rule's title.
        kind: the rule's kind, or `import` for a dump that could not be loaded.
        module: module of the run; None for a finding about several.
        sentence: all of it in words.
        bytes: what was measured; `before_bytes` in the baseline; `allowed_bytes` is the most that passes.
        causes: the buffers that it comes from, most bytes first.
    """

    rule: str
    kind: str
    outcome: Outcome
    sentence: str
    module: str | None = None
    backend: str | None = None
    run_id: int | None = None
    bytes: int | None = None
    before_bytes: int | None = None
    allowed_bytes: int | None = None
    causes: tuple[Cause, ...] = ()

    @property
    def place(self) -> Cause | None:
        """The first cause whose source file is known."""
        return next((cause for cause in self.causes if cause.file is not None), None)


@dataclass(frozen=True, slots=True)
class Report:
    """All findings of a gate.

    Attributes:
        checked: what was checked, as it was named.
        baseline: what it was compared with; None for nothing.
        runs: how many runs were checked.
    """

    findings: tuple[Finding, ...]
    checked: tuple[str, ...]
    baseline: str | None
    runs: int

    def of(self, *outcomes: Outcome) -> tuple[Finding, ...]:
        """Select findings by outcome."""
        return tuple(finding for finding in self.findings if finding.outcome in outcomes)

    @property
    def trouble(self) -> tuple[Finding, ...]:
        """What keeps the gate shut: what is broken, then what could not be checked."""
        return (*self.of(Outcome.BROKEN), *self.of(Outcome.UNCHECKED))

    @property
    def exit_code(self) -> ExitCode:
        """0 where every rule was checked and holds; else 1 where one is broken, else 4."""
        if self.of(Outcome.BROKEN):
            return ExitCode.BROKEN
        return ExitCode.UNCHECKED if self.of(Outcome.UNCHECKED) or not self.findings else ExitCode.OK

    @property
    def conclusion(self) -> str:
        """Sum up in one line."""
        counts = {outcome: len(self.of(outcome)) for outcome in Outcome}
        checks = ", ".join(f"{counted(counts[one], 'check')} {one}" for one in _present(counts))
        return f"{counted(self.runs, 'run')}: {checks}"


def _present(counts: dict[Outcome, int]) -> Iterable[Outcome]:
    return [one for one in (Outcome.BROKEN, Outcome.UNCHECKED, Outcome.PASSED) if counts[one]] or [
        Outcome.PASSED
    ]
