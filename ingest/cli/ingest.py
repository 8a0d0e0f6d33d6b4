"""`xbuf-ingest`: load dumps into a database."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from ingest.cli.interrupts import stopping
from ingest.cli.streams import StdoutError, echo, flush_stdout, say
from ingest.cli.terminal import (
    DATABASE_OPTION,
    FOLLOW_OPTION,
    JOBS_OPTION,
    WAIT_OPTION,
    format_option,
    label_option,
    run,
)
from ingest.cli.words import Words
from ingest.errors import ExitCode, XbufError
from ingest.source.kinds import shown
from ingest.version import VERSION

if TYPE_CHECKING:
    from collections.abc import Callable

    from ingest.events import Event
    from ingest.pipeline.summary import ImportSummary, Progress
    from ingest.pipeline.watch import ImportOptions


@click.command(
    "xbuf-ingest",
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit codes: 0 all good, 1 some dumps were rejected (or none was found, with --fail-if-empty),"
    " 2 wrong usage, 3 database or output not usable, 130 interrupted.",
)
@click.argument("paths", nargs=-1, required=True, type=click.Path())
@DATABASE_OPTION
@click.option(
    "--lake",
    metavar="URL",
    help="In place of a database, a lake: a folder, or s3://, gs:// or az:// BUCKET/PATH.",
)
@click.option(
    "--staging",
    metavar="DIR",
    type=click.Path(file_okay=False),
    help="Folder of this machine for what is read and not in the lake yet, by default in ~/.cache/xbuf.",
)
@label_option("Label put on every run of these dumps, also on those loaded before.")
@click.option(
    "--label-from",
    "label_from",
    metavar="REGEX",
    help="Labels from the path of each dump: what the named groups match, e.g. 'rank(?P<rank>\\d+)'.",
)
@JOBS_OPTION
@click.option(
    "--scheduler",
    metavar="ADDRESS",
    help="Let the workers of a Dask cluster read the dumps: the address of its scheduler, or the path of its"
    " file (*.json); `local` for one of --jobs processes, to try it.",
)
@click.option("--rehash", is_flag=True, help="Read dumps also when size and time are as recorded.")
@click.option("--replace", is_flag=True, help="A dump with new content replaces the older runs of its place.")
@WAIT_OPTION
@click.option(
    "--publish",
    metavar="PATH",
    help="Keep a read-only snapshot there for others: `duckdb -readonly PATH`.",
)
@click.option(
    "--max-rejects",
    type=click.IntRange(0),
    default=0,
    show_default=True,
    metavar="N",
    help="Exit with 1 only when more dumps than this were rejected.",
)
@click.option(
    "--fail-if-empty",
    is_flag=True,
    help="Exit with 1 when there is no dump to load: none was found, or all were rejected.",
)
@click.option(
    "--source-timeout",
    type=click.FloatRange(0),
    default=3600,
    show_default=True,
    metavar="SECONDS",
    help="For all that is read at URLs; what was read by then is loaded. 0 for no limit.",
)
@FOLLOW_OPTION
@click.option(
    "--no-hlo", is_flag=True, help="Read only the texts of dumps: no HLO text, protobuf or profile."
)
@click.option(
    "--watch",
    is_flag=True,
    help="Go on importing what appears, until SIGINT (Ctrl-C) or SIGTERM: then once more, and end.",
)
@click.option("--dry-run", is_flag=True, help="Only report what would be read; write nothing.")
@format_option("text", "json")
@click.option(
    "--log-format",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="What stderr carries: words, or one event a line as JSON.",
)
@click.option("--quiet", "-q", is_flag=True, help="No progress and no summary; rejects are still reported.")
@click.version_option(VERSION, prog_name="xbuf-ingest")
def ingest(
    paths: tuple[str, ...],
    database: str | None,
    lake: str | None,
    staging: str | None,
    labels: tuple[tuple[str, str], ...],
    label_from: str | None,
    jobs: int | None,
    scheduler: str | None,
    rehash: bool,
    replace: bool,
    wait: float,
    publish: str | None,
    max_rejects: int,
    fail_if_empty: bool,
    source_timeout: float,
    follow_symlinks: bool,
    no_hlo: bool,
    watch: bool,
    dry_run: bool,
    format_: str,
    log_format: str,
    quiet: bool,
) -> int:
    """Load XLA buffer-assignment dumps into a DuckDB database, or into a lake that many write to.

    PATHS are directories, searched whole, files (dumps, protobufs *.hlo.pb, profiles *.xplane.pb), archives
    (*.zip, *.tar, *.tar.gz, *.tar.zst, *.tar.xz) and URLs of these (s3://, gs://, az://, https://). What the
    database already holds is not read again. docs/sources.md has more.

    \b
    Example:
      xbuf-ingest /tmp/xla_dump --label jax=0.10.2
    """
    if watch and dry_run:
        raise click.UsageError("--watch imports; --dry-run does not: give one of them")
    if lake is not None:
        if click.get_current_context().get_parameter_source("database") is ParameterSource.COMMANDLINE:
            raise click.UsageError("--db names a database file, --lake a lake: give one of them")
        database = None
    if jobs and scheduler not in (None, "local"):
        raise click.UsageError("--jobs is about this machine; --scheduler names others: give one of them")
    words = Words(quiet, fail_if_empty)
    options: ImportOptions = {
        "lake": lake,
        "staging": staging,
        "labels": labels,
        "label_from": label_from,
        "jobs": jobs,
        "scheduler": scheduler,
        "rehash": rehash,
        "replace_runs": replace,
        "wait_seconds": wait,
        "publish": publish,
        "source_timeout": source_timeout,
        "read_hlo": not no_hlo,
        "follow_symlinks": follow_symlinks,
        "on_event": _log_json if log_format == "json" else words,
    }
    has_bar = not quiet and log_format == "text" and sys.stderr.isatty()
    found = rejected = 0
    try:
        summaries = (
            _watch(paths, database, options, quiet)
            if watch
            else _once(paths, database, options, dry_run, has_bar)
        )
        try:
            for summary in summaries:
                words.say_rest()
                found += summary.found
                rejected += summary.rejected
                _print_summary(summary, format_, quiet)
            if watch and not found and not quiet and log_format == "text":
                say("no dump has appeared")
        finally:
            words.say_rest()
    except KeyboardInterrupt as error:
        if log_format == "json":  # the last event has said why
            return ExitCode.INTERRUPTED
        raise KeyboardInterrupt(words.what_is_kept()) from error
    except XbufError as error:
        if log_format == "json" and not isinstance(error, StdoutError):
            return error.exit_code
        raise
    if rejected > max_rejects or (fail_if_empty and found == rejected):
        return ExitCode.REJECTS
    return ExitCode.OK


def _once(
    paths: tuple[str, ...], database: str | None, options: ImportOptions, dry_run: bool, has_bar: bool
) -> Iterator[ImportSummary]:
    from ingest.pipeline.importer import import_dumps

    with _progress(has_bar) as progress:
        summary = import_dumps(paths, database, dry_run=dry_run, progress=progress, **options)
    yield summary


def _watch(
    paths: tuple[str, ...], database: str | None, options: ImportOptions, quiet: bool
) -> Iterator[ImportSummary]:
    from ingest.pipeline.watch import watch

    is_talkative = not quiet and options["on_event"] is not _log_json
    notice = "stopping: one last look (once more to end at once)\n" if is_talkative else ""
    with stopping(notice) as pause:
        if is_talkative:
            say(f"watching {', '.join(map(shown, paths))}; Ctrl-C ends it")
        yield from watch(paths, database, pause=pause, **options)


def _print_summary(summary: ImportSummary, format_: str, quiet: bool) -> None:
    try:
        if format_ == "json":
            import json  # 2 ms

            echo(json.dumps(_as_json(summary)))
        elif not quiet:
            echo(_as_text(summary))
        flush_stdout()
    except StdoutError as error:
        raise StdoutError(f"{error}; the import itself is complete: {summary.loaded:,} loaded") from error


def _log_json(event: Event) -> None:
    from ingest.events import as_json_line

    say(as_json_line(event))


def _as_text(summary: ImportSummary) -> str:
    from ingest.query.cells import escape

    verb = "to load" if summary.dry_run else "loaded"
    text = (
        f"{summary.found:,} dumps found: {summary.loaded:,} {verb}, {summary.unchanged:,} unchanged,"
        f" {summary.rejected:,} rejected"
    )
    if summary.unfinished:
        text += f", {summary.unfinished:,} unfinished"
    if summary.dry_run:
        return f"{text} (dry run, nothing written)"
    text += f"\n{summary.rows:,} rows in {summary.seconds:.1f} s -> {escape(summary.database)}"
    if summary.resumed:
        text += f"\n{summary.resumed:,} dumps more, which an earlier import had read but not loaded"
    if summary.by_copy:
        text += "\nthe database is open elsewhere: what is new is seen when it is opened again"
    return text


def _as_json(summary: ImportSummary) -> dict[str, object]:
    return {
        "database": summary.database,
        "import_id": summary.import_id,
        "status": summary.status,
        "dry_run": summary.dry_run,
        "found": summary.found,
        "loaded": summary.loaded,
        "unchanged": summary.unchanged,
        "rejected": summary.rejected,
        "unfinished": summary.unfinished,
        "resumed": summary.resumed,
        "by_copy": summary.by_copy,
        "rows": summary.rows,
        "seconds": round(summary.seconds, 3),
        "rejects": [
            {"file": one.file, "line": one.line, "kind": one.kind, "message": one.message}
            for one in summary.rejects
        ],
    }


@contextmanager
def _progress(wanted: bool) -> Iterator[Callable[[Progress], None] | None]:
    """Show a progress bar on stderr."""
    if not wanted:
        yield None
        return
    with click.progressbar(length=1, file=sys.stderr, label="reading") as bar:

        def show(progress: Progress) -> None:
            bar.label = "loading" if progress.step == "load" else "reading"
            bar.length = max(progress.total, 1)
            bar.update(progress.done - bar.pos)

        yield show


def main() -> None:
    """Entry point."""
    run(ingest)
