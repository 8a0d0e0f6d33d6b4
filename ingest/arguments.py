"""What callers of the Python API may hand over as paths and as labels."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

__all__ = ["Labels", "Paths", "as_labels", "as_paths"]

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
