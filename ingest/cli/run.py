"""`xbuf run`: run a program so that XLA dumps, import the dumps, and say where its memory goes."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from ingest.cli.interrupts import reading
from ingest.cli.streams import say
from ingest.cli.terminal import DATABASE_OPTION, WAIT_OPTION, label_option, top_option
from ingest.cli.words import Words
from ingest.display import counted
from ingest.errors import XbufError

if TYPE_CHECKING:
    from ingest.launch.program import Ended
    from ingest.launch.session import Outcome, Place
    from ingest.pipeline.summary import ImportSummary

_USUAL_DATABASE = "xbuf.duckdb"


@click.command(
    "run",
    context_settings={"allow_interspersed_args": False},
    epilog="Exit codes: the program's, 128 and the signal's number where one ended it; 127 it is not there,"
    " 126 it cannot be run; 2 wrong usage, 3 database not usable: nothing was run.",
)
@click.argument(
    "command", nargs=-1, required=True, type=click.UNPROCESSED, metavar="-- PROGRAM [ARGUMENT]..."
)
@DATABASE_OPTION
@label_option("Label put on every run of the program.")
@click.option("--module", metavar="REGEX", help="Only modules whose name matches, e.g. train_step.")
@click.option(
    "--keep", metavar="DIR", help="Keep the dumps there; a new or empty folder.  [default: a temporary one]"
)
@click.option("--watch", is_flag=True, help="Import while the program runs; a line for each module.")
@top_option(5, "Modules to report, largest first; 0 for all.")
@WAIT_OPTION
def run(
    command: tuple[str, ...],
    database: str,
    labels: tuple[tuple[str, str], ...],
    module: str | None,
    keep: str | None,
    watch: bool,
    top: int,
    wait: float,
) -> int:
    """Run a program, import what XLA compiles in it, and report where the memory goes.

    XLA_FLAGS is set to dump text, protobuf and HLO text; flags of your own stay. The program has the terminal
    and its exit code to itself, and the report goes to stderr. It comes also when the program crashes or is
    killed: modules are dumped as they are compiled.

    \b
    Example:
      xbuf run --label variant=base -- python train.py --batch 8
    """
    from ingest.launch.program import NotStarted
    from ingest.launch.session import dump_place, run_program

    words = Words(quiet=False, fail_if_empty=False)
    place = dump_place(os.environ.get("XLA_FLAGS"), keep)

    def report_import(summary: ImportSummary) -> None:
        words.say_rest()
        _report_modules(database, summary)

    try:
        outcome = run_program(
            command,
            database,
            place,
            environment=os.environ,
            module=module,
            while_running=report_import if watch else None,
            on_end=lambda ended: _report_end(command[0], ended),
            options={"labels": labels, "wait_seconds": wait, "on_event": words},
        )
    except NotStarted as error:
        _remove(place)
        say(f"error: {error}")
        return error.code
    except XbufError:  # before it was started: what fails later is in the outcome
        _remove(place)
        raise
    except KeyboardInterrupt as error:
        raise KeyboardInterrupt(f"the dumps are in {place.path}") from error
    except Exception:
        say(f"the dumps are in {place.path}")
        raise
    words.say_rest()
    try:
        _report(outcome, database, top or None)
    except XbufError as error:
        say(f"error: {error}")
    return outcome.ended.code


def _remove(place: Place) -> None:
    if place.is_temporary:
        os.rmdir(place.path)  # nothing was run


def _report_end(program: str, ended: Ended) -> None:
    if ended.code:
        say(f"{program} {ended}")


def _report_modules(database: str, summary: ImportSummary) -> None:
    """Say a line for each module of an import."""
    from ingest.database.connect import open_database
    from ingest.launch.overview import module_line, read_overview

    with open_database(database, read_only=True) as connection:
        runs = connection.execute(
            "SELECT run_id FROM runs WHERE import_id = ? ORDER BY 1", [summary.import_id]
        ).fetchall()
        for one in read_overview(connection, [int(run) for (run,) in runs], None).largest:
            say(module_line(one, os.getcwd()))


def _report(outcome: Outcome, database: str, top: int | None) -> None:
    """Say what was compiled and where the memory goes."""
    from ingest.launch.overview import overview_text, read_overview
    from ingest.query.output import terminal_width

    if outcome.failure is not None:
        say(f"error: {outcome.failure}")
    elif not outcome.found:
        say(
            "nothing was dumped: the program compiled nothing with XLA, found it in a compilation cache"
            " (JAX_ENABLE_COMPILATION_CACHE=false turns JAX's off), or sets XLA_FLAGS itself"
        )
    if outcome.runs:
        say(f"{counted(len(outcome.runs), 'module')} in {database}, the largest:")
        with reading(database) as connection:
            overview = read_overview(connection, outcome.runs, top, advise=True)
        for line in overview_text(overview, terminal_width(), os.getcwd()):
            say(line)
        where = "" if database == os.environ.get("XBUF_DB", _USUAL_DATABASE) else f" --db {database}"
        run = overview.largest[0].run_id
        say(f"xbuf show {run}{where} shows more, xbuf advise {run}{where} what would lower its peak")
    if outcome.kept is not None and (outcome.found or outcome.failure):
        say(f"the dumps are in {outcome.kept}")
