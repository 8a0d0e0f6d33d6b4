"""Read the rules of a gate: from `xbuf.toml`, and from options of the same keys."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Final

from ingest.check.rules import KINDS, Rule, WrongRule, make_rule
from ingest.display import display
from ingest.errors import UsageError
from ingest.query.catalog import did_you_mean

FILE: Final = "xbuf.toml"
"""Rules are looked for in this file of the working directory."""
_BASELINES: Final = ("baseline", "baseline_label")
_AT: Final = re.compile(r" \(at line (\d+), column \d+\)$")


@dataclass(frozen=True, slots=True)
class Config:
    """What a gate is told.

    Attributes:
        rules: in the order of the file, kind by kind.
        baseline: JSON file of earlier figures, or directory of dumps; None for none.
        baseline_label: label of the runs that stand for earlier figures; None for none.
    """

    rules: tuple[Rule, ...] = ()
    baseline: Path | None = None
    baseline_label: str | None = None


def read_config(path: Path) -> Config:
    """Read a file of rules; a relative baseline lies beside it.

    Raises:
        UsageError: it cannot be read or is no TOML, or a key or value in it is none; with file and line.
    """
    shown = display(str(path))
    try:
        text = path.read_bytes().decode()
    except OSError as error:
        raise UsageError(f"{shown}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise UsageError(f"{shown}:{line}: TOML is UTF-8, and byte {error.start} is not") from error
    try:
        document = tomllib.loads(text, parse_float=Decimal)
    except tomllib.TOMLDecodeError as error:
        at = _AT.search(str(error))
        where = f"{shown}:{at[1]}" if at else f"{shown}:{text.count(chr(10)) + 1}"
        raise UsageError(f"{where}: is no TOML: {_AT.sub('', str(error))}; correct this line") from error
    lines = text.split("\n")
    for key in document:
        if key not in KINDS and key not in _BASELINES:
            known = [*_BASELINES, *(f"[[{kind}]]" for kind in KINDS)]
            hint = did_you_mean(key, [*_BASELINES, *KINDS])
            raise UsageError(
                f"{shown}:{_line_of(lines, key)}: {key!r} is unknown; there are {', '.join(known)}{hint}"
            )
    baselines = {}
    for key in _BASELINES:
        value = document.get(key)
        if value is not None and (not isinstance(value, str) or not value):
            raise UsageError(f"{shown}:{_line_of(lines, key)}: {key} is a text, not {value!r}")
        baselines[key] = value
    if all(baselines.values()):
        at_line = _line_of(lines, "baseline_label")
        raise UsageError(f"{shown}:{at_line}: baseline and baseline_label are two baselines; keep one")
    rules = [rule for kind in KINDS for rule in _rules_of(kind, document.get(kind, []), lines, shown)]
    baseline = path.parent / baselines["baseline"] if baselines["baseline"] else None
    return Config(tuple(rules), baseline, baselines["baseline_label"])


def rule_from_option(kind: str, text: str) -> Rule:
    """Make a rule of `KEY=VALUE,KEY=VALUE`, the keys being those of the file.

    Raises:
        UsageError: it is not written so, or as `make_rule` says.
    """
    given: dict[str, object] = {}
    for pair in text.split(","):
        key, equals, value = pair.partition("=")
        if not equals:
            raise UsageError(f"--{kind}: {pair!r} is not KEY=VALUE, e.g. --{kind} {_OPTION_EXAMPLES[kind]}")
        given[key.strip()] = value.strip()
    try:
        return make_rule(kind, given)
    except WrongRule as error:
        raise UsageError(f"--{kind}: {error.message}") from error


_OPTION_EXAMPLES: Final = {
    "limit": "figure=peak,at_most=14GiB",
    "growth": "figure=peak,percent=1,bytes=1MiB",
    "padding": "at_most=64MiB",
    "donation": "at_most=0",
}


def _rules_of(kind: str, tables: object, lines: list[str], shown: str) -> list[Rule]:
    if not isinstance(tables, list) or not all(isinstance(table, Mapping) for table in tables):
        raise UsageError(
            f"{shown}:{_line_of(lines, kind)}: write [[{kind}]] in double brackets: there may be several"
        )
    rules = []
    for number, table in enumerate(tables):
        try:
            rules.append(make_rule(kind, table))
        except WrongRule as error:
            line = _line_of(lines, error.key, kind, number)
            raise UsageError(f"{shown}:{line}: {error.message}") from error
    return rules


def _line_of(lines: list[str], key: str | None, kind: str | None = None, number: int = 0) -> int:
    """Find the line, from 1, of a key; of a table's header without a key.

    tomllib keeps no places. With `kind`, the key is one of its table number `number`, from 0. Tables that are
    written in one line are found by the name of their kind.
    """
    start = 0
    if kind is not None:
        header = re.compile(rf"\s*\[\[\s*[\"']?{re.escape(kind)}[\"']?\s*\]\]")
        headers = [index for index, line in enumerate(lines) if header.match(line)]
        if number >= len(headers):
            return _line_of(lines, kind)
        start = headers[number]
    if key is not None:
        quoted = rf"[\"']?{re.escape(key)}[\"']?"
        pattern = re.compile(rf"\s*(\[\[?\s*)?({quoted}\s*(=|\.|\])|[\w.\"' -]+\.\s*{quoted}\s*\])")
        for index in range(start, len(lines)):
            if index > start and kind is not None and re.match(r"\s*\[\[", lines[index]):
                break
            if pattern.match(lines[index]):
                return index + 1
    return start + 1
