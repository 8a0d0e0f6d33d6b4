"""`xbuf runs` and `xbuf rejects`: saved queries under the names that people look for first."""

from __future__ import annotations

import shutil
import sys

import click

from ingest.cli.interrupts import reading
from ingest.cli.streams import echo, say, writing_stdout
from ingest.cli.terminal import DATABASE_OPTION

_FORMAT_OPTION = click.option(
    "--format",
    "format_",
    type=click.Choice(["table", "csv", "json"]),
    default="table",
    show_default=True,
)


@click.command()
@DATABASE_OPTION
@click.option("--limit", type=click.IntRange(1), default=20, show_default=True, metavar="N")
@click.option("--label", metavar="KEY=VALUE", help="Only runs with this label.")
@click.option("--module", metavar="GLOB", help="Only modules whose name matches, e.g. 'jit_train*'.")
@_FORMAT_OPTION
def runs(database: str, limit: int, label: str | None, module: str | None, format_: str) -> None:
    """List the runs, newest first.

    \b
    Example:
      xbuf runs --limit 5
    """
    print_query(database, "recent_runs", {"top": limit, "label": label, "module": module}, format_)


@click.command()
@DATABASE_OPTION
@click.option("--limit", type=click.IntRange(1), default=20, show_default=True, metavar="N")
@click.option(
    "--format",
    "format_",
    type=click.Choice(["lines", "table", "csv", "json"]),
    default="lines",
    show_default=True,
    help="lines: FILE:LINE: MESSAGE, whole.",
)
def rejects(database: str, limit: int, format_: str) -> None:
    """List the dumps that were not loaded, and why, newest import first.

    A file is listed once, until an import loads it. The table `rejects` keeps all of them.

    \b
    Example:
      xbuf rejects --format json
    """
    if format_ == "lines":
        _print_rejects(database, limit)
    else:
        print_query(database, "load_failures", {"top": limit}, format_)


def _print_rejects(database: str, limit: int) -> None:
    from ingest.query.catalog import shipped
    from ingest.query.run import bind, run_query

    query = shipped().load("load_failures")
    with reading(database) as connection:
        # One more tells whether there are more.
        rows = list(run_query(connection, query, bind(query, {"top": limit + 1})).rows())
    for file, line, message, *_ in rows[:limit]:
        echo(f"{file}: {message}" if line is None else f"{file}:{line}: {message}")
    if not rows:
        say("nothing was rejected, or all of it has been loaded since")
    if len(rows) > limit:
        say(f"there are more: --limit shows the newest {limit}")


def print_query(
    database: str, name: str, parameters: dict[str, int | str | None], format_: str, heading: str = ""
) -> None:
    """Print the result of a shipped query; say on stderr why there is none."""
    from ingest.query.catalog import shipped
    from ingest.query.formats import write_text
    from ingest.query.run import bind, run_query, why_empty

    query = shipped().load(name)
    values = bind(query, parameters)
    with reading(database) as connection:
        if heading:
            echo(heading)
        result = run_query(connection, query, values)
        with writing_stdout():
            written = write_text(result, format_, sys.stdout, shutil.get_terminal_size().columns)
        if not written.rows:
            say(why_empty(connection, query, values))
        if written.left_out:
            say(f"no room for: {', '.join(written.left_out)} (--format csv writes them)")
