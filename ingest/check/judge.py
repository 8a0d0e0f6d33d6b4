"""Hold runs to rules."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Final

from ingest.check.baseline import Baseline, Entry, Pair, pair_up
from ingest.check.causes import described, growth_between, growth_since, kept, largest
from ingest.check.findings import Cause, Finding, Outcome
from ingest.check.measure import Measured, missed_donations
from ingest.check.rows import find_rows
from ingest.check.rules import Donation, Figure, Growth, Limit, NoRows, Padding, Rule
from ingest.query.cells import human_bytes, signed_bytes

if TYPE_CHECKING:
    import duckdb

_CAUSES: Final = 5
"""Causes that a finding keeps."""
_UNKNOWN: Final = {
    Figure.PEAK: "its dump has no live ranges",
    Figure.RESIDENT: "its dump has arenas and no live ranges",
}


@dataclass(frozen=True, slots=True)
class Judge:
    """Holds measured runs to rules.

    Attributes:
        connection: database of the runs, with the building blocks made.
        measured: the runs.
        baseline: earlier figures; None without any.
        no_baseline: why there are none.
    """

    connection: duckdb.DuckDBPyConnection
    measured: Sequence[Measured]
    baseline: Baseline | None
    no_baseline: str

    def hold(self, rules: Iterable[Rule]) -> tuple[Finding, ...]:
        """Hold the runs to each rule.

        Raises:
            UsageError: the query of a rule does not run.
        """
        return tuple(finding for rule in rules for finding in self._hold(rule))

    def _hold(self, rule: Rule) -> Iterator[Finding]:
        covered = [one for one in self.measured if rule.covers(one.module, one.backend)]
        if not covered:
            modules = sorted({one.shown for one in self.measured})
            shown = ", ".join(modules[:5]) + (f" and {len(modules) - 5} more" if len(modules) > 5 else "")
            checked = f"checked are {shown}" if modules else "no run was checked"
            yield _unchecked(
                rule, f"rule '{rule.title}' covers no module: none matches {rule.scope}; {checked}"
            )
            return
        match rule:
            case Growth():
                yield from self._growth(rule)
            case NoRows():
                yield find_rows(self.connection, rule, covered)
            case Limit():
                yield from (_limit(rule, one) for one in covered)
            case Padding():
                yield from (_padding(rule, one) for one in covered)
            case Donation():
                yield from (self._donation(rule, one) for one in covered)
            case _:
                raise AssertionError(rule)

    def _growth(self, rule: Growth) -> Iterator[Finding]:
        if self.baseline is None:
            yield _unchecked(rule, f"rule '{rule.title}' has no baseline: {self.no_baseline}")
            return
        for pair in pair_up(self.measured, self.baseline):
            one = pair.after or pair.before
            assert one is not None
            if rule.covers(one.module, one.backend):
                yield from self._compare(rule, pair, self.baseline.origin)

    def _compare(self, rule: Growth, pair: Pair, origin: str) -> Iterator[Finding]:
        after, before = pair.after, pair.before
        if after is None:
            assert before is not None
            earlier = before.figures[rule.figure]
            if earlier is None or earlier >= max(rule.bytes, 1):
                reason = f"is in {origin} and not among what was checked; dump it, or run --update-baseline"
                yield _unchecked(rule, f"{before.shown}: {reason}", before)
            return
        now = after.figures[rule.figure]
        if now is None:
            yield _of(rule, Outcome.UNCHECKED, after, f"{rule.figure} is not known: {_UNKNOWN[rule.figure]}")
            return
        if before is None and now < rule.bytes:
            # From nothing to all that it has is less than what a rule takes for growth.
            said = f"{rule.figure} of {human_bytes(now)} is new, and less than {human_bytes(rule.bytes)}"
            yield _of(rule, Outcome.PASSED, after, said, now)
            return
        earlier = None if before is None else before.figures[rule.figure]
        if before is None or earlier is None:
            lacks = "this module" if before is None else f"its {rule.figure}"
            reason = f"{origin} lacks {lacks} ({rule.figure} {human_bytes(now)}); run --update-baseline"
            yield _of(rule, Outcome.UNCHECKED, after, reason, now)
            return
        allowed = earlier + max(int(earlier * rule.percent // 100), rule.bytes - 1, 0)
        if not rule.is_broken(earlier, now):
            change = f"changed by {signed_bytes(now - earlier)}" if now != earlier else "is as before"
            yield _of(
                rule,
                Outcome.PASSED,
                after,
                f"{rule.figure} {change}, {human_bytes(now)}",
                now,
                allowed,
                earlier,
            )
            return
        causes = self._causes(rule.figure, after, before, now - earlier)
        change = human_bytes(now - earlier) + _share(now - earlier, earlier)
        allows = f"up to {_plain(rule.percent)} %, or less than {human_bytes(rule.bytes)}"
        sentence = (
            f"{rule.figure} grew by {change} to {human_bytes(now)}, {_more_than(rule, allows)};"
            f" {_why(rule.figure, causes)}"
        )
        yield _of(rule, Outcome.BROKEN, after, sentence, now, allowed, earlier, causes)

    def _causes(self, figure: Figure, after: Measured, before: Entry, change: int) -> tuple[Cause, ...]:
        """Find what grew at the peak; of the peak itself, the changes add up to its own."""
        if before.run_id is None:
            causes = growth_since(after, before)
        else:
            causes = growth_between(self.connection, before.run_id, after.run_id)
        return kept(causes, change if figure is Figure.PEAK else None)

    def _donation(self, rule: Donation, one: Measured) -> Finding:
        missed = missed_donations(self.connection, one.run_id)
        size = sum(donation.bytes for donation in missed)
        if size <= rule.at_most:
            said = f"{human_bytes(size)} of donations are missed" if missed else "no donation is missed"
            return _of(rule, Outcome.PASSED, one, said, size, rule.at_most)
        first = missed[0]
        fits = f", which result {first.result} fits" if first.result else ""
        sentence = (
            f"{human_bytes(size)} of parameters could be donated and are not,"
            f" {_more_than(rule, f'at most {human_bytes(rule.at_most)}')};"
            f" the largest is parameter {first.parameter} {first.name} ({first.shape}){fits}"
        )
        causes = tuple(
            Cause(donation.name, donation.shape, None, None, None, 1, donation.bytes)
            for donation in missed[:_CAUSES]
        )
        return _of(rule, Outcome.BROKEN, one, sentence, size, rule.at_most, causes=causes)


def _limit(rule: Limit, one: Measured) -> Finding:
    size = one.figures[rule.figure]
    if size is None:
        return _of(rule, Outcome.UNCHECKED, one, f"{rule.figure} is not known: {_UNKNOWN[rule.figure]}")
    allowed = human_bytes(rule.at_most)
    if size <= rule.at_most:
        sentence = f"{rule.figure} of {human_bytes(size)} is within {allowed}"
        return _of(rule, Outcome.PASSED, one, sentence, size, rule.at_most)
    causes = largest(one.at_peak, lambda buffers: buffers.bytes)
    biggest = (
        f"; the largest at the peak is {described(causes[0])} of {human_bytes(causes[0].bytes)}"
        if causes
        else ""
    )
    excess = human_bytes(size - rule.at_most)
    sentence = (
        f"{rule.figure} of {human_bytes(size)} is {excess} {_more_than(rule, f'at most {allowed}')}{biggest}"
    )
    return _of(rule, Outcome.BROKEN, one, sentence, size, rule.at_most, causes=causes)


def _padding(rule: Padding, one: Measured) -> Finding:
    size = one.padding_bytes
    if size is None:
        return _of(rule, Outcome.UNCHECKED, one, f"padding at the peak is not known: {_UNKNOWN[Figure.PEAK]}")
    if size <= rule.at_most:
        sentence = f"padding of {human_bytes(size)} at the peak is within {human_bytes(rule.at_most)}"
        return _of(rule, Outcome.PASSED, one, sentence, size, rule.at_most)
    causes = largest(one.at_peak, lambda buffers: buffers.padding_bytes)
    sentence = (
        f"{human_bytes(size)} of the peak are padding,"
        f" {_more_than(rule, f'at most {human_bytes(rule.at_most)}')};"
        f" the most has {described(causes[0])}, {human_bytes(causes[0].bytes)}"
    )
    return _of(rule, Outcome.BROKEN, one, sentence, size, rule.at_most, causes=causes)


def _why(figure: Figure, causes: Sequence[Cause]) -> str:
    """Name the buffer behind a growth."""
    first = next((cause for cause in causes if cause.bytes and (cause.growth_bytes or 0) > 0), None)
    if first is None:
        return "no buffer that is live at the peak grew"
    where = "" if figure is Figure.PEAK else " at the peak"
    at_least = " or more" if first.before_bytes is None else ""
    return f"what grew most{where} is {described(first)}, by {human_bytes(first.growth_bytes or 0)}{at_least}"


def _more_than(rule: Rule, allows: str) -> str:
    return f"more than rule '{rule.title}' allows ({allows})"


def _share(change: int, before: int) -> str:
    return f" ({change * 100 / before:.1f} %)" if before else ""


def _plain(percent: Decimal) -> str:
    return f"{percent.normalize():f}"


def _unchecked(rule: Rule, sentence: str, entry: Entry | None = None) -> Finding:
    module, backend = (entry.module, entry.backend) if entry else (None, None)
    return Finding(rule.title, rule.kind, Outcome.UNCHECKED, sentence, module, backend)


def _of(
    rule: Rule,
    outcome: Outcome,
    one: Measured,
    sentence: str,
    size: int | None = None,
    allowed: int | None = None,
    before: int | None = None,
    causes: tuple[Cause, ...] = (),
) -> Finding:
    return Finding(
        rule.title,
        rule.kind,
        outcome,
        f"{one.shown}: {sentence}",
        one.module,
        one.backend,
        one.run_id,
        size,
        before,
        allowed,
        causes,
    )
