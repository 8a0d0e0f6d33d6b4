"""Why a request to a store failed, in words of our own: those of the libraries quote signed URLs."""

from __future__ import annotations

import re
from typing import Final, Literal, NamedTuple

_STATUS: Final = re.compile(r"\bstatus(?: code)?:? (\d{3})\b")
_PASSING: Final = frozenset((408, 425, 429))
"""Answers of 400 to 499 that another trial may change."""
_EXPIRED: Final = ("expiredtoken", "invalidtoken", "tokenrefreshrequired")
"""Codes of credentials that were good before; S3 answers 400 with them."""
_WORDS: Final = {
    "dns": "the name of the host is not known",
    "certificate": "its certificate is not valid",
    "refused": "the connection is refused",
    "timed out": "it does not answer in time",
    "reset": "the connection is cut off",
    "closed before": "the connection is cut off",
    "incomplete": "the connection is cut off",
    "credential": "there are no credentials for it",
    "must be specified": "the environment does not say whose it is (account, or region)",
    "error sending request": "it cannot be reached",
    "error decoding response": "the connection is cut off",
    "no space left": "no space is left",
}
"""What the libraries' messages may hold, in the order in which they are looked for."""


class Refusal(NamedTuple):
    """Why a request failed."""

    kind: Literal["gone", "denied", "stale", "no ranges", "refused", "odd", "failed"]
    """refused: another trial would not change it; odd: there was an answer, of another form than is read;
    failed: another trial may change it."""
    words: str


def refusal_of(error: Exception) -> Refusal:
    """Say why a request of obstore or deltalake failed, by the error's class and the status in its text."""
    name, text = type(error).__name__, str(error).lower()
    found = _STATUS.search(text)
    status = int(found[1]) if found else 0
    if status in (401, 403) or _is(error, PermissionError, "PermissionDenied", "Unauthenticated"):
        return Refusal("denied", "permission denied")
    if any(code in text for code in _EXPIRED):
        return Refusal("denied", "its credentials have expired")
    if status == 404 or _is(error, FileNotFoundError, "NotFound", "TableNotFound"):
        return Refusal("gone", "there is no such file")
    if status == 412 or _is(error, (), "Precondition"):
        return Refusal("stale", "is another version than was listed")
    if _is(error, (), "NotSupported"):
        return Refusal("no ranges", "the server does not give parts of files")
    if 400 <= status < 500 and status not in _PASSING:
        return Refusal("refused", f"the server answers {status}")
    if status:
        return Refusal("failed", f"the server answers {status}")
    if "header missing" in text:
        return Refusal("odd", "the answer lacks a header")
    words = next((words for part, words in _WORDS.items() if part in text), f"the request failed ({name})")
    return Refusal("failed", words)


def _is(error: Exception, classes: type[Exception] | tuple[()], *names: str) -> bool:
    return isinstance(error, classes) or type(error).__name__.startswith(names)
