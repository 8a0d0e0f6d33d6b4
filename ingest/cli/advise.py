"""`xbuf advise`: what would lower the peak of a run, and by how much."""

from __future__ import annotations

import click

from ingest.cli.answer import terminal_style
from ingest.cli.references import RUN, reading_runs
from ingest.cli.streams import echo, say
from ingest.cli.terminal import ANY_DATABASE_OPTION, PAGE_WIDTH_OPTION, ansi_option, format_option, top_option


@click.command()
@click.argument("reference", metavar="RUN", type=RUN)
@ANY_DATABASE_OPTION
@top_option(10, "Steps to show; 0 for all.")
@click.option(
    "--least",
    default="1MiB",
    show_default=True,
    metavar="SIZE",
    help="Bytes that a step must spare at the peak to be looked at.",
)
@format_option("text", "markdown", "json", what="markdown is for issues and pull requests.")
@PAGE_WIDTH_OPTION
@ansi_option("Colour")
def advise(
    reference: str, database: str, top: int, least: str, format_: str, width: int | None, ansi: str
) -> None:
    """Say what would lower the peak of one run, the most helpful step first.

    For each step the peak is computed anew without what the step spares, at every slot: bytes that another
    slot needs as much are not promised. RUN is what `xbuf show` takes. The same rows in SQL are
    FROM savings(run := 1).

    \b
    Example:
      xbuf advise 1
      xbuf advise latest --top 3 --format markdown
    """
    from ingest.query.output import terminal_width
    from ingest.query.run import read_size
    from ingest.report.advice import read_advice
    from ingest.report.advice_text import as_json, as_markdown, as_text

    bytes_ = read_size(least, "--least")
    with reading_runs(database, reference) as (connection, (run,)):
        advice = read_advice(connection, run, top or None, bytes_)
    if format_ == "json":
        echo(as_json(advice))
        return
    lines = (
        as_markdown(advice)
        if format_ == "markdown"
        else as_text(advice, width or terminal_width() or 100, terminal_style(ansi))
    )
    for line in lines:
        echo(line)
    if advice.more:
        say(f"{len(advice.steps)} of {len(advice.steps) + advice.more} steps; --top 0 for all")
