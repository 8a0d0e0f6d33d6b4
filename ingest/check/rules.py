"""The rules that a gate can hold compilations to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from decimal import Decimal, InvalidOperation
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Any, ClassVar, Final

from ingest.display import display
from ingest.errors import UsageError
from ingest.query.catalog import did_you_mean
from ingest.query.run import read_size


class Figure(StrEnum):
    """Which of a run's figures a rule is about."""

    PEAK = "peak"
    """runs.peak_bytes: live at one slot, all memories."""
    RESIDENT = "resident"
    """runs.resident_peak_bytes: XProf's peak heap, main memory."""
    TOTAL = "total"
    """Sum of all allocations."""


class WrongRule(UsageError):
    """A rule cannot be made of what was given.

    Attributes:
        key: key at fault; None where the rule as a whole is.
        message: what is wrong with it.
    """

    def __init__(self, message: str, key: str | None = None) -> None:
        self.key, self.message = key, message
        super().__init__(message)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """What every rule has.

    Attributes:
        name: what reports call it; empty for its kind.
        module: glob on the module's name.
        backend: cpu, gpu or tpu; None for any.
    """

    kind: ClassVar[str]

    name: str = ""
    module: str = "*"
    backend: str | None = None

    @property
    def title(self) -> str:
        """Name it: as its author did, else after its kind."""
        return display(self.name) or self.kind

    @property
    def scope(self) -> str:
        """Say which modules it is for."""
        module = display(self.module)
        return f"{module} on {self.backend}" if self.backend else module

    def covers(self, module: str, backend: str | None) -> bool:
        """Return whether a module falls under the rule."""
        return fnmatchcase(module, self.module) and self.backend in (None, backend)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit(Rule):
    """A figure may be at most so many bytes."""

    kind = "limit"

    figure: Figure
    at_most: int

    @property
    def title(self) -> str:
        """Name it."""
        return display(self.name) or f"limit of {self.figure}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth(Rule):
    """A figure may not grow over the baseline by more than `percent` if that is `bytes` or more."""

    kind = "growth"

    figure: Figure
    percent: Decimal = Decimal(1)
    bytes: int = 1 << 20

    @property
    def title(self) -> str:
        """Name it."""
        return display(self.name) or f"growth of {self.figure}"

    def is_broken(self, before: int, after: int) -> bool:
        """Return whether a figure grew too much, both figures in bytes."""
        change = after - before
        return change > 0 and change >= self.bytes and change * 100 > before * self.percent


@dataclass(frozen=True, slots=True, kw_only=True)
class Padding(Rule):
    """At most so many bytes of what is live at the peak may be padding."""

    kind = "padding"

    at_most: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Donation(Rule):
    """Parameters that could share a result's memory and do not may have at most so many bytes."""

    kind = "donation"

    at_most: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class NoRows(Rule):
    """A saved query or a statement must have no rows.

    Attributes:
        query: name of a saved query, or path of a query file; empty where there is `sql`.
        sql: one SELECT; empty where there is `query`. `checked_runs` holds the runs that it is about.
        parameters: of the saved query, as on its command line.
    """

    kind = "query"

    query: str = ""
    sql: str = ""
    parameters: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        """Raise WrongRule unless there is one of `query` and `sql`."""
        if bool(self.query) == bool(self.sql):
            raise WrongRule("name a saved query with `query`, or write a SELECT as `sql`, one of both")
        if self.sql and self.parameters:
            raise WrongRule(
                "only a saved query has parameters; write the values into the SELECT", "parameters"
            )

    @property
    def title(self) -> str:
        """Name it."""
        return display(self.name) or (
            f"no rows of {display(self.query)}" if self.query else "no rows of a SELECT"
        )


KINDS: Final[Mapping[str, type[Rule]]] = {
    rule.kind: rule for rule in (Limit, Growth, Padding, Donation, NoRows)
}
"""Rules by the name of their table in a file and of their option."""


def make_rule(kind: str, given: Mapping[str, object]) -> Rule:
    """Make a rule of keys and values, as TOML or an option has them.

    Raises:
        WrongRule: a key is missing, unknown or has a value that it cannot have.
    """
    rule = KINDS[kind]
    known = {field.name: field for field in fields(rule)}
    for key in given:
        if key not in known:
            raise WrongRule(
                f"{kind} has no key {key!r}; it has {', '.join(known)}{did_you_mean(key, known)}", key
            )
    values: dict[str, Any] = {key: _READERS[key](key, value) for key, value in given.items()}
    missing = [key for key in _REQUIRED.get(kind, ()) if key not in values]
    if missing:
        raise WrongRule(f"{kind} needs {' and '.join(missing)}, e.g. {_EXAMPLES[kind]}")
    return rule(**values)


_REQUIRED: Final = {"limit": ("figure", "at_most"), "growth": ("figure",), "padding": ("at_most",)}
_EXAMPLES: Final = {
    "limit": 'figure = "peak", at_most = "14 GiB"',
    "growth": 'figure = "peak"',
    "padding": 'at_most = "64 MiB"',
}


def _text(key: str, value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        raise WrongRule(f"{key} is a text, not {value!r}", key)
    return value


def _backend(key: str, value: object) -> str:
    return _one_of(key, value, ("cpu", "gpu", "tpu"))


def _figure(key: str, value: object) -> Figure:
    return Figure(_one_of(key, value, tuple(Figure)))


def _one_of(key: str, value: object, choices: tuple[str, ...]) -> str:
    if value not in choices:
        raise WrongRule(f"{key} is one of {', '.join(choices)}, not {value!r}", key)
    return str(value)


def _bytes(key: str, value: object) -> int:
    """Read a size: a whole number of bytes, or a text as 512 KiB."""
    size = value
    if isinstance(value, str):
        try:
            size = read_size(value, key)
        except UsageError as error:
            raise WrongRule(str(error), key) from error
    if not isinstance(size, int) or isinstance(size, bool) or size < 0:
        raise WrongRule(f"{key} is a size of 0 or more, as 4096 or '1.5 GiB', not {value!r}", key)
    return size


def _percent(key: str, value: object) -> Decimal:
    """Read a percentage: a number, or a text as 1.5 or 1.5%."""
    try:
        percent = Decimal(str(value).strip().removesuffix("%").strip())
    except InvalidOperation:
        percent = Decimal(-1)
    if isinstance(value, bool) or not percent.is_finite() or percent < 0:
        raise WrongRule(f"{key} is a number of 0 or more, as 1.5, not {value!r}", key)
    return percent


def _parameters(key: str, value: object) -> tuple[tuple[str, str], ...]:
    if not isinstance(value, Mapping):
        raise WrongRule(f"{key} is a table, as {{ top = 5 }}, not {value!r}", key)
    read = []
    for name, one in value.items():
        if not isinstance(one, str | int | Decimal):
            raise WrongRule(f"{key}: {name} is a text, a number or true or false, not {one!r}", key)
        read.append((str(name), str(one).lower() if isinstance(one, bool) else str(one)))
    return tuple(read)


_READERS: Final[Mapping[str, Callable[[str, object], object]]] = {
    "name": _text,
    "module": _text,
    "backend": _backend,
    "figure": _figure,
    "at_most": _bytes,
    "percent": _percent,
    "bytes": _bytes,
    "query": _text,
    "sql": _text,
    "parameters": _parameters,
}
