"""`xbuf plot`: a run as one picture."""

from __future__ import annotations

from pathlib import Path

import click

from ingest.cli.answer import ending_of, file_option
from ingest.cli.references import RUN, reading_runs
from ingest.cli.terminal import ANY_DATABASE_OPTION


@click.command()
@click.argument("reference", metavar="RUN", type=RUN)
@ANY_DATABASE_OPTION
@file_option("Picture to write: .svg, or .png (needs the extra `png`).", required=True)
def plot(reference: str, database: str, output: Path) -> None:
    """Draw one run: live bytes over the program, and below them the arena, addresses over slots.

    Each column of the curve is the greatest slot in it, so the peak is always there. For a page to look
    around in, see `xbuf report`.

    \b
    Example:
      xbuf plot 1 -o run.svg
    """
    ending = ending_of(output, ".svg", ".png")
    from ingest.query.output import write_bytes
    from ingest.report.data import read_run
    from ingest.report.picture import draw_png, draw_svg

    with reading_runs(database, reference) as (connection, (run,)):
        picture = read_run(connection, run)
    drawn = draw_svg(picture).encode() if ending == ".svg" else draw_png(picture)
    write_bytes(drawn, output, database=database)
