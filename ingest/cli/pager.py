"""A pager for what is longer than the terminal."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import sys
from contextlib import suppress


def page(text: str) -> bool:
    """Show a text in the user's pager; False where it fits, stdout is no terminal, or there is no pager.

    XBUF_PAGER, else PAGER, else less; `cat` or nothing turns paging off. The text has been made harmless
    before: of less, -R lets colours and links through.
    """
    words = shlex.split(os.environ.get("XBUF_PAGER", os.environ.get("PAGER", "less")))
    program = shutil.which(words[0]) if words and words[0] != "cat" else None
    if program is None or not sys.stdout.isatty() or text.count("\n") < shutil.get_terminal_size().lines:
        return False
    encoded = text.encode(sys.stdout.encoding or "utf-8", errors="backslashreplace")
    process = subprocess.Popen(
        [program, *words[1:]], stdin=subprocess.PIPE, env={"LESS": "FRX", **os.environ}
    )
    # Ctrl-C belongs to the pager while it is open: it would be left behind on the terminal without us.
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with suppress(BrokenPipeError):  # its user has seen enough
            process.communicate(encoded)
        process.wait()
    finally:
        signal.signal(signal.SIGINT, before)
    return True
