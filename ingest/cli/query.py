"""`xbuf query`, `xbuf sql` and `xbuf shell`: ask the database."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Callable
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource
from click.shell_completion import CompletionItem

from ingest.cli.answer import Output, answer, output_options
from ingest.cli.interrupts import reading
from ingest.cli.references import database_of, is_plain, known_labels, known_modules, known_runs, offered
from ingest.cli.streams import echo, flush_stdout, say
from ingest.cli.terminal import ANY_DATABASE_HELP, ANY_DATABASE_OPTION, DATABASE_OPTION
from ingest.errors import UsageError
from ingest.query.catalog import STARTERS, Catalog, by_topic, find_catalog
from ingest.query.comparison import SIDES
from ingest.query.header import NARROWING, Parameter, SavedQuery, Value, read_query

if TYPE_CHECKING:
    import duckdb

_UNSAFE_OPTION = click.option(
    "--unsafe",
    is_flag=True,
    help="Let the SQL do more than read the database: read and write files, load extensions.",
)


_METAVARS = {"BIGINT": "n", "DOUBLE": "number", "VARCHAR": "text", "BOOLEAN": "true|false"}
"""What the help shows for a type; texts with choices list them."""


class _Text(click.ParamType[Any]):
    """A parameter of a query: checked by its type, completed from its choices or the database."""

    def __init__(self, parameter: Parameter) -> None:
        self.parameter = parameter
        self.name = "size" if parameter.unit == "bytes" else _METAVARS[parameter.type]

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str | None:
        return self.name.upper()

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        from ingest.query.run import convert

        return convert(self.parameter, value) if isinstance(value, str) else value

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        database = database_of(ctx)
        if self.parameter in NARROWING:
            known = _COMPLETED[self.parameter.name](database)
        elif self.parameter.name in SIDES:
            known = known_runs(database)
        elif self.parameter.type == "BOOLEAN":
            known = ["true", "false"]
        else:
            known = list(self.parameter.choices)
        return offered(known, incomplete)


class _QueryCommand(click.Command):
    """The command of one saved query."""

    query: SavedQuery

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        query = self.query
        formatter.write_paragraph()
        with formatter.indentation():
            formatter.write_text(query.question or f"Run {query.path}.")
            if query.note:
                formatter.write_paragraph()
                formatter.write_text(query.note)
        if query.columns:
            with formatter.section("Columns"):
                formatter.write_dl([
                    (column.name, f"{column.text} [{column.unit}]" if column.unit else column.text)
                    for column in query.columns
                ])  # fmt: skip


class _QueryGroup(click.Group):
    """Saved queries as commands; each file is read when it is called."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        # --queries says which commands there are, so it may also stand behind the command's name.
        ahead, rest, words = [], [], iter(args)
        for word in words:
            if word == "--queries":
                ahead += [word, *([value] if (value := next(words, None)) is not None else [])]
            elif word.startswith("--queries="):
                ahead.append(word)
            else:
                rest.append(word)
        return super().parse_args(ctx, [*ahead, *rest])

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_catalog(ctx))

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        return [item for item in super().shell_complete(ctx, incomplete) if is_plain(item.value)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name.endswith(".sql") or os.sep in cmd_name:
            return _command(read_query(Path(cmd_name)))
        catalog = _catalog(ctx)
        return _command(catalog.load(cmd_name)) if cmd_name in catalog else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        command = self.get_command(ctx, name)
        if command is None:
            _catalog(ctx).load(name)  # raises: there is no such query
        return name, command, args[1:]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for topic, queries in by_topic(_catalog(ctx).load_all()):
            with formatter.section(f"Queries: {topic}"):
                formatter.write_dl([(query.name, query.title) for query in queries])


@click.group(
    "query",
    cls=_QueryGroup,
    invoke_without_command=True,
    subcommand_metavar="[NAME|FILE.sql] [OPTIONS]...",
)
@ANY_DATABASE_OPTION
@click.option(
    "--queries",
    "folders",
    multiple=True,
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Folder with query files of your own; also XBUF_QUERIES.",
)
@click.pass_context
def query(ctx: click.Context, database: str, folders: tuple[Path, ...]) -> None:
    """Ask a saved question; without a name, list them all by topic.

    `xbuf query NAME --help` says what a query answers, its columns and its options. A file of your own
    runs by its path.

    \b
    Example:
      xbuf query largest_live_out --top 5 --by color
    """
    if ctx.invoked_subcommand is None:
        queries = find_catalog(folders).load_all()
        width = max(len(saved.name) for saved in queries)
        first = [saved for name in STARTERS for saved in queries if saved.name == name]
        for topic, group in (("to start with", first), *by_topic(queries)):
            echo(f"{topic}:")
            for saved in group:
                echo(f"  {saved.name:<{width}}  {saved.title}")
        echo("\nxbuf query NAME --help explains one; xbuf show RUN answers the first of them for one run")


@click.command("sql")
@click.argument("statement")
@ANY_DATABASE_OPTION
@output_options()
@_UNSAFE_OPTION
def sql(statement: str, database: str, output: Output, unsafe: bool) -> None:
    """Run a SELECT of your own; `-` reads it from stdin.

    The saved queries are there as macros: FROM largest_live_out(top := 5). Columns whose names end in
    _bytes are shown as sizes.

    \b
    Example:
      xbuf sql "SELECT backend, count(*) AS runs FROM runs GROUP BY ALL"
    """
    from ingest.lake.reading import install_macros
    from ingest.query.run import run_sql

    text = _read_stdin() if statement == "-" else statement
    with reading(database, unsafe=unsafe) as connection:
        install_macros(connection, database, text)
        written = output.write(run_sql(connection, text, unsafe=unsafe), database)
        if written.rows == 0:
            say("no row")


@click.command("shell", context_settings={"ignore_unknown_options": True})
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@DATABASE_OPTION
@click.option("--write", is_flag=True, help="Open for writing; keeps imports waiting while it is open.")
def shell(arguments: tuple[str, ...], database: str, write: bool) -> None:
    """Open the database in the duckdb shell, read-only. ARGUMENTS go to the shell.

    \b
    Example:
      xbuf shell -c "FROM saved_queries"
    """
    from ingest.database.connect import open_database

    program = shutil.which("duckdb") or shutil.which("duckdb", path=str(Path(sys.executable).parent))
    if program is None:
        raise UsageError(f"the duckdb shell is not installed; `{_shell_line()}` brings it, or use `xbuf sql`")
    open_database(database, read_only=True).close()
    flush_stdout()
    os.execv(program, ["duckdb", *([] if write else ["-readonly"]), database, *arguments])


def _shell_line() -> str:
    """Return the line that installs the shell where this program is installed."""
    place = Path(sys.prefix).parts
    if "pipx" in place:
        return "pipx inject xbuf duckdb-cli"
    if place[-3:-1] == ("uv", "tools"):
        return "uv tool install --with duckdb-cli xbuf"
    return f"{shlex.quote(sys.executable)} -m pip install duckdb-cli"


def _read_stdin() -> str:
    try:
        return sys.stdin.buffer.read().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"stdin: SQL is UTF-8, and byte {error.start} is not") from error


