"""`xbuf trend`: how the peak of a module develops."""

from __future__ import annotations

from pathlib import Path

import click
from click.shell_completion import CompletionItem

from ingest.cli.answer import file_option
from ingest.cli.interrupts import reading
from ingest.cli.references import database_of, known_modules, offered
from ingest.cli.streams import echo
from ingest.cli.terminal import ANY_DATABASE_OPTION
from ingest.errors import UsageError


class _Module(click.ParamType[str]):
    name = "module"

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        return offered(known_modules(database_of(ctx)), incomplete)


@click.command()
@click.argument("module", type=_Module())
@ANY_DATABASE_OPTION
@click.option("--by", metavar="KEY", help="A point for each value of this label.  [default: for each import]")
@click.option("--backend", type=click.Choice(["cpu", "gpu", "tpu"]), help="Of a module compiled for several.")
@file_option("Write .svg or .csv instead.")
def trend(module: str, database: str, by: str | None, backend: str | None, output: Path | None) -> None:
    """Show the peak of a module over imports, or over the values of a label in order of version.

    Of several runs at one point, that of the highest peak stands. The greatest growth is marked, with the
    command that says what grew.

    \b
    Example:
      xbuf trend jit_step --by batch
    """
    from ingest.compare.trend import as_csv, as_svg, as_text, read_trend
    from ingest.query.output import write_bytes

    ending = output.suffix.lower() if output else ""
    if output and ending not in (".svg", ".csv"):
        raise UsageError(f"{output}: name a file that ends in .svg or .csv")
    with reading(database) as connection:
        points = read_trend(connection, module, by, backend)
    if output:
        text = as_csv(points) if ending == ".csv" else as_svg(points, f"{module}: peak by {by or 'import'}")
        write_bytes(text.encode(), output, database=database)
        return
    for line in as_text(points, by or "import"):
        echo(line)
