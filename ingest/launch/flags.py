"""The environment variable XLA_FLAGS, with flags added that make XLA dump."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ingest.errors import UsageError

# What XLA's own reader of the variable takes for a flag: in double quotes a backslash quotes the next
# character, in single ones it is itself, and a quote that is not closed ends with the text.
_FLAG = re.compile(
    r"""
    (?P<name> [\w-]* )
    (?: = (?: ' (?P<single> [^']* ) '? | " (?P<double> (?: \\. | [^"] )* ) "? ) | (?P<plain> \S* ) )
    """,
    re.ASCII | re.VERBOSE | re.DOTALL,
)
_DUMP_TO = "--xla_dump_to"
_NO_DIRECTORIES = ("-", "sponge")
"""What --xla_dump_to takes for stdout and for the folder of a test of Bazel's."""


def flags_in(variable: str | None) -> str:
    """Return the flags that the variable stands for: its text, or that of the file that it names.

    Raises:
        UsageError: it names a file that cannot be read, with which XLA would end the program.
    """
    text = (variable or "").strip()
    if not text or text.startswith("-"):
        return text
    assert variable is not None
    try:
        with open(variable, encoding="utf-8", errors="surrogateescape") as file:
            return file.read().strip()
    except OSError as error:
        raise UsageError(
            f"XLA_FLAGS: {variable!r} does not begin with a dash, so XLA takes it for a file of flags, which"
            f" cannot be read: {error.strerror}"
        ) from error


def dump_directory(flags: str) -> str | None:
    """Return the directory that flags make XLA dump into; None if they name none.

    Raises:
        UsageError: they dump elsewhere than into a directory.
    """
    found = None
    for name, value in _read(flags):
        if name == _DUMP_TO:
            found = value or None
    if found in _NO_DIRECTORIES:
        raise UsageError(f"XLA_FLAGS: {_DUMP_TO}={found} is no directory; leave it out, or name one")
    return found


def with_dump_flags(flags: str, directory: str, module: str | None = None) -> str:
    """Return flags with those added that dump text, protobuf and HLO text; of two alike XLA takes the later.

    Args:
        flags: the user's own.
        directory: where to; its own flag is left out if `flags` name it already.
        module: only modules whose name this regular expression finds.
    """
    added = [] if dump_directory(flags) == directory else [f"{_DUMP_TO}={_quoted(directory)}"]
    added += ["--xla_dump_hlo_as_text=true", "--xla_dump_hlo_as_proto=true"]
    if module is not None:
        added.append(f"--xla_dump_hlo_module_re={_quoted(module)}")
    return " ".join(filter(None, [flags, *added]))


def _read(flags: str) -> Iterator[tuple[str, str]]:
    for match in _FLAG.finditer(flags):
        if match["single"] is not None:
            yield match["name"], match["single"]
        elif match["double"] is not None:
            yield match["name"], re.sub(r"\\(.)", r"\1", match["double"], flags=re.DOTALL)
        elif match[0]:
            yield match["name"], match["plain"].removeprefix("=")


def _quoted(value: str) -> str:
    if not re.search(r"\s", value) and not value.startswith(("'", '"')):
        return value
    return '"' + re.sub(r'(["\\])', r"\\\1", value) + '"'
