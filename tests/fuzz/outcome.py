"""Tell one outcome of a damaged dump from another."""

from __future__ import annotations

import re

from ingest.dump.parsed import ParsedDump
from ingest.errors import DumpError

Outcome = tuple[str, ...]
"""'reject' or 'load', and what tells it from others: kind, section and words, or features and notices."""


class Violation(AssertionError):
    """A dump came to neither of the two good ends."""


def outcome_of(result: ParsedDump | DumpError) -> Outcome:
    """Return the outcome of parsing."""
    if isinstance(result, DumpError):
        return rejected(result.kind, result.section, result.message)
    return ("load", *sorted(result.features), *sorted({notice.kind for notice in result.notices}))


def rejected(kind: str, section: str | None, message: str) -> Outcome:
    """Return the outcome of a reject; its message counts without names and numbers."""
    words = re.sub(r"[0-9]+|<[^>]*>|'[^']*'", "#", message)
    return ("reject", kind, str(section), words[:60])


def require(holds: bool, what: str) -> None:
    """Raise a Violation unless something holds."""
    if not holds:
        raise Violation(what)
