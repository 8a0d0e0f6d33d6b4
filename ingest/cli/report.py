"""`xbuf report`: one run, or two, as a page."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import click

from ingest.cli.answer import ending_of, file_option
from ingest.cli.references import RUN, reading_runs
from ingest.cli.terminal import ANY_DATABASE_OPTION
from ingest.errors import UsageError

_STEPS: Final = 5
"""Pieces of advice that a page has; `xbuf advise` has all."""
_LEAST: Final = 1000
"""A step that spares less than this part of the peak is not looked at."""


@click.command()
@click.argument("references", type=RUN, nargs=-1, required=True, metavar="RUN [RUN]")
@ANY_DATABASE_OPTION
@file_option("Page to write: .html or .htm.", required=True)
def report(references: tuple[str, ...], database: str, output: Path) -> None:
    """Write one run as a page to look around in; of two runs also what changed from the first to the second.

    The page is one file that loads nothing: it opens from disk, as an artifact of CI or from a mail. It shows
    live bytes over the program, the arena with every buffer in it, what fills the peak, and all buffers as a
    table.

    \b
    Example:
      xbuf report 1 -o report.html
    """
    if len(references) > 2:
        raise UsageError(f"{len(references)} runs given; a page shows one, or two to compare")
    ending_of(output, ".html", ".htm")
    from ingest.query.output import write_bytes
    from ingest.report.advice import read_advice
    from ingest.report.compared import compare_runs
    from ingest.report.data import read_details
    from ingest.report.page import write_page

    with reading_runs(database, *references) as (connection, runs):
        details = [read_details(connection, run) for run in runs]
        comparison = compare_runs(connection, *runs) if len(runs) == 2 else None
        advice = [
            read_advice(connection, figures.run_id, _STEPS, (figures.peak_bytes or 0) // _LEAST)
            for figures in (one.picture.figures for one in details)
        ]
    write_bytes(write_page(details, comparison, advice).encode(), output, database=database)
