"""`xbuf export` and `xbuf import-export`: backups and moves."""

from __future__ import annotations

import click

from ingest.cli.streams import echo
from ingest.cli.terminal import ANY_DATABASE_OPTION, DATABASE_OPTION, WAIT_OPTION, say_waiting


@click.command()
@click.argument("directory", type=click.Path())
@ANY_DATABASE_OPTION
@WAIT_OPTION
def export(directory: str, database: str, wait: float) -> None:
    """Write every table to DIRECTORY as Parquet, one folder a table.

    DIRECTORY must not be there yet; it appears when it is complete. Other engines read it as it is.

    \b
    Example:
      xbuf export backup-2026-11-20
    """
    from ingest.maintenance.export import export_database
    from ingest.query.cells import escape

    done = export_database(database, directory, wait_seconds=wait)
    rows = dict(done.rows)
    echo(f"{rows['runs']:,} runs, {sum(rows.values()):,} rows -> {escape(done.directory)}")


@click.command("import-export")
@click.argument("directory", type=click.Path())
@DATABASE_OPTION
@WAIT_OPTION
def import_export(directory: str, database: str, wait: float) -> None:
    """Take the runs of an export into a database, new or not; what it has already stays as it is.

    \b
    Example:
      xbuf import-export backup-2026-11-20 --db restored.duckdb
    """
    from ingest.maintenance.export import import_export as take_in
    from ingest.query.cells import escape

    done = take_in(directory, database, wait_seconds=wait, on_wait=say_waiting)
    echo(
        f"{done.runs:,} runs of {done.imports:,} imports taken in ({done.rows:,} rows),"
        f" {done.known:,} were there already -> {escape(database)}"
    )
