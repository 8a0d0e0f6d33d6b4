"""Documents whose blocks the tests run, and commands for the shells that run them."""

from __future__ import annotations

import re
import sys
from pathlib import Path

__all__ = ["block", "install", "install_commands"]


def block(document: str, name: str) -> str:
    """Return the block of a document that is marked as this file."""
    (found,) = re.findall(
        rf"^ *<!-- file: {re.escape(name)} -->\n( *)```\w+\n(.*?)\n\1```$", document, re.DOTALL | re.MULTILINE
    )
    indent, text = found
    return "\n".join(line.removeprefix(indent) for line in text.split("\n")) + "\n"


def install_commands(folder: Path) -> None:
    """Put `xbuf-ingest` and `xbuf` into a folder for PATH."""
    for command, entry in (("xbuf-ingest", "xbuf_ingest"), ("xbuf", "xbuf")):
        code = f"import sys; from ingest.cli.entry import {entry} as main; sys.argv[0] = '{command}'; main()"
        install(folder / command, f'#!/bin/sh\nexec "{sys.executable}" -c "{code}" "$@"\n')


def install(path: Path, text: str) -> None:
    """Write a program."""
    path.write_text(text)
    path.chmod(0o755)
