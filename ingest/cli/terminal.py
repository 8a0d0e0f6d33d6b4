"""How commands end and what they say on stderr.

stdout carries results only. Exit codes are those of `ingest.errors.ExitCode`; every error is one line.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable
from typing import Any, Final, NoReturn, TypeVar

import click

from ingest.cli.interrupts import Interrupts
from ingest.cli.streams import StdoutError, abandon_stdout, flush_stdout, prepare_streams, say
from ingest.errors import DatabaseLocked, ExitCode, UsageError, XbufError
from ingest.source.kinds import LAKE_PREFIX, is_lake, without_secrets

_Command = TypeVar("_Command", bound=Callable[..., Any])


class _Label(click.ParamType[tuple[str, str]]):
    name = "key=value"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, str]:
        key, equals, text = str(value).partition("=")
        if not equals or not key:
            self.fail(f"{value!r} is not KEY=VALUE, e.g. jax=0.10.2", param, ctx)
        return key, text


LABEL: Final = _Label()


def _database_option(
    what: str, check: Callable[[click.Context, click.Parameter, str], str] | None = None
) -> Callable[[_Command], _Command]:
    return click.option(
        "--db",
        "database",
        metavar="PATH",
        default="xbuf.duckdb",
        envvar="XBUF_DB",
        show_default=True,
        show_envvar=True,
        callback=check,
        help=what,
    )


def _refuse_lake(ctx: click.Context, param: click.Parameter, database: str) -> str:
    if is_lake(database):
        name = without_secrets(database)
        instead = _FOR_LAKES.get(str(ctx.info_name))
        remedy = (
            f"or: xbuf lake {instead} {name.removeprefix(LAKE_PREFIX)}"
            if instead
            else "or see xbuf lake --help"
        )
        raise UsageError(
            f"{name}: is a lake, and {ctx.command_path} works on a database file; name one with --db,"
            f" {remedy}"
        )
    return database


_FOR_LAKES: Final = {"compact": "compact", "doctor": "verify", "upgrade": "upgrade"}
"""What `xbuf lake` has in the place of commands for files."""
DATABASE_OPTION = _database_option("DuckDB file.", _refuse_lake)
ANY_DATABASE_HELP = "DuckDB file, or lake: and the folder or URL of a lake."
ANY_DATABASE_OPTION = _database_option(ANY_DATABASE_HELP)
"""For commands that take a file or a lake."""


def top_option(default: int = 20, what: str = "Rows to show; 0 for all.") -> Callable[[_Command], _Command]:
    """Add `--top N`, of which 0 means all."""
    return click.option(
        "--top", type=click.IntRange(0), default=default, show_default=True, metavar="N", help=what
    )


def label_option(what: str) -> Callable[[_Command], _Command]:
    """Add `--label KEY=VALUE`, any number of times; the command gets pairs as `labels`."""
    return click.option("--label", "labels", multiple=True, type=LABEL, metavar="KEY=VALUE", help=what)


def format_option(*formats: str, what: str | None = None) -> Callable[[_Command], _Command]:
    """Add `--format`, which the command gets as `format_`; the first format is the default."""
    return click.option(
        "--format", "format_", type=click.Choice(formats), default=formats[0], show_default=True, help=what
    )


def ansi_option(what: str) -> Callable[[_Command], _Command]:
    """Add `--ansi`; see `ingest.cli.answer.terminal_style`."""
    return click.option(
        "--ansi",
        type=click.Choice(("auto", "always", "never")),
        default="auto",
        show_default=True,
        help=f"{what}; NO_COLOR turns auto off.",
    )


PAGE_WIDTH_OPTION = click.option(
    "--width", type=click.IntRange(60), metavar="N", help="Columns.  [default: the terminal's]"
)

JOBS_OPTION = click.option(
    "--jobs", type=click.IntRange(1), metavar="N", help="Worker processes.  [default: one a core]"
)

FOLLOW_OPTION = click.option(
    "--follow-symlinks", is_flag=True, help="Follow links also where they lead out of the paths given."
)

WAIT_OPTION = click.option(
    "--wait",
    type=click.FloatRange(0),
    default=5.0,
    show_default=True,
    metavar="SECONDS",
    help="How long to wait for a database that another process holds.",
)


def run(command: click.Command) -> NoReturn:
    """Run a command as a program: every end has one line and a documented exit code."""
    interrupts = Interrupts()
    interrupts.watch()
    gc.enable()
    prepare_streams()
    code: object = ExitCode.OK
    failure: BaseException | None = None
    try:
        try:
            code = _call(command)
            flush_stdout()
        except BaseException as error:
            interrupts.ignore()
            failure = error
        interrupts.ignore()
    except KeyboardInterrupt as error:  # in the moment before it is ignored
        failure = error
    if interrupts.happened or isinstance(failure, (KeyboardInterrupt, click.Abort)):
        kept = str(failure) if isinstance(failure, KeyboardInterrupt) else ""
        say(f"interrupted; {kept}" if kept else "interrupted")
        _end_now(ExitCode.INTERRUPTED)
    elif failure is not None:
        code = _report(failure)
    # The interpreter looks for cycles in all that is imported once more as it ends: 8 to 45 ms.
    gc.freeze()
    sys.exit(int(code) if isinstance(code, int) else 0)


def _call(command: click.Command) -> object:
    """Do what `command.main` does, which has its own ideas of Ctrl-C and of a pipe without a reader."""
    name = command.name or ""
    variable = f"_{name}_COMPLETE".replace("-", "_").upper()
    if instruction := os.environ.get(variable):
        from click.shell_completion import shell_complete

        return shell_complete(command, {}, name, variable, instruction)
    with command.make_context(name, sys.argv[1:]) as context:
        return command.invoke(context)


def _end_now(code: int) -> NoReturn:
    """End as a kill does: a thread may be inside of DuckDB or Arrow, which crash as the interpreter ends."""
    if spill := sys.modules.get("ingest.database.spill"):
        spill.remove_own()
    os._exit(code)


def _report(failure: BaseException) -> int:
    """Say in one line what ended the program; return the exit code."""
    match failure:
        case SystemExit(code=int(code)):
            return code
        case SystemExit():
            return ExitCode.OK
        case click.exceptions.Exit(exit_code=code):
            return code
        case BrokenPipeError():
            abandon_stdout()  # the reader (head, less) has what it wants
            return ExitCode.OK
        case click.ClickException(exit_code=code):
            failure.show()
            return code
        case XbufError(exit_code=code):
            say(f"error: {failure}")
        case MemoryError():
            say("error: out of memory; nothing that was loaded is lost")
            code = ExitCode.DATABASE
        case OSError(strerror=reason, filename=file):
            say(f"error: {file or 'the system'}: {reason or failure}; nothing that was loaded is lost")
            code = ExitCode.DATABASE
        case _:
            say(f"error: internal: {_place(failure)}; please report it. XBUF_TRACEBACK=1 shows all of it")
            code = ExitCode.DATABASE
    if os.environ.get("XBUF_TRACEBACK"):
        import traceback

        traceback.print_exception(failure)
    if isinstance(failure, StdoutError):
        abandon_stdout()
    return code


def _place(failure: BaseException) -> str:
    """Name an error that nobody expected, and the line of ours that it came from."""
    import traceback

    first = str(failure).strip().partition("\n")[0]
    where = traceback.extract_tb(failure.__traceback__)
    ours = next((frame for frame in reversed(where) if f"{os.sep}ingest{os.sep}" in frame.filename), None)
    place = f" ({os.path.basename(ours.filename)}:{ours.lineno})" if ours else ""
    return f"{type(failure).__name__}: {first}{place}"


def upgraded(place: str, before: str | None, after: str, more: str = "") -> str:
    """Return what an upgrade of a schema did, in words."""
    if before == after:
        return f"{place}: {after}, nothing to do"
    return f"{place}: {before or 'no schema'} -> {after}{more}"


def say_waiting(refusal: DatabaseLocked) -> None:
    """Say that a process is waited for."""
    holder = f"process {refusal.pid} ({refusal.command})" if refusal.pid else "another process"
    say(f"waiting for {holder}, which holds {refusal.path}")
