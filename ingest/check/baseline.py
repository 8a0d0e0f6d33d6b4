"""Earlier figures to compare with: a small file that is kept in git."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ingest.check.measure import Measured
from ingest.check.rules import Figure
from ingest.display import display
from ingest.errors import UsageError

_FORMAT: Final = 1
_KEPT: Final = 1000
"""Buffers below this part of the peak are left out of the file: it holds at most so many names a module."""


@dataclass(frozen=True, slots=True)
class Entry:
    """Earlier figures of one module.

    Attributes:
        figures: bytes; None where they were not known.
        at_peak: bytes at the peak by kind and name of buffers, as `Buffers` has them.
        left_out: most bytes of any buffers that `at_peak` lacks.
        run_id: run that it was measured from, in the database of the checked runs; None from a file.
    """

    module: str
    backend: str | None
    signature: str
    figures: Mapping[Figure, int | None]
    at_peak: Mapping[tuple[str, str], int]
    left_out: int = 0
    run_id: int | None = None

    @property
    def shown(self) -> str:
        """Name the module and its backend."""
        return f"{self.module} ({self.backend})" if self.backend else self.module


@dataclass(frozen=True, slots=True)
class Baseline:
    """Earlier figures of modules.

    Attributes:
        origin: file, directory or label that they come from.
    """

    origin: str
    entries: tuple[Entry, ...]


@dataclass(frozen=True, slots=True)
class Pair:
    """A run and its entry in the baseline; one of both may be missing."""

    after: Measured | None
    before: Entry | None


def baseline_of(measured: Iterable[Measured], origin: str) -> Baseline:
    """Make a baseline of runs that were measured in the database of the checked ones, or are to be kept."""
    return Baseline(
        origin,
        tuple(
            Entry(
                one.module,
                one.backend,
                one.signature,
                one.figures,
                {(buffers.kind, buffers.name): buffers.bytes for buffers in one.at_peak},
                run_id=one.run_id,
            )
            for one in measured
        ),
    )


def pair_up(measured: Sequence[Measured], baseline: Baseline) -> tuple[Pair, ...]:
    """Pair runs with entries: by module and backend, equal signatures first, then in order.

    What is left over on one side has no partner.
    """
    waiting: dict[tuple[str, str | None], list[Entry]] = defaultdict(list)
    for entry in baseline.entries:
        waiting[entry.module, entry.backend].append(entry)
    partner: dict[int, Entry] = {}
    for is_same in (lambda one, entry: one.signature == entry.signature, lambda one, entry: True):
        for one in measured:
            candidates = waiting[one.module, one.backend]
            if one.run_id not in partner:
                found = next((entry for entry in candidates if is_same(one, entry)), None)
                if found is not None:
                    # By identity: entries of retraces may be equal.
                    candidates[:] = [entry for entry in candidates if entry is not found]
                    partner[one.run_id] = found
    pairs = [Pair(one, partner.get(one.run_id)) for one in measured]
    gone = [Pair(None, entry) for entries in waiting.values() for entry in entries]
    return (*pairs, *gone)


def as_json(baseline: Baseline) -> str:
    """Write a baseline: sorted, the same for the same figures wherever and whenever they were measured."""
    modules = []
    for entry in baseline.entries:
        least = (entry.figures[Figure.PEAK] or 0) // _KEPT
        at_peak: dict[str, dict[str, int]] = defaultdict(dict)
        left_out = entry.left_out
        for (kind, name), size in entry.at_peak.items():
            if size >= least:
                at_peak[kind][name] = size
            else:
                left_out = max(left_out, size)
        modules.append({
            "module": entry.module,
            "backend": entry.backend,
            "signature": entry.signature,
            "bytes": {str(figure): size for figure, size in entry.figures.items()},
            "at_peak": at_peak,
            "left_out": left_out,
        })  # fmt: skip
    modules.sort(key=lambda one: (one["module"], one["backend"] or ""))
    document = {"xbuf_baseline": _FORMAT, "modules": modules}
    return json.dumps(document, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def read_baseline(path: Path) -> Baseline:
    """Read a file that `as_json` wrote.

    Raises:
        UsageError: it cannot be read or was written otherwise.
    """
    shown = display(str(path))
    remedy = "write it anew with `xbuf check --update-baseline`"
    try:
        document = json.loads(path.read_bytes())
    except OSError as error:
        raise UsageError(f"{shown}: cannot be read: {error.strerror}") from error
    except json.JSONDecodeError as error:
        raise UsageError(f"{shown}:{error.lineno}: is no JSON: {error.msg}; {remedy}") from error
    except (UnicodeDecodeError, RecursionError) as error:
        raise UsageError(f"{shown}: is no JSON; {remedy}") from error
    found = document.get("xbuf_baseline") if isinstance(document, dict) else None
    if found != _FORMAT:
        what = (
            "is no baseline"
            if found is None
            else f"is a baseline of format {found!r}, this xbuf reads {_FORMAT}"
        )
        raise UsageError(f"{shown}: {what}; {remedy}")
    try:
        entries = tuple(_entry(module) for module in document["modules"])
        return Baseline(shown, entries)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UsageError(f"{shown}: {type(error).__name__}: {error}: damaged; {remedy}") from error


def _entry(module: Mapping[str, Any]) -> Entry:
    return Entry(
        _text(module["module"]),
        None if module["backend"] is None else _text(module["backend"]),
        _text(module["signature"]),
        {
            figure: None if module["bytes"][figure] is None else _whole(module["bytes"][figure])
            for figure in Figure
        },
        {
            (_text(kind), _text(name)): _whole(size)
            for kind, sizes in module["at_peak"].items()
            for name, size in sizes.items()
        },
        _whole(module["left_out"]),
    )


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is no text")
    return display(value)


def _whole(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise TypeError(f"{value!r} is no number of bytes")
    return value
