"""`xbuf lake`: make a lake, bring it up to date, keep it in order; what moves runs is in `lake_moves`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from ingest.cli.lake_moves import LAKE, attach, export, import_
from ingest.cli.streams import echo
from ingest.cli.terminal import format_option, upgraded
from ingest.errors import ExitCode
from ingest.query.cells import escape, human_bytes

if TYPE_CHECKING:
    from ingest.lake.store import Lake

_FORMAT = format_option("text", "json")


@click.group()
def lake() -> None:
    """Make a lake, bring it up to date, keep it in order, open it to others.

    Commands that only read take a lake as a database: xbuf runs --db lake:URL.

    URL is a folder, or s3://, gs:// or az:// BUCKET/PATH. docs/lake.md has more.

    \b
    Example:
      xbuf lake verify s3://bucket/xbuf
    """


for _command in (attach, export, import_):
    lake.add_command(_command)


@lake.command()
@LAKE
def create(place: Lake) -> None:
    """Make a lake, in a store that it is safe in.

    xbuf-ingest --lake does this by itself. A store without conditional puts is refused: two writers would
    destroy each other's work.

    \b
    Example:
      xbuf lake create s3://bucket/xbuf
    """
    from ingest.lake.create import create_lake

    echo(f"{place}: made" if create_lake(place) else f"{place}: is there")


@lake.command()
@LAKE
def upgrade(place: Lake) -> None:
    """Bring the schema of a lake to that of this xbuf.

    xbuf-ingest --lake does this by itself. Columns are added, no file is written anew; an older xbuf writes
    and reads it no more.

    \b
    Example:
      xbuf lake upgrade s3://bucket/xbuf
    """
    from ingest.lake.create import upgrade_lake

    done = upgrade_lake(place)
    echo(upgraded(str(place), done.before, done.after, f", {len(done.columns):,} columns added"))


@lake.command()
@LAKE
@_FORMAT
def compact(place: Lake, format_: str) -> None:
    """Write many small files as few large ones, without rows of runs that are no more.

    Readers and writers go on. The old files stay until xbuf lake vacuum.

    \b
    Example:
      xbuf lake compact s3://bucket/xbuf
    """
    from ingest.lake.compact import compact_lake

    done = compact_lake(place)
    if format_ == "json":
        echo(json.dumps({"lake": place.root, **done._asdict()}))
        return
    echo(
        f"{place}: {done.files_before:,} -> {done.files_after:,} files,"
        f" {human_bytes(done.bytes_before)} -> {human_bytes(done.bytes_after)},"
        f" {done.dropped_rows:,} rows dropped"
    )


@lake.command()
@LAKE
@click.option(
    "--keep-hours",
    type=click.IntRange(0),
    default=168,
    show_default=True,
    metavar="N",
    help="Files that counted within so many hours stay: longer than any reader needs.",
)
@click.option("--dry-run", is_flag=True, help="Only say what would go.")
@_FORMAT
def vacuum(place: Lake, keep_hours: int, dry_run: bool, format_: str) -> None:
    """Remove files that do not count any more, or never did.

    What readers have open must stay for as long as they read, hence --keep-hours. Writers are safe at any
    time: one whose files go begins its batch anew.

    \b
    Example:
      xbuf lake vacuum s3://bucket/xbuf --dry-run
    """
    from ingest.lake.vacuum import vacuum_lake

    done = vacuum_lake(place, keep_hours=keep_hours, dry_run=dry_run)
    if format_ == "json":
        echo(json.dumps({"lake": place.root, "dry_run": dry_run, **done._asdict()}))
        return
    verb = "would go" if dry_run else "removed"
    echo(f"{place}: {done.files:,} files, {human_bytes(done.bytes)} {verb}")


@lake.command()
@LAKE
@click.option("--repair", is_flag=True, help="Complete batches whose writers died.")
@_FORMAT
def verify(place: Lake, repair: bool, format_: str) -> int:
    """Check that what the tables name is there, and say what is left to do.

    Exit code 1 for trouble: a file that is gone or cut off, a run that is there twice.

    \b
    Example:
      xbuf lake verify s3://bucket/xbuf --repair
    """
    from ingest.lake.verify import verify_lake

    found = verify_lake(place, repair=repair)
    is_trouble = any(one.kind == "trouble" for one in found)
    if format_ == "json":
        echo(json.dumps({"lake": place.root, "findings": [one._asdict() for one in found]}))
    else:
        for one in found:
            echo(f"{one.kind}: {escape(str(place if one.table is None else one.table))}: {one.message}")
        if not found:
            echo(f"{place}: nothing found")
    return ExitCode.BROKEN if is_trouble else ExitCode.OK
