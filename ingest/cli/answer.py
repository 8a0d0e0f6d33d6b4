"""How results reach the user: the options of every command that gives rows, and what is said with them."""

from __future__ import annotations

import functools
import io
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ingest.cli.streams import say, writing_stdout
from ingest.cli.terminal import ansi_option
from ingest.errors import UsageError

if TYPE_CHECKING:
    import duckdb

    from ingest.query.formats import Written
    from ingest.query.header import SavedQuery, Value
    from ingest.query.result import Result
    from ingest.query.style import Style

_FORMATS = ("table", "record", "csv", "tsv", "json", "ndjson", "markdown", "parquet")
_Command = TypeVar("_Command", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Output:
    """How and where a result is written.

    Attributes:
        format_: one of the formats; None for what the ending of `path` says, else a table.
        path: None for stdout.
        width: columns of a table, 0 for any; None for those of the terminal.
        ansi: auto, always or never: whether a terminal gets colour and links.
    """

    format_: str | None = None
    path: Path | None = None
    width: int | None = None
    ansi: str = "auto"

    def write(self, result: Result, database: str) -> Written:
        """Write a result; say on stderr what a table left out.

        Raises:
            UsageError: there is no such folder, or no format has the ending of the file.
            OutputError: the file or stdout cannot be written.
        """
        from ingest.query.formats import write_text
        from ingest.query.output import choose_format, terminal_width, write_file

        chosen = choose_format(self.format_, self.path)
        if self.path is not None:
            written = write_file(result, chosen, self.path, self.width or None, database=database)
        else:
            columns = terminal_width() if self.width is None else self.width or None
            style = terminal_style(self.ansi)
            if chosen in ("table", "record") and sys.stdout.isatty():
                written = _write_paged(result, chosen, columns, style)
            else:
                with writing_stdout():
                    written = write_text(result, chosen, sys.stdout, columns, style)
                    sys.stdout.flush()
        if written.left_out:
            say(f"no room for: {', '.join(written.left_out)} (--width 0 or --format record shows them)")
        if written.cut:
            say(f"only the first {written.rows} rows are shown; --format csv writes all")
        return written


def file_option(what: str, name: str = "output", *, required: bool = False) -> Callable[[_Command], _Command]:
    """Add `--output FILE`, a path, which the command gets under a name."""
    path = click.Path(dir_okay=False, path_type=Path)
    return click.option("--output", "-o", name, type=path, metavar="FILE", required=required, help=what)


def ending_of(output: Path, *endings: str) -> str:
    """Return which of the endings a file to write has, whatever its case.

    Raises:
        UsageError: it has none of them.
    """
    ending = output.suffix.lower()
    if ending not in endings:
        raise UsageError(f"{output}: name a file that ends in {' or '.join(endings)}")
    return ending


def output_options(*own: str) -> Callable[[_Command], _Command]:
    """Add the options of `Output` to a command, which gets it as `output`.

    Args:
        own: formats of the command's own; the first is its default.
    """
    default = own[0] if own else "as the ending of -o says, else table"
    options = [
        click.option(
            "--format", "format_", type=click.Choice((*own, *_FORMATS)), default=own[0] if own else None,
            help=f"How to write the result.  [default: {default}]",
        ),
        file_option("Write to a file.", "path"),
        click.option(
            "--width", type=click.IntRange(0), metavar="N",
            help="Columns of a table, 0 for any.  [default: the terminal's; any with -o]",
        ),
        ansi_option("Colour, and links on source lines"),
    ]  # fmt: skip

    def decorate(command: _Command) -> _Command:
        @functools.wraps(command)
        def gather(
            *args: Any, format_: str | None, path: Path | None, width: int | None, ansi: str, **rest: Any
        ) -> Any:
            return command(*args, output=Output(format_, path, width, ansi), **rest)

        wrapped: Any = gather
        for option in reversed(options):
            wrapped = option(wrapped)
        return wrapped  # type: ignore[no-any-return]

    return decorate


def answer(
    connection: duckdb.DuckDBPyConnection,
    saved: SavedQuery,
    values: Mapping[str, Value],
    output: Output,
    database: str,
    *,
    unsafe: bool = False,
) -> Written:
    """Run a saved query and write its result; say on stderr what is missing from it, and why.

    Raises what `run_query` and `Output.write` raise.
    """
    from ingest.database.scope import narrowed
    from ingest.query.remarks import remarks, shown_of
    from ingest.query.run import run_query
    from ingest.query.selection import read_runs, select_runs

    given = dict(values)
    runs = select_runs(connection, saved, given)
    with narrowed(connection, read_runs(connection, saved, given, runs)):
        written = output.write(run_query(connection, saved, given, unsafe=unsafe), database)
        for remark in shown_of(connection, saved, given, written.rows, all_rows="--top 0 for all"):
            say(remark)
    # Why there is no row may lie in other runs.
    with narrowed(connection, runs if written.rows else None):
        for remark in remarks(connection, saved, given, written.rows):
            say(remark)
    return written


def _write_paged(result: Result, format_: str, width: int | None, style: Style) -> Written:
    """Write a result to the terminal, in a pager where it is longer than that."""
    from ingest.cli.pager import page
    from ingest.query.formats import write_text

    # The encoding decides whether bars can be drawn.
    kept = io.TextIOWrapper(io.BytesIO(), encoding=sys.stdout.encoding or "utf-8", errors="backslashreplace")
    written = write_text(result, format_, kept, width, style)
    kept.seek(0)
    text = kept.read()
    if not page(text):
        with writing_stdout():
            sys.stdout.write(text)
            sys.stdout.flush()
    return written


def terminal_style(ansi: str) -> Style:
    """Choose colour and links for stdout: `always`, `never`, or `auto` by terminal and environment."""
    from ingest.query.style import Style

    wanted = ansi == "always" or (
        ansi == "auto"
        and sys.stdout.isatty()
        and not os.environ.get("NO_COLOR")
        and os.environ.get("TERM", "dumb") != "dumb"
    )
    return Style(color=wanted, links=wanted and _has_links(os.environ))


def _has_links(environment: Mapping[str, str]) -> bool:
    """Return whether the terminal is one that shows OSC 8 links; there is no way to ask it."""
    vte = environment.get("VTE_VERSION", "")
    return (
        environment.get("TERM_PROGRAM", "") in ("iTerm.app", "WezTerm", "vscode", "ghostty")
        or any(name in environment for name in ("KITTY_WINDOW_ID", "WT_SESSION", "KONSOLE_VERSION"))
        or environment.get("TERM", "").startswith(("foot", "alacritty", "xterm-kitty"))
        or (vte.isdecimal() and int(vte) >= 5000)
    )
