"""`xbuf`: the companion of `xbuf-ingest`; each command is imported when it is called."""

from __future__ import annotations

from importlib import import_module
from typing import Final

import click

from ingest.cli.terminal import run
from ingest.version import VERSION

_COMMANDS: Final = {
    "run": ("ingest.cli.run:run", "Run a program; report what XLA compiled in it and where its memory goes."),
    "query": ("ingest.cli.query:query", "Answer a saved question; alone, list them."),
    "sql": ("ingest.cli.query:sql", "Run a SQL statement of your own."),
    "shell": ("ingest.cli.query:shell", "Open the database in the DuckDB shell."),
    "runs": ("ingest.cli.runs:runs", "List the runs, newest first."),
    "show": ("ingest.cli.show:show", "Show one run: its figures and what fills its peak."),
    "advise": ("ingest.cli.advise:advise", "Say what would lower the peak of one run, and by how much."),
    "report": ("ingest.cli.report:report", "Write one run, or two to compare, as a page to look around in."),
    "plot": ("ingest.cli.plot:plot", "Draw one run as SVG or PNG: live bytes and arena."),
    "check": ("ingest.cli.check:check", "Hold compilations to rules about memory: a gate for CI."),
    "diff": ("ingest.cli.diff:diff", "Say what changed the memory between two compilations."),
    "rejects": ("ingest.cli.runs:rejects", "List the dumps that were not loaded, and why."),
    "imports": ("ingest.cli.imports:imports", "List the imports: when the last one worked, what failed."),
    "doctor": ("ingest.cli.doctor:doctor", "Check a database for trouble."),
    "label": ("ingest.cli.label:label", "Put labels on runs, or take them off."),
    "trend": ("ingest.cli.trend:trend", "Show the peak of a module over imports or versions."),
    "forget": ("ingest.cli.forget:forget", "Delete runs."),
    "export": ("ingest.cli.export:export", "Write runs as Parquet, one folder a table."),
    "import-export": ("ingest.cli.export:import_export", "Load what export wrote."),
    "db": ("ingest.cli.db:db", "Upgrade, inspect and compact a database."),
    "lake": ("ingest.cli.lake:lake", "Make a lake, compact it, check it."),
}
"""Commands by name: where each is, and its line in the list."""


class _LazyGroup(click.Group):
    """A group that imports a command's module only when the command is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        module, _, name = _COMMANDS[cmd_name][0].partition(":")
        command = getattr(import_module(module), name)
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in _COMMANDS and not args[0].startswith("-"):
            from difflib import get_close_matches

            close = get_close_matches(args[0], _COMMANDS, 1)
            hint = f" Did you mean '{close[0]}'?" if close else ""
            ctx.fail(f"No such command '{args[0]}'.{hint}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in _COMMANDS.items()])


@click.group(
    "xbuf",
    cls=_LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit codes: 0 all good, 1 trouble in the data, 2 wrong usage, 3 database or output not usable,"
    " 4 not all could be checked, 130 interrupted.",
)
@click.version_option(VERSION, prog_name="xbuf")
def xbuf() -> None:
    """Ask a database of XLA buffer-assignment dumps.

    \b
    Example:
      xbuf runs --top 5
    """


def main() -> None:
    """Entry point."""
    run(xbuf)