def _catalog(ctx: click.Context) -> Catalog:
    return find_catalog(ctx.params.get("folders") or ())


def _command(saved: SavedQuery) -> click.Command:
    """Make the command of a query: an option for each of its parameters."""
    params: list[click.Parameter] = []
    for parameter in saved.parameters:
        narrowing = parameter in NARROWING
        metavar, text = _NARROWING_HELP[parameter.name] if narrowing else (None, _help(parameter))
        params.append(
            click.Option(
                [parameter.option, parameter.name],
                type=_Text(parameter),
                multiple=narrowing and parameter.name != "module",
                metavar=metavar,
                help=text,
            )
        )
    params.append(click.Option(["--db", "database"], metavar="PATH", help=ANY_DATABASE_HELP))
    params.append(click.Option(["--sql", "show_sql"], is_flag=True, help="Print the SQL that would run."))
    command = _QueryCommand(
        saved.name,
        params=params,
        callback=output_options()(_UNSAFE_OPTION(_runner(saved))),
        help=saved.question,
        short_help=saved.title,
        epilog="\b\nExample:\n  " + _example(saved),
    )
    command.query = saved
    command.params += reversed(getattr(command.callback, "__click_params__", []))
    return command


_COMPLETED = {"run": known_runs, "label": known_labels, "module": known_modules}
_NARROWING_HELP = {
    "run": ("RUN", "Only this run: a number, latest, a module, module@key=value ...; may be given again."),
    "label": (
        "KEY=VALUE",
        "Only runs with this label; the value may be a glob; may be given again, all must hold.",
    ),
    "module": ("GLOB", "Only modules whose name matches, e.g. 'jit_train*'."),
}


