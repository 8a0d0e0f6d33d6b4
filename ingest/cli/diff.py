"""`xbuf diff`: what changed between two compilations."""

from __future__ import annotations

import shutil

import click

from ingest.cli.interrupts import reading
from ingest.cli.references import SIDE
from ingest.cli.streams import echo, say
from ingest.cli.terminal import (
    ANY_DATABASE_OPTION,
    FOLLOW_OPTION,
    JOBS_OPTION,
    PAGE_WIDTH_OPTION,
    format_option,
    top_option,
)
from ingest.display import place_in
from ingest.errors import ExitCode


@click.command()
@click.argument("before", type=SIDE)
@click.argument("after", type=SIDE)
@ANY_DATABASE_OPTION
@top_option(what="Rows for each module; the others are added up in one.")
@format_option("text", "markdown", "json", what="markdown is for pull requests; json has all rows.")
@PAGE_WIDTH_OPTION
@JOBS_OPTION
@FOLLOW_OPTION
@click.option("--exit-code", is_flag=True, help="Exit with 1 when something differs, as git diff does.")
def diff(
    before: str,
    after: str,
    database: str,
    top: int,
    format_: str,
    width: int | None,
    jobs: int | None,
    follow_symlinks: bool,
    exit_code: bool,
) -> int:
    """Say why one compilation needs more memory than another.

    BEFORE and AFTER are runs (a number, latest, latest~1, import:4, jax=0.10.2, a module, module@jax=0.10.2,
    the end of a path), or directories, files, archives and URLs of dumps, which are read for the comparison
    alone.

    Modules are paired by name and signature, buffers by what they compute. The rows of a module add up
    exactly to the change of its live peak: buffers that are new, gone, resized, or in both programs and only
    in one at the peak. Layers fold into one row: h0 to h47 are h*. A row that is not certain says likely or
    guess.

    \b
    Example:
      xbuf diff latest~1 latest
    """
    from ingest.compare.comparison import compare
    from ingest.compare.sides import open_sides
    from ingest.compare.text import as_json, as_markdown, as_text

    with open_sides(
        database,
        before,
        after,
        open_=reading,
        jobs=jobs,
        follow_symlinks=follow_symlinks,
        on_event=_say_rejects,
    ) as sides:
        comparison = compare(sides.connection, sides.before, sides.after)
    if format_ == "json":
        echo(as_json(comparison))
    elif format_ == "markdown":
        for line in as_markdown(comparison, top=top):
            echo(line)
    else:
        for line in as_text(comparison, width=width or shutil.get_terminal_size().columns, top=top):
            echo(line)
    if not comparison.pairs:
        say("no module is on both sides: `xbuf diff` pairs them by name and backend, or two single runs")
    if exit_code and comparison.differs:
        return 1
    return ExitCode.REJECTS if sides.rejected else ExitCode.OK


def _say_rejects(event: object) -> None:
    from ingest.events import SetRejected, Unfinished

    match event:
        case SetRejected(file, line, _, message):
            say(f"rejected: {place_in(file, line)}: {message}")
        case Unfinished(dump):
            say(f"unfinished: {dump}: still being written; left out")
