"""`xbuf lake attach`, `export` and `import`: a lake for DuckDB's shell, runs from and to database files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from ingest.cli.streams import echo, say
from ingest.query.cells import escape

if TYPE_CHECKING:
    from ingest.lake.store import Lake


class _Lake(click.ParamType["Lake"]):
    name = "url"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> Lake:
        from ingest.lake.store import parse_lake

        return parse_lake(value)


LAKE: Final = click.argument("place", metavar="URL", type=_Lake())
"""A lake, which the command gets as `place`."""


@click.command()
@LAKE
@click.option(
    "--output",
    "-o",
    "path",
    required=True,
    metavar="FILE",
    help="The file; one made earlier is replaced, another is refused.",
)
@click.option(
    "--relative",
    is_flag=True,
    help="Name the files of a lake in a folder relative to FILE's folder, where the shell must run then.",
)
def attach(place: Lake, path: str, relative: bool) -> None:
    """Make a small DuckDB file with views of a lake's tables, for any DuckDB shell.

    The saved queries are there as macros, as in a database of xbuf's. The views show the lake as it is now:
    make the file again after an import, and always after a vacuum. A lake at s3://, gs:// or az:// needs
    DuckDB's extension for that store, and credentials, in the shell.

    \b
    Example:
      xbuf lake attach /data/lake -o view.duckdb
    """
    from ingest.lake.attach import FASTER, attach_lake

    done = attach_lake(place, path, relative=relative)
    made = "made" if done.is_new else "made anew"
    echo(f"{escape(path)}: {made}: views of {done.runs:,} runs in {done.files:,} files of {place}")
    say("it shows the lake as it is now; make it again to see later imports, and after a vacuum")
    say(f"large lakes answer faster in a shell after: {FASTER}")


@click.command()
@LAKE
@click.option(
    "--output", "-o", "path", required=True, metavar="FILE", help="The new database file; none may be there."
)
def export(place: Lake, path: str) -> None:
    """Write all runs of a lake, as it is now, to a new database file.

    Runs and imports keep their numbers. The file is a database as any other: xbuf-ingest can load more
    into it.

    \b
    Example:
      xbuf lake export s3://bucket/xbuf -o xbuf.duckdb
    """
    from ingest.lake.transfer import export_lake

    done = export_lake(place, path)
    echo(f"{done.runs:,} runs, {done.rows:,} rows of {place} -> {escape(done.path)}")


@click.command("import")
@click.argument("database", metavar="FILE")
@LAKE
def import_(database: str, place: Lake) -> None:
    """Bring all runs of a database file into a lake, new or not; what it has already stays as it is.

    Runs and imports get new numbers. The same file again adds nothing; one that was killed goes on.

    \b
    Example:
      xbuf lake import xbuf.duckdb s3://bucket/xbuf
    """
    from ingest.lake.transfer import import_database

    def report(done: int, of: int) -> None:
        if done < of:
            say(f"{done:,} of {of:,} runs")

    done = import_database(database, place, on_batch=report)
    echo(
        f"{done.runs:,} runs of {done.imports:,} imports brought in, {done.known:,} were there already"
        f" -> {place}"
    )
