"""How commands end and what they say on stderr.

stdout carries results only. Exit codes are those of `ingest.errors.ExitCode`; every error is one line.
"""

from __future__ import annotations

import os
import sys
from typing import Final, NoReturn

import click

from ingest.errors import DatabaseLocked, ExitCode, XbufError


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

DATABASE_OPTION = click.option(
    "--db",
    "database",
    metavar="PATH",
    default="xbuf.duckdb",
    envvar="XBUF_DB",
    show_default=True,
    show_envvar=True,
    help="DuckDB file.",
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
    """Run a command as a program: errors in one line, the documented exit code."""
    try:
        code = command.main(standalone_mode=False)
        sys.stdout.flush()
    except click.ClickException as error:
        error.show()
        code = error.exit_code
    except XbufError as error:
        say(f"error: {error}")
        code = error.exit_code
    except (KeyboardInterrupt, click.Abort):
        say("interrupted")
        code = ExitCode.INTERRUPTED
    except BrokenPipeError:
        # The reader (head, less) has what it wants; keep the interpreter from flushing into the pipe.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = ExitCode.OK
    sys.exit(int(code) if isinstance(code, int) else 0)


def say(text: str) -> None:
    """Print a line for people on stderr.

    Control characters are escaped: a message may quote a dump, or the command line of another process.
    """
    from ingest.query.cells import escape

    click.echo(escape(text), err=True)


def say_waiting(refusal: DatabaseLocked) -> None:
    """Say that a process is waited for."""
    holder = f"process {refusal.pid} ({refusal.command})" if refusal.pid else "another process"
    say(f"waiting for {holder}, which holds {refusal.path}")
