"""What a shell offers for the last word of a command line."""

from __future__ import annotations

from click.shell_completion import ShellComplete

from ingest.cli.xbuf import xbuf


def complete(*words: str) -> list[str]:
    """Complete the last word as a shell would."""
    completion = ShellComplete(xbuf, {}, "xbuf", "_XBUF_COMPLETE")
    return [item.value for item in completion.get_completions(list(words[:-1]), words[-1])]
