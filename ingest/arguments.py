"""What callers of the Python API may hand over as paths, as labels and as their pattern."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from typing import Any

from ingest.errors import UsageError

Paths = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]
"""One path or several."""
Labels = Mapping[str, str] | Iterable[tuple[str, str]]
"""Keys with their values."""


def as_paths(paths: Paths) -> list[str]:
    """Return paths as strings; one alone is no sequence of its characters.

    Raises:
        TypeError: they are something else, bytes for instance.
    """
    several: Iterable[Any] = [paths] if isinstance(paths, str | bytes | os.PathLike) else paths
    found = [os.fspath(path) for path in several]
    for path in found:
        if not isinstance(path, str):
            raise TypeError(f"a path is a str or an os.PathLike of str, not {path!r}")
    return found


def as_labels(labels: Labels) -> tuple[tuple[str, str], ...]:
    """Return labels as pairs.

    Raises:
        TypeError: they are neither a mapping nor pairs, or a key or a value is no str.
    """
    given: Iterable[Any] = labels.items() if isinstance(labels, Mapping) else labels
    if isinstance(labels, str | bytes):
        raise TypeError(f"labels are a mapping or pairs of key and value, not {labels!r}")
    pairs = []
    for pair in given:
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise TypeError(f"a label is a pair of key and value, not {pair!r}")
        key, value = pair
        if not isinstance(key, str) or not isinstance(value, str):
            raise TypeError(f"key and value of a label are text, not {key!r} and {value!r}")
        pairs.append((key, value))
    return tuple(pairs)


def as_pattern(pattern: str | re.Pattern[str] | None) -> str | None:
    """Return the pattern of labels as text; None for none.

    Raises:
        TypeError: it is something else, or a compiled pattern with flags.
        UsageError: it is no regular expression, or has no named group.
    """
    if pattern is None:
        return None
    text = pattern.pattern if isinstance(pattern, re.Pattern) else pattern
    if not isinstance(text, str):
        raise TypeError(f"a pattern is a str or a re.Pattern of str, not {pattern!r}")
    try:
        compiled = re.compile(text)
    except re.error as error:
        raise UsageError(f"{text!r} is no regular expression: {error}") from error
    if not compiled.groupindex:
        raise UsageError(f"{text!r} has no named group, e.g. rank(?P<rank>\\d+)")
    if isinstance(pattern, re.Pattern) and pattern.flags != compiled.flags:
        raise TypeError(f"flags of a pattern stand in its text, as (?i), not beside it: {pattern!r}")
    return text
