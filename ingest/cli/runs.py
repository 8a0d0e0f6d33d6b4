"""`xbuf runs` and `xbuf rejects`: saved queries under the names that people look for first."""

from __future__ import annotations

from dataclasses import replace

import click

from ingest.cli.answer import Output, answer, output_options
from ingest.cli.interrupts import reading
from ingest.cli.streams import echo, say
from ingest.cli.terminal import ANY_DATABASE_OPTION, top_option
from ingest.display import place_in


@click.command()
@ANY_DATABASE_OPTION
@top_option()
@click.option("--label", metavar="KEY=VALUE", help="Only runs with this label.")
@click.option("--module", metavar="GLOB", help="Only modules whose name matches, e.g. 'jit_train*'.")
@output_options()
def runs(database: str, top: int, label: str | None, module: str | None, output: Output) -> None:
    """List the runs, newest first.

    \b
    Example:
      xbuf runs --top 5
    """
    _answer(database, "recent_runs", {"top": top or None, "label": label, "module": module}, output)


@click.command()
@ANY_DATABASE_OPTION
@top_option()
@output_options("lines")
def rejects(database: str, top: int, output: Output) -> None:
    """List the dumps that were not loaded, and why, newest import first.

    A file is listed once, until an import loads it. The table `rejects` keeps all of them. The format lines
    is FILE:LINE: MESSAGE, whole.

    \b
    Example:
      xbuf rejects --format json
    """
    if output.format_ == "lines" and output.path is None:
        _print_rejects(database, top)
    else:
        chosen = replace(output, format_=None) if output.format_ == "lines" else output
        _answer(database, "load_failures", {"top": top or None}, chosen)


def _print_rejects(database: str, top: int) -> None:
    from ingest.query.catalog import shipped
    from ingest.query.run import bind, run_query

    query = shipped().load("load_failures")
    with reading(database) as connection:
        rows = list(run_query(connection, query, bind(query, {"top": None})).rows())
    shown = rows[:top] if top else rows
    for file, line, message, *_ in shown:
        echo(f"{place_in(file, line)}: {message}")
    if not rows:
        say("nothing was rejected, or all of it has been loaded since")
    if len(rows) > len(shown):
        say(f"{len(shown):,} of {len(rows):,} rows; --top 0 for all")


def _answer(database: str, name: str, given: dict[str, int | str | None], output: Output) -> None:
    from ingest.query.catalog import shipped
    from ingest.query.run import bind

    query = shipped().load(name)
    values = bind(query, given)
    with reading(database) as connection:
        answer(connection, query, values, output, database)