def _help(parameter: Parameter) -> str:
    text = parameter.text
    if parameter.choices:
        text += f" ({', '.join(parameter.choices)})"
    default = parameter.default
    if default is not None:
        text += f"  [default: {str(default).lower() if isinstance(default, bool) else default}]"
    return text


def _example(saved: SavedQuery) -> str:
    name = saved.name if saved.described and saved.question else str(saved.path)
    return f"xbuf query {name} {saved.example}".rstrip()


def _runner(saved: SavedQuery) -> Callable[..., None]:
    @click.pass_context
    def run(
        ctx: click.Context,
        /,
        database: str | None,
        show_sql: bool,
        output: Output,
        unsafe: bool,
        **given: Any,
    ) -> None:
        from ingest.query.run import bind, sql_text

        database = database or database_of(ctx)
        asked = {name: value for name, value in given.items() if _is_given(ctx, name)}
        with ExitStack() as stack:

            @cache
            def opened() -> duckdb.DuckDBPyConnection:
                return stack.enter_context(reading(database, unsafe=unsafe))

            numbered = _with_numbers(asked, opened)
            values = bind(saved, {name: _joined(name, value) for name, value in numbered.items()})
            if show_sql:
                echo(sql_text(saved, values))
            else:
                answer(opened(), saved, values, output, database, unsafe=unsafe)

    return run


def _is_given(ctx: click.Context, name: str) -> bool:
    """Return whether an option stood on the command line (its value may be null)."""
    return ctx.get_parameter_source(name) == ParameterSource.COMMANDLINE


def _joined(name: str, value: Any) -> Value:
    """Join the values of an option that was given several times, as the parameter wants them."""
    if not isinstance(value, tuple):
        return value  # type: ignore[no-any-return]
    if name == "run":
        return ",".join(value)
    return ",".join(text.replace(",", "?") for text in value)


def _with_numbers(given: dict[str, Any], opened: Callable[[], duckdb.DuckDBPyConnection]) -> dict[str, Any]:
    """Put the numbers of runs in the place of other references, in --run and the sides of a comparison.

    The database is `opened` where there are such references.
    """
    from ingest.query.references import is_number, names_runs, resolve

    wanted = {
        text
        for name, value in given.items()
        if name == "run" or name in SIDES
        for text in (value if isinstance(value, tuple) else (value,))
        if isinstance(text, str) and (not is_number(text) if name == "run" else names_runs(text))
    }
    if not wanted:
        return given
    found = {text: ",".join(map(str, resolve(opened(), text))) for text in wanted}
    return {
        name: tuple(found.get(text, text) for text in value)
        if isinstance(value, tuple) and name == "run"
        else found.get(value, value)
        if name in SIDES
        else value
        for name, value in given.items()
    }
